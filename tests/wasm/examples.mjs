// Compares the module's JSON of every example with the command's, byte for byte.
// Usage: node examples.mjs ENGINE_FOLDER NATIVE_FOLDER       NATIVE_FOLDER/NAME.json, .err of each examples/NAME.yaml
// SPDX-License-Identifier: MIT
import {existsSync, readdirSync, readFileSync, statSync} from 'node:fs';
import {join, resolve} from 'node:path';

const [engine, native] = process.argv.slice(2);
const {openPlumbline, PlumblineError} = await import(resolve(engine, 'plumbline.mjs'));
const plumbline = await openPlumbline();

function copy(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) copy(path);
    else plumbline.writeFile(path, readFileSync(path));
  }
}
copy('examples');

let same = 0;
const failures = [];
for (const name of readdirSync(native).filter((name) => name.endsWith('.json'))) {
  const file = `examples/${name.replace(/\.json$/, '.yaml')}`;
  const wanted = readFileSync(join(native, name), 'utf8');
  let got;
  try {
    got = plumbline.ask({ask: 'simulate', file, want: ['json']}).json;
  } catch (error) {
    if (!(error instanceof PlumblineError)) throw error;
    got = '';
    const told = join(native, name.replace(/\.json$/, '.err'));
    if (existsSync(told) && wanted === '' && readFileSync(told, 'utf8').includes(error.problems[0].message)) {
      ++same;
      continue;
    }
    failures.push(`${file}: ${error.message}`);
    continue;
  }
  if (got.trimEnd() === wanted.trimEnd()) ++same;
  else failures.push(`${file}: ${difference(wanted, got)}`);
}

function difference(wanted, got) {
  const a = wanted.split('\n'), b = got.split('\n');
  const at = a.findIndex((line, i) => line !== b[i]);
  return `line ${at + 1}: the command says ${a[at]}, the module ${b[at]}`;
}

const ops = plumbline.ops({file: 'examples/four-stages.yaml'});
if (ops.kind.length !== ops.begin_ns.length || !ops.kind.startsWith('F')) failures.push('ops of four-stages.yaml');
const {decodeRun, fromBase64, NumberReader} = await import(resolve('sim/report/page/codec.js'));
const {layout, columns} = plumbline.timeline({file: 'examples/four-stages.yaml'});
const decoded = decodeRun(new NumberReader(fromBase64(columns)), layout);
const starts = (list) => JSON.stringify([...list].sort((a, b) => a - b));
if (starts(decoded.begin.subarray(0, decoded.starts[decoded.slots])) !== starts(ops.begin_ns))
  failures.push('the timeline of four-stages.yaml is not that of its ops');
const rows = plumbline.sweep({file: 'examples/four-stages.yaml'}, ['schedule.micro_batches=4,8']);
if (rows.rows?.length !== 2) failures.push(`a sweep: ${Object.keys(rows)}`);
try {
  plumbline.simulate('version: 1\nmodel: {uniform: {layers: x}}\n');
  failures.push('a wrong scenario is no error');
} catch (error) {
  const told = error.problems?.find(({message}) => message.includes("'x'"));
  if (told?.line !== 2 || told.column !== 27) failures.push(`a wrong scenario: ${error}`);
}

try {
  plumbline.simulate(undefined);
  failures.push('no scenario is no error');
} catch (error) {
  if (!(error instanceof TypeError)) failures.push(`no scenario: ${error}`);
}

for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(`${same} examples are the same, ${failures.length} failed`);
process.exit(failures.length ? 1 : 0);
