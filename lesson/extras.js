// What only some pages have beside the picture: the practical's table, the ranks, the figures for
// engineers. SPDX-License-Identifier: MIT
import {bar, memoryBarParts, memoryLegend} from '../sim/report/page/bars.js';
import {element, table} from '../sim/report/page/dom.js';
import {formatBytes, formatPercent, formatTime, significant} from '../sim/report/page/format.js';

import {nanoseconds} from './result.js';

const OPTIONS = ['naive', 'gpipe', 'delayed-backward'];
const PARTS = [2, 4, 8];

/** The practical's table of options and numbers of parts, from the answer of a sweep. */
export function practicalTable(rows, texts) {
  const time = (schedule, parts) => {
    const found = rows.find(
        ({overrides}) => overrides['schedule.name'] === schedule &&
            overrides['schedule.micro_batches'] === parts);
    return found ? formatTime(nanoseconds(found.iteration_time_s)) : '';
  };
  const head =
      [texts.say('practical.option'), ...PARTS.map((m) => texts.say('practical.parts', {m}))];
  return element(
      'table', {class: 'practical'}, element('caption', {}, texts.say('practical.caption')),
      element(
          'thead', {},
          element('tr', {}, ...head.map((text) => element('th', {scope: 'col'}, text)))),
      element(
          'tbody', {},
          ...OPTIONS.map(
              (schedule) => element(
                  'tr', {}, element('th', {scope: 'row'}, texts.option(schedule)),
                  ...PARTS.map(
                      (parts) => element('td', {class: 'number'}, time(schedule, parts)))))));
}

/** Which GPUs each rank has, and how many ops it runs. */
export function rankLines(run, ranks, texts) {
  const lines = [];
  const forwards = run.stages * run.micro_batches;
  for (let rank = 0; rank < ranks; ++rank) {
    const gpus =
        run.devices.map(({device}) => device).filter((device) => rankOf(device, ranks) === rank);
    lines.push(element(
        'li', {},
        texts.say(
            gpus.length === 1 ? 'rank_of_one' : 'ranks',
            {rank, gpus: gpus.join(', '), forwards, m: run.micro_batches})));
  }
  const idle = [];
  for (let gpu = 0; gpu < run.devices_in_all; ++gpu)
    if (!run.devices.some(({device}) => device === gpu)) idle.push(gpu);
  if (idle.length > 0)
    lines.push(element('li', {}, texts.say('idle_gpus', {gpus: idle.join(', ')})));
  return element('ul', {class: 'ranks'}, ...lines);
}

/** The rank that a GPU belongs to: stage s of rank r stands on GPU r + s times the ranks. */
export function rankOf(gpu, ranks) {
  return gpu % ranks;
}

/** A bar for each stage, of the first GPU that has it; of those with the same stages one. */
function memoryBars(run, limit, texts) {
  const seen = new Set();
  const shown =
      run.devices.filter(({stages}) => !seen.has(stages.join()) && seen.add(stages.join()));
  const whole = Math.max(limit ?? 0, ...shown.map((device) => device.peak_memory_bytes));
  const bars = shown.map((device) => bar({
                           name: `${texts.say('cards.stage')} ${device.stages.join(', ')}`,
                           parts: memoryBarParts(device.memory),
                           whole,
                           value: formatBytes(device.peak_memory_bytes),
                           limit,
                         }));
  const words = limit ? ` (${texts.say('cards.limit')} ${formatBytes(limit)})` : '';
  return [
    element('h3', {}, `${texts.say('cards.memory')}${words}`), ...bars,
    memoryLegend(shown.map(({memory}) => memory))
  ];
}

const shortNumber = (value) => {
  const units = [[1e9, 'B'], [1e6, 'M'], [1e3, 'k']];
  const [size, unit] = units.find(([from]) => Math.abs(value) >= from) ?? [1, ''];
  return `${significant(value / size, 4)}${unit}`;
};

/** Figures for engineers: tokens, days, cost, and the memory of each stage against the limit. */
export function figureTiles(run, limit, texts) {
  const tile = (value, key) => element(
      'div', {class: 'tile'}, element('b', {}, value),
      element('span', {}, texts.say(`cards.${key}`)));
  const tiles = [tile(formatTime(nanoseconds(run.iteration_time_s)), 'iteration')];
  if (run.tokens_per_s) tiles.push(tile(shortNumber(run.tokens_per_s), 'tokens'));
  if (run.tokens_per_device_per_s)
    tiles.push(tile(shortNumber(run.tokens_per_device_per_s), 'tokens_per_gpu'));
  if (run.days) tiles.push(tile(significant(run.days, 4), 'days'));
  if (run.cost) tiles.push(tile(`${shortNumber(run.cost)} ${run.currency}`, 'cost'));
  if (run.model_flops_utilization)
    tiles.push(tile(formatPercent(run.model_flops_utilization), 'mfu'));
  const fits = run.devices.every((device) => device.fits !== false);
  const verdict = element(
      'p', {class: fits ? 'verdict' : 'verdict over'},
      texts.say(fits ? 'cards.fits' : 'cards.does_not_fit'));
  return element(
      'div', {class: 'estimates'}, element('div', {class: 'tiles'}, ...tiles), verdict,
      ...memoryBars(run, limit, texts));
}

const LECTURE = [
  ['ResNet-50', '97 MB', '16, 1x', '16, 1x', ''],
  ['VGG-16', '528 MB', '15-1, 5.28x', '15-1, 2.98x', ''],
  ['GNMT-8', '1.1 GB', '', '16, 1x', 'straight, 2.95x'],
];

/** The lecture's table of plans and speed-ups, as PipeDream's paper has it. */
export function lectureTable(texts) {
  const heads = [texts.say('lecture.model'), texts.say('lecture.bytes'), '4x4', '2x8', '3x4'];
  return table(texts.say('lecture.caption'), heads, LECTURE, heads.length);
}

/** Why a layout of page 10 cannot be: it does not divide the GPUs; '' = another reason. */
export function layoutProblem({tp, cp, pp, gpus}, texts) {
  const product = tp * cp * pp;
  return gpus % product === 0 ? '' : texts.say('cards.divide', {product, gpus});
}
