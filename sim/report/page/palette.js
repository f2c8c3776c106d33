// Colours and patterns: each class of ops and each cause is told by both, in light and in dark.
// SPDX-License-Identifier: MIT

// Blue, orange, green and purple of Okabe and Ito's palette, calmed; told apart with any kind of
// colour vision by lightness too.
const LIGHT = {
  forward: '#5b9bd5',
  backward: '#e8a33d',
  input: '#efbb6b',
  weight: '#4fa88b',
  update: '#a678b8',
  transfer: '#8d99a6',
  lane: '#eef1f5',
  ground: '#ffffff',
  ink: '#1d2733',
  soft: '#5d6b7a',
  line: '#d9dfe6',
  label: '#10202f',
  critical: '#c2185b',
  link: '#7b8794',
  select: '#0b57d0',
};
const DARK = {
  forward: '#4d8cc7',
  backward: '#c98a2b',
  input: '#b8894a',
  weight: '#3f8f76',
  update: '#9168a3',
  transfer: '#76828f',
  lane: '#242c36',
  ground: '#161b22',
  ink: '#e6ebf1',
  soft: '#9aa7b5',
  line: '#323c48',
  label: '#f6f9fc',
  critical: '#ff6f9c',
  link: '#8b98a7',
  select: '#8ab4ff',
};

/** What the switch of the page says, or else the system. */
export function isDark(theme) {
  if (theme !== 'auto') return theme === 'dark';
  return globalThis.matchMedia?.('(prefers-color-scheme: dark)').matches ?? false;
}

/** The colours of a theme by name. */
export function colors(dark) {
  return dark ? DARK : LIGHT;
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
};

/** The 8 x 8 tile of a class, as 64 packed colours, row by row. */
export function tile(name, palette) {
  const base = channels(palette[name]);
  const ink = mix(base, channels(palette.label), 0.22);
  const colorsOfTile = new Uint32Array(64);
  for (let y = 0; y < 8; ++y) {
    for (let x = 0; x < 8; ++x) colorsOfTile[8 * y + x] = packed(INK[name](x, y) ? ink : base);
  }
  return colorsOfTile;
}

/** Fills of the charts: a colour for each part, and the lines of its pattern as an SVG path. */
export const PATTERNS = {
  busy: {color: '#9db4cc', path: ''},
  fill: {color: '#cfd6de', path: 'M0 4H8'},
  drain: {color: '#aeb8c3', path: 'M4 0V8'},
  dependency: {color: '#e8a33d', path: 'M-2 2L2 -2M0 8L8 0M6 10L10 6'},
  transfer: {color: '#6fb3d9', path: 'M-2 6L2 10M0 0L8 8M6 -2L10 2'},
  all_reduce: {color: '#4fa88b', path: 'M0 0L8 8M0 8L8 0'},
  rendezvous: {color: '#c78fb0', path: 'M4 0V8M0 4H8'},
  update: {color: '#a678b8', path: 'M2 2h2v2h-2zM6 6h2v2h-2z'},
  overhead: {color: '#d98b73', path: 'M0 2H8M0 6H8'},
};
