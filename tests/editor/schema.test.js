// The schemas in an editor: what the language server offers, tells and refuses.
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {LanguageServer} = require('./language_server.js');

const ROOT = path.join(__dirname, '..', '..');
const LINE = '# yaml-language-server: $schema=../schema/scenario.schema.json\n';
const SCENARIO = LINE + `version: 1
model:
  uniform: {layers: 8, forward: 1 ms, backward: 2 ms}
cluster:
  devices: 4
schedule:
  name: 1f1b
  micro_batches: 8
`;

let server;
before(async () => {
  server = new LanguageServer();
  await server.start();
});
after(() => server.stop());

const numbers = new Map();
/// Opens `text` as a scenario in examples/; calls `use` with its address and what is wrong in it.
async function scenario(text, use) {
  const number = numbers.size;
  numbers.set(number, true);
  const {uri, found} = await server.open(path.join(ROOT, 'examples', `typed-${number}.yaml`), text);
  await use(uri, found);
  server.close(uri);
}

/// The place of the '|' in `text`, and the text without it.
function cursor(text) {
  const at = text.indexOf('|');
  const lines = text.slice(0, at).split('\n');
  return {
    text: text.slice(0, at) + text.slice(at + 1),
    position: {line: lines.length - 1, character: lines.at(-1).length},
  };
}

async function completions(marked) {
  const {text, position} = cursor(marked);
  let labels = [];
  await scenario(text, async (uri) => {
    const result = await server.request('textDocument/completion', {textDocument: {uri}, position});
    labels = (result.items ?? result).map((item) => item.label);
  });
  return labels;
}

async function hover(marked) {
  const {text, position} = cursor(marked);
  let told = '';
  await scenario(text, async (uri) => {
    const result = await server.request('textDocument/hover', {textDocument: {uri}, position});
    told = result.contents.value.replaceAll('\\', '');  // of Markdown
  });
  return told;
}

async function problems(text) {
  let messages = [];
  await scenario(text, (uri, found) => {
    messages = found.map((problem) => `${problem.range.start.line + 1}: ${problem.message}`);
  });
  return messages;
}

test('a key is completed from those of its section', async () => {
  const labels = await completions(SCENARIO + '  |\n');
  for (const key of ['mini_batches', 'transfers', 'recompute', 'bucket'])
    assert.ok(labels.includes(key), key);
  assert.ok(!labels.includes('devices'), 'a key of another section');
  const sections = await completions(SCENARIO + '|\n');
  for (const key of ['plan', 'training', 'overhead', 'noise'])
    assert.ok(sections.includes(key), key);
});

test('a value is completed from the words that it may be', async () => {
  const labels = await completions(SCENARIO.replace('1f1b', '|'));
  for (const name of ['gpipe', '1f1b', 'pipedream']) assert.ok(labels.includes(name), name);
});

test('hovering over a key tells what it says, its units and what it is when absent', async () => {
  assert.match(await hover(SCENARIO.replace('devices', 'dev|ices')), /How many devices there are/);
  const bucket = await hover(SCENARIO + '  buc|ket: 1 MiB\n');
  assert.match(bucket, /all-reduced at once/);
  assert.match(bucket, /units: .*MiB/);
  assert.match(bucket, /Absent: with data-parallel, and with zero_stage 2 and 3, 25 MiB/);
  assert.match(
      await hover(SCENARIO.replace('cluster', 'clu|ster')), /The devices and what links them/);
});

test('a right scenario has no errors', async () => {
  assert.deepStrictEqual(await problems(SCENARIO), []);
});

test('an unknown key is an error at its line', async () => {
  const [message, ...others] = await problems(SCENARIO + '  mikro_batches: 3\n');
  assert.match(message, /^10: .*mikro_batches/);
  assert.deepStrictEqual(others, []);
});

test('a wrong value is an error at its line', async () => {
  for (const [right, wrong, line] of [
           ['name: 1f1b', 'name: 1f1d', 8],
           ['micro_batches: 8', 'micro_batches: 0', 9],
           ['micro_batches: 8', 'micro_batches: many', 9],
           ['devices: 4', 'devices: [4]', 6],
           ['forward: 1 ms', 'forward: 1', 4],
           ['forward: 1 ms', 'forward: 1 parsec', 4],
           ['devices: 4', 'devices: 4\n  link: free', 7],
           ['version: 1', 'version: 2', 2],
  ]) {
    const found = await problems(SCENARIO.replace(right, wrong));
    assert.ok(found.some((message) => message.startsWith(`${line}: `)), `${wrong}: ${found}`);
  }
});

test('a missing key is an error', async () => {
  assert.ok((await problems(SCENARIO.replace('version: 1\n', ''))).some((m) => /version/.test(m)));
});

test('every file in examples/ names its schema and fits it', async () => {
  let files = 0;
  for (const folder of ['examples', 'examples/networks', 'examples/profiles']) {
    for (const name of fs.readdirSync(path.join(ROOT, folder))
             .filter((file) => file.endsWith('.yaml'))) {
      const text = fs.readFileSync(path.join(ROOT, folder, name), 'utf8');
      const line = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text);
      assert.ok(line, `${folder}/${name} names no schema`);
      assert.ok(
          fs.existsSync(path.join(ROOT, folder, line[1])),
          `${folder}/${name}: there is no ${line[1]}`);
      const {uri, found} = await server.open(path.join(ROOT, folder, name), text);
      assert.deepStrictEqual(found.map((problem) => problem.message), [], `${folder}/${name}`);
      server.close(uri);
      files += 1;
    }
  }
  assert.ok(files > 30, `${files} files`);
});

test('what is wrong with a malformed scenario by itself the editor tells too', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bad-'));
  childProcess.execFileSync('bash', [path.join(ROOT, 'tests', 'bad.sh'), '--extract', folder]);
  const telling =
      /unknown key '|is not between|has no unit|unknown unit|which is no schedule\b|not a whole number|is wanted|is above|has no value|is negative|neither true nor false/;
  // A schema knows values, not how they are written: 2.0 is whole, 1e3 a number, 08 is 8.
  const written = new Set(['count-fraction.yaml']);
  let refused = 0;
  const accepted = [];
  const cases = fs.readdirSync(path.join(folder, 'check'), {recursive: true})
                    .filter(name => path.basename(name) === '.stderr')
                    .map(name => path.join(folder, 'check', path.dirname(name)));
  for (const place of cases) {
    if (!fs.existsSync(path.join(place, '.first')) || fs.existsSync(path.join(place, '.arguments')))
      continue;
    const name = fs.readFileSync(path.join(place, '.first'), 'utf8').trim();
    const first = fs.readFileSync(path.join(place, '.stderr'), 'latin1').split('\n')[0];
    if (!first.startsWith(`${name}:`) || !telling.test(first)) continue;
    const text = fs.readFileSync(path.join(place, name), 'utf8');
    const kind = /^kind: *(network|profile)/m.exec(text)?.[1] ?? 'scenario';
    const found = await problems(LINE.replace('scenario', kind) + text);
    if (found.length > 0)
      refused += 1;
    else if (!written.has(name))
      accepted.push(first);
  }
  fs.rmSync(folder, {recursive: true});
  assert.deepStrictEqual(accepted, [], 'refused by the command alone');
  assert.ok(refused > 30, `only ${refused} are looked at`);
  console.log(`# ${refused} malformed files refused`);
});
