// The values of a key as places on an axis: numbers with or without a unit, or steps.
// SPDX-License-Identifier: MIT
import {niceStep} from './format.js';

const PREFIXES = {
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40
};
const TIMES = {
  ns: 1,
  us: 1e3,
  'μs': 1e3,
  'µs': 1e3,
  ms: 1e6,
  s: 1e9,
  min: 6e10,
  h: 3.6e12
};

/** What a unit measures, and how much of it one is; null where it is none that is known. */
function unitOf(text) {
  if (text === '') return {of: 'number', size: 1};
  if (Object.hasOwn(TIMES, text)) return {of: 'time', size: TIMES[text]};
  const found = /^(Ki|Mi|Gi|Ti|k|M|G|T)?(B|bit|FLOP)(\/s)?$/.exec(text);
  if (!found) return null;
  const bits = found[2] === 'bit' ? 1 / 8 : 1;
  return {
    of: `${found[2] === 'FLOP' ? 'work' : 'bytes'}${found[3] ?? ''}`,
    size: (found[1] ? PREFIXES[found[1]] : 1) * bits,
  };
}

/**
 * A value as it is written, such as "8", "1.25 ms" or "10 Gbit/s", or null if it is no quantity.
 */
export function parseQuantity(text) {
  const found = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s]\S*)?$/.exec(text.trim());
  const unit = found ? unitOf(found[2] ?? '') : null;
  return unit ? {of: unit.of, value: Number(found[1]) * unit.size} : null;
}

/** How uneven the steps between sorted numbers are: the largest over the smallest. */
function unevenness(sorted) {
  let least = Infinity;
  let most = 0;
  for (let i = 1; i < sorted.length; ++i) {
    least = Math.min(least, sorted[i] - sorted[i - 1]);
    most = Math.max(most, sorted[i] - sorted[i - 1]);
  }
  return most / least;
}

/**
 * Where the values of a key lie on an axis, from 0 to 1. Quantities of one kind lie to scale,
 * linear or logarithmic, whichever spaces them more evenly; all else in even steps, as written.
 */
export function scaleOf(values) {
  const steps = {
    kind: 'steps',
    places: values.map((_, i) => (values.length > 1 ? i / (values.length - 1) : 0.5)),
  };
  const read = values.map(parseQuantity);
  if (values.length < 2 || read.some((one) => one === null || one.of !== read[0].of)) return steps;
  const numbers = read.map((one) => one.value);
  const sorted = [...numbers].sort((a, b) => a - b);
  if (sorted.some((value, i) => i > 0 && value === sorted[i - 1])) return steps;
  const isLog =
      sorted.length > 2 && sorted[0] > 0 && unevenness(sorted.map(Math.log)) < unevenness(sorted);
  const at = isLog ? Math.log : (value) => value;
  const first = at(sorted[0]);
  const width = at(sorted[sorted.length - 1]) - first;
  return {
    kind: isLog ? 'log' : 'linear',
    places: numbers.map((value) => (at(value) - first) / width),
  };
}

/**
 * The indices of the values whose names can stand below an axis of this width without touching, in
 * their order on it. `widthOf` gives the width of a value's name.
 */
export function namedValues(places, width, widthOf) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const chosen = [];
  let end = -Infinity;
  for (const i of order) {
    const middle = places[i] * width;
    if (middle - widthOf(i) / 2 < end) continue;
    chosen.push(i);
    end = middle + widthOf(i) / 2 + 10;
  }
  return chosen;
}

/**
 * The marks of an axis from `from` to `to`, about `count`: of 'bytes', or of 'time' in
 * nanoseconds.
 */
export function rangeMarks(from, to, count, kind) {
  const units = kind === 'bytes' ? BYTES : TIME_STEPS;
  const [size, name] = units.findLast(([least]) => to >= least) ?? units[0];
  const step = niceStep((to - from) / size / count);
  const marks = [];
  for (let i = Math.ceil(from / size / step - 1e-9); i * step * size <= to * (1 + 1e-9); ++i)
    marks.push({at: i * step * size, text: `${Number((i * step).toPrecision(6))} ${name}`});
  return marks;
}

const TIME_STEPS = [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']];
const BYTES = [[1, 'B'], [2 ** 10, 'KiB'], [2 ** 20, 'MiB'], [2 ** 30, 'GiB'], [2 ** 40, 'TiB']];

/**
 * The marks of an axis from 0 to `most`, at most about `count`: of 'bytes', 'share' or 'number'.
 */
export function valueMarks(most, count, kind) {
  const [size, name] = kind === 'bytes' ? BYTES.findLast(([least]) => most >= least) ?? BYTES[0] :
      kind === 'share'                  ? [0.01, '%'] :
                                          [1, ''];
  const step = niceStep(most / size / count);
  const marks = [];
  for (let i = 0; i * step * size <= most * (1 + 1e-9); ++i) {
    const number = Number((i * step).toPrecision(6));
    const text =
        name ? `${number} ${name}` : number.toLocaleString('en-US', {maximumSignificantDigits: 6});
    marks.push({at: i * step * size, text});
  }
  return marks;
}
