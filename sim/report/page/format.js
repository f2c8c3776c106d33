// Numbers as people read them: times, bytes, shares, the marks of an axis.
// SPDX-License-Identifier: MIT

const TIME_UNITS = [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']];
const BYTE_UNITS =
    [[1, 'B'], [2 ** 10, 'KiB'], [2 ** 20, 'MiB'], [2 ** 30, 'GiB'], [2 ** 40, 'TiB']];
const RATE_UNITS = [
  [1, 'FLOP/s'], [1e3, 'kFLOP/s'], [1e6, 'MFLOP/s'], [1e9, 'GFLOP/s'], [1e12, 'TFLOP/s'],
  [1e15, 'PFLOP/s'], [1e18, 'EFLOP/s']
];

/** The number with at most `digits` significant digits, without an exponent or trailing zeros. */
export function significant(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

function inUnits(value, units, digits) {
  if (value === 0) return `0 ${units === TIME_UNITS ? 's' : units[0][1]}`;
  const size = Math.abs(value);
  // Rounding may carry into the next unit: 999.96 us is 1 ms.
  const rounded = Number(size.toPrecision(digits));
  let unit = units[0];
  for (const candidate of units)
    if (rounded >= candidate[0]) unit = candidate;
  return `${value < 0 ? '-' : ''}${significant(size / unit[0], digits)} ${unit[1]}`;
}

/** A length of time given in nanoseconds: "33 ms", "1.25 us". */
export function formatTime(ns, digits = 4) {
  return inUnits(ns, TIME_UNITS, digits);
}

/** The same with its sign: "+1.5 ms", "-3 us", "0 s". */
export function formatDifference(ns) {
  return (ns > 0 ? '+' : '') + formatTime(ns);
}

/** Bytes in powers of 1024: "1.5 GiB". */
export function formatBytes(bytes, digits = 4) {
  return inUnits(bytes, BYTE_UNITS, digits);
}

/** A rate of computing: "407.9 TFLOP/s". */
export function formatFlopRate(rate, digits = 4) {
  return inUnits(rate, RATE_UNITS, digits);
}

/** A fraction as "27.27 %". */
export function formatPercent(fraction) {
  return `${(100 * fraction).toFixed(2)} %`;
}

/** "1 device", "4 devices". */
export function plural(count, noun) {
  const ending = noun.endsWith('ch') ? 'es' : 's';
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : ending}`;
}

/** The smallest of 1, 2 and 5 times a power of ten that is no smaller than `least`. */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5])
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/**
 * The marks of a time axis from `from` to `to` nanoseconds, at most about `most`: where they stand
 * and what they say, all in one unit.
 */
export function axisMarks(from, to, most) {
  const step = Math.max(1, niceStep((to - from) / Math.max(1, most)));
  let unit = TIME_UNITS[0];
  for (const candidate of TIME_UNITS)
    if (to >= candidate[0]) unit = candidate;
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9));
  const marks = [];
  const first = Math.ceil(from / step - 1e-9);
  for (let i = first; i * step <= to * (1 + 1e-12); ++i) {
    marks.push({at: i * step, text: `${((i * step) / unit[0]).toFixed(decimals)} ${unit[1]}`});
  }
  return marks;
}
