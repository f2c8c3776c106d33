// The colours of palette.css for what is painted, and the patterns that say the same without them.
// SPDX-License-Identifier: MIT
import {element, shape} from './dom.js';

/** The colours that the timeline is painted with, as palette.css names them. */
const PAINTED = [
  'ground',
  'ink',
  'soft',
  'line',
  'accent',
  'forward',
  'backward',
  'input',
  'weight',
  'update',
  'transfer',
  'label',
  'idle',
  'idle-label',
];

/** What the switch of the page says, or else the system. */
export function isDark(theme) {
  if (theme !== 'auto') return theme === 'dark';
  return globalThis.matchMedia?.('(prefers-color-scheme: dark)').matches ?? false;
}

const colorsOfTheme = new Map();

/** The colours of a theme by name. */
export function colors(dark) {
  if (!colorsOfTheme.has(dark)) {
    const probe = element('i', {'data-theme': dark ? 'dark' : 'light', hidden: ''});
    document.body.append(probe);
    const style = getComputedStyle(probe);
    colorsOfTheme.set(
        dark,
        Object.fromEntries(
            PAINTED.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])));
    probe.remove();
  }
  return colorsOfTheme.get(dark);
}

/** Red, green and blue of `#rrggbb`. */
export function channels(color) {
  const value = parseInt(color.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Part of the way from one color (a list of channels) to another. */
export function mix(from, to, part) {
  return from.map((channel, i) => Math.round(channel + (to[i] - channel) * part));
}

/** A colour as canvas image data holds it on little-endian machines. */
export function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Where the pattern of a class has ink, in an 8 x 8 tile. */
const INK = {
  forward: () => false,
  backward: (x, y) => (x + y) % 8 < 2,
  input: (x, y) => (x + y) % 4 === 0,
  weight: (x, y) => (x - y + 8) % 8 < 2,
  update: (x, y) => x % 4 < 2 && y % 4 < 2,
  transfer: (x, y) => y % 4 === 0,
  idle: (x, y) => (x - y + 8) % 8 < 3,
};

/** How far the ink of a pattern is from its ground to the colour of the text on it. */
export const INK_SHARE = 0.15;
export const IDLE_INK_SHARE = 0.3;

/** The 8 x 8 tile of a class, as 64 packed colours, row by row. */
export function tile(name, palette) {
  const base = channels(palette[name]);
  const ink = name === 'idle' ? mix(base, channels(palette['idle-label']), IDLE_INK_SHARE) :
                                mix(base, channels(palette.label), INK_SHARE);
  const colorsOfTile = new Uint32Array(64);
  for (let y = 0; y < 8; ++y) {
    for (let x = 0; x < 8; ++x) colorsOfTile[8 * y + x] = packed(INK[name](x, y) ? ink : base);
  }
  return colorsOfTile;
}

/** The lines of the patterns of charts, as an SVG path in an 8 x 8 tile; '' = plain. */
const LINES = {
  busy: '',
  fill: 'M0 4H8',
  drain: 'M4 0V8',
  dependency: 'M-2 2L2 -2M0 8L8 0M6 10L10 6',
  transfer: 'M-2 6L2 10M0 0L8 8M6 -2L10 2',
  all_reduce: 'M0 0L8 8M0 8L8 0',
  rendezvous: 'M4 0V8M0 4H8',
  update: 'M2 2h2v2h-2zM6 6h2v2h-2z',
  overhead: 'M0 2H8M0 6H8',
};

/**
 * The SVG patterns that bars are filled with: busy time, and idle time in one colour with the lines
 * of its cause. They have to stand in the page once.
 */
export function patternDefinitions() {
  const pattern = ([name, d]) => shape(
      'pattern', {id: `p-${name}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse'},
      shape('rect', {width: 8, height: 8, class: name === 'busy' ? 'busy' : 'idle'}),
      shape('path', {d, class: 'hatch'}));
  return shape(
      'svg', {width: 0, height: 0, 'aria-hidden': 'true', class: 'patterns'},
      shape('defs', {}, ...Object.entries(LINES).map(pattern)));
}
