// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {axisMarks, formatBytes, formatDifference, formatFlopRate, formatPercent, formatTime, niceStep, plural,} from '../../../sim/report/page/format.js';

test('times are in the unit that fits, with the carry of rounding', () => {
  assert.equal(formatTime(33e6), '33 ms');
  assert.equal(formatTime(1250), '1.25 us');
  assert.equal(formatTime(999.96e3), '1 ms');
  assert.equal(formatTime(1), '1 ns');
  assert.equal(formatTime(0), '0 s');
  assert.equal(formatTime(-3e6), '-3 ms');
  assert.equal(formatTime(90061e9), '90060 s');
  assert.equal(formatDifference(1.5e6), '+1.5 ms');
});

test('bytes are in powers of 1024', () => {
  assert.equal(formatBytes(1.5 * 2 ** 30), '1.5 GiB');
  assert.equal(formatBytes(0), '0 B');
  assert.equal(formatBytes(1023), '1023 B');
});

test('rates of computing are in powers of 1000', () => {
  assert.equal(formatFlopRate(407.9e12), '407.9 TFLOP/s');
  assert.equal(formatFlopRate(0), '0 FLOP/s');
});

test('shares and counts', () => {
  assert.equal(formatPercent(3 / 11), '27.27 %');
  assert.equal(plural(1, 'device'), '1 device');
  assert.equal(plural(2, 'micro-batch'), '2 micro-batches');
  assert.equal(plural(1048576, 'op'), '1,048,576 ops');
});

test('steps of an axis are 1, 2 or 5 times a power of ten', () => {
  assert.equal(niceStep(3), 5);
  assert.equal(niceStep(0.11), 0.2);
  assert.equal(niceStep(1000), 1000);
  assert.equal(niceStep(501), 1000);
});

test('the marks of an axis lie in it, are even, and tell apart', () => {
  for (const [from, to] of [[0, 33e6], [0, 4.02e9], [2245720000, 2245721000], [7, 29], [0, 1]]) {
    const marks = axisMarks(from, to, 10);
    assert.ok(marks.length >= 1 && marks.length <= 11, `${from} to ${to}: ${marks.length}`);
    assert.equal(new Set(marks.map((mark) => mark.text)).size, marks.length);
    for (const {at} of marks) assert.ok(at >= from && at <= to * (1 + 1e-12));
  }
  assert.deepEqual(
      axisMarks(0, 33e6, 7).map((mark) => mark.text),
      ['0 ms', '5 ms', '10 ms', '15 ms', '20 ms', '25 ms', '30 ms']);
  assert.equal(axisMarks(0, 4.02e9, 9)[1].text, '0.5 s');
});
