// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {rangeMarks} from '../../../sim/report/page/scale.js';
import {atEfficiencies, rangeOf, timeStaircase} from '../../../sim/report/page/search_parts.js';

test(
    'at another share of the peak the same work takes as much longer as the share is smaller',
    () => {
      const row = {time: 10, throughput: 50, utilization: 0.5};
      assert.deepEqual(atEfficiencies(row, [0.25, 0.5, 1]), [
        {share: 0.25, time: 20, throughput: 25}, {share: 0.5, time: 10, throughput: 50},
        {share: 1, time: 5, throughput: 100}
      ]);
    });

test('the front of times goes down with the memory', () => {
  assert.deepEqual(
      timeStaircase([[0.6, 0.2], [0.3, 0.5]], 0.9),
      [[0.3, 0.5], [0.6, 0.5], [0.6, 0.2], [0.9, 0.2]]);
  assert.deepEqual(timeStaircase([], 1), []);
});

test('an axis begins at 0 where its values are far apart, else near them', () => {
  assert.equal(rangeOf([10, 40]).from, 0);
  const near = rangeOf([100, 110]);
  assert.ok(near.from > 90 && near.from < 100 && near.to > 110);
  assert.ok(rangeOf([7, 7]).to > rangeOf([7, 7]).from);
});

test('the marks of a range lie in it, in one unit', () => {
  const marks = rangeMarks(28.9e9, 36.2e9, 6, 'time');
  assert.deepEqual(marks.map(({text}) => text), ['30 s', '32 s', '34 s', '36 s']);
  assert.ok(marks.every(({at}) => at >= 28.9e9 && at <= 36.2e9));
  assert.deepEqual(
      rangeMarks(70 * 2 ** 30, 73 * 2 ** 30, 3, 'bytes').map(({text}) => text),
      ['70 GiB', '71 GiB', '72 GiB', '73 GiB']);
});
