// Runs the program of docs/how-to/javascript.md beside the module, and compares what it prints with the page.
// Usage: node page.mjs ENGINE_FOLDER
// SPDX-License-Identifier: MIT
import {execFileSync} from 'node:child_process';
import {readFileSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const [engine] = process.argv.slice(2);
const page = readFileSync('docs/how-to/javascript.md', 'utf8');
const block = (language) => page.split(`\`\`\`${language}\n`)[1].split('```')[0];
const program = join(engine, 'page.mjs');
writeFileSync(program, block('js'));
const printed = execFileSync(process.execPath, [program], {encoding: 'utf8'});
rmSync(program);
const wanted = block('text');
if (printed !== wanted) {
  console.log(`FAILED: docs/how-to/javascript.md says\n${wanted}but its program prints\n${printed}`);
  process.exit(1);
}
console.log('the program of docs/how-to/javascript.md prints what the page says');
