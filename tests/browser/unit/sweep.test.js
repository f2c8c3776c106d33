// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {compareValues} from '../../../sim/report/page/grid.js';
import {keysOfLooks, lookOf, placeBeside, spread} from '../../../sim/report/page/looks.js';
import {linePath, nearestPlace} from '../../../sim/report/page/plot.js';
import {commandOf, commonLimit, filtered, formulaThroughput, paretoFront, readSweep, seriesOf, shellWord, throughputEach, valuesAt,} from '../../../sim/report/page/sweep.js';
import {decodeSweepState, encodeSweepState} from '../../../sim/report/page/sweep_hash.js';
import {staircase} from '../../../sim/report/page/sweep_plots.js';
import {columnsOf} from '../../../sim/report/page/sweep_point.js';

import {numbers} from './runs.js';

const axes = [
  {key: 'schedule.name', values: ['gpipe', '1f1b']},
  {key: 'cluster.devices', values: ['4']},
  {key: 'schedule.micro_batches', values: ['4', '8', '16']},
];
const row = (point, throughput, peak, {reason = null, formula = null, limit = null} = {}) =>
    [point, reason, [], 1, throughput, 0.25, 1 / 3, null, formula, 0, peak, 0, null, limit, 2, 4,
     null, null];
const sweepOf = (rows) =>
    readSweep({axes, file: 'a b.yaml'}, {rows, reasons: ['why'], estimates: []});

test('a point is a number in a mixed radix', () => {
  assert.deepEqual(
      [0, 1, 3, 5].map((point) => valuesAt(axes, point)),
      [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 2]]);
});

test('rows have their numbers by name, or none', () => {
  const {rows, varying} = sweepOf([row(4, 10, 100, {limit: 7}), [5, 0, []]]);
  assert.deepEqual(varying, [0, 2]);
  assert.deepEqual(
      [rows[0].throughput, rows[0].peak, rows[0].limit, rows[0].spare, rows[0].at],
      [10, 100, 7, 2, [1, 0, 1]]);
  assert.deepEqual([rows[1].hasNumbers, rows[1].peak, rows[1].reason], [false, null, 'why']);
  assert.equal(commonLimit(rows), 7);
  assert.deepEqual(rows.map(throughputEach), [2.5, null]);
});

test('columns of devices and utilization are there where they say something', () => {
  const names = (rows) => columnsOf(sweepOf(rows)).map(({name}) => name);
  const other = row(3, 10, 100);
  other[15] = 5;
  const utilized = row(3, 10, 100);
  utilized[17] = 0.25;
  assert.ok(!names([
               row(4, 10, 100), [5, 0, []]
             ]).some((name) => /device$|MFU/.test(name) && name !== 'On device'));
  assert.ok(names([row(4, 10, 100), other]).includes('Per device'));
  assert.ok(names([row(4, 10, 100), utilized]).includes('MFU'));
});

test('the front is all that no other beats, by trying all', () => {
  for (let seed = 1; seed <= 60; ++seed) {
    const below = numbers(seed);
    const {rows} = sweepOf(Array.from(
        {length: 1 + below(40)},
        (_, i) => row(
            i, below(20) === 0 ? null : below(9), below(9), {reason: below(5) === 0 ? 0 : null})));
    const speed = (r) => r.throughput ?? Infinity;
    const slowly = rows.filter(
        (r) => r.reason === null &&
            !rows.some(
                (o) => o.reason === null && speed(o) >= speed(r) && o.peak <= r.peak &&
                    (speed(o) > speed(r) || o.peak < r.peak)));
    const front = paretoFront(rows);
    assert.deepEqual(front.map((r) => r.point).sort((a, b) => a - b), slowly.map((r) => r.point));
    front.forEach((r, i) => assert.ok(i === 0 || speed(front[i - 1]) >= speed(r)));
  }
});

test('the throughput by formula is that of the same busy time', () => {
  const {rows} =
      sweepOf([row(0, 30, 1, {formula: 0.25}), row(1, 30, 1, {formula: 0.5}), row(2, 30, 1)]);
  assert.deepEqual(
      rows.map(formulaThroughput), [30, 45, null].map((v, i) => (i === 1 ? (30 * 0.75) / 0.5 : v)));
});

test('series are what the other keys are', () => {
  const sweep = sweepOf([5, 0, 1, 3].map((point) => row(point, 1, 1)));
  const named = (x) =>
      seriesOf(sweep, sweep.rows, x).map((s) => [s.name, s.rows.map((r) => r.point)]);
  assert.deepEqual(named(2), [['gpipe', [0, 1]], ['1f1b', [3, 5]]]);
  assert.deepEqual(
      named(0), [['micro_batches=4', [0, 3]], ['micro_batches=8', [1]], ['micro_batches=16', [5]]]);
  assert.deepEqual(filtered(sweep.rows, new Map([[0, 1]])).map((r) => r.point), [5, 3]);
});

test('the command is one that a shell reads as it was meant', () => {
  const sweep = sweepOf([row(4, 1, 1)]);
  assert.equal(
      commandOf(sweep, sweep.rows[0]),
      'plumbline simulate \'a b.yaml\' schedule.name=1f1b cluster.devices=4 schedule.micro_batches=8');
  assert.equal(shellWord('it\'s; rm -rf $HOME'), '\'it\'\\\'\'s; rm -rf $HOME\'');
  assert.equal(shellWord(''), '\'\'');
  assert.equal(shellWord('a=[1,2]'), '\'a=[1,2]\'');
  assert.equal(shellWord('é'), '\'é\'');
});

