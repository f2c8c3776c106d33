// One point of a sweep in words: what was set, what it comes to, and how to predict it again.
// SPDX-License-Identifier: MIT
import {element} from './dom.js';
import {formatBytes, formatFlopRate, formatPercent, formatTime, plural, significant} from './format.js';
import {commandOf, shownBubble, throughputEach} from './sweep.js';

const orDash = (value, text) => (value === null ? '-' : text(value));

/** The numbers of a row as texts, by what they are. */
export const NUMBERS = {
  time: (row) => orDash(row.time, (seconds) => formatTime(seconds * 1e9)),
  throughput: (row) => orDash(row.throughput, (value) => significant(value, 5)),
  each: (row) => orDash(throughputEach(row), (value) => significant(value, 5)),
  utilization: (row) => orDash(row.utilization, formatPercent),
  bubble: (row) => orDash(shownBubble(row), formatPercent),
  formula: (row) => orDash(row.formula, formatPercent),
  stall: (row) => orDash(row.stall, formatPercent),
  peak: (row) => orDash(row.peak, (value) => formatBytes(value)),
  device: (row) => orDash(row.device, String),
  spare: (row) => orDash(row.spare, String),
  fits: (row) => orDash(row.fits, (fits) => (fits ? 'yes' : 'NO')),
};

/** What becomes of a row, in a word. */
function verdictOn(row, front) {
  if (row.reason !== null) return row.reason;
  return front.has(row) ? 'no other point shown has more throughput within its memory' : 'feasible';
}

/** What the model's FLOPs come to on a device. */
function flopsOf(row) {
  const share = row.utilization === null ? '' : `, ${NUMBERS.utilization(row)} of its peak (MFU)`;
  return `${formatFlopRate(row.flops)} of the model on each device${share}`;
}

const terms = (pairs) => element(
    'dl', {},
    ...pairs.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]));

/** The few words beside the pointer; `others` are below it too. */
export function hoverParts(sweep, row, others) {
  const settings = sweep.varying.map((i) => [sweep.axes[i].key, sweep.axes[i].values[row.at[i]]]);
  const numbers = row.hasNumbers ?
      [
        ['samples/s', NUMBERS.throughput(row)], ['bubble', NUMBERS.bubble(row)],
        ['peak memory', NUMBERS.peak(row)]
      ] :
      [];
  return [
    element('p', {class: 'name'}, element('strong', {}, `point ${row.point}`)),
    terms([...settings, ...numbers]),
    ...(row.reason === null ? [] : [element('p', {class: 'remark'}, row.reason)]),
    ...(others === 0 ? [] :
                       [element(
                           'p', {class: 'remark'},
                           `${plural(others, 'other point')} here; each click chooses another`)]),
  ];
}

/** All of a row. */
export function pointParts(sweep, row, front) {
  const numbers = row.hasNumbers ?
      [
        ['Iteration time', NUMBERS.time(row)],
        [
          'Throughput',
          `${NUMBERS.throughput(row)} samples/s` +
              (row.devices > 1 ? `, ${NUMBERS.each(row)} for each of ${row.devices} devices` : '')
        ],
        ...(row.flops === null ? [] : [['Model FLOPs', flopsOf(row)]]),
        ['Bubble fraction', formatPercent(row.bubble)],
        ['Bubble overhead', formatPercent(row.overhead)],
        ...(row.steady === null ? [] : [['Steady bubble', formatPercent(row.steady)]]),
        ...(row.formula === null ? [] : [['By formula', NUMBERS.formula(row)]]),
        ['Communication', `${NUMBERS.stall(row)} of the device time is waiting for the network`],
        [
          'Peak memory',
          `${NUMBERS.peak(row)} on device ${row.device}` +
              (row.limit === null ? '' : `, of ${formatBytes(row.limit)}`)
        ],
        ...(row.spare > 0 ? [['Without a stage', plural(row.spare, 'device')]] : []),
      ] :
      [];
  return [
    element('h3', {}, `Point ${row.point}`),
    element('p', {class: 'kind'}, verdictOn(row, front)),
    element(
        'div', {class: 'two'},
        terms(sweep.axes.map(({key, values}, i) => [key, values[row.at[i]]])), terms(numbers)),
    ...row.estimated.map((text) => element('p', {class: 'remark'}, `estimated: ${text}`)),
    element('p', {class: 'remark'}, 'To predict it again, with its timeline:'),
    element('pre', {tabindex: 0, class: 'command'}, element('code', {}, commandOf(sweep, row))),
  ];
}

/** More keys than this stand behind what a choice is made by. */
const MOST_KEYS_FIRST = 4;

/** A column for each key that varies. */
function columnsOfKeys(sweep) {
  return sweep.varying.map((i) => ({
                             name: sweep.axes[i].key,
                             value: (row) => row.at[i],
                             text: (row) => sweep.axes[i].values[row.at[i]],
                             words: true,
                           }));
}

/** The columns of the table of all rows. */
export function columnsOf(sweep) {
  const some = (test) => sweep.rows.some(test);
  const differ = (of) => new Set(sweep.rows.filter((row) => row.hasNumbers).map(of)).size > 1;
  const numeric = (name, value, text) => ({name, value, text});
  const first = [
    numeric('Iteration time', (row) => row.time, NUMBERS.time),
    numeric('Peak memory', (row) => row.peak, NUMBERS.peak),
    ...(some((row) => row.fits !== null) ?
            [{name: 'Fits', value: (row) => row.fits, text: NUMBERS.fits, words: true}] :
            []),
  ];
  const keys = columnsOfKeys(sweep);
  return [
    numeric('Point', (row) => row.point, (row) => String(row.point)),
    ...(keys.length > MOST_KEYS_FIRST ? [...first, ...keys] : [...keys, ...first]),
    numeric('Samples/s', (row) => row.throughput, NUMBERS.throughput),
    ...(differ((row) => row.devices) ? [numeric('Per device', throughputEach, NUMBERS.each)] : []),
    ...(some((row) => row.utilization !== null) ?
            [numeric('MFU', (row) => row.utilization, NUMBERS.utilization)] :
            []),
    numeric('Bubble', shownBubble, NUMBERS.bubble),
    ...(some((row) => row.formula !== null) ?
            [numeric('By formula', (row) => row.formula, NUMBERS.formula)] :
            []),
    numeric('Waiting for the network', (row) => row.stall, NUMBERS.stall),
    numeric('On device', (row) => row.device, NUMBERS.device),
    ...(some((row) => row.spare > 0) ?
            [numeric('Without a stage', (row) => row.spare, NUMBERS.spare)] :
            []),
  ];
}

/** The columns of the table of those that do not fit or cannot run. */
export function columnsOfInfeasible(sweep) {
  return [
    columnsOf(sweep)[0],
    ...columnsOfKeys(sweep),
    {name: 'Why', value: (row) => row.reason, text: (row) => row.reason, words: true},
  ];
}
