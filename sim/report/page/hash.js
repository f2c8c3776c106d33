// What the reader looks at, as the fragment of the page's address: kept there, and read back.
// SPDX-License-Identifier: MIT

/**
 * The fragment for a state: the window in ticks (absent = the whole run), the selected item as
 * RUN:ITEM, or the selected idle gap as RUN:SLOT:GAP, and what is switched away from its default.
 */
export function encodeState(state) {
  const parts = [];
  if (state.window) parts.push(`t=${Math.round(state.window.from)}-${Math.round(state.window.to)}`);
  if (state.selected) {
    const {run, item, slot, gap} = state.selected;
    parts.push(item === undefined ? `idle=${run}:${slot}:${gap}` : `op=${run}:${item}`);
  }
  if (!state.critical) parts.push('critical=0');
  if (!state.transfers) parts.push('transfers=0');
  if (state.present) {
    const {by, step} = state.present;
    parts.push(step === 0 ? 'present' : `present=${by}:${step}`);
  }
  if (state.apart) parts.push('apart=1');
  if (state.theme !== 'auto') parts.push(`theme=${state.theme}`);
  return parts.length > 0 ? `#${parts.join('&')}` : '';
}

/** The state of a fragment; what is missing, unknown or no number is at its default. */
export function decodeState(fragment) {
  const state = {
    window: null,
    selected: null,
    critical: true,
    transfers: true,
    apart: false,
    present: null,
    theme: 'auto',
  };
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const [key, value = ''] = part.split('=', 2);
    const pair = /^(\d{1,16})[-:](\d{1,16})$/.exec(value);
    const triple = /^(\d{1,9}):(\d{1,9}):(\d{1,9})$/.exec(value);
    if (key === 't' && pair && Number(pair[2]) > Number(pair[1])) {
      state.window = {from: Number(pair[1]), to: Number(pair[2])};
    } else if (key === 'op' && pair) {
      state.selected = {run: Number(pair[1]), item: Number(pair[2])};
    } else if (key === 'idle' && triple) {
      const [run, slot, gap] = triple.slice(1).map(Number);
      state.selected = {run, slot, gap};
    } else if (key === 'critical' || key === 'transfers') {
      state[key] = value !== '0';
    } else if (key === 'present') {
      const found = /^(phases|ops):(\d{1,9})$/.exec(value);
      state.present = {by: found?.[1] ?? 'phases', step: Number(found?.[2] ?? 0)};
    } else if (key === 'apart') {
      state.apart = value === '1';
    } else if (key === 'theme' && (value === 'light' || value === 'dark')) {
      state.theme = value;
    }
  }
  return state;
}
