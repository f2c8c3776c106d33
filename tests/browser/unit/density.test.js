// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {busySums, CLASS_OF_KIND, classesIn, columnEdges, densityColumns,} from '../../../sim/report/page/density.js';

import {makeRun, randomLane} from './runs.js';

function density(run, slot, from, to, columns) {
  const classes = classesIn([run]);
  const busy = new Float64Array(columns * classes.length);
  const begins = new Uint32Array(columns);
  densityColumns(run, busySums(run, classes), slot, columnEdges(from, to, columns), busy, begins);
  return {classes, busy, begins};
}

/** What a class holds of [from, to), op by op. */
function slowly(run, slot, c, from, to) {
  let sum = 0;
  for (let i = run.starts[slot]; i < run.starts[slot + 1]; ++i) {
    if (CLASS_OF_KIND[run.kind[i]] !== c) continue;
    sum += Math.max(0, Math.min(run.end[i], to) - Math.max(run.begin[i], from));
  }
  return sum;
}

test('every column holds exactly what lies in it, and the columns add up to the busy time', () => {
  for (let seed = 1; seed <= 40; ++seed) {
    const run = makeRun(2, [randomLane(seed, 200), randomLane(seed + 1000, 60), []]);
    for (const slot of [0, 1]) {
      const end = run.end[run.starts[slot + 1] - 1];
      for (const [from, to, columns] of [
               [0, end, 1], [0, end, 7], [0, end, 997], [13, end - 5, 64], [50, 90, 300]]) {
        const {classes, busy, begins} = density(run, slot, from, to, columns);
        const edges = columnEdges(from, to, columns);
        let begun = 0;
        classes.forEach((c, place) => {
          let sum = 0;
          for (let x = 0; x < columns; ++x) {
            const held = busy[x * classes.length + place];
            assert.equal(held, slowly(run, slot, c, edges[x], edges[x + 1]));
            sum += held;
          }
          assert.equal(sum, slowly(run, slot, c, from, to));
        });
        for (const count of begins) begun += count;
        const starting = run.begin
                             .filter(
                                 (at, i) => i >= run.starts[slot] && i < run.starts[slot + 1] &&
                                     run.end[i] > at && at >= from && at < to)
                             .length;
        assert.ok(begun >= starting, `${begun} begin, at least ${starting} must`);
      }
    }
  }
});

test('a bubble of one tick is neither hidden nor made larger', () => {
  const lane = [[0, 0, 500_000, 0], [1, 500_001, 1_000_000, 0]];
  const run = makeRun(1, [lane, []]);
  for (const columns of [1, 10, 1000]) {
    const {busy} = density(run, 0, 0, 1_000_000, columns);
    assert.equal(busy.reduce((a, b) => a + b, 0), 999_999);
  }
});

test('classes are those that take time', () => {
  const run = makeRun(1, [[[0, 0, 5, 0], [7, 5, 5, 0], [3, 5, 9, 0]], []]);
  assert.deepEqual(classesIn([run]), [0, 3]);
});

test('edges are whole ticks from end to end', () => {
  const edges = columnEdges(0, 1e15 + 7, 333);
  assert.equal(edges[0], 0);
  assert.equal(edges[333], 1e15 + 7);
  for (let i = 0; i < 333; ++i) assert.ok(Number.isInteger(edges[i]) && edges[i + 1] >= edges[i]);
});
