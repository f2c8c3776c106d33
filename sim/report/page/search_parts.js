// What a search decides: its choices, their time and memory, other efficiencies, and what was left
// out. SPDX-License-Identifier: MIT
import {bar, memoryBarParts, memoryLegend} from './bars.js';
import {element, table} from './dom.js';
import {formatBytes, formatPercent, formatTime, plural, significant} from './format.js';
import {Plot} from './plot.js';
import {rangeMarks} from './scale.js';
import {commonLimit} from './sweep.js';
import {chartSize, valuesInShort} from './sweep_plots.js';
import {NUMBERS} from './sweep_point.js';

/** The shares of the peak for which times are told. */
const EFFICIENCIES = [0.4, 0.5, 0.6];
const NAMED_POINTS = 14;

/** The choices with their rows, of those whose row is on the page. */
export function choicesOf(sweep) {
  return sweep.facts.decision.choices.map((choice) => ({...choice, of: sweep.rows[choice.row]}))
      .filter((choice) => choice.of?.hasNumbers);
}

/** The numbers of the first choice, the main ones large. */
export function figuresOfFirst(first) {
  if (!first) return [];
  const {of: row} = first;
  const figure = (label, value, remark, isMain = false) =>
      ({label, value, remark, is_main: isMain});
  return [
    figure('Iteration time of the first', NUMBERS.time(row), first.words, true),
    row.utilization === null ?
        figure('Throughput', `${NUMBERS.throughput(row)} /s`, 'samples per second', true) :
        figure(
            'MFU', NUMBERS.utilization(row), 'of the peak of its devices, as FLOPs of the model',
            true),
    figure(
        'Peak memory', NUMBERS.peak(row),
        `device ${row.device}${row.limit === null ? '' : `, of ${formatBytes(row.limit)}`}`),
    ...(row.utilization === null ?
            [] :
            [figure('Throughput', `${NUMBERS.throughput(row)} /s`, 'samples per second')]),
    figure('Bubble', NUMBERS.bubble(row), 'of the device time is idle'),
    figure('Communication', NUMBERS.stall(row), 'of the device time is waiting for the network'),
    figure('Devices', String(row.devices), 'that hold a stage'),
  ];
}

/** The choices as a table; the button in a row chooses its layout. */
export function choiceTable(choices, choose) {
  const [{of: first}] = choices;
  const against = (row) => {
    const percent = 100 * (row.time / first.time - 1);
    return row === first ? '-' : `${percent < 0 ? '' : '+'}${percent.toFixed(2)} %`;
  };
  const button = ({of: row, words}) => {
    const link = element('button', {type: 'button', class: 'link'}, words);
    link.addEventListener('click', () => choose(row));
    return link;
  };
  const room = (row) => (row.limit === null ? '-' : formatBytes(row.limit - row.peak));
  return table(
      'The best layout of each tensor, context, expert and pipeline size',
      [
        'Layout', 'Iteration time', 'Against the first', 'Peak memory', 'Fits', 'Room left', 'MFU',
        'Bubble', 'Waiting for the network', 'Layouts of these sizes'
      ],
      choices.map((choice) => {
        const {of: row, alike} = choice;
        return [
          button(choice), NUMBERS.time(row), against(row), NUMBERS.peak(row), NUMBERS.fits(row),
          room(row), NUMBERS.utilization(row), NUMBERS.bubble(row), NUMBERS.stall(row),
          String(alike)
        ];
      }));
}

/** Where the front goes down: the least time within so much memory, in shares of the ranges. */
export function timeStaircase(places, end) {
  const path = [];
  for (const [x, y] of [...places].sort((a, b) => a[0] - b[0])) {
    if (path.length > 0) path.push([x, path[path.length - 1][1]]);
    path.push([x, y]);
  }
  if (path.length > 0) path.push([end, path[path.length - 1][1]]);
  return path;
}

/** A range that holds these values with air around; from 0 where they are far apart. */
export function rangeOf(values) {
  const least = Math.min(...values);
  const most = Math.max(...values);
  const air = Math.max((most - least) * 0.12, most * 0.01);
  return {from: most > 2 * least ? 0 : least - air, to: most + air};
}

/** Iteration time against peak memory of rows, with the front; `front` are rows, too. */
export function plotOfTimes(sweep, rows, front, layout, listeners) {
  const shown = rows.filter((row) => row.time !== null);
  const limit = commonLimit(rows);
  const peaks = shown.map((row) => row.peak);
  const isNear = limit !== null && limit <= 1.3 * Math.max(...peaks);
  const memory = rangeOf(isNear ? [...peaks, limit] : peaks);
  const time = rangeOf(shown.map((row) => 1e9 * row.time));
  const share = ({from, to}, value) => (value - from) / (to - from);
  const place = (row) => [share(memory, row.peak), share(time, 1e9 * row.time)];
  const isOnFront = new Set(front);
  const marks = (range, count, kind) =>
      rangeMarks(range.from, range.to, count, kind).map(({at,
                                                          text}) => ({at: share(range, at), text}));
  const size = chartSize();
  const spec = {
    ...size,
    name: 'Iteration time against peak memory',
    xTitle: 'peak memory of the device that needs most',
    xMarks: marks(memory, size.width > 600 ? 8 : 4, 'bytes'),
    yMarks: marks(time, 6, 'time'),
    points: layout.series.flatMap(
        (series, s) =>
            series.rows.filter((row) => row.time !== null).map((row) => ({
                                                                 row,
                                                                 x: place(row)[0],
                                                                 y: place(row)[1],
                                                                 series: s,
                                                                 crossed: row.reason !== null,
                                                                 front: isOnFront.has(row),
                                                               }))),
    lines: [],
    linesAbove: [{
      places: timeStaircase(front.map(place), isNear ? share(memory, limit) : 1),
      class: 'front-line',
    }],
    limits: isNear ? [{x: share(memory, limit), text: `limit ${formatBytes(limit)}`}] : [],
    styles: layout.styles,
    beside: namesOfFront(sweep, front),
  };
  return {plot: new Plot(spec, listeners), isZoomed: memory.from > 0 || time.from > 0};
}

