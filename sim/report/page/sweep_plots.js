// The charts of a sweep: three over a key, and throughput against peak memory.
// SPDX-License-Identifier: MIT
import {formatBytes} from './format.js';
import {keysOfLooks, lookOf, spread} from './looks.js';
import {Plot} from './plot.js';
import {namedValues, scaleOf, valueMarks} from './scale.js';
import {commonLimit, formulaThroughput, paretoFront, seriesOf, shownBubble} from './sweep.js';

const SMALL = {
  width: 560,
  height: 340
};
const WIDE = {
  width: 1000,
  height: 420
};
/** The charts on a phone. */
const NARROW_CHART = {
  width: 400,
  height: 320
};
const TALL = {
  width: 480,
  height: 420
};
/** So many lines have their names at their ends; of more the highest and the lowest ones. */
const MOST_NAMES = 14;
const NAMES_OF_MANY = 3;
/** The width of a letter of a name, in units of a chart. */
const LETTER = 6.4;
/** A limit is drawn where it is at most so far above the largest value. */
const NEAR_LIMIT = 2;

const MEASURES = [
  {
    id: 'throughput',
    name: 'Throughput, samples per second',
    kind: 'number',
    of: (row) => row.throughput,
    formula: formulaThroughput,
  },
  {id: 'memory', name: 'Peak memory', kind: 'bytes', of: (row) => row.peak, formula: () => null},
  {
    id: 'bubble',
    name: 'Bubble, share of idle time',
    kind: 'share',
    of: shownBubble,
    formula: (row) => row.formula,
  },
];

/** The size of a chart over the whole width. */
export function chartSize() {
  return isPhone() ? TALL : WIDE;
}

function isPhone() {
  return globalThis.innerWidth < 640;
}

/** The largest of numbers, with air above; 1 where there is nothing above 0. */
function ceilingOf(values) {
  return values.reduce((most, value) => Math.max(most, value ?? 0), 0) * 1.06 || 1;
}

function toScale(marks, most) {
  return marks.map(({at, text}) => ({at: at / most, text}));
}

/** The names of an axis' values, clipped, where there is room for them. */
function namedMarks(axis, scale, width) {
  const text = (i) =>
      axis.values[i].length > 14 ? `${axis.values[i].slice(0, 13)}…` : axis.values[i];
  return namedValues(scale.places, width, (i) => 6.6 * text(i).length)
      .map((i) => ({at: scale.places[i], text: text(i)}));
}

/** What is drawn over the key `x`: its scale, its series and how they look. */
export function layOut(sweep, rows, x, wanted = {
  color: null,
  shape: null
}) {
  const series = seriesOf(sweep, rows, x);
  const keys = keysOfLooks(sweep, x, wanted);
  return {
    keys,
    x,
    axis: sweep.axes[x],
    scale: scaleOf(sweep.axes[x].values),
    series,
    styles: series.map(({rows: [row]}) => lookOf(keys, row.at)),
  };
}

/** The points of rows that have this number, and below the axis those that cannot run. */
function pointsOf({series, scale, x}, measure, most) {
  return series.flatMap(({rows}, s) => rows.flatMap((row) => {
    const value = measure.of(row);
    if (row.hasNumbers && value === null) return [];
    return [{
      row,
      x: scale.places[row.at[x]],
      y: row.hasNumbers ? value / most : 0,
      series: s,
      crossed: row.reason !== null,
    }];
  }));
}

/** The formula as a line for each series; where it has none, a faint one that guides the eye. */
function linesOf({series, styles, scale, x}, measure, most) {
  return series.map(({rows}, s) => {
    const along = [...rows].sort((a, b) => scale.places[a.at[x]] - scale.places[b.at[x]]);
    const hasFormula = rows.some((row) => measure.formula(row) !== null);
    const of = hasFormula ? measure.formula : measure.of;
    const places = along.map((row) => {
      const value = of(row);
      return value === null ? null : [scale.places[row.at[x]], value / most];
    });
    return {places, class: `${styles[s].color} ${hasFormula ? 'formula' : 'guide'}`};
  });
}

/** What the values of a series are, in short. */
export function valuesInShort(sweep, axes, row) {
  return axes.map((axis) => sweep.axes[axis].values[row.at[axis]]).join(', ');
}

/** The names at the ends of the lines: {at, text, color}; none where there is one line. */
function namesOf(sweep, {series, styles, scale, x}, measure, most) {
  if (series.length < 2) return [];
  const varied = sweep.varying.filter(
      (axis) => axis !== x &&
          series.some(({rows: [row]}) => row.at[axis] !== series[0].rows[0].at[axis]));
  const longest = isPhone() ? 16 : 30;
  const names = series.flatMap(({rows}, s) => {
    const last =
        rows.filter((row) => measure.of(row) !== null && row.reason === null)
            .reduce((a, b) => (a && scale.places[a.at[x]] > scale.places[b.at[x]] ? a : b), null);
    if (!last) return [];
    const text = valuesInShort(sweep, varied, last);
    return [{
      at: [scale.places[last.at[x]], measure.of(last) / most],
      text: text.length > longest ? `${text.slice(0, longest - 1)}…` : text,
      color: styles[s].color,
    }];
  });
  if (names.length <= (isPhone() ? 2 * NAMES_OF_MANY : MOST_NAMES)) return names;
  const order = names.sort((a, b) => b.at[1] - a.at[1]);
  return [...order.slice(0, NAMES_OF_MANY), ...order.slice(-NAMES_OF_MANY)];
}

