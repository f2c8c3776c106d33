// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {alikeGroups, areAlike, deviceNames, numbersInShort} from '../../../sim/report/page/alike.js';
import {layLanes, rowsOf} from '../../../sim/report/page/stage.js';

import {makeRun, randomLane} from './runs.js';

const gap = {
  begin: [1],
  end: [2],
  cause: [1]
};

test('devices are alike that do the same at the same times for the same stages', () => {
  const lane = randomLane(1, 40);
  const late = lane.map(([kind, begin, end, batch]) => [kind, begin + 1, end + 1, batch]);
  const others = lane.map(([kind, begin, end, batch]) => [kind, begin, end, batch + 7]);
  const gaps = [gap, gap, gap, gap, {...gap, cause: [2]}];
  const run = makeRun(5, [lane, late, lane, others, lane, []], {gaps});
  assert.deepEqual(alikeGroups([run]), [[0, 2, 3], [1], [4]]);
  run.stage[run.starts[2] + 3] = 1;
  assert.deepEqual(alikeGroups([run]), [[0, 3], [1], [2], [4]]);
  run.memory[3] = {at: [0], bytes: [1], activations: [1]};
  assert.deepEqual(alikeGroups([run]), [[0], [1], [2], [3], [4]]);
  const measured = makeRun(5, [late, late, lane, lane, lane, []], {gaps});
  assert.equal(areAlike([run, measured], 0, 3), false);
});

test('numbers in short', () => {
  for (const [numbers, text] of [
           [[3], '3'], [[4, 5, 6, 7], '4-7'], [[0, 2], '0, 2'], [[0, 4, 8, 12], '0, 4, ..., 12'],
           [[0, 1, 5, 9], '0 and 3 more']])
    assert.equal(numbersInShort(numbers), text);
  const run = makeRun(4, [[], [], [], [], []]);
  assert.equal(deviceNames(run, [1]), 'device 1');
  assert.equal(deviceNames(run, [1, 2, 3]), 'devices 1-3 (alike)');
});

test('a group is one row, or a row for each device', () => {
  const groups = [[0, 2], [1]];
  const slots = (open) => rowsOf(groups, new Set(open)).map((row) => row.slots);
  assert.deepEqual(slots([]), [[0, 2], [1]]);
  assert.deepEqual(slots([0]), [[0], [2], [1]]);
  const {rows} = layLanes(rowsOf(groups, new Set()), 2);
  assert.deepEqual(rows.map(({run, slot}) => [run, slot]), [[0, 0], [1, 0], [0, 1], [1, 1]]);
  rows.forEach((row, i) => assert.ok(i === 0 || row.top >= rows[i - 1].top + row.height));
});
