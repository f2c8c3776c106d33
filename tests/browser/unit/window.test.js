// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {pointsInColumns, stepPath} from '../../../sim/report/page/charts.js';
import {decodeState, encodeState} from '../../../sim/report/page/hash.js';
import {LEAST_SPAN, panWindow, revealInWindow, wholeRun, zoomWindow,} from '../../../sim/report/page/window.js';

test('zooming keeps the anchor in its place, and stays within the run', () => {
  const window = zoomWindow({from: 0, to: 1000}, 250, 2, 1000);
  assert.deepEqual(window, {from: 125, to: 625});
  assert.deepEqual(zoomWindow(window, 250, 0.01, 1000), {from: 0, to: 1000});
  const nearest = zoomWindow(window, 250, 1e9, 1000);
  assert.ok(Math.abs(nearest.to - nearest.from - LEAST_SPAN) < 1e-9);
});

test('moving ends at the ends of the run', () => {
  assert.deepEqual(panWindow({from: 100, to: 200}, 0.5, 1000), {from: 150, to: 250});
  assert.deepEqual(panWindow({from: 100, to: 200}, -5, 1000), {from: 0, to: 100});
  assert.deepEqual(panWindow({from: 100, to: 200}, 50, 1000), {from: 900, to: 1000});
  assert.deepEqual(wholeRun(0), {from: 0, to: 1});
});

test('revealing moves no farther than needed', () => {
  assert.deepEqual(revealInWindow({from: 100, to: 200}, 120, 130, 1000), {from: 100, to: 200});
  assert.deepEqual(revealInWindow({from: 100, to: 200}, 300, 310, 1000), {from: 215, to: 315});
  const wide = revealInWindow({from: 100, to: 200}, 300, 500, 1000);
  assert.ok(wide.from <= 300 && wide.to >= 500);
});

test('the state comes back from its fragment', () => {
  const state = {
    window: {from: 10, to: 2 ** 52},
    selected: {run: 1, item: 77},
    critical: false,
    transfers: true,
    apart: true,
    present: {by: 'ops', step: 3},
    theme: 'dark'
  };
  assert.deepEqual(decodeState(encodeState(state)), state);
  const idle = {...state, selected: {run: 0, slot: 3, gap: 5}};
  assert.deepEqual(decodeState(encodeState(idle)), idle);
  assert.deepEqual(decodeState('#present').present, {by: 'phases', step: 0});
  const plain = {
    window: null,
    selected: null,
    critical: true,
    transfers: true,
    apart: false,
    present: null,
    theme: 'auto',
  };
  assert.equal(encodeState(plain), '');
  assert.deepEqual(decodeState(''), plain);
  for (const wrong
           of ['#t=5-5', '#t=9-1', '#t=a-b', '#op=1', '#idle=1:2', '#op=<b>', '#theme=red',
               '#x=1&&=', '#t=1e3-2e3']) {
    assert.deepEqual(decodeState(wrong), plain, wrong);
  }
});

test('a curve in few columns keeps its peak', () => {
  const curve = {at: [0, 10, 11, 90], bytes: [5, 50, 6, 7], activations: [1, 40, 2, 3]};
  assert.deepEqual(pointsInColumns(curve, 100, 4), [
    {at: 0, bytes: 5, activations: 1}, {at: 10, bytes: 50, activations: 40},
    {at: 11, bytes: 6, activations: 2}, {at: 90, bytes: 7, activations: 3}
  ]);
  assert.deepEqual(
      pointsInColumns(curve, 100, 2),
      [{at: 0, bytes: 50, activations: 40}, {at: 50, bytes: 7, activations: 3}]);
  assert.equal(
      stepPath(
          pointsInColumns(curve, 100, 100), 100, 50, {left: 0, top: 0, width: 100, height: 50}),
      'M0.0 45.0H10.0V0.0H11.0V44.0H90.0V43.0H100');
});
