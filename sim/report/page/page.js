// What all kinds of pages begin with: the data in the file, the address, light or dark.
// SPDX-License-Identifier: MIT
import {fromBase64, gunzip} from './codec.js';
import {isDark} from './palette.js';

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** What the file says in words and numbers. */
export function readFacts() {
  return JSON.parse(byId('facts').textContent);
}

/** The bytes beside the facts. */
export async function readData() {
  const {textContent, dataset} = byId('columns');
  const bytes = fromBase64(textContent);
  return dataset.encoding === 'gzip' ? gunzip(bytes) : bytes;
}

/** Keeps what `encode` gives in the address; browsers limit how often it may change. */
export function addressKeeper(encode) {
  let waiting = 0;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, '', encode() || location.pathname + location.search);
    }, 150);
  };
}

/** Shows the page light or dark as `theme` says. */
export function applyTheme(theme) {
  document.documentElement.dataset.theme = isDark(theme) ? 'dark' : 'light';
  byId('theme').value = theme;
}

/** Calls `chosen` with the theme when the switch, and `changed` when the system, is changed. */
export function listenToTheme(chosen, changed) {
  byId('theme').addEventListener('change', () => chosen(byId('theme').value));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
}

/** Says that the page cannot be drawn, and why. */
export function tellFailure(error) {
  byId('name').textContent = 'This page cannot be shown';
  byId('headline').textContent = typeof DecompressionStream === 'undefined' ?
      'The browser is too old: it has no DecompressionStream.' :
      String(error);
  throw error;
}