test('a row that has overrides of its own is predicted by these', () => {
  const sweep = readSweep({axes, file: 's.yaml'}, {
    rows: [row(4, 1, 1), row(5, 1, 1)],
    reasons: [],
    estimates: [],
    overrides: [['plan.stages=4', 'plan.partition=[1, 3]'], []]
  });
  assert.equal(
      commandOf(sweep, sweep.rows[0]),
      'plumbline simulate s.yaml plan.stages=4 \'plan.partition=[1, 3]\'');
  assert.equal(commandOf(sweep, sweep.rows[1]), 'plumbline simulate s.yaml');
});

test('the state comes back from its fragment, and what does not exist is dropped', () => {
  const sweep = sweepOf([row(4, 1, 1)]);
  const standard = {x: 2};
  const plain =
      {x: 2, color: null, shape: null, filter: new Map(), point: null, sort: null, theme: 'auto'};
  assert.equal(encodeSweepState(plain, standard), '');
  const state = {
    ...plain,
    x: 0,
    color: 2,
    filter: new Map([[2, 1]]),
    point: 4,
    sort: {column: 3, down: true},
    theme: 'dark'
  };
  const fragment = encodeSweepState(state, standard);
  assert.equal(fragment, '#x=0&color=2&only=2:1&point=4&sort=3:down&theme=dark');
  assert.deepEqual(decodeSweepState(fragment, sweep, standard), state);
  for (const wrong
           of ['#x=1', '#x=9', '#only=2:3,1:0,a:b', '#point=3', '#sort=1', '#theme=<b>', '#x'])
    assert.deepEqual(decodeSweepState(wrong, sweep, standard), plain, wrong);
});

test('what has no value is last, whichever way a table is sorted', () => {
  assert.deepEqual([3, null, 1, 2].sort((a, b) => compareValues(a, b, false)), [1, 2, 3, null]);
  assert.deepEqual([3, null, 1, 2].sort((a, b) => compareValues(a, b, true)), [3, 2, 1, null]);
});

test('one key is told by colour, another by shape', () => {
  const sweep = {
    axes: [
      {key: 'a', values: ['1', '2']}, {key: 'b', values: ['x', 'y', 'z']},
      {key: 'c', values: Array(9).fill('v')}
    ],
    varying: [0, 1, 2]
  };
  const none = {color: null, shape: null};
  assert.deepEqual(keysOfLooks(sweep, 2, none), {color: 0, shape: 1, rest: []});
  assert.deepEqual(keysOfLooks(sweep, 0, none), {color: 1, shape: 2, rest: []});
  assert.deepEqual(keysOfLooks(sweep, 2, {color: 1, shape: null}), {color: 1, shape: 0, rest: []});
  assert.deepEqual(keysOfLooks(sweep, 2, {color: null, shape: 0}), {color: 1, shape: 0, rest: []});
  assert.deepEqual(keysOfLooks(sweep, 9, none), {color: 0, shape: 1, rest: [2]});
  const look = (at) => lookOf({color: 0, shape: 1}, at);
  assert.equal(look([1, 0]).color, look([1, 2]).color);
  assert.equal(look([0, 2]).shape, look([1, 2]).shape);
  assert.notEqual(look([0, 2]).color, look([1, 2]).color);
  const many = Array.from({length: 42}, (_, value) => lookOf({color: 0, shape: null}, [value]));
  assert.equal(new Set(many.map(({shape, color}) => `${shape}${color}`)).size, 42);
});

test('names stand apart, near their places, and between the ends', () => {
  assert.deepEqual(spread([10, 50], 13, 0, 100), [10, 50]);
  assert.deepEqual(spread([50, 50, 51], 10, 0, 100), [50, 60, 70]);
  assert.deepEqual(spread([99, 98, 97], 10, 0, 100), [100, 90, 80]);
  const inside = {left: 0, right: 200, top: 0, bottom: 100};
  const beside = placeBeside([[50, 50], [60, 50], [190, 50]], [40, 40, 40], inside);
  assert.deepEqual(beside.map(({anchor}) => anchor), ['middle', 'start', 'end']);
  assert.deepEqual(placeBeside([[50, 50]], [400], inside), [null]);
});

test('lines break where there is nothing, and the nearest place is near', () => {
  assert.equal(linePath([[0, 1], [2, 3], null, [4, 5]]), 'M0.0 1.0L2.0 3.0M4.0 5.0');
  assert.equal(nearestPlace([[0, 0], [10, 0]], 7, 0), 1);
  assert.equal(nearestPlace([[0, 0], [10, 0]], 70, 0), -1);
});

test('the staircase of a front is the most throughput within a memory', () => {
  const front = [{peak: 8, throughput: 10}, {peak: 2, throughput: 5}];
  assert.deepEqual(staircase(front, 10, 10, 0.9), [[0.2, 0.5], [0.8, 0.5], [0.8, 1], [0.9, 1]]);
  assert.deepEqual(staircase([], 10, 10, 1), []);
});
