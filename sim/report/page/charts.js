// The charts beside the timeline, as SVG: memory over time, and the device time by what it went to.
// SPDX-License-Identifier: MIT
import {causeName} from './describe.js';
import {element, shape} from './dom.js';
import {formatBytes, formatPercent, formatTime} from './format.js';
import {PATTERNS} from './palette.js';
import {CAUSES} from './run.js';

/** Of so many devices the charts are open at once; those of the others wait behind a switch. */
const OPEN = 8;

/** The largest value of a step curve in each of `columns` slices of [0, length). */
export function largestInColumns({at, bytes}, length, columns) {
  const largest = new Float64Array(columns);
  let next = 0;
  let held = 0;
  for (let column = 0; column < columns; ++column) {
    const end = (length * (column + 1)) / columns;
    let most = held;
    for (; next < at.length && (at[next] < end || column + 1 === columns); ++next) {
      held = bytes[next];
      most = Math.max(most, held);
    }
    largest[column] = most;
  }
  return largest;
}

/**
 * A step curve as an SVG path in a box, whole or, where it has more points than columns, its
 * largest values.
 */
export function stepPath(curve, length, most, box) {
  const y = (value) => (box.top + box.height * (1 - value / most)).toFixed(1);
  const x = (time) => (box.left + (box.width * time) / length).toFixed(1);
  if (curve.at.length > box.width) {
    const values = largestInColumns(curve, length, box.width);
    return Array
               .from(
                   values,
                   (value, i) => `${i === 0 ? 'M' : 'H'}${
                       i === 0 ? `${box.left} ${y(value)}` : `${box.left + i}V${y(value)}`}`)
               .join('') +
        `H${box.left + box.width}`;
  }
  let path = `M${x(curve.at[0] ?? 0)} ${y(curve.bytes[0] ?? 0)}`;
  for (let i = 1; i < curve.at.length; ++i) path += `H${x(curve.at[i])}V${y(curve.bytes[i])}`;
  return `${path}H${box.left + box.width}`;
}

/** Charts of the first devices, and those of the others once they are asked for. */
function inPortions(count, make) {
  const all = Array.from({length: count}, (_, i) => i);
  const shown = element('div', {class: 'charts'}, ...all.slice(0, OPEN).map(make));
  if (count <= OPEN) return [shown];
  const rest = element('div', {class: 'charts'});
  const more = element(
      'details', {class: 'more'}, element('summary', {}, `The other ${count - OPEN} devices`),
      rest);
  more.addEventListener('toggle', () => {
    if (more.open && !rest.firstChild) rest.append(...all.slice(OPEN).map(make));
  });
  return [shown, more];
}

function memoryChart(report, slot, most) {
  const {runs, facts} = report;
  const box = {left: 0, top: 14, width: 300, height: 76};
  const limit = facts.runs[0].memory_limit_bytes;
  const device = runs[0].layout.devices[slot];
  const peaks = facts.runs.map((run) => run.summary.devices[slot].peak_memory_bytes);
  const title =
      `device ${device}: peak ${peaks.map((peak) => formatBytes(peak)).join(', measured ')}`;
  const curves = runs.map((run, r) => {
    const path = stepPath(run.memory[slot], report.length, most, box);
    return shape(
        'path', {d: r === 0 ? `${path}V90H0Z` : path, class: r === 0 ? 'curve' : 'curve second'});
  });
  const lines = [];
  if (limit !== null && limit <= most) {
    const y = box.top + box.height * (1 - limit / most);
    lines.push(
        shape('line', {x1: 0, x2: 300, y1: y, y2: y, class: 'limit'}),
        shape(
            'text', {x: 300, y: y - 4, 'text-anchor': 'end', class: 'limit-text'},
            `limit ${formatBytes(limit)}`));
  }
  return element(
      'figure', {},
      element(
          'figcaption', {}, element('strong', {}, `device ${device}`),
          ` peak ${formatBytes(peaks[0])}` +
              (peaks.length > 1 ? `, measured ${formatBytes(peaks[1])}` : '')),
      shape(
          'svg', {viewBox: '0 0 300 92', role: 'img', 'aria-label': title}, ...curves,
          shape('line', {x1: 0, x2: 300, y1: 90.5, y2: 90.5, class: 'base'}), ...lines));
}

