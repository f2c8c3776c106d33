// What an item or a gap is, when, why then, and how it differs from the prediction: in words.
// SPDX-License-Identifier: MIT
import {NOBODY} from './codec.js';
import {formatBytes, formatDifference, formatPercent, formatTime} from './format.js';
import {CAUSES, gapsBefore, isOfOne, isTransfer, itemName, KIND_NAMES, laneOf, slotsOf,} from './run.js';

/** What each cause of idle time means. */
export const CAUSE_WORDS = {
  fill: 'before its first work of the mini-batch',
  drain: 'after its last work, until all devices have ended',
  dependency: 'for an input that another device had not made yet',
  transfer: 'for an input on its way',
  all_reduce: 'for the gradients of other replicas, or the weights that they updated',
  rendezvous: 'for the other end of a blocking transfer',
  update: 'for the updates of other devices',
  overhead: 'time that belongs to no device, or between two ops',
};

/** A cause of idle time as readers see it in tables. */
export function causeName(cause) {
  return {all_reduce: 'all-reduce', transfer: 'network'}[cause] ?? cause;
}

/** A cause of idle time in a few words: what the device waits for. */
const CAUSE_PHRASES = {
  fill: 'fill',
  drain: 'drain',
  dependency: 'waiting for an input',
  transfer: 'waiting for the network',
  all_reduce: 'waiting for gradients or weights',
  rendezvous: 'waiting for the other end',
  update: 'waiting for updates',
  overhead: 'overhead',
};

/** What stands in an idle gap: its cause and its length, from long to short. */
export function gapTexts(cause, length) {
  const phrase = CAUSE_PHRASES[cause];
  return [`idle ${length}: ${phrase}`, `${phrase}, ${length}`, `idle ${length}`, length];
}

function deviceName(run, slot) {
  return run.nameOf ? run.nameOf([slot]) : `device ${run.layout.devices[slot]}`;
}

/** Where an item runs: "device 1", "device 0 to device 1", "the group of device 1", "no device". */
export function placeOf(run, item) {
  const [from, to] = slotsOf(run, item);
  if (from < 0) return 'no device';
  if (from === to && laneOf(run, item) >= run.slots) return `the group of ${deviceName(run, from)}`;
  return from === to ? deviceName(run, from) : `${deviceName(run, from)} to ${deviceName(run, to)}`;
}

/**
 * The item whose late end an idle device waited for: what released it, and where that was a
 * transfer, what the transfer waited for. NOBODY = it waited for nothing.
 */
export function culpritOf(run, item) {
  let by = run.releasedBy[item];
  while (by !== NOBODY && laneOf(run, by) >= run.slots && run.releasedBy[by] !== NOBODY) {
    by = run.releasedBy[by];
  }
  return by;
}

function row(label, text, item) {
  return item === undefined ? {label, text} : {label, text, item};
}

function whyIdle(run, item, time) {
  const gaps = gapsBefore(run, item);
  if (gaps.length === 0) return [];
  const parts = gaps.map((gap) => `${causeName(gap.cause)} ${time(gap.end - gap.begin)}`);
  const rows = [row('Idle before', parts.join(', '))];
  const culprit = culpritOf(run, item);
  if (culprit !== NOBODY && culprit !== run.releasedBy[item]) {
    rows.push(row('Waited for', `${itemName(run, culprit)} on ${placeOf(run, culprit)}`, culprit));
  }
  return rows;
}

function besideFirst(run, first, item, time) {
  const begin = (run.begin[item] * run.layout.tick_ns) - (first.begin[item] * first.layout.tick_ns);
  const took = (run.end[item] - run.begin[item]) * run.layout.tick_ns;
  const predicted = (first.end[item] - first.begin[item]) * first.layout.tick_ns;
  const relative = took > 0 ? ` (${formatPercent(predicted / took - 1)} of the measured time)` : '';
  return [
    row('Predicted begin',
        `${formatTime(first.begin[item] * first.layout.tick_ns)}, ` +
            `error ${formatDifference(-begin)}`),
    row('Predicted length',
        `${time(predicted / run.layout.tick_ns)}, ` +
            `error ${formatDifference(predicted - took)}${relative}`),
  ];
}

/**
 * An item as a title and rows of label and text; a row with an `item` tells of that one. `first` is
 * the run that this one is held against, if there is one.
 */
export function describeItem(run, item, first) {
  const time = (ticks) => formatTime(ticks * run.layout.tick_ns, 6);
  const kind = run.kind[item];
  const [latency, bytes] = run.layout.costs[run.cost[item]] ?? [0, 0];
  const rows = [
    row('When',
        `${time(run.begin[item])} to ${time(run.end[item])}, ` +
            `${time(run.end[item] - run.begin[item])} long`),
    row('Where', placeOf(run, item)),
  ];
  if (isTransfer(kind)) {
    const late = latency > 0 ? `, of the time ${time(latency)} are latency` : '';
    rows.push(row('Carries', `${formatBytes(bytes)}${late}`));
  }
  const by = run.releasedBy[item];
  if (by === NOBODY) {
    rows.push(row('Why now', 'it waited for nothing: it began with the run'));
  } else {
    rows.push(row('Why now', `${itemName(run, by)} let it start`, by));
  }
  rows.push(...whyIdle(run, item, time));
  if (first && first !== run) rows.push(...besideFirst(run, first, item, time));
  return {
    name: itemName(run, item),
    title: `${KIND_NAMES[kind]}, stage ${run.stage[item]}, ${pieceOf(run, item)}`,
    rows,
  };
}

/**
 * What an item is of: a micro-batch, or one slice of it; updates and collectives are of whole
 * ones.
 */
function pieceOf(run, item) {
  const {slices} = run.layout;
  const number = run.microBatch[item];
  const whole = `micro-batch ${Math.floor(number / slices)}`;
  return slices > 1 && isOfOne(run.kind[item]) ? `${whole}, slice ${number % slices}` : whole;
}

/** An idle gap of a slot, in the same form; `next` is the item that ends it, or -1. */
export function describeGap(run, slot, gap, next) {
  const time = (ticks) => formatTime(ticks * run.layout.tick_ns, 6);
  const {begin, end, cause} = run.gaps[slot];
  const name = CAUSES[cause[gap]];
  const rows = [
    row('When', `${time(begin[gap])} to ${time(end[gap])}, ${time(end[gap] - begin[gap])} long`),
    row('Where', deviceName(run, slot)),
    row('Why', CAUSE_WORDS[name]),
  ];
  if (next >= 0 && name !== 'drain') {
    rows.push(row('Ends with', itemName(run, next), next));
    const culprit = culpritOf(run, next);
    if (culprit !== NOBODY) {
      rows.push(
          row('Waited for', `${itemName(run, culprit)} on ${placeOf(run, culprit)}`, culprit));
    }
  }
  return {name: `idle: ${CAUSE_PHRASES[name]}`, title: 'the device does nothing', rows};
}
