// The same numbers as tables, the plan, and the text that the run was made from.
// SPDX-License-Identifier: MIT
import {causeName} from './describe.js';
import {element, table} from './dom.js';
import {formatBytes, formatPercent, formatTime} from './format.js';
import {CAUSES} from './run.js';

const MEMORY_PARTS = ['weights', 'gradients', 'optimizer', 'activations', 'stash', 'buffers'];

const time = (seconds) => formatTime(Math.round(seconds * 1e9));

/** The cards at the head of the page. */
export function figureCards(figures) {
  return figures.map(
      ({label, value, remark}) => element(
          'div', {class: 'card'}, element('dt', {}, label),
          element(
              'dd', {}, element('span', {class: 'value'}, value),
              element('span', {class: 'remark'}, remark))));
}

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
  const tables = [
    table(
        'Devices',
        [
          'Device', 'Stages', 'Busy', 'Idle', 'Bubble', 'In flight', 'Weight versions',
          'Peak memory', 'Peak at', ...(limited ? ['Fits'] : [])
        ],
        runRows(
            report,
            (d) =>
                [d.stages.join(', '), time(d.busy_s), time(d.idle_s),
                 formatPercent(d.bubble_fraction), String(d.peak_in_flight),
                 String(d.weight_versions), formatBytes(d.peak_memory_bytes), d.peak_memory_op,
                 ...(limited ? [d.fits ? 'yes' : 'NO'] : [])])),
  ];
  if (causes.length > 0) {
    tables.push(table(
        'Where the idle time comes from', ['Device', ...causes.map(causeName)],
        runRows(report, (d) => causes.map((cause) => time(d.idle_by_cause_s[cause])))));
  }
  tables.push(table(
      'What the peak memory holds', ['Device', ...MEMORY_PARTS, 'Peak'],
      runRows(
          report,
          (d) =>
              [...MEMORY_PARTS.map((part) => formatBytes(d.memory[`${part}_bytes`])),
               formatBytes(d.peak_memory_bytes)])));
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
        'Gradients', 'Kept for backward', ...(again ? ['Made again'] : []), 'Sent on',
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
            `The bubble${name}`, ['', 'By formula', 'In this run'],
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
        element('p', {class: 'words'}, run.formula_words));
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
