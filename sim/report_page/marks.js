// The marks of points: a shape and a colour for each series, drawn many at a time as one path.
// SPDX-License-Identifier: MIT
import {shape} from './dom.js';

const number = (value) => value.toFixed(1);

/** A closed polygon of corners around the origin, as a function of place and size. */
function polygon(...corners) {
  return (x, y, r) => `M${corners.map(([a, b]) => `${number(x + a * r)} ${number(y + b * r)}`).join('L')}Z`;
}

const SHAPES = [
  (x, y, r) => `M${number(x - r)} ${number(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  polygon([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
  polygon([0, -1.15], [1.1, 0.85], [-1.1, 0.85]),
  polygon([0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]),
  polygon([0, 1.15], [1.1, -0.85], [-1.1, -0.85]),
  polygon(
      [-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2],
      [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]),
  polygon([0.6, -1], [1.2, 0], [0.6, 1], [-0.6, 1], [-1.2, 0], [-0.6, -1]),
];
const COLORS = 6;

/**
 * How the series of this number looks: neighbours differ in shape and in colour, and the pairs
 * repeat after 42.
 */
export function styleOf(series) {
  return {shape: series % SHAPES.length, color: `s${series % COLORS}`};
}

/** Marks of a style at these places ([x, y]) as an SVG path. */
export function markPath(style, places, size) {
  const draw = SHAPES[style.shape];
  return places.map(([x, y]) => draw(x, y, size)).join('');
}

/** Crosses: what does not fit or cannot run. */
export function crossPath(places, size) {
  return places
      .map(([x, y]) => `M${number(x - size)} ${number(y - size)}l${2 * size} ${2 * size}m0 ${
               -2 * size}l${-2 * size} ${2 * size}`)
      .join('');
}

/** A little picture of a series for a legend. */
export function markSwatch(style) {
  return shape(
      'svg', {width: 16, height: 16, viewBox: '-8 -8 16 16', 'aria-hidden': 'true'},
      shape('path', {d: markPath(style, [[0, 0]], 5), class: `mark ${style.color}`}));
}
