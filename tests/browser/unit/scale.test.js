// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {namedValues, parseQuantity, scaleOf, valueMarks} from '../../../sim/report/page/scale.js';

test('quantities are read with their units, and all else is none', () => {
  assert.deepEqual(parseQuantity('8'), {of: 'number', value: 8});
  assert.deepEqual(parseQuantity('1.25 ms'), {of: 'time', value: 1.25e6});
  assert.equal(parseQuantity('10 Gbit/s').value, parseQuantity('1.25 GB/s').value);
  assert.equal(parseQuantity('1 GiB').value, 2 ** 30);
  assert.notEqual(parseQuantity('1 GB').of, parseQuantity('1 GB/s').of);
  for (const text
           of ['', 'gpipe', '1f1b', '[10,14]', 'null', '3 parsecs', '1.2.3', '<b>', 'toString'])
    assert.equal(parseQuantity(text), null, text);
});

test('numbers lie to scale, linear or logarithmic, as spaces them more evenly', () => {
  assert.deepEqual(scaleOf(['4', '8', '12']), {kind: 'linear', places: [0, 0.5, 1]});
  const log = scaleOf(['8', '16', '32', '64']);
  assert.equal(log.kind, 'log');
  log.places.forEach((place, i) => assert.ok(Math.abs(place - i / 3) < 1e-12));
  assert.deepEqual(scaleOf(['25 GB/s', '10 Gbit/s']), {kind: 'linear', places: [1, 0]});
  assert.deepEqual(scaleOf(['0', '1', '10']).kind, 'linear');
  assert.deepEqual(scaleOf(['5']), {kind: 'steps', places: [0.5]});
});

test('what is no number, or several kinds of numbers, goes in steps as written', () => {
  for (const values of [['gpipe', '1f1b', 'x'], ['1', '2 ms', '3'], ['1000 MB', '1 GB', '2 GB']])
    assert.deepEqual(scaleOf(values), {kind: 'steps', places: [0, 0.5, 1]});
});

test('names on an axis do not touch', () => {
  assert.deepEqual(namedValues([0, 0.02, 0.5, 0.51, 1], 400, () => 20), [0, 2, 4]);
  assert.deepEqual(namedValues([1, 0], 400, () => 20), [1, 0]);
});

test('marks begin at 0, end at the most, and say their unit', () => {
  const texts = (...of) => valueMarks(...of).map(({text}) => text);
  assert.deepEqual(texts(66, 6, 'number'), ['0', '20', '40', '60']);
  assert.deepEqual(
      texts(1.06 * 2 ** 30, 6, 'bytes'),
      ['0 GiB', '0.2 GiB', '0.4 GiB', '0.6 GiB', '0.8 GiB', '1 GiB']);
  assert.deepEqual(texts(0.3, 4, 'share'), ['0 %', '10 %', '20 %', '30 %']);
  assert.deepEqual(texts(12000, 3, 'number'), ['0', '5,000', '10,000']);
  for (const kind of ['number', 'bytes', 'share'])
    for (const most of [1e-9, 1, 3.7e15]) assert.ok(valueMarks(most, 6, kind).length <= 8);
});
