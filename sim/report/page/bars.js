// Bars of parts on one scale, each with its name before it and a value behind it; what memory
// consists of. SPDX-License-Identifier: MIT
import {element, shape} from './dom.js';
import {formatBytes} from './format.js';

/** What memory holds, from the bottom up; all but the last two stays the same during a run. */
export const MEMORY_PARTS =
    ['weights', 'gradients', 'optimizer', 'stash', 'temporary', 'buffers', 'activations'];

/** The parts that any of these memories has, as items of a list. */
export function memoryLegend(memories) {
  const parts =
      MEMORY_PARTS.filter((part) => memories.some((memory) => memory[`${part}_bytes`] > 0));
  return element(
      'ul', {class: 'legend'},
      ...parts.map(
          (part) => element('li', {}, element('span', {class: `swatch m-${part}`}), part)));
}

/**
 * A bar. `parts` are {look (attributes), size, text}; the scale ends at `whole`; a `limit` is a
 * line. Widths are shares, so that patterns keep their form on every screen.
 */
export function bar({name, parts, whole, value, limit = null, isTall = false}) {
  const height = isTall ? 24 : 18;
  const share = (size) => `${(whole > 0 ? (100 * size) / whole : 0).toFixed(4)}%`;
  let sum = 0;
  const rects = parts.map(({look, size, text}) => {
    const {class: own = '', ...rest} = look;
    const rect = shape(
        'rect', {x: share(sum), y: 0, width: share(size), height, class: `part ${own}`, ...rest},
        shape('title', {}, text));
    sum += size;
    return rect;
  });
  const line = limit === null || limit > whole ?
      [] :
      [shape(
          'line', {x1: share(limit), x2: share(limit), y1: 0, y2: height, class: 'limit'},
          shape('title', {}, `limit ${formatBytes(limit)}`))];
  const words = `${name}: ${parts.map(({text}) => text).join(', ')}`;
  return element(
      'div', {class: isTall ? 'bar tall' : 'bar'},
      element('span', {class: 'bar-name', title: name}, name),
      shape('svg', {role: 'img', 'aria-label': words}, ...rects, ...line),
      element('span', {class: 'bar-value'}, value));
}

/** The parts of a bar of memory by what it holds. */
export function memoryBarParts(memory) {
  return MEMORY_PARTS.filter((part) => memory[`${part}_bytes`] > 0)
      .map((part) => ({
             look: {class: `m-${part}`},
             size: memory[`${part}_bytes`],
             text: `${part} ${formatBytes(memory[`${part}_bytes`])}`,
           }));
}
