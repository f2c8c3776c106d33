// Runs side by side: their numbers with differences, where an iteration goes, and their memory.
// SPDX-License-Identifier: MIT
import {bar, memoryBarParts, memoryLegend} from './bars.js';
import {partName, partsLegend} from './charts.js';
import {causeName} from './describe.js';
import {element, table} from './dom.js';
import {formatBytes, formatPercent, formatTime, significant} from './format.js';
import {CAUSES} from './run.js';

/** So many devices have their bars open at once. */
const OPEN_DEVICES = 16;

const time = (seconds) => formatTime(Math.round(seconds * 1e9));

/** How far a value is from the first run's: "+3.20 %", "same", "" where that cannot be said. */
export function relativeText(value, first) {
  if (value === null || first === null) return '';
  if (value === first) return 'same';
  if (first === 0) return '';
  const percent = 100 * (value / first - 1);
  return `${percent < 0 ? '' : '+'}${percent.toFixed(2)} %`;
}

/** The same for shares: "-1.25 points". */
export function pointsText(value, first) {
  if (value === null || first === null) return '';
  if (value === first) return 'same';
  const points = 100 * (value - first);
  return `${points < 0 ? '' : '+'}${points.toFixed(2)} points`;
}

/**
 * A line for each key that differs, with its values, then for each estimate and note, with the
 * runs that it holds for, unless these are all.
 */
export function remarksOf({runs, keys_that_differ: keys, estimated, notes}) {
  const told = (kind, texts) => texts.map(({text, runs: some}) => {
    const of = some.length === runs.length ? '' : ` (${some.join(', ')})`;
    return `${kind}${of}: ${text}`;
  });
  return [
    ...keys.map(({key, values}) => `${key}: ${values.join(', ')}`),
    ...told('estimated', estimated),
    ...told('note', notes),
  ];
}

/** The causes of idle time that occur in some run. */
function occurring(runs) {
  return CAUSES.filter((cause) => runs.some((run) => run.idle_per_device_s[cause] > 0));
}

/** The parts of an iteration of a run, for a device on average: busy, then idle by cause. */
export function partsOfIteration(run) {
  return [
    {name: 'busy', seconds: run.busy_per_device_s},
    ...CAUSES.map((cause) => ({name: cause, seconds: run.idle_per_device_s[cause]})),
  ].filter(({seconds}) => seconds > 0);
}

/** The rows of the table: a name, what the value is, its text, its difference from the first. */
function measures(runs) {
  const none = () => '';
  const noise = (key) => (run) => run.uncertainty?.[key] ?? null;
  return [
    ['Iteration time', (run) => run.iteration_time_s, time, relativeText],
    ['Peak memory', (run) => run.peak_memory_bytes, (value) => formatBytes(value), relativeText],
    ...(runs.some((run) => run.fits !== null) ?
            [['Fits', (run) => run.fits, (fits) => (fits ? 'yes' : 'NO'), none]] :
            []),
    ['Schedule', (run) => run.schedule, String, none],
    ['Stages', (run) => run.stages, String, none],
    ['Devices used', (run) => run.devices_used, String, none],
    ['Devices in all', (run) => run.devices_in_all, String, none],
    ['Micro-batches', (run) => run.micro_batches, String, none],
    ['Mini-batch', (run) => run.mini_batch_samples, (count) => `${count} samples`, none],
    ...(runs.some((run) => run.uncertainty) ?
            ['p5', 'p50', 'p95'].map(
                (key) => [`with noise, ${key}`, noise(key), time, relativeText]) :
            []),
    ['Busy', (run) => run.busy_per_device_s, time, relativeText],
    ...occurring(runs).map(
        (cause) =>
            [`Idle, ${causeName(cause)}`, (run) => run.idle_per_device_s[cause], time,
             relativeText]),
    [
      'Samples/s', (run) => run.throughput_samples_per_s, (value) => significant(value, 5),
      relativeText
    ],
    ...(runs.some((run) => run.devices_used !== runs[0].devices_used) ? [[
      'Samples/s per device', (run) => run.throughput_per_device_samples_per_s,
      (value) => significant(value, 5), relativeText
    ]] :
                                                                        []),
    ...(runs.some((run) => run.model_flops_utilization !== null) ?
            [['MFU', (run) => run.model_flops_utilization, formatPercent, pointsText]] :
            []),
    ['Bubble fraction', (run) => run.bubble_fraction, formatPercent, pointsText],
    [
      'Waiting for the network', (run) => run.communication_stall_fraction, formatPercent,
      pointsText
    ],
  ];
}

