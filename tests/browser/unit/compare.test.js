// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {partsOfIteration, pointsText, relativeText, remarksOf} from '../../../sim/report/page/compare_parts.js';
import {ownState} from '../../../sim/report/page/compare_timelines.js';
import {CAUSES} from '../../../sim/report/page/run.js';

test('differences are in words of the terminal', () => {
  assert.equal(relativeText(103.2, 100), '+3.20 %');
  assert.equal(relativeText(50, 100), '-50.00 %');
  assert.equal(relativeText(5, 5), 'same');
  assert.equal(relativeText(5, 0), '');
  assert.equal(relativeText(null, 5), '');
  assert.equal(pointsText(0.25, 0.375), '-12.50 points');
  assert.equal(pointsText(0.5, 0.5), 'same');
  assert.equal(pointsText(0.5, null), '');
});

test('a remark is told once, with the runs that it holds for', () => {
  const comparison = {
    runs: [{title: 'a'}, {title: 'b'}, {title: 'c'}],
    keys_that_differ: [{key: 'plan.stages', values: ['4', '-', '2']}],
    estimated: [{text: 'halves', runs: ['a', 'c']}],
    notes: [{text: 'of all', runs: ['a', 'b', 'c']}, {text: 'of one', runs: ['b']}],
  };
  assert.deepEqual(
      remarksOf(comparison),
      ['plan.stages: 4, -, 2', 'estimated (a, c): halves', 'note: of all', 'note (b): of one']);
});

test('the parts of an iteration are those that take time, busy first', () => {
  const idle = Object.fromEntries(CAUSES.map((cause) => [cause, 0]));
  assert.deepEqual(
      partsOfIteration({busy_per_device_s: 3, idle_per_device_s: {...idle, drain: 1}}),
      [{name: 'busy', seconds: 3}, {name: 'drain', seconds: 1}]);
});

test('timelines share the window, and of the selection each sees its own', () => {
  const shared = {window: null, selected: null, critical: true, transfers: true, theme: 'auto'};
  const [first, second] = [ownState(shared, 0), ownState(shared, 1)];
  first.window = {from: 1, to: 2};
  assert.deepEqual(second.window, {from: 1, to: 2});
  second.selected = {run: 0, item: 7};
  assert.deepEqual(
      [shared.selected, first.selected, second.selected],
      [{run: 1, item: 7}, null, {run: 0, item: 7}]);
  first.selected = null;
  assert.ok(second.selected, 'letting nothing go lets nothing go');
  second.selected = null;
  assert.equal(shared.selected, null);
});
