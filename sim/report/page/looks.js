// How the series of a sweep look: one key is told by colour, another by shape; and their names at
// the lines. SPDX-License-Identifier: MIT
import {element} from './dom.js';
import {COLORS, markSwatch, SHAPE_COUNT} from './marks.js';

/** So many values of a key are named in the legend. */
const NAMED = 24;

/**
 * The keys that colour and shape tell, as axes: those that are wanted where they can be, else the
 * first ones with few enough values; null where there is no such key. `rest` are told by neither.
 */
export function keysOfLooks(sweep, x, wanted) {
  const others = sweep.varying.filter((axis) => axis !== x);
  const choose = (axes, one, most) => {
    if (axes.includes(one)) return one;
    return axes.find((axis) => sweep.axes[axis].values.length <= most) ?? axes[0] ?? null;
  };
  const color = choose(
      others.filter((axis) => axis !== wanted.shape || others.length === 1), wanted.color, COLORS);
  const left = others.filter((axis) => axis !== color);
  const shape = choose(left, wanted.shape, SHAPE_COUNT);
  return {color, shape, rest: left.filter((axis) => axis !== shape)};
}

/** The look of a row by its values; without a key for shapes these go on where colours end. */
export function lookOf({color, shape}, at) {
  const value = color === null ? 0 : at[color];
  return {
    color: `s${value % COLORS}`,
    shape: (shape === null ? Math.floor(value / COLORS) : at[shape]) % SHAPE_COUNT,
  };
}

/** The legend of a key: its name, then a swatch for each value. */
function keyLegend(axis, what, look) {
  const items = axis.values.slice(0, NAMED).map(
      (text, value) => element('li', {}, markSwatch(look(value)), text));
  const left = axis.values.length - NAMED;
  if (left > 0) items.push(element('li', {}, `and ${left} more`));
  return [element('li', {class: 'key'}, `${what}: ${axis.key}`), ...items];
}

/** What colours and shapes stand for, as items of a list, and what they do not tell. */
export function looksLegend(sweep, keys) {
  const parts = [];
  if (keys.color !== null) {
    const at = (value) =>
        lookOf({color: keys.color, shape: keys.shape}, {[keys.color]: value, [keys.shape]: 0});
    parts.push(...keyLegend(
        sweep.axes[keys.color], keys.shape === null ? 'Colour and shape' : 'Colour', at));
  }
  if (keys.shape !== null) {
    parts.push(...keyLegend(
        sweep.axes[keys.shape], 'Shape', (value) => ({color: 'any', shape: value % SHAPE_COUNT})));
  }
  if (keys.rest.length > 0) {
    const names = keys.rest.map((axis) => sweep.axes[axis].key).join(', ');
    parts.push(element('li', {class: 'key'}, `The names at the lines tell ${names}, too.`));
  }
  return parts;
}

/** Heights near the wanted ones, in their order, at least `gap` apart, between two ends. */
export function spread(wanted, gap, top, bottom) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const found = new Array(wanted.length);
  let least = top;
  for (const i of order) {
    found[i] = Math.max(wanted[i], least);
    least = found[i] + gap;
  }
  let most = bottom;
  for (const i of order.reverse()) {
    found[i] = Math.min(found[i], most);
    most = found[i] - gap;
  }
  return found;
}

/**
 * Where a text of a width can stand beside each place without touching another one or a place:
 * {x, y, anchor}, or null where it cannot. All lies between `left` and `right`, `top` and `bottom`.
 */
export function placeBeside(places, widths, {left, right, top, bottom}) {
  const HIGH = 14;
  const taken = places.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const touches = ([a, b, c, d]) => a < left || c > right || b < top || d > bottom ||
      taken.some(([e, f, g, h]) => a < g && e < c && b < h && f < d);
  return places.map(([x, y], i) => {
    const width = widths[i];
    const candidates = [
      {x: x + 12, y: y + 4, anchor: 'start', from: x + 12},
      {x: x - 12, y: y + 4, anchor: 'end', from: x - 12 - width},
      {x, y: y - 14, anchor: 'middle', from: x - width / 2},
      {x, y: y + 24, anchor: 'middle', from: x - width / 2},
      {x: x + 12, y: y + 22, anchor: 'start', from: x + 12},
      {x: x - 12, y: y + 22, anchor: 'end', from: x - 12 - width},
      {x: x - 12, y: y - 14, anchor: 'end', from: x - 12 - width},
    ];
    const boxOf = ({from, y: line}) => [from, line - HIGH + 3, from + width, line + 3];
    const free = candidates.find((one) => !touches(boxOf(one)));
    if (!free) return null;
    taken.push(boxOf(free));
    return {x: free.x, y: free.y, anchor: free.anchor};
  });
}
