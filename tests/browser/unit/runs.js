// Little runs for the tests, made by hand in the form that the page decodes.
// SPDX-License-Identifier: MIT
import {NOBODY} from '../../../sim/report/page/codec.js';

/**
 * A run of lanes of ops `[kind, begin, end, micro-batch, released by]`; the first `slots` lanes are
 * devices, the others channels as `channels` tells, then the rest.
 */
export function makeRun(slots, lanes, {channels = [], gaps = []} = {}) {
  const items = lanes.flat();
  const starts = [0];
  for (const lane of lanes) starts.push(starts[starts.length - 1] + lane.length);
  return {
    slots,
    starts,
    kind: items.map((item) => item[0]),
    begin: items.map((item) => item[1]),
    end: items.map((item) => item[2]),
    microBatch: items.map((item) => item[3] ?? 0),
    releasedBy: items.map((item) => item[4] ?? NOBODY),
    stage: items.map(() => 0),
    cost: items.map(() => 0),
    gaps,
    memory: Array.from({length: slots}, () => ({at: [0], bytes: [0], activations: [0]})),
    layout: {
      channels,
      devices: Array.from({length: slots}, (_, i) => i),
      tick_ns: 1,
      slices: 1,
      costs: [[0, 0]],
    },
  };
}

/** Whole pseudo-random numbers below `limit`, the same for the same seed. */
export function numbers(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** A device with `count` ops of random kinds, lengths and gaps. */
export function randomLane(seed, count) {
  const below = numbers(seed);
  const lane = [];
  let at = 0;
  for (let i = 0; i < count; ++i) {
    at += below(3) === 0 ? below(50) : 0;
    const end = at + below(40);
    lane.push([below(6), at, end, i]);
    at = end;
  }
  return lane;
}