/** In what the rows of a front differ. */
function namesOfFront(sweep, front) {
  const varied =
      sweep.varying.filter((axis) => front.some((row) => row.at[axis] !== front[0].at[axis]));
  const few = varied.filter((axis) => sweep.axes[axis].key.length < 5).slice(0, 4);
  const name = (row) =>
      (few.length > 0 ?
           few.map((axis) => `${sweep.axes[axis].key} ${sweep.axes[axis].values[row.at[axis]]}`)
               .join(', ') :
           valuesInShort(sweep, varied.slice(0, 3), row));
  return front.slice(0, NAMED_POINTS).map((row) => ({row, text: name(row)}));
}

/** A bar for each choice: its peak by what it holds, with the limit as a line. */
export function memoryOfChoices(choices) {
  const told = choices.filter(({memory}) => memory);
  if (told.length === 0)
    return [element(
        'p', {class: 'remark'},
        'The scenario is not at hand, so the parts of the memory are not known.')];
  const limits = told.map(({of: row}) => row.limit ?? 0);
  const whole = Math.max(...told.map(({of: row}) => row.peak), ...limits) * 1.02;
  const bars = told.map(({of: row, words, memory}) => bar({
                          name: words,
                          parts: memoryBarParts(memory),
                          whole,
                          value: NUMBERS.peak(row),
                          limit: row.limit,
                          isTall: true,
                        }));
  return [
    memoryLegend(told.map(({memory}) => memory)),
    element('div', {class: 'bar-list'}, ...bars),
    ...(limits.some((limit) => limit > 0) ?
            [element(
                'p', {class: 'remark'},
                `Dashed: the limit, ${formatBytes(Math.max(...limits))} on each device.`)] :
            []),
  ];
}

/** Times and costs of a row at other shares of the peak: the same work, done faster or slower. */
export function atEfficiencies(row, shares) {
  return shares.map((share) => {
    const factor = row.utilization / share;
    return {share, time: row.time * factor, throughput: row.throughput / factor};
  });
}

/** What a row would take at other shares of the peak, as arithmetic. */
export function efficiencyParts(row) {
  if (!row || row.utilization === null)
    return [element(
        'p', {class: 'remark'}, 'The model\'s FLOPs, or the peak of its devices, are not known.')];
  const hours = (seconds) => significant((seconds * row.devices * 1000) / 3600, 4);
  const line = (name, share, seconds, throughput) =>
      [name, formatTime(seconds * 1e9), significant(throughput, 5), hours(seconds),
       share === row.utilization ?
           '-' :
           `${seconds > row.time ? '+' : ''}${(100 * (seconds / row.time - 1)).toFixed(1)} %`];
  const lines = atEfficiencies(row, EFFICIENCIES);
  const [first] = lines;
  const time = (seconds) => formatTime(seconds * 1e9);
  return [
    element(
        'p', {class: 'words'},
        `An iteration does the same FLOPs of the model at any share of the peak, so its time is ${
            time(row.time)} x ${formatPercent(row.utilization)} / MFU: ${time(row.time)} x ${
            formatPercent(row.utilization)} / ${formatPercent(first.share)} = ${
            time(first.time)}. This is arithmetic, not a prediction. ` +
            `Idle time takes ${
                NUMBERS.bubble(row)} of the device time; without any, the MFU would be ${
                formatPercent(row.utilization / (1 - (row.steady ?? row.bubble)))}.`),
    table(
        `Point ${row.point} at other shares of the peak`,
        [
          'MFU', 'Iteration time', 'Samples/s', 'Device-hours for 1000 iterations',
          'Against the prediction'
        ],
        [
          line(
              `${formatPercent(row.utilization)}, predicted`, row.utilization, row.time,
              row.throughput),
          ...lines.map(
              ({share, time: seconds, throughput}) =>
                  line(formatPercent(share), share, seconds, throughput)),
        ]),
  ];
}

/** How many layouts there were, and why most of them are no choice. */
export function leftOutParts({decision}) {
  const {counts, nearest, why_not: whyNot, searched, kept} = decision;
  const share = (count) => (counts.layouts > 0 ? formatPercent(count / counts.layouts) : '-');
  const line = (name, count, why) =>
      (count > 0 ? [[name, count.toLocaleString('en-US'), share(count), why]] : []);
  const lacks = nearest && counts.feasible === 0 ?
      `; the nearest, ${nearest.words}, lacks ${formatBytes(nearest.lacks_bytes)}` :
      '';
  const shown = decision.reported;
  return [
    table(
        `All ${plural(counts.layouts, 'layout')}`, ['Layouts', 'Number', 'Share', 'Why'],
        [
          ...line(
              'fit', counts.feasible,
              `${
                  shown.toLocaleString(
                      'en-US')} of them are reported, best first; the choices are the best of their sizes`),
          ...line(
              'do not fit', counts.misfits,
              `a device needs more memory than it has; larger micro-batches than one that does not fit are counted without a prediction${
                  lacks}`),
          ...line('cannot run', counts.cannot_run, `the first: ${whyNot}`),
          ...line('not evaluated', counts.layouts - counts.done, 'the search was interrupted'),
        ],
        4),
    element(
        'p', {class: 'words'},
        `Searched: ${searched.join(', ')}.${
            kept.length > 0 ? ` Kept as given: ${kept.join(', ')}.` : ''}`),
  ];
}
