// The charts beside the timeline, as SVG: memory over time, and the device time by what it went to.
// SPDX-License-Identifier: MIT
import {deviceNames} from './alike.js';
import {bar, MEMORY_PARTS, memoryLegend} from './bars.js';
import {causeName} from './describe.js';
import {element, shape} from './dom.js';
import {axisMarks, formatBytes, formatPercent, formatTime} from './format.js';
import {CAUSES} from './run.js';
import {valueMarks} from './scale.js';

/**
 * Of so many rows of devices the charts are open at once; those of the others wait behind a
 * switch.
 */
const OPEN = 8;

const FIXED_PARTS = MEMORY_PARTS.slice(0, -2);

/**
 * The points of a memory curve, {at, bytes, activations}: all, or where they are more than
 * `columns`, the largest in each of so many slices of [0, length).
 */
export function pointsInColumns({at, bytes, activations}, length, columns) {
  if (at.length <= columns)
    return Array.from(at, (time, i) => ({at: time, bytes: bytes[i], activations: activations[i]}));
  const points = [];
  let next = 0;
  let held = {bytes: 0, activations: 0};
  for (let column = 0; column < columns; ++column) {
    const end = (length * (column + 1)) / columns;
    let most = held;
    for (; next < at.length && (at[next] < end || column + 1 === columns); ++next) {
      held = {bytes: bytes[next], activations: activations[next]};
      if (held.bytes > most.bytes) most = held;
    }
    points.push({...most, at: (length * column) / columns});
  }
  return points;
}

/** A step curve through points ({at, bytes}) as an SVG path in a box, up to its right edge. */
export function stepPath(points, length, most, box) {
  const y = ({bytes}) => (box.top + box.height * (1 - bytes / most)).toFixed(1);
  const x = ({at}) => (box.left + (box.width * at) / length).toFixed(1);
  const steps =
      points.map((point, i) => (i === 0 ? `M${x(point)} ${y(point)}` : `H${x(point)}V${y(point)}`));
  return `${steps.join('')}H${box.left + box.width}`;
}

/** Charts of the first groups of devices, and those of the others once they are asked for. */
function inPortions(groups, name, make) {
  const shown = element('div', {class: name}, ...groups.slice(0, OPEN).map(make));
  const left = groups.slice(OPEN);
  if (left.length === 0) return [shown];
  const rest = element('div', {class: name});
  const devices = left.reduce((sum, slots) => sum + slots.length, 0);
  const more = element(
      'details', {class: 'more'}, element('summary', {}, `The other ${devices} devices`), rest);
  more.addEventListener('toggle', () => {
    if (more.open && !rest.firstChild) rest.append(...left.map(make));
  });
  return [shown, more];
}

const BOX = {
  left: 62,
  top: 8,
  width: 402,
  height: 150
};

/** The areas of a device's memory, stacked: what varies as curves, then what stays below them. */
function memoryAreas(report, slot, most) {
  const run = report.runs[0];
  const points = pointsInColumns(run.memory[slot], report.length, BOX.width);
  const bottom = BOX.top + BOX.height;
  const area = (part, curve) => shape(
      'path', {
        d: `${stepPath(curve, report.length, most, BOX)}V${bottom}H${BOX.left}Z`,
        class: `part m-${part}`
      },
      shape('title', {}, part));
  const areas = [
    area('activations', points),
    area('buffers', points.map(({at, bytes, activations}) => ({at, bytes: bytes - activations}))),
  ];
  const {memory} = report.facts.runs[0].summary.devices[slot];
  let sum = 0;
  const fixed = FIXED_PARTS.map((part) => {
    const bytes = memory[`${part}_bytes`];
    sum += bytes;
    const y = BOX.top + BOX.height * (1 - sum / most);
    const height = (BOX.height * bytes) / most;
    return shape(
        'rect', {x: BOX.left, y, width: BOX.width, height, class: `part m-${part}`},
        shape('title', {}, `${part} ${formatBytes(bytes)}`));
  });
  return [...areas, ...fixed];
}

/** A line across the chart at so many bytes, with its name above its end, or below it. */
function memoryLine(bytes, most, name, kind, below = false) {
  const y = BOX.top + BOX.height * (1 - bytes / most);
  const right = BOX.left + BOX.width;
  return [
    shape('line', {x1: BOX.left, x2: right, y1: y, y2: y, class: kind}),
    shape(
        'text', {x: right, y: below ? y + 14 : y - 4, 'text-anchor': 'end', class: 'limit-text'},
        name),
  ];
}

function memoryAxes(report, most) {
  const bottom = BOX.top + BOX.height;
  const bytes = valueMarks(most, 4, 'bytes').flatMap(({at, text}) => {
    const y = BOX.top + BOX.height * (1 - at / most);
    return [
      shape('line', {x1: BOX.left - 4, x2: BOX.left, y1: y, y2: y, class: 'axis'}),
      shape('text', {x: BOX.left - 8, y: y + 4, 'text-anchor': 'end', class: 'tick'}, text),
    ];
  });
  const times = axisMarks(0, report.length * report.tickNs, 4).flatMap(({at, text}) => {
    const x = BOX.left + (BOX.width * at) / (report.length * report.tickNs);
    return [
      shape('line', {x1: x, x2: x, y1: bottom, y2: bottom + 4, class: 'axis'}),
      shape('text', {x, y: bottom + 18, 'text-anchor': 'middle', class: 'tick'}, text),
    ];
  });
  return [
    ...bytes,
    ...times,
    shape('line', {x1: BOX.left, x2: BOX.left + BOX.width, y1: bottom, y2: bottom, class: 'axis'}),
  ];
}

