// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';
import {gzipSync} from 'node:zlib';

import {decodeRun, fromBase64, gunzip, NOBODY, NumberReader} from '../../../sim/report/page/codec.js';

function packed(...values) {
  const bytes = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  }
  return new NumberReader(Uint8Array.from(bytes));
}

const zigzag = (value) => (value < 0 ? -2 * value - 1 : 2 * value);

test('numbers are exact up to 2^53', () => {
  const values = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER];
  const reader = packed(...values);
  for (const value of values) assert.equal(reader.next(), value);
  const signed = [0, -1, 1, -64, 2 ** 40, -(2 ** 51)];
  const second = packed(...signed.map(zigzag));
  for (const value of signed) assert.equal(second.nextSigned(), value);
});

test('base64 and gzip come back as they were', async () => {
  const bytes = Uint8Array.from({length: 1000}, (_, i) => (i * 7) % 251);
  assert.deepEqual(fromBase64(Buffer.from(bytes).toString('base64')), bytes);
  assert.deepEqual(await gunzip(gzipSync(bytes)), bytes);
});

test('columns are taken apart lane by lane', () => {
  // Device 0: F0 at 0..10, B0 at 25..45 after the transfer; channel 0: one item at 10..25.
  const layout = {
    slot_items: [2],
    channel_items: [1],
    moment_items: 0,
    slot_gaps: [1],
    memory_points: [2],
    tick_ns: 1,
  };
  const reader = packed(
      0, 1, 7, zigzag(3), zigzag(0), zigzag(2), zigzag(4), zigzag(4), zigzag(4), zigzag(0),
      zigzag(1), zigzag(6), zigzag(0), zigzag(15), zigzag(10), zigzag(10), zigzag(20), zigzag(15),
      0, 2 + zigzag(1), 2 + zigzag(-2), 10, 15, 3, 0, 10, zigzag(100), zigzag(-40), zigzag(30),
      zigzag(-10));
  const run = decodeRun(reader, layout);
  assert.deepEqual([...run.kind], [0, 1, 7]);
  assert.deepEqual([...run.stage], [3, 3, 2]);
  assert.deepEqual([...run.microBatch], [4, 4, 4]);
  assert.deepEqual([...run.cost], [0, 1, 6]);
  assert.deepEqual([...run.begin], [0, 25, 10]);
  assert.deepEqual([...run.end], [10, 45, 25]);
  assert.deepEqual([...run.releasedBy], [NOBODY, 2, 0]);
  assert.deepEqual(
      run.gaps.map((gaps) => [[...gaps.begin], [...gaps.end], [...gaps.cause]]),
      [[[10], [25], [3]]]);
  const {at, bytes, activations} = run.memory[0];
  assert.deepEqual([[...at], [...bytes], [...activations]], [[0, 10], [100, 60], [30, 20]]);
  assert.equal(reader.at, reader.bytes.length);
});
