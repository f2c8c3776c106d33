// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {beginningInWords, beginsOf, idleShare, opsBeginningAt, phasesOf} from '../../../sim/report/page/phases.js';

import {makeRun} from './runs.js';

// Two devices, two micro-batches: F0 F1 - B0 B1 above, - F0 B0 F1 B1 - below; then an update.
const upper = [[0, 0, 1, 0], [0, 1, 2, 1], [1, 4, 6, 0], [1, 7, 9, 1], [7, 9, 10, 0]];
const lower = [[0, 1, 2, 0], [1, 2, 4, 0], [0, 4, 5, 1], [1, 5, 7, 1], [7, 9, 10, 0]];
const gaps = [
  {begin: [2, 6], end: [4, 7], cause: [2, 2]},
  {begin: [0, 7], end: [1, 9], cause: [0, 1]},
];
const runOf = (upperLane, lowerLane, moments = []) => {
  const run = makeRun(2, [upperLane, lowerLane, moments], {gaps});
  run.layout.makespan = 10;
  return run;
};
const run = runOf(upper, lower);

test('a run has a fill, a steady part, a drain and its updates', () => {
  assert.deepEqual(
      phasesOf(run).map(({name, from, until}) => [name, from, until]),
      [['Fill', 0, 1], ['Steady', 1, 7], ['Drain', 7, 9], ['Update', 9, 10]]);
  const [fill, steady, drain] = phasesOf(run);
  assert.ok(fill.words.includes('device 1, starts at 1 ns. 50.00 % of the device time is idle.'));
  assert.ok(steady.words.endsWith('25.00 % of the device time is idle.'), steady.words);
  assert.ok(drain.words.includes('The first one, device 1, ends at 7 ns.'), drain.words);
});

test('where the first devices end before the last ones start, nothing is steady', () => {
  const early = runOf([[0, 0, 2, 0]], [[0, 6, 8, 0]]);
  assert.deepEqual(
      phasesOf(early).map(({name, from, until}) => [name, from, until]),
      [['Fill', 0, 2], ['Fill and drain at once', 2, 6], ['Drain', 6, 8], ['Update', 8, 10]]);
});

test('each mini-batch has its phases', () => {
  const names = phasesOf(runOf(
                             [[0, 0, 1, 0], [1, 2, 4, 0], [0, 5, 6, 1], [1, 7, 10, 1]],
                             [[0, 1, 2, 0], [1, 2, 5, 0], [0, 6, 7, 1], [1, 7, 8, 1]],
                             [[16, 5, 5, 0], [16, 10, 10, 1]]))
                    .map(({name}) => name);
  assert.equal(names[0], 'Fill, mini-batch 1 of 2');
  assert.equal(names.filter((name) => name.startsWith('Fill')).length, 2);
  assert.equal(names.filter((name) => name.startsWith('Drain')).length, 2);
});

test('idle shares count only what lies between the times', () => {
  assert.equal(idleShare(run, 0, 10), 6 / 20);
  assert.equal(idleShare(run, 3, 4), 1 / 2);
});

test('ops begin at times, each told once', () => {
  assert.deepEqual([...beginsOf(run)], [0, 1, 2, 4, 5, 7, 9]);
  assert.deepEqual(opsBeginningAt(run, 4), [{slot: 0, item: 2}, {slot: 1, item: 7}]);
  assert.equal(beginningInWords(run, 4), '0B0 on device 0, 0F1 on device 1 begin.');
  assert.equal(beginningInWords(run, 0), '0F0 on device 0 begins.');
});