function overKey(sweep, rows, layout, measure, listeners) {
  const limit = measure.kind === 'bytes' ? commonLimit(rows) : null;
  const values = rows.flatMap((row) => [measure.of(row), measure.formula(row)]);
  const isNear = limit !== null && limit <= NEAR_LIMIT * ceilingOf(values);
  const most = ceilingOf(isNear ? [...values, limit] : values);
  const small = isPhone() ? NARROW_CHART : SMALL;
  const names = namesOf(sweep, layout, measure, most);
  const kind = {log: ', to a logarithmic scale', linear: '', steps: ''}[layout.scale.kind];
  const spec = {
    ...small,
    name: `${measure.name} over ${layout.axis.key}`,
    xTitle: layout.axis.key + kind,
    right: names.length > 0 ? 30 + LETTER * Math.max(...names.map(({text}) => text.length)) : 16,
    xMarks: [],
    yMarks: toScale(valueMarks(most, 6, measure.kind), most),
    points: pointsOf(layout, measure, most),
    lines: linesOf(layout, measure, most),
    limits: isNear ? [{y: limit / most, text: `limit ${formatBytes(limit)}`}] : [],
    styles: layout.styles,
    names,
    spread,
  };
  spec.xMarks = namedMarks(layout.axis, layout.scale, small.width - 84 - spec.right);
  // Points at the ends of the axis stand off its ends.
  const inset = (at) => 0.03 + 0.94 * at;
  for (const point of [...spec.points, ...spec.xMarks]) {
    const key = 'x' in point ? 'x' : 'at';
    point[key] = inset(point[key]);
  }
  for (const {places} of spec.lines)
    for (const at of places)
      if (at) at[0] = inset(at[0]);
  for (const {at} of names) at[0] = inset(at[0]);
  return {id: measure.id, title: measure.name, plot: new Plot(spec, listeners)};
}

/** Throughput, memory and bubble of the rows over a key. */
export function plotsOverKey(sweep, rows, layout, listeners) {
  return MEASURES.map((measure) => overKey(sweep, rows, layout, measure, listeners));
}

/** The front as a staircase: what is the most throughput within so much memory, up to `end`. */
export function staircase(front, mostMemory, mostSpeed, end) {
  const places = [];
  for (const row of [...front].reverse()) {
    const [x, y] = [row.peak / mostMemory, row.throughput / mostSpeed];
    if (places.length > 0) places.push([x, places[places.length - 1][1]]);
    places.push([x, y]);
  }
  if (places.length > 0) places.push([end, places[places.length - 1][1]]);
  return places;
}

/** Throughput against peak memory, with the front that no other row beats. */
export function plotOfFront(sweep, rows, layout, listeners) {
  const front = paretoFront(rows).filter((row) => row.throughput !== null);
  const isOnFront = new Set(front);
  const limit = commonLimit(rows);
  const peaks = rows.map((row) => row.peak);
  const isNear = limit !== null && limit <= NEAR_LIMIT * ceilingOf(peaks);
  const mostMemory = ceilingOf(isNear ? [...peaks, limit] : peaks);
  const mostSpeed = ceilingOf(rows.map((row) => row.throughput));
  const points = layout.series.flatMap(
      (series, s) =>
          series.rows.filter((row) => row.throughput !== null).map((row) => ({
                                                                     row,
                                                                     x: row.peak / mostMemory,
                                                                     y: row.throughput / mostSpeed,
                                                                     series: s,
                                                                     crossed: row.reason !== null,
                                                                     front: isOnFront.has(row),
                                                                   })));
  const size = chartSize();
  const varied =
      sweep.varying.filter((axis) => front.some((row) => row.at[axis] !== front[0].at[axis]));
  const spec = {
    ...size,
    name: 'Throughput against peak memory',
    xTitle: 'peak memory of the device that needs most',
    xMarks: toScale(valueMarks(mostMemory, size === WIDE ? 10 : 4, 'bytes'), mostMemory),
    yMarks: toScale(valueMarks(mostSpeed, 7, 'number'), mostSpeed),
    points,
    lines: [],
    linesAbove: [{
      places: staircase(front, mostMemory, mostSpeed, isNear ? limit / mostMemory : 1),
      class: 'front-line',
    }],
    limits: isNear ? [{x: limit / mostMemory, text: `limit ${formatBytes(limit)}`}] : [],
    styles: layout.styles,
    beside:
        front.slice(0, MOST_NAMES).map((row) => ({row, text: valuesInShort(sweep, varied, row)})),
  };
  return {front, limit, isNear, plot: new Plot(spec, listeners)};
}
