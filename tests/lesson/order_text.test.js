// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {commandLine, shellWord} from '../../lesson/command_line.js';
import {csvOfLanes, lanesInShort, lanesOfCsv, lanesOfShort, opsOfText, waitsOf} from '../../lesson/order_text.js';
import {fillIn} from '../../lesson/texts.js';

test('orders go from CSV to lanes, to the address, and back', () => {
  const csv = '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n';
  const lanes = lanesOfCsv(csv);
  assert.deepEqual(lanes, [['F0', 'F1', 'B0', 'B1'], ['F0', 'B0', 'F1', 'B1']]);
  assert.equal(csvOfLanes(lanes), csv);
  assert.deepEqual(lanesOfShort(lanesInShort(lanes)), lanes);
});

test('ops are read as people type them', () => {
  assert.deepEqual(opsOfText(' f0, F1;b0  0B1 '), ['F0', 'F1', 'B0', 'B1']);
  assert.deepEqual(opsOfText(''), []);
  assert.deepEqual(opsOfText('X1 12F3'), ['X1', 'F3']);
});

test('a message of the engine tells where each device is stuck', () => {
  const message =
      'order.csv:1:9: error: the schedule deadlocks: device 0, position 2: 0B1 waits for 1B1\n' +
      '  device 0: next is 0B1, which waits for 1B1\n  device 1: next is 1B0, which waits for 1F0\n';
  assert.deepEqual(
      waitsOf(message), [{gpu: 0, op: '0B1', other: '1B1'}, {gpu: 1, op: '1B0', other: '1F0'}]);
  assert.deepEqual(waitsOf('row 2, cell 1: F1 begins with no stage'), []);
});

test('a command line is what a shell takes apart again', () => {
  assert.equal(shellWord('plan.stages=4'), 'plan.stages=4');
  assert.equal(shellWord('plan.devices=[[0],[2]]'), '\'plan.devices=[[0],[2]]\'');
  assert.equal(shellWord('it\'s'), '\'it\'\\\'\'s\'');
  assert.equal(commandLine('a.yaml', ['b=1']), 'plumbline simulate a.yaml b=1');
});

test('names are filled in, and unknown ones stay', () => {
  assert.equal(fillIn('{p} of {q}, {p}', {p: 4}), '4 of {q}, 4');
});
