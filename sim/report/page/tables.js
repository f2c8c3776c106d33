// The same numbers as tables, the plan, and the text that the run was made from.
// SPDX-License-Identifier: MIT
import {MEMORY_PARTS} from './bars.js';
import {causeName} from './describe.js';
import {element, table} from './dom.js';
import {unbroken} from './figures.js';
import {formatBytes, formatPercent, formatTime} from './format.js';
import {CAUSES} from './run.js';

const time = (seconds) => formatTime(Math.round(seconds * 1e9));

function runRows(report, cells) {
  return report.facts.runs.flatMap(
      (run) => run.summary.devices.map(
          (device) =>
              [report.runs.length > 1 ? `${device.device}, ${run.title}` : String(device.device),
               ...cells(device, run)]));
}

/** What every device does, where its idle time comes from, and what its peak memory holds. */
export function deviceTables(report) {
  const causes = CAUSES.filter(
      (cause) => report.facts.runs.some(
          (run) => run.summary.devices.some((device) => device.idle_by_cause_s[cause] > 0)));
  const limited = report.facts.runs[0].memory_limit_bytes !== null;
  const unlike = report.facts.runs[0].summary.devices.some(({kind}) => kind !== undefined);
  const tables = [
    table(
        'Devices',
        [
          'Device', ...(unlike ? ['Kind'] : []), 'Stages', 'Peak memory',
          ...(limited ? ['Fits'] : []), 'Bubble', 'Busy', 'Idle', 'Peak at', 'In flight',
          'Weight versions'
        ],
        runRows(
            report,
            (d) =>
                [...(unlike ? [d.kind ?? ''] : []), d.stages.join(', '),
                 formatBytes(d.peak_memory_bytes), ...(limited ? [d.fits ? 'yes' : 'NO'] : []),
                 formatPercent(d.bubble_fraction), time(d.busy_s), time(d.idle_s), d.peak_memory_op,
                 String(d.peak_in_flight), String(d.weight_versions)])),
  ];
  if (causes.length > 0) {
    tables.push(table(
        'Where the idle time comes from', ['Device', ...causes.map(causeName)],
        runRows(report, (d) => causes.map((cause) => time(d.idle_by_cause_s[cause])))));
  }
  tables.push(table(
      'What the peak memory holds', ['Device', 'Peak', ...MEMORY_PARTS],
      runRows(
          report,
          (d) =>
              [formatBytes(d.peak_memory_bytes),
               ...MEMORY_PARTS.map((part) => formatBytes(d.memory[`${part}_bytes`]))])));
  return tables;
}

/** The names of a stage's layers: the ends of a long list. */
export function layerNames(layers) {
  if (layers.length <= 3) return layers.join(', ');
  return `${layers[0]} … ${layers[layers.length - 1]}`;
}

/** The stages with their layers, devices, times and sizes. */
export function stageTable(run) {
  const again = run.stages.some((stage) => stage.again_bytes > 0);
  return table(
      'Stages and layers',
      [
        'Stage', 'Layers', 'First … last', 'Devices', 'Forward', 'Backward', 'Update', 'Parameters',
        'Gradients', 'Kept for backward', ...(again ? ['Recomputed'] : []), 'Sent on',
        'At most in flight'
      ],
      run.stages.map(
          (stage, s) =>
              [String(s), String(stage.layers.length), layerNames(stage.layers),
               stage.devices.join(', '), formatTime(stage.forward_ns),
               formatTime(stage.backward_ns), formatTime(stage.update_ns),
               formatBytes(stage.parameter_bytes), formatBytes(stage.gradient_bytes),
               formatBytes(stage.kept_bytes), ...(again ? [formatBytes(stage.again_bytes)] : []),
               formatBytes(stage.crossing_bytes),
               stage.window === null ? '-' : String(stage.window)]),
      3);
}

/** Every layer by name, stage by stage, in a list that opens. */
export function layerList(run) {
  const list = element('ol', {class: 'layers', start: 0});
  const details =
      element('details', {class: 'more'}, element('summary', {}, 'All layers by name'), list);
  details.addEventListener('toggle', () => {
    if (!details.open || list.firstChild) return;
    list.append(...run.stages.map((stage) => element('li', {}, stage.layers.join(', '))));
  });
  return details;
}

/** The formulas beside the run, as a table and in words. */
export function formulaParts(report) {
  const parts = [];
  report.facts.runs.forEach((run) => {
    const {summary} = run;
    const name = report.runs.length > 1 ? ` (${run.title})` : '';
    const byFormula = (key) => (summary.formula ? formatPercent(summary.formula[key]) : '-');
    parts.push(
        table(
            `The bubble${name}`, ['Number', 'By formula', 'In this run'],
            [
              [
                `Bubble fraction, idle / (devices x ${summary.flush ? 'period' : 'makespan'})`,
                byFormula('bubble_fraction'), formatPercent(summary.bubble_fraction)
              ],
              [
                'Bubble overhead, idle / busy', byFormula('bubble_overhead'),
                formatPercent(summary.bubble_overhead)
              ],
              ...(summary.steady_bubble_fraction === null ? [] : [[
                'Bubble in the steady state', '-', formatPercent(summary.steady_bubble_fraction)
              ]]),
            ]),
        element('p', {class: 'words'}, ...unbroken(run.formula_words)));
  });
  return parts;
}

/** The scenario as it was read, what the command set in it, and the command. */
export function sourceParts(facts) {
  const overrides = facts.overrides.length > 0 ?
      [
        element('h3', {}, 'Set by the command'),
        element(
            'ul', {class: 'code'},
            ...facts.overrides.map((text) => element('li', {}, element('code', {}, text))))
      ] :
      [];
  return [
    element('h3', {}, 'The command that writes this file'),
    element('pre', {tabindex: 0}, element('code', {}, facts.command)),
    ...overrides,
    element('h3', {}, facts.scenario.path),
    element('pre', {tabindex: 0}, element('code', {}, facts.scenario.text)),
  ];
}