function memoryChart(report, slots, {most, linesOf}) {
  const {runs, facts} = report;
  const {limit, whole} = linesOf(slots[0]);
  const name = deviceNames(runs[0], slots);
  const devices = facts.runs.map((run) => run.summary.devices[slots[0]]);
  const [{peak_memory_bytes: peak, peak_memory_op: op}, ...others] = devices;
  const told = `peak ${formatBytes(peak)}${op ? ` at ${op}` : ''}` +
      others.map((device) => `, measured ${formatBytes(device.peak_memory_bytes)}`).join('');
  const measured =
      runs.slice(1).map((run) => shape('path', {
                          d: stepPath(
                              pointsInColumns(run.memory[slots[0]], report.length, BOX.width),
                              report.length, most, BOX),
                          class: 'curve second'
                        }));
  const lines = [
    ...(limit === null ?
            [] :
            memoryLine(limit, most, `limit ${formatBytes(limit)}`, 'limit', whole !== null)),
    ...(whole === null ?
            [] :
            memoryLine(
                whole, most, `memory ${formatBytes(whole)}, with the reserve`, 'limit reserve')),
  ];
  return element(
      'figure', {}, element('figcaption', {}, element('strong', {}, name), ` ${told}`),
      shape(
          'svg', {viewBox: '0 0 480 184', role: 'img', 'aria-label': `${name}: ${told}`},
          ...memoryAreas(report, slots[0], most), ...measured, ...memoryAxes(report, most),
          ...lines));
}

/**
 * Where memory ends: the scale of the charts, and of each device the lines that are near enough to
 * be drawn.
 */
function memoryScale({facts}, peak) {
  const {memory_limit_bytes: least, reserve_bytes: reserve, summary} = facts.runs[0];
  const limits = summary.devices.map((device) => device.memory_limit_bytes ?? least);
  const linesOf = (slot) => {
    const isNear = limits[slot] !== null && limits[slot] < 2.5 * peak;
    const limit = isNear ? limits[slot] : null;
    return {limit, whole: isNear && reserve > 0 ? limit + reserve : null};
  };
  const lines = limits.flatMap((_, slot) => Object.values(linesOf(slot)));
  const far = limits.filter((limit, slot) => limit !== null && linesOf(slot).limit === null);
  return {
    linesOf,
    most: Math.max(peak, ...lines.map((line) => line ?? 0)) * 1.08,
    far: far.length > 0 ? Math.min(...far) : null,
  };
}

/**
 * Memory over time of all devices, by what it holds, on one scale, with the limit where it is
 * near.
 */
export function memoryCharts(report) {
  const {facts, runs, groups} = report;
  const all = facts.runs.flatMap((run) => run.summary.devices);
  const peak = Math.max(...all.map((device) => device.peak_memory_bytes));
  if (peak <= 0) return [element('p', {}, 'The model says nothing of its memory.')];
  const scale = memoryScale(report, peak);
  const notes = [];
  if (scale.far !== null) {
    notes.push(
        `The limit of ${formatBytes(scale.far)} for each device is far above: the scale ends at ` +
        `${formatBytes(scale.most)}.`);
  }
  if (runs.length > 1) notes.push('The dashed line is the measured run.');
  if (runs.some((run) => run.layout.memory_sampled.includes(true)))
    notes.push('Of a curve with many steps the largest value of each slice of time is shown.');
  return [
    memoryLegend(facts.runs[0].summary.devices.map(({memory}) => memory)),
    ...(notes.length > 0 ? [element('p', {class: 'remark'}, notes.join(' '))] : []),
    ...inPortions(groups, 'charts wide', (slots) => memoryChart(report, slots, scale)),
  ];
}

/** The parts of a device's time: busy, then each cause of idle time. */
function partsOf(device) {
  const causes = CAUSES.map((cause) => ({name: cause, seconds: device.idle_by_cause_s[cause]}));
  return [{name: 'busy', seconds: device.busy_s}, ...causes];
}

/** What a part of the time is called: "busy", "idle: fill". */
export function partName(name) {
  return name === 'busy' ? 'busy' : `idle: ${causeName(name)}`;
}

function causeBar(report, r, slots) {
  const facts = report.facts.runs[r];
  const device = facts.summary.devices[slots[0]];
  return bar({
    name: deviceNames(report.runs[r], slots) + (report.runs.length > 1 ? ` ${facts.title}` : ''),
    parts: partsOf(device).filter(({seconds}) => seconds > 0).map(({name, seconds}) => ({
                                                                    look: {fill: `url(#p-${name})`},
                                                                    size: seconds,
                                                                    text: `${partName(name)} ${
                                                                        formatTime(seconds * 1e9)}`,
                                                                  })),
    whole: report.length * report.tickNs / 1e9,
    value: `idle ${formatPercent(device.bubble_fraction)}`,
  });
}

/** What the fills of bars of busy and idle time stand for, of those with these names. */
export function partsLegend(names) {
  const swatch = (name) => shape(
      'svg', {width: 24, height: 14, 'aria-hidden': 'true'},
      shape('rect', {width: 24, height: 14, fill: `url(#p-${name})`}));
  return element(
      'ul', {class: 'legend'},
      ...['busy', ...CAUSES]
          .filter((name) => names.has(name))
          .map((name) => element('li', {}, swatch(name), partName(name))));
}

/** A bar for every device: how its time is spent, and on what it waits. */
export function causeCharts(report) {
  const occurring = new Set(report.facts.runs.flatMap(
      (run) => run.summary.devices.flatMap(
          (device) => partsOf(device).filter((p) => p.seconds > 0).map((p) => p.name))));
  const bars = inPortions(
      report.groups, 'bar-list',
      (slots) => element(
          'div', {class: 'bars'}, ...report.runs.map((_, r) => causeBar(report, r, slots))));
  return [partsLegend(occurring), ...bars];
}
