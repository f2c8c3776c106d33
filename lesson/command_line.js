// The command that says the same on the reader's machine.
// SPDX-License-Identifier: MIT

/** A word as a shell takes it: quoted where it has other than plain characters. */
export function shellWord(word) {
  return /^[\w.,:=/+%-]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`;
}

/** `plumbline simulate FILE key=value ...`. */
export function commandLine(file, settings) {
  return ['plumbline', 'simulate', file, ...settings].map(shellWord).join(' ');
}
