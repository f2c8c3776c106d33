// How busy each slot is in each slice of time, exactly: prefix sums of whole ticks, per class of
// ops. SPDX-License-Identifier: MIT

/** Of each kind of activity the class that pictures show it as; 255 = none. */
export const CLASS_OF_KIND = [0, 1, 2, 3, 1, 3, 0, 4, 5, 5, 5, 5, 5, 255, 255, 255, 255, 255];

/** Names of the classes. */
export const CLASSES = ['forward', 'backward', 'input', 'weight', 'update', 'transfer'];

/** The name of each class, and of time without any op. */
export const CLASS_NAMES = {
  forward: 'forward',
  backward: 'backward',
  input: 'backward, input',
  weight: 'backward, weights',
  update: 'update',
  transfer: 'blocking transfer',
  idle: 'idle',
};

/** The classes of ops that take time in any of these runs, ascending. */
export function classesIn(runs) {
  const seen = new Uint8Array(256);
  for (const run of runs) {
    const end = run.starts[run.slots];
    for (let item = 0; item < end; ++item) {
      if (run.end[item] > run.begin[item]) seen[CLASS_OF_KIND[run.kind[item]]] = 1;
    }
  }
  return CLASSES.map((_, c) => c).filter((c) => seen[c]);
}

/**
 * For each of `classes` the ticks for which the items of a run before this one hold their streams.
 * Two differences of it are the busy time of a slot between two of its items, exactly, because all
 * are whole numbers below 2^53 (the program settles the tick so that one slot's sum is; the sums
 * start again at 0 in every slot).
 */
export function busySums(run, classes) {
  const items = run.starts[run.slots];
  const sums = classes.map(() => new Float64Array(items + run.slots));
  const place = new Int8Array(256).fill(-1);
  classes.forEach((c, i) => {
    place[c] = i;
  });
  const totals = new Float64Array(classes.length);
  for (let slot = 0; slot < run.slots; ++slot) {
    totals.fill(0);
    for (let item = run.starts[slot]; item < run.starts[slot + 1]; ++item) {
      for (let c = 0; c < totals.length; ++c) sums[c][item + slot] = totals[c];
      const length = run.end[item] - run.begin[item];
      if (length > 0) totals[place[CLASS_OF_KIND[run.kind[item]]]] += length;
    }
    for (let c = 0; c < totals.length; ++c) sums[c][run.starts[slot + 1] + slot] = totals[c];
  }
  return {sums, place};
}

/**
 * The edges of `columns` slices of [from, to): whole ticks, so that slices neither overlap nor
 * miss any.
 */
export function columnEdges(from, to, columns) {
  const edges = new Float64Array(columns + 1);
  for (let i = 0; i < columns; ++i) edges[i] = Math.floor(from + (to - from) * (i / columns));
  edges[columns] = Math.floor(to);
  return edges;
}

/** The first item from `low` on, below `end`, that ends after `time`; near ones are found fast. */
function gallop(ends, low, end, time) {
  let step = 1;
  let high = low;
  while (high < end && ends[high] <= time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  if (high > end) high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ends[middle] > time)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/**
 * The busy ticks of one slot in each slice between `edges`: `busy[column * classes + class]`, and
 * in `begins[column]` how many items begin in the slice. The slices of one class add up exactly to
 * its busy time between the first and the last edge.
 */
export function densityColumns(run, busySum, slot, edges, busy, begins) {
  const {sums, place} = busySum;
  const classes = sums.length;
  const columns = edges.length - 1;
  const end = run.starts[slot + 1];
  let item = gallop(run.end, run.starts[slot], end, edges[0]);
  const before = new Float64Array(classes);
  const now = new Float64Array(classes);
  // Busy ticks up to `time`: all items before `item`, and the part of `item` that has passed.
  const read = (out, time) => {
    for (let c = 0; c < classes; ++c) out[c] = sums[c][item + slot];
    if (item < end && run.begin[item] < time) {
      out[place[CLASS_OF_KIND[run.kind[item]]]] += time - run.begin[item];
    }
  };
  const started = (time) => item + (item < end && run.begin[item] < time ? 1 : 0);
  read(before, edges[0]);
  let begun = started(edges[0]);
  for (let column = 0; column < columns; ++column) {
    const time = edges[column + 1];
    item = gallop(run.end, item, end, time);
    read(now, time);
    for (let c = 0; c < classes; ++c) {
      busy[column * classes + c] = now[c] - before[c];
      before[c] = now[c];
    }
    const beginning = started(time);
    begins[column] = beginning - begun;
    begun = beginning;
  }
}
