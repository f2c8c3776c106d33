// Plumbline in JavaScript, for node and for pages: scenarios in, predictions out. Nothing is loaded from elsewhere.
// plumbline_engine.js contains the same functions as globals, for pages that are opened from a disk.
// SPDX-License-Identifier: MIT
//
//   import {openPlumbline} from './plumbline.mjs';
//   const plumbline = await openPlumbline();
//   const run = plumbline.simulate('version: 1\nmodel: ...', ['schedule.name=gpipe']);
//   console.log(run.iteration_time_s);

/** A wrong scenario or setting: `message` as the command prints it, `problems` with file, line, column and help. */
export class PlumblineError extends Error {
  constructor(answer) {
    super(answer.error);
    this.name = 'PlumblineError';
    this.problems = answer.problems;
  }
}

/** The answer where the module has no memory even to say so. */
const NO_MEMORY = {error: 'the module has no memory left: make the run smaller', problems: []};

class Plumbline {
  #engine;

  constructor(engine) {
    this.#engine = engine;
  }

  /** Writes a file that scenarios may name. Folders are made. */
  writeFile(path, content) {
    const folder = path.replace(/\/[^/]*$/, '');
    if (folder && folder !== path) this.#engine.FS.mkdirTree(folder);
    this.#engine.FS.writeFile(path, content);
  }

  /** Asks the engine; wasm/engine.cpp says what. */
  ask(question) {
    const text = JSON.stringify(question);
    const engine = this.#engine;
    const size = engine.lengthBytesUTF8(text) + 1;
    const asked = engine._malloc(size);
    let told = 0;
    let answer;
    try {
      if (asked) engine.stringToUTF8(text, asked, size);
      told = asked && engine._plumbline_ask(asked);
      answer = told ? JSON.parse(engine.UTF8ToString(told)) : NO_MEMORY;
    } finally {
      engine._free(asked);
      engine._free(told);
    }
    if ('error' in answer) throw new PlumblineError(answer);
    return answer;
  }

  /** The prediction of a scenario, a text or {file: path}: what `simulate --json` prints, as an object. */
  simulate(scenario, settings = []) {
    return JSON.parse(this.ask({ask: 'simulate', ...inputOf(scenario), settings, want: ['json']}).json);
  }

  /** The ops of the same run, in columns: device, stage, micro_batch, kind, begin_ns, end_ns. */
  ops(scenario, settings = []) {
    return this.ask({ask: 'simulate', ...inputOf(scenario), settings, want: ['ops']}).ops;
  }

  /** The same run for the canvas of the HTML report: {layout, columns}, which sim/report/page/codec.js decodes. */
  timeline(scenario, settings = []) {
    return this.ask({ask: 'simulate', ...inputOf(scenario), settings, want: ['timeline']}).timeline;
  }

  /** Several values of keys, such as 'schedule.micro_batches=2,4,8': what `sweep --json` prints, as an object. */
  sweep(scenario, settings = [], objective = 'throughput') {
    return JSON.parse(this.ask({ask: 'sweep', ...inputOf(scenario), settings, objective}).json);
  }

  version() {
    return this.ask({ask: 'version'}).version;
  }
}

function inputOf(scenario) {
  if (typeof scenario === 'string') return {text: scenario};
  if (typeof scenario?.file === 'string' || typeof scenario?.text === 'string') return scenario;
  throw new TypeError('a scenario is a text in YAML, or {file: path}');
}

/** The bytes of the module, which stand in the engine's script as compressed text. */
async function moduleBytes() {
  const letters = atob(globalThis.plumblineModule);
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) packed[i] = letters.charCodeAt(i);
  const source = new ReadableStream({
    start(controller) {
      controller.enqueue(packed);
      controller.close();
    },
  });
  const parts = [];
  const reader = source.pipeThrough(new DecompressionStream('gzip')).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Opens the engine. The folder of plumbline_engine.js is that of this module, or the page has it as a script. */
export async function openPlumbline() {
  if (!globalThis.createPlumblineEngine) await import('./plumbline_engine.js');
  return new Plumbline(await globalThis.createPlumblineEngine({wasmBinary: await moduleBytes()}));
}
