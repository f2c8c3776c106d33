// The points of a sweep: their rows, which of them belong together, and which none other beats.
// SPDX-License-Identifier: MIT

/** The index of the point's value on each axis; the last axis varies fastest. */
export function valuesAt(axes, point) {
  const at = new Array(axes.length);
  let rest = point;
  for (let i = axes.length; i-- > 0;) {
    at[i] = rest % axes[i].values.length;
    rest = Math.floor(rest / axes[i].values.length);
  }
  return at;
}

/**
 * A row of the file, by name. What has no numbers has null in their place; `overrides` are null
 * where the values on the axes predict the row.
 */
function readRow(array, index, axes, {reasons, estimates, overrides}) {
  const [point, reason, estimated] = array;
  const hasNumbers = array.length > 3;
  const number = (i) => (hasNumbers ? array[i] : null);
  return {
    point,
    at: valuesAt(axes, point),
    reason: reason === null ? null : reasons[reason],
    estimated: estimated.map((i) => estimates[i]),
    overrides: overrides ? overrides[index] : null,
    hasNumbers,
    time: number(3),
    throughput: number(4),
    bubble: number(5),
    overhead: number(6),
    steady: number(7),
    formula: number(8),
    stall: number(9),
    peak: number(10),
    device: number(11),
    fits: number(12),
    limit: number(13),
    spare: number(14),
    devices: number(15),
    flops: number(16),
    utilization: number(17),
  };
}

/** The sweep of a file: its axes, which of them vary, and its rows in their order. */
export function readSweep(facts, data) {
  const {axes} = facts;
  const rows = data.rows.map((row, index) => readRow(row, index, axes, data));
  return {
    facts,
    axes,
    varying: axes.map((_, i) => i).filter((i) => axes[i].values.length > 1),
    rows,
    byPoint: new Map(rows.map((row) => [row.point, row])),
  };
}

/** The bubble that compares across schedules: of the steady state where there is one. */
export function shownBubble(row) {
  return row.steady ?? row.bubble;
}

/** The throughput for each device that holds a stage. */
export function throughputEach(row) {
  return row.throughput === null ? null : row.throughput / row.devices;
}

/** A run that takes no time has more throughput than any other. */
function speed(row) {
  return row.throughput ?? Infinity;
}

/**
 * The throughput that the row's work would have with the bubble of the closed formula; null without
 * one. The busy time is the same, so that the times are as 1 / (1 - bubble).
 */
export function formulaThroughput(row) {
  if (row.formula === null || row.throughput === null || row.formula >= 1) return null;
  return (row.throughput * (1 - row.bubble)) / (1 - row.formula);
}

/**
 * The feasible rows that no other feasible row beats in throughput and peak memory, most throughput
 * first; those that are equal in both stay.
 */
export function paretoFront(rows) {
  const feasible = rows.filter((row) => row.reason === null)
                       .sort(
                           (a, b) => (speed(a) === speed(b) ? 0 : speed(b) - speed(a)) ||
                               a.peak - b.peak || a.point - b.point);
  const front = [];
  for (const row of feasible) {
    const best = front[front.length - 1];
    const isEqual = best && speed(best) === speed(row) && best.peak === row.peak;
    if (!best || isEqual || row.peak < best.peak) front.push(row);
  }
  return front;
}

/** The rows that have the values of `filter`, a map from axes to indices of values. */
export function filtered(rows, filter) {
  const wanted = [...filter];
  return rows.filter((row) => wanted.every(([axis, value]) => row.at[axis] === value));
}

/** An assignment in short: what the last part of the key is, or only the schedule's name. */
export function shortName({key, values}, value) {
  if (key === 'schedule.name') return values[value];
  return `${key.slice(key.lastIndexOf('.') + 1)}=${values[value]}`;
}

/**
 * The rows by what the keys other than `xAxis` are, each series along the axis; in the order of
 * the points.
 */
export function seriesOf(sweep, rows, xAxis) {
  const others = sweep.varying.filter((axis) => axis !== xAxis);
  const series = new Map();
  for (const row of [...rows].sort((a, b) => a.point - b.point)) {
    const key = others.map((axis) => row.at[axis]).join();
    if (!series.has(key)) {
      const name = others.map((axis) => shortName(sweep.axes[axis], row.at[axis])).join(', ');
      series.set(key, {name: name || 'all points', rows: []});
    }
    series.get(key).rows.push(row);
  }
  return [...series.values()];
}

/** The size of memory that all rows with numbers share, or null. */
export function commonLimit(rows) {
  const limits = new Set(rows.filter((row) => row.hasNumbers).map((row) => row.limit));
  return limits.size === 1 ? [...limits][0] : null;
}

/** `text` as a shell reads it as one word. */
export function shellWord(text) {
  if (/^[\w+=./:,@%-]+$/.test(text)) return text;
  return `'${text.replaceAll('\'', '\'\\\'\'')}'`;
}

/** What a shell would be told to predict this point. */
export function commandOf({facts, axes}, row) {
  const words = row.overrides ?? axes.map(({key, values}, i) => `${key}=${values[row.at[i]]}`);
  return ['plumbline simulate', ...[facts.file, ...words].map(shellWord)].join(' ');
}
