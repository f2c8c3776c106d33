// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {NOBODY} from '../../../sim/report/page/codec.js';
import {culpritOf, describeGap, describeItem} from '../../../sim/report/page/describe.js';
import {criticalPath, exists, gapAt, gapsBefore, itemAt, itemName, laneOf, nearestItem, neighbour, spanOf, stateAt,} from '../../../sim/report/page/run.js';

import {makeRun} from './runs.js';

// F0 on device 0, its output to device 1, F0 there, which was idle for it, and B0.
const run = makeRun(
    2,
    [
      [[0, 0, 10, 0]],
      [[0, 15, 25, 0, 3], [1, 25, 45, 0, 1]],
      [[8, 10, 15, 0, 0]],
      [],
    ],
    {
      channels: [[0, 1]],
      gaps: [{begin: [10], end: [45], cause: [1]}, {begin: [0, 10], end: [10, 15], cause: [2, 3]}],
    });

test('what is where', () => {
  assert.equal(laneOf(run, 0), 0);
  assert.equal(laneOf(run, 2), 1);
  assert.equal(laneOf(run, 3), 2);
  assert.equal(itemAt(run, 1, 20), 1);
  assert.equal(itemAt(run, 1, 25), 2);
  assert.equal(itemAt(run, 1, 3), -1);
  assert.equal(itemAt(run, 1, 45), -1);
  assert.equal(gapAt(run, 1, 12), 1);
  assert.equal(gapAt(run, 1, 30), -1);
  assert.equal(nearestItem(run, 1, 100), 2);
  assert.equal(nearestItem(run, 1, 0), 1);
});

test('ops and idle gaps stand beside each other', () => {
  const along = [{slot: 1, gap: 0}, {slot: 1, gap: 1}, {item: 1}, {item: 2}];
  along.forEach((chosen, i) => {
    assert.deepEqual(neighbour(run, chosen, 1), along[i + 1] ?? null);
    assert.deepEqual(neighbour(run, chosen, -1), along[i - 1] ?? null);
  });
  assert.deepEqual(neighbour(run, {item: 0}, 1), {slot: 0, gap: 0});
  assert.deepEqual(neighbour(run, {item: 3}, 1), null);
  assert.deepEqual(spanOf(run, {slot: 1, gap: 1}), {lane: 1, begin: 10, end: 15});
  assert.deepEqual(spanOf(run, {item: 3}), {lane: 2, begin: 10, end: 15});
  assert.deepEqual(stateAt(run, 1, 12), {slot: 1, gap: 1});
  assert.deepEqual(stateAt(run, 1, 20), {item: 1});
  assert.deepEqual(stateAt(run, 1, 99), {item: 2});
  for (const [chosen, is] of [
           [{item: 3}, true], [{item: 4}, false], [{slot: 1, gap: 1}, true],
           [{slot: 1, gap: 2}, false], [{slot: 2, gap: 0}, false]])
    assert.equal(exists(run, chosen), is);
});

test('the critical path goes back over what released each', () => {
  const {items, lanes} = criticalPath(run);
  assert.deepEqual([...items], [0, 3, 1, 2]);
  assert.deepEqual([...lanes], [0, 2, 1, 1]);
});

test('why a device was idle, and for whom', () => {
  assert.deepEqual(
      gapsBefore(run, 1).map(({cause, begin, end}) => [cause, begin, end]),
      [['dependency', 0, 10], ['transfer', 10, 15]]);
  assert.deepEqual(gapsBefore(run, 2), []);
  assert.equal(culpritOf(run, 1), 0);
  assert.equal(culpritOf(run, 0), NOBODY);
  assert.equal(itemName(run, 3), 'recv 0F0');
  for (const [kind, name] of [[4, '0B7'], [5, '0W7'], [6, '0F7']])
    assert.equal(itemName(makeRun(1, [[[kind, 0, 1, 7]], []]), 0), `${name} (part)`);
});

test('a slice of a micro-batch in words', () => {
  const sliced = makeRun(1, [[[0, 0, 7, 7]], []], {gaps: [{begin: [], end: [], cause: []}]});
  sliced.layout.slices = 4;
  assert.equal(describeItem(sliced, 0, null).title, 'forward, stage 0, micro-batch 1, slice 3');
  sliced.kind[0] = 7;
  assert.equal(describeItem(sliced, 0, null).title, 'optimizer update, stage 0, micro-batch 1');
});

test('an op in words', () => {
  const {name, title, rows} = describeItem(run, 1, null);
  assert.equal(name, '0F0');
  assert.equal(title, 'forward, stage 0, micro-batch 0');
  assert.deepEqual(rows.map(({label, text}) => `${label}: ${text}`), [
    'When: 15 ns to 25 ns, 10 ns long',
    'Where: device 1',
    'Why now: recv 0F0 let it start',
    'Idle before: dependency 10 ns, network 5 ns',
    'Waited for: 0F0 on device 0',
  ]);
  const gap = describeGap(run, 1, 1, 1);
  assert.equal(gap.name, 'idle: waiting for the network');
  assert.deepEqual(
      gap.rows.map(({label}) => label), ['When', 'Where', 'Why', 'Ends with', 'Waited for']);
});

test('a measured op beside its prediction', () => {
  const late = {...run, begin: run.begin.map((at) => at + 2), end: run.end.map((at) => at + 4)};
  const rows = describeItem(late, 1, run).rows.map(({label, text}) => `${label}: ${text}`);
  assert.ok(rows.includes('Predicted begin: 15 ns, error -2 ns'), rows.join('; '));
  assert.ok(
      rows.includes('Predicted length: 10 ns, error -2 ns (-16.67 % of the measured time)'),
      rows.join('; '));
});
