// The bubble by formula and simulated, one below the other; where they differ, the reasons, term by
// term. SPDX-License-Identifier: MIT
import {element} from '../sim/report/page/dom.js';
import {formatBytes, formatPercent, formatTime} from '../sim/report/page/format.js';

/** Nanoseconds of a time in seconds. */
export const nanoseconds = (seconds) => seconds * 1e9;

/** A part of the bubble in points: "+3.10", "-0.25". */
export function pointsText(fraction) {
  return `${fraction < 0 ? '-' : '+'}${Math.abs(100 * fraction).toFixed(2)}`;
}

/** Whether both stand for the same number on the page. */
export function sameShare(a, b) {
  return formatPercent(a) === formatPercent(b);
}

/**
 * How many positions the formula counts: the stages, or where devices have several, the devices of
 * a copy.
 */
function positionsOf(run, copies) {
  const most = Math.max(...run.devices.map(({stages}) => stages.length));
  return most > 1 ? run.devices.length / copies : run.stages;
}

function formulaLine(run, texts, copies) {
  const {base} = run.bubble_terms;
  if (!base.formula) return [formatPercent(base.bubble_fraction), ''];
  const p = positionsOf(run, copies);
  const chunks = /\bv\b/.test(base.formula) ? `v = ${run.stages / p}, ` : '';
  const formula = base.formula.includes('=') ? texts.say('result.from', {formula: base.formula}) :
                                               `= ${base.formula}`;
  return [
    formatPercent(base.bubble_fraction), `${formula}, p = ${p}, ${chunks}m = ${run.micro_batches}`
  ];
}

/** The reasons for which the simulation differs from the formula, as one sentence; '' = none. */
export function reasons(run, texts) {
  const {terms, slowest} = run.bubble_terms;
  const shown = terms.filter(({bubble_fraction: part}) => Math.abs(part) >= 5e-5);
  if (shown.length === 0) return '';
  const named = shown.map(
      ({cause, bubble_fraction: part}) => texts.say(
          'result.points', {name: texts.say(`terms.${cause}`), points: pointsText(part)}));
  const because = texts.say('result.because', {terms: named.join(', ')});
  if (!slowest || slowest.stage === null || slowest.stage === undefined) return because;
  const percent = (100 * slowest.above_mean).toFixed(1);
  return `${because} ${texts.say('result.slowest', {stage: slowest.stage, percent})}`;
}

function line(name, value, ...more) {
  return element(
      'tr', {}, element('th', {scope: 'row'}, name), element('td', {class: 'number'}, value),
      element('td', {}, ...more));
}

function overheadLine(run, texts) {
  const {base} = run.bubble_terms;
  const formula = base.formula === '(p-1)/(m+p-1)' ?
      ` = (p-1)/m, p = ${positionsOf(run, 1)}, m = ${run.micro_batches}` :
      '';
  return line(texts.say('result.overhead'), formatPercent(run.bubble_overhead), formula);
}

/** Formula, simulation, the tick or the reasons, and what else is told of a run. */
export function resultLines(run, texts, {showsOverhead = false, copies = 1} = {}) {
  const lines = [];
  const terms = run.bubble_terms;
  if (terms) {
    const isSteady = terms.of === 'steady_bubble_fraction';
    const equal = sameShare(terms.base.bubble_fraction, terms.bubble_fraction);
    const tick = element('span', {class: 'tick'}, `✓ ${texts.say('result.equal')}`);
    lines.push(line(
        texts.say(terms.base.formula ? 'result.formula' : 'result.none'),
        ...formulaLine(run, texts, copies)));
    lines.push(line(
        texts.say('result.simulated'), formatPercent(terms.bubble_fraction),
        equal ? tick : reasons(run, texts), isSteady ? ` (${texts.say('result.steady')})` : ''));
  } else {
    lines.push(line(texts.say('result.simulated'), formatPercent(run.bubble_fraction)));
  }
  if (showsOverhead) lines.push(overheadLine(run, texts));
  lines.push(line(texts.say('result.iteration'), formatTime(nanoseconds(run.iteration_time_s), 6)));
  if (run.communication_stall_fraction > 0)
    lines.push(line(texts.say('result.stalls'), formatPercent(run.communication_stall_fraction)));
  if (run.period_s !== null)
    lines.push(line(texts.say('result.period'), formatTime(nanoseconds(run.period_s), 6)));
  const most = (key) => Math.max(...run.devices.map((device) => device[key]));
  lines.push(line(texts.say('result.in_flight'), String(most('peak_in_flight'))));
  if (most('peak_memory_bytes') > 0)
    lines.push(line(texts.say('result.peak'), formatBytes(most('peak_memory_bytes'))));
  return element('table', {class: 'lines'}, element('tbody', {}, ...lines));
}

/** What a picture shows, as one sentence. */
export function sentence(run, title, texts) {
  const causes = {};
  for (const device of run.devices) {
    for (const [cause, seconds] of Object.entries(device.idle_by_cause_s))
      causes[cause] = (causes[cause] ?? 0) + seconds;
  }
  const parts = Object.entries(causes)
                    .filter(([, seconds]) => seconds > 0)
                    .map(
                        ([cause, seconds]) =>
                            `${texts.say(`causes.${cause}`)} ${formatTime(nanoseconds(seconds))}`);
  const size = run.devices_used / run.device_count;
  return texts.say('sentence', {
    name: title,
    who: texts.say(size > 1 ? 'groups' : 'who', {devices: run.devices.length, size}),
    ops: run.operations,
    time: formatTime(nanoseconds(run.makespan_s), 6),
    bubble: formatPercent(run.bubble_fraction),
    causes: parts.join(', ') || texts.say('no_idle'),
  });
}

const DEVICE_COLUMNS = {
  stages: (device) => device.stages.join(', '),
  busy: (device) => formatTime(nanoseconds(device.busy_s)),
  idle: (device) => formatTime(nanoseconds(device.idle_s)),
  bubble: (device) => formatPercent(device.bubble_fraction),
  in_flight: (device) => String(device.peak_in_flight),
  versions: (device) => String(device.weight_versions),
  weights: (device) => formatBytes(device.memory.weights_bytes + device.memory.stash_bytes),
  memory: (device) => formatBytes(device.peak_memory_bytes),
};

/** The rows of a run's table: a name and the columns of each device. */
export function deviceRows(run, columns) {
  return run.devices.map(
      (device) =>
          [String(device.device), ...columns.map((column) => DEVICE_COLUMNS[column](device))]);
}
