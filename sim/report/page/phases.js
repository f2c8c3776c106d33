// A run in steps, as a lecturer goes through it: phase by phase, or op by op.
// SPDX-License-Identifier: MIT
import {CLASS_OF_KIND} from './density.js';
import {formatPercent, formatTime} from './format.js';
import {firstAfter, firstWhere, itemName} from './run.js';

const LAST_OF_MICRO_BATCHES = 6;  // kinds up to this one are F, B, I, W and their parts
const FLUSH_KIND = 16;

/** Where mini-batches end: their flushes, and the end of the run. */
function endsOfMiniBatches(run) {
  const lane = run.starts.length - 2;
  const ends = [];
  for (let item = run.starts[lane]; item < run.starts[lane + 1]; ++item)
    if (run.kind[item] === FLUSH_KIND) ends.push(run.end[item]);
  ends.sort((a, b) => a - b);
  ends.pop();
  return [...ends, run.layout.makespan];
}

/** When each device begins and ends its work on micro-batches between two times; none = no work. */
function workOfDevices(run, from, until) {
  const found = [];
  for (let slot = 0; slot < run.slots; ++slot) {
    let begin = Infinity;
    let end = -Infinity;
    for (let item = firstAfter(run, slot, from); item < run.starts[slot + 1]; ++item) {
      if (run.begin[item] >= until) break;
      if (run.kind[item] > LAST_OF_MICRO_BATCHES) continue;
      begin = Math.min(begin, run.begin[item]);
      end = Math.max(end, run.end[item]);
    }
    if (end > begin) found.push({slot, begin, end});
  }
  return found;
}

/** The share of the device time between two times that is idle. */
export function idleShare(run, from, until) {
  let idle = 0;
  for (const gaps of run.gaps) {
    let i = firstWhere(0, gaps.begin.length, (k) => gaps.end[k] > from);
    for (; i < gaps.begin.length && gaps.begin[i] < until; ++i)
      idle += Math.min(gaps.end[i], until) - Math.max(gaps.begin[i], from);
  }
  return idle / (run.slots * (until - from));
}

/** The phases of one mini-batch: {name, from, until, words}. */
function phasesOfMiniBatch(run, from, until) {
  const devices = workOfDevices(run, from, until);
  if (devices.length === 0) return [{name: 'no work', from, until, words: 'No device has work.'}];
  const time = (ticks) => formatTime(ticks * run.layout.tick_ns);
  const device = ({slot}) => `device ${run.layout.devices[slot]}`;
  const lastToStart = devices.reduce((a, b) => (b.begin > a.begin ? b : a));
  const firstToEnd = devices.reduce((a, b) => (b.end < a.end ? b : a));
  const end = Math.max(...devices.map((one) => one.end));
  const started = lastToStart.begin;
  const ran = firstToEnd.end;
  const middle = started <= ran ?
      {name: 'Steady', words: 'All devices have started, and none has run out of work.'} :
      {
        name: 'Fill and drain at once',
        words: 'The first devices run out of work before the last ones start.'
      };
  return [
    {
      name: 'Fill',
      from,
      until: Math.min(started, ran),
      words: `The devices start one after the other. The last one, ${
          device(lastToStart)}, starts at ${time(started)}.`,
    },
    {...middle, from: Math.min(started, ran), until: Math.max(started, ran)},
    {
      name: 'Drain',
      from: Math.max(started, ran),
      until: end,
      words: `The devices run out of work one after the other. The first one, ${
          device(firstToEnd)}, ends at ${time(ran)}.`,
    },
    {name: 'Update', from: end, until, words: 'Gradients are summed, and the weights are updated.'},
  ].filter((phase) => phase.until > phase.from);
}

/** The phases of a run; of several mini-batches each has its own. */
export function phasesOf(run) {
  const ends = endsOfMiniBatches(run);
  return ends.flatMap(
      (until, i) => phasesOfMiniBatch(run, i === 0 ? 0 : ends[i - 1], until)
                        .map((phase) => ({
                               ...phase,
                               name: ends.length > 1 ?
                                   `${phase.name}, mini-batch ${i + 1} of ${ends.length}` :
                                   phase.name,
                               words: `${phase.words} ${
                                   formatPercent(idleShare(
                                       run, phase.from, phase.until))} of the device time is idle.`,
                             })));
}

/** The times at which ops begin, each once, ascending. */
export function beginsOf(run) {
  const begins = [];
  for (let item = 0; item < run.starts[run.slots]; ++item)
    if (CLASS_OF_KIND[run.kind[item]] !== 255 && run.end[item] > run.begin[item])
      begins.push(run.begin[item]);
  return Float64Array.from(begins).sort().filter((time, i, all) => i === 0 || time !== all[i - 1]);
}

/** The ops that begin at a time. */
export function opsBeginningAt(run, time) {
  const found = [];
  for (let slot = 0; slot < run.slots; ++slot) {
    const item = firstAfter(run, slot, time);
    if (item < run.starts[slot + 1] && run.begin[item] === time) found.push({slot, item});
  }
  return found;
}

/** What begins at a time, in words. */
export function beginningInWords(run, time) {
  const MOST = 6;
  const ops = opsBeginningAt(run, time);
  const names = ops.slice(0, MOST).map(
      ({slot, item}) => `${itemName(run, item)} on device ${run.layout.devices[slot]}`);
  const more = ops.length > MOST ? `, and ${ops.length - MOST} more` : '';
  return `${names.join(', ')}${more} ${ops.length === 1 ? 'begins' : 'begin'}.`;
}