/** Memory over time of every device, on one scale, with the limit where it is near. */
export function memoryCharts(report) {
  const {facts} = report;
  const peak =
      Math.max(...facts.runs.flatMap((run) => run.summary.devices.map((d) => d.peak_memory_bytes)));
  if (peak <= 0) return [element('p', {}, 'The model says nothing of its memory.')];
  const limit = facts.runs[0].memory_limit_bytes;
  const most = (limit !== null && limit < 2.5 * peak ? Math.max(limit, peak) : peak) * 1.06;
  const notes = [];
  if (limit !== null && limit >= 2.5 * peak) {
    notes.push(
        `The limit of ${formatBytes(limit)} for each device is far above: the scale ends at ${
            formatBytes(most, 3)}.`);
  }
  if (report.runs.length > 1) notes.push('The area is predicted, the line is measured.');
  if (report.runs.some((run) => run.layout.memory_sampled.includes(true))) {
    notes.push('A long run: each point is the most of a slice of time.');
  }
  return [
    ...(notes.length > 0 ? [element('p', {class: 'remark'}, notes.join(' '))] : []),
    ...inPortions(report.runs[0].slots, (slot) => memoryChart(report, slot, most)),
  ];
}

/** The SVG patterns that the bars are filled with; they have to stand in the page once. */
export function patternDefinitions() {
  return shape(
      'svg', {width: 0, height: 0, 'aria-hidden': 'true', class: 'patterns'},
      shape(
          'defs', {},
          ...Object.entries(PATTERNS).map(
              ([name, {color, path}]) => shape(
                  'pattern', {id: `p-${name}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse'},
                  shape('rect', {width: 8, height: 8, fill: color}), shape('path', {
                    d: path,
                    stroke: '#1d2733',
                    'stroke-opacity': 0.45,
                    'stroke-width': 1,
                    fill: 'none'
                  })))));
}

/** The parts of a device's time: busy, then each cause of idle time. */
function partsOf(device) {
  const causes = CAUSES.map((cause) => ({name: cause, seconds: device.idle_by_cause_s[cause]}));
  return [{name: 'busy', seconds: device.busy_s}, ...causes];
}

function causeBar(report, r, slot) {
  const facts = report.facts.runs[r];
  const device = facts.summary.devices[slot];
  const whole = report.length * report.tickNs / 1e9;
  const parts = partsOf(device).filter(({seconds}) => seconds > 0);
  let x = 0;
  const bars = parts.map(({name, seconds}) => {
    const width = whole > 0 ? (1000 * seconds) / whole : 0;
    const text = `${causeName(name)} ${formatTime(seconds * 1e9)}`;
    const bar = shape(
        'rect', {x, y: 0, width, height: 18, fill: `url(#p-${name})`, class: 'part'},
        shape('title', {}, text));
    x += width;
    return bar;
  });
  const words =
      parts.map(({name, seconds}) => `${causeName(name)} ${formatTime(seconds * 1e9)}`).join(', ');
  const title = report.runs.length > 1 ? ` ${facts.title}` : '';
  return element(
      'div', {class: 'bar'},
      element('span', {class: 'bar-name'}, `device ${device.device}${title}`),
      shape(
          'svg', {
            viewBox: '0 0 1000 18',
            preserveAspectRatio: 'none',
            role: 'img',
            'aria-label': `device ${device.device}${title}: ${words}`
          },
          ...bars),
      element('span', {class: 'bar-value'}, `idle ${formatPercent(device.bubble_fraction)}`));
}

/** A bar for every device: how its time is spent, and on what it waits. */
export function causeCharts(report) {
  const occurring = new Set(report.facts.runs.flatMap(
      (run) => run.summary.devices.flatMap(
          (device) => partsOf(device).filter((p) => p.seconds > 0).map((p) => p.name))));
  const legend = element(
      'ul', {class: 'legend'},
      ...['busy', ...CAUSES]
          .filter((name) => occurring.has(name))
          .map(
              (name) => element(
                  'li', {},
                  shape(
                      'svg', {width: 18, height: 12, 'aria-hidden': 'true'},
                      shape('rect', {width: 18, height: 12, fill: `url(#p-${name})`})),
                  causeName(name))));
  const bars = inPortions(
      report.runs[0].slots,
      (slot) =>
          element('div', {class: 'bars'}, ...report.runs.map((_, r) => causeBar(report, r, slot))));
  bars[0].className = 'bar-list';
  return [legend, ...bars];
}