/** The numbers of all runs, and how far each is from the first one's. */
export function numbersTable(runs) {
  const rows = measures(runs).map(([name, of, text, difference]) => {
    const first = of(runs[0]);
    return [
      name, ...runs.map((run, r) => {
        const own = of(run);
        const shown = own === null ? '-' : text(own);
        const apart = r === 0 ? '' : difference(own, first);
        if (!apart) return shown;
        return element('span', {}, shown, element('span', {class: 'difference'}, ` ${apart}`));
      })
    ];
  });
  return table(
      `The runs; differences are from ${runs[0].title}`,
      ['Number', ...runs.map(({title}) => title)], rows);
}

/** The peak of each device in each run, as a table. */
export function memoryTable(runs) {
  const devices = [...new Set(runs.flatMap((run) => run.devices.map((d) => d.device)))];
  devices.sort((a, b) => a - b);
  const cell = (run, device) => {
    const found = run.devices.find((d) => d.device === device);
    if (!found) return '-';
    const inFlight = Number((found.peak_in_flight / run.slices).toFixed(2));
    return `${formatBytes(found.peak_memory_bytes)}, ${inFlight} in flight`;
  };
  return table(
      'Peak memory, and the most micro-batches in flight',
      ['Device', ...runs.map((run) => run.title)],
      devices.map((device) => [String(device), ...runs.map((run) => cell(run, device))]));
}

/** A bar for each run: busy and idle by cause, on one scale, so that their lengths compare. */
export function shareBars(runs) {
  const names = new Set(runs.flatMap((run) => partsOfIteration(run).map(({name}) => name)));
  const longest = Math.max(...runs.map((run) => run.iteration_time_s));
  const bars =
      runs.map((run) => bar({
                 name: run.title,
                 parts: partsOfIteration(run).map(({name, seconds}) => ({
                                                    look: {fill: `url(#p-${name})`},
                                                    size: seconds,
                                                    text: `${partName(name)} ${time(seconds)}`,
                                                  })),
                 whole: longest,
                 value: time(run.iteration_time_s),
               }));
  return [partsLegend(names), element('div', {class: 'bar-list'}, ...bars)];
}

/**
 * For each device a bar a run, on one scale, with the limit where it is near enough. `memories` are
 * the parts of each device's peak by run, or null where they are not known.
 */
export function memoryBars(runs, limits, memories) {
  const most = Math.max(...runs.map((run) => run.peak_memory_bytes));
  if (most <= 0) return [element('p', {}, 'The models say nothing of their memory.')];
  const near = limits.filter((limit) => limit !== null && limit <= 2 * most);
  const whole = Math.max(most, ...near) * 1.02;
  const devices = [...new Set(runs.flatMap((run) => run.devices.map((d) => d.device)))];
  devices.sort((a, b) => a - b);
  const group = (device) => element(
      'figure', {class: 'bar-group'},
      element('figcaption', {}, element('strong', {}, `device ${device}`)),
      ...runs.map((run, r) => {
        const slot = run.devices.findIndex((d) => d.device === device);
        const bytes = run.devices[slot]?.peak_memory_bytes ?? 0;
        const text = slot >= 0 ? formatBytes(bytes) : 'not used';
        const memory = slot >= 0 ? memories[r]?.[slot] : null;
        const whatever = [{look: {class: 'm-whatever'}, size: bytes, text}];
        return bar({
          name: run.title,
          parts: memory ? memoryBarParts(memory) : whatever,
          whole,
          value: text,
          limit: limits[r],
        });
      }));
  const known = memories.flatMap((of) => of ?? []);
  const parts = known.length > 0 ? [memoryLegend(known)] : [];
  if (memories.includes(null))
    parts.push(element(
        'p', {class: 'remark'},
        'A result file does not say what memory holds: its bars are grey.'));
  if (near.length > 0) {
    const texts = new Set(near.map((limit) => formatBytes(limit)));
    parts.push(element('p', {class: 'remark'}, `Dashed: the limit, ${[...texts].join(', ')}.`));
  }
  parts.push(element('div', {class: 'bar-groups'}, ...devices.slice(0, OPEN_DEVICES).map(group)));
  if (devices.length > OPEN_DEVICES) {
    const rest = element('div', {class: 'bar-groups'}, ...devices.slice(OPEN_DEVICES).map(group));
    parts.push(element(
        'details', {class: 'more'},
        element('summary', {}, `The other ${devices.length - OPEN_DEVICES} devices`), rest));
  }
  return parts;
}
