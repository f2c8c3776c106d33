// The marks of points: a shape and a colour for each series, drawn many at a time as one path.
// SPDX-License-Identifier: MIT
import {shape} from './dom.js';

const tenths = (value) => Math.round(value * 10) / 10;

/** A closed polygon of corners around where the path stands, as a function of its size. */
function polygon(...corners) {
  return (r) => {
    const steps = corners.map(([x, y], i) => {
      const [fromX, fromY] = i === 0 ? [0, 0] : corners[i - 1];
      return `${tenths((x - fromX) * r)} ${tenths((y - fromY) * r)}`;
    });
    return `m${steps[0]}l${steps.slice(1).join('l')}z`;
  };
}

const SHAPES = [
  (r) => `m${- r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${- 2 * r} 0z`,
  polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
  polygon([0, -1.15], [1.1, 0.85], [-1.1, 0.85]),
  polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]),
  polygon([0, 1.15], [1.1, -0.85], [-1.1, -0.85]),
  polygon(
      [-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2],
      [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]),
  polygon([0.6, -1], [1.2, 0], [0.6, 1], [-0.6, 1], [-1.2, 0], [-0.6, -1]),
];
/** How many colours and shapes there are. */
export const COLORS = 6;
export const SHAPE_COUNT = SHAPES.length;

/** The same figure, given from its middle, at these places ([x, y]). */
function repeated(figure, places) {
  return places.map(([x, y]) => `M${tenths(x)} ${tenths(y)}${figure}`).join('');
}

/** Marks of a style at these places ([x, y]) as an SVG path. */
export function markPath(style, places, size) {
  return repeated(SHAPES[style.shape](size), places);
}

/** Crosses: what does not fit or cannot run. */
export function crossPath(places, size) {
  const r = tenths(size);
  return repeated(`m${- r} ${- r}l${2 * r} ${2 * r}m0 ${- 2 * r}l${- 2 * r} ${2 * r}`, places);
}

/** A little picture of a series for a legend. */
export function markSwatch(style) {
  return shape(
      'svg', {width: 16, height: 16, viewBox: '-8 -8 16 16', 'aria-hidden': 'true'},
      shape('path', {d: markPath(style, [[0, 0]], 5), class: `mark ${style.color}`}));
}
