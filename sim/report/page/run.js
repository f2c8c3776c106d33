// Questions to one run: what runs where and when, what it waited for, what decided its end.
// SPDX-License-Identifier: MIT
import {NOBODY} from './codec.js';

/** What an activity is called, by kind. */
export const KIND_NAMES = [
  'forward',
  'backward',
  'backward for the input',
  'backward for the weights',
  'part of a backward',
  'part of a backward for the weights',
  'part of a forward',
  'optimizer update',
  'activation transfer',
  'gradient transfer',
  'all-reduce',
  'reduce-scatter',
  'all-gather',
  'step of a collective',
  'begin of a collective',
  'end of a collective',
  'flush',
  'overhead',
];

/** Why a device was idle, in the order of reports. */
export const CAUSES = [
  'fill',
  'drain',
  'dependency',
  'transfer',
  'all_reduce',
  'rendezvous',
  'update',
  'overhead',
];

/** The letters of the kinds that compute: F, B, I, W, parts of a B, W and F, U. */
export const LETTERS = ['F', 'B', 'I', 'W', 'B', 'W', 'F', 'U'];
const BACKWARD_PART = 4;
const FORWARD_PART = 6;
const ACTIVATION_TRANSFER = 8;
const GRADIENT_TRANSFER = 9;
const ALL_GATHER = 12;
const FLUSH = 16;

/** Whether an activity of this kind goes from one device to another. */
export function isTransfer(kind) {
  return kind >= ACTIVATION_TRANSFER && kind <= ALL_GATHER;
}

/**
 * Whether an activity of this kind is of one micro-batch, or one slice: F, B, I, W, their
 * parts and transfers.
 */
export function isOfOne(kind) {
  return kind <= FORWARD_PART || kind === ACTIVATION_TRANSFER || kind === GRADIENT_TRANSFER;
}

/**
 * The first of `from`..`to` for which `holds` is true; they stand so that it is false, then true.
 */
