// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {channels, INK_SHARE, mix} from '../../../sim/report/page/palette.js';

const css = readFileSync(new URL('../../../sim/report/page/palette.css', import.meta.url), 'utf8')
                .replace(/\/\*[^]*?\*\//g, '');
const themeOf = (selector) => {
  const start = css.indexOf(selector);
  const body = css.slice(css.indexOf('{', start) + 1, css.indexOf('}', start));
  return Object.fromEntries(
      [...body.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g)].map(([, name, color]) => [name, color]));
};
const THEMES = {
  light: themeOf(':root'),
  dark: themeOf('\n[data-theme="dark"]')
};

const OPS = ['forward', 'backward', 'input', 'weight', 'update', 'transfer'];
const MEMORY =
    ['weights', 'gradients', 'optimizer', 'stash', 'temporary', 'buffers', 'activations'];
const SERIES = ['s0', 's1', 's2', 's3', 's4', 's5'];
/** What stands beside each other: these colours have to differ for everybody. */
const VIEWS = [[...OPS, 'idle'], ['busy', 'idle'], MEMORY, SERIES];

const linear = (color) =>
    channels(color)
        .map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const luminance = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
/** The contrast of WCAG 2. */
function contrast(a, b) {
  const [low, high] = [luminance(linear(a)), luminance(linear(b))].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
const hex = (rgb) => `#${rgb.map((c) => c.toString(16).padStart(2, '0')).join('')}`;

/** Rows by columns. */
const times = (matrix, vector) =>
    matrix.map((row) => row.reduce((sum, c, i) => sum + c * vector[i], 0));
/** Ottosson's OKLab: distances as the eye sees them. */
function lab(rgb) {
  const cones =
      times(
          [
            [0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005]
          ],
          rgb)
          .map(Math.cbrt);
  return times(
      [
        [0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766]
      ],
      cones);
}
/**
 * Machado, Oliveira and Fernandes 2009: linear colours as those see them who lack a kind of cones.
 */
const SIGHTS = {
  all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [
    [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998]
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]
  ],
};
const seen = (color, sight) =>
    lab(times(SIGHTS[sight], linear(color)).map((c) => Math.min(1, Math.max(0, c))));
const distance = (a, b, sight = 'all') =>
    Math.hypot(...seen(a, sight).map((c, i) => c - seen(b, sight)[i]));
const pairs = (names) => names.flatMap((a, i) => names.slice(i + 1).map((b) => [a, b]));

for (const [theme, colors] of Object.entries(THEMES)) {
  test(`no colour has two meanings: ${theme}`, () => {
    assert.deepEqual(Object.keys(colors), Object.keys(THEMES.light));
    for (const [a, b] of pairs([...OPS, 'idle', 'busy', ...MEMORY, ...SERIES])) {
      const apart = distance(colors[a], colors[b]);
      assert.ok(apart > 0.05, `${a} and ${b} are ${apart.toFixed(3)} apart`);
    }
  });

  test(`what stands beside each other differs for all eyes: ${theme}`, () => {
    for (const view of VIEWS) {
      for (const [a, b] of pairs(view)) {
        for (const sight of Object.keys(SIGHTS)) {
          const apart = distance(colors[a], colors[b], sight);
          assert.ok(apart > 0.06, `${a} and ${b} are ${apart.toFixed(3)} apart with ${sight}`);
        }
      }
    }
  });

  test(`texts have a contrast of 4.5, marks of 3: ${theme}`, () => {
    const check = (text, ground, least) => {
      const found = contrast(text, ground);
      assert.ok(found >= least, `${text} on ${ground}: ${found.toFixed(2)}`);
    };
    for (const text of ['ink', 'soft', 'accent', ...SERIES])
      for (const ground of text[0] === 's' && text.length === 2 ? ['ground'] : ['ground', 'raised'])
        check(colors[text], colors[ground], 4.5);
    check(colors['idle-label'], colors.idle, 4.5);
    for (const op of OPS) {
      check(colors.label, colors[op], 4.5);
      const ink = mix(channels(colors[op]), channels(colors.label), INK_SHARE);
      check(colors.label, hex(ink), 4.5);
    }
    check(colors.idle, colors.ground, 3);
  });
}
