// Makes the engine's one script: what Emscripten linked, the compressed module as text, and the interface as globals. A
// page that is opened from a disk may neither load a file nor import a module.
// Usage: node pack.mjs LINKED_SCRIPT MODULE INTERFACE OUTPUT
// SPDX-License-Identifier: MIT
import {readFileSync, writeFileSync} from 'node:fs';
import {gzipSync} from 'node:zlib';

const [script, module, face, output] = process.argv.slice(2);
const text = gzipSync(readFileSync(module), {level: 9}).toString('base64');
const functions = readFileSync(face, 'utf8').replace(/^export /gm, '');
writeFileSync(output, `${readFileSync(script, 'utf8')}
globalThis.createPlumblineEngine = createPlumblineEngine;
globalThis.plumblineModule = '${text}';
(() => {
${functions}
Object.assign(globalThis, {openPlumbline, PlumblineError});
})();
`);