export function firstWhere(from, to, holds) {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/** The lane in which an item stands. */
export function laneOf(run, item) {
  return firstWhere(0, run.starts.length - 1, (lane) => run.starts[lane + 1] > item);
}

/** The first item of a lane that ends after `time`, or the end of the lane. */
export function firstAfter(run, lane, time) {
  return firstWhere(run.starts[lane], run.starts[lane + 1], (item) => run.end[item] > time);
}

/** The item that holds a slot's stream at `time`, or -1. */
export function itemAt(run, slot, time) {
  const item = firstAfter(run, slot, time);
  return item < run.starts[slot + 1] && run.begin[item] <= time ? item : -1;
}

/** The item of a slot whose middle is nearest to `time`, or -1 where the slot has none. */
export function nearestItem(run, slot, time) {
  const first = run.starts[slot];
  const last = run.starts[slot + 1] - 1;
  if (last < first) return -1;
  const item = Math.min(firstAfter(run, slot, time), last);
  if (item === first) return item;
  const distance = (i) => Math.abs((run.begin[i] + run.end[i]) / 2 - time);
  return distance(item - 1) < distance(item) ? item - 1 : item;
}

/** The index of the idle gap of a slot in which `time` lies, or -1. */
export function gapAt(run, slot, time) {
  const gaps = run.gaps[slot];
  const index = firstWhere(0, gaps.begin.length, (i) => gaps.end[i] > time);
  return index < gaps.begin.length && gaps.begin[index] <= time ? index : -1;
}

/**
 * Where what is chosen stands, an item ({item}) or an idle gap ({slot, gap}): {lane, begin, end}.
 */
export function spanOf(run, {item, slot, gap}) {
  if (item !== undefined)
    return {lane: laneOf(run, item), begin: run.begin[item], end: run.end[item]};
  return {lane: slot, begin: run.gaps[slot].begin[gap], end: run.gaps[slot].end[gap]};
}

/** Whether there is such an item or idle gap in the run. */
export function exists(run, {item, slot, gap}) {
  if (item !== undefined) return item < run.begin.length;
  return slot < run.slots && gap < run.gaps[slot].begin.length;
}

/** What a device does at `time`, {item} or {slot, gap}; else the item nearest to it, or null. */
export function stateAt(run, slot, time) {
  const item = itemAt(run, slot, time);
  if (item >= 0) return {item};
  const gap = gapAt(run, slot, time);
  if (gap >= 0) return {slot, gap};
  const near = nearestItem(run, slot, time);
  return near >= 0 ? {item: near} : null;
}

/**
 * What stands before (-1) or after (1) a choice in its lane, items and idle gaps; null at the end.
 */
export function neighbour(run, chosen, direction) {
  const {lane, begin, end} = spanOf(run, chosen);
  const gaps = run.gaps[lane] ?? {begin: [], end: []};
  const count = gaps.begin.length;
  const item = chosen.item !== undefined ? chosen.item + direction :
      direction > 0                      ? firstAfter(run, lane, begin) :
                                           firstAfter(run, lane, begin) - 1;
  const gap = chosen.item === undefined ? chosen.gap + direction :
      direction > 0                     ? firstWhere(0, count, (i) => gaps.begin[i] >= end) :
                                          firstWhere(0, count, (i) => gaps.end[i] > begin) - 1;
  const hasItem = item >= run.starts[lane] && item < run.starts[lane + 1];
  const hasGap = gap >= 0 && gap < count;
  if (!hasItem || !hasGap) return hasItem ? {item} : hasGap ? {slot: lane, gap} : null;
  const isNearer =
      direction > 0 ? gaps.begin[gap] < run.begin[item] : gaps.begin[gap] >= run.end[item];
  return isNearer ? {slot: lane, gap} : {item};
}

/** The idle gaps between an item of a slot and the one before it, first to last. */
export function gapsBefore(run, item) {
  const slot = laneOf(run, item);
  if (slot >= run.slots) return [];
  const since = item > run.starts[slot] ? run.end[item - 1] : 0;
  const gaps = run.gaps[slot];
  const found = [];
  let i = firstWhere(0, gaps.begin.length, (k) => gaps.begin[k] >= since);
  for (; i < gaps.begin.length && gaps.end[i] <= run.begin[item]; ++i) {
    found.push({begin: gaps.begin[i], end: gaps.end[i], cause: CAUSES[gaps.cause[i]]});
  }
  return found;
}

/**
 * The slots between which a transfer or a collective goes: [from, to]; of an op its own, twice.
 */
export function slotsOf(run, item) {
  const lane = laneOf(run, item);
  if (lane < run.slots) return [lane, lane];
  return run.layout.channels[lane - run.slots] ?? [-1, -1];
}

/** `2F0`, `recv 2F0`, `all-reduce 1`: what an item is called. */
export function itemName(run, item) {
  const kind = run.kind[item];
  const op = (letter) => `${run.stage[item]}${letter}${run.microBatch[item]}`;
  if (kind >= BACKWARD_PART && kind <= FORWARD_PART) return `${op(LETTERS[kind])} (part)`;
  if (kind < LETTERS.length) return op(LETTERS[kind]);
  if (kind === ACTIVATION_TRANSFER) return `recv ${op('F')}`;
  if (kind === GRADIENT_TRANSFER) return `recv ${op('B')}`;
  if (kind < FLUSH) return `${KIND_NAMES[kind]}, stage ${run.stage[item]}`;
  return KIND_NAMES[kind];
}

/** The items that decide the end of the run, first to last, and the lane of each. */
export function criticalPath(run) {
  let item = 0;
  for (let i = 1; i < run.end.length; ++i)
    if (run.end[i] > run.end[item]) item = i;
  const path = [];
  for (; run.end.length > 0 && item !== NOBODY; item = run.releasedBy[item]) path.push(item);
  const items = Uint32Array.from(path.reverse());
  return {items, lanes: items.map((i) => laneOf(run, i))};
}
