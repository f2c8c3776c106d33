// Orders as texts: "F0 F1 B0 ..." of each GPU in the editor, and cells such as 0F0 in PyTorch's
// CSV. SPDX-License-Identifier: MIT

/** The ops of each GPU of an order in PyTorch's CSV, without their stages. */
export function lanesOfCsv(csv) {
  return csv.trim().split('\n').map(
      (row) =>
          row.split(',').map((cell) => cell.trim().replace(/^\d+/, '')).filter((op) => op !== ''));
}

/** The ops of lanes as PyTorch's CSV: stage g on GPU g. */
export function csvOfLanes(lanes) {
  return `${lanes.map((ops, gpu) => ops.map((op) => `${gpu}${op}`).join(',')).join('\n')}\n`;
}

/** The ops in a text, in upper case; spaces, commas and semicolons stand between them. */
export function opsOfText(text) {
  return text.toUpperCase()
      .split(/[\s,;]+/)
      .filter((op) => op !== '')
      .map((op) => op.replace(/^\d+(?=[FBIW])/, ''));
}

/** Lanes in the page's address: "F0.B0_F0.B0". */
export function lanesInShort(lanes) {
  return lanes.map((ops) => ops.join('.')).join('_');
}

/** Lanes of a text of the address. */
export function lanesOfShort(text) {
  return text.split('_').map((lane) => lane.split('.').filter((op) => op !== ''));
}

/** Where each GPU is stuck, of the engine's message on a deadlock: {gpu, op, other}. */
export function waitsOf(message) {
  const found = message.matchAll(/device (\d+): next is (\S+), which waits for (\S+)/g);
  return Array.from(found, ([, gpu, op, other]) => ({gpu: Number(gpu), op, other}));
}
