// What the reader looks at, as the fragment of the page's address, so that a link shows the same.
// SPDX-License-Identifier: MIT

const SHELL = {
  lang: 'en',
  theme: 'auto',
  embed: false,
  critical: false,
  transfers: false,
  student: ''
};

/** The values with which a page begins. */
export function initialValues(page) {
  return Object.fromEntries(page.controls.map((control) => [control.id, control.value]));
}

/** `text` as a value of the control, the nearest that it has; undefined where there is none. */
export function valueOf(control, text) {
  if (control.kind === 'check') return text === '1';
  if (control.kind === 'text') return text;
  if (control.kind === 'choice') return control.options.includes(text) ? text : undefined;
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number)) return undefined;
  const steps = Math.round((number - control.from) / control.step);
  const nearest = Number((control.from + steps * control.step).toFixed(6));
  return Math.min(Math.max(nearest, control.from), control.to);
}

/** The fragment of a state. Values with which the page begins are left out. */
export function writeAddress(pages, state) {
  const page = pages[state.page];
  const parts = [`page=${state.page + 1}`];
  for (const control of page.controls) {
    const value = state.values[control.id];
    if (value === control.value) continue;
    const text = control.kind === 'check' ? Number(value) : value;
    parts.push(`${control.id}=${encodeURIComponent(text)}`);
  }
  for (const [key, usual] of Object.entries(SHELL)) {
    if (state[key] === usual) continue;
    parts.push(`${key}=${encodeURIComponent(state[key] === true ? 1 : state[key])}`);
  }
  return `#${parts.join('&')}`;
}

/** The state of a fragment; what is missing, unknown or impossible is as the page begins. */
export function readAddress(pages, fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ''));
  const wanted = Number(given.get('page') ?? 1);
  const page = Number.isInteger(wanted) && wanted >= 1 && wanted <= pages.length ? wanted - 1 : 0;
  const state = {page, values: initialValues(pages[page]), ...SHELL};
  for (const control of pages[page].controls) {
    const text = given.get(control.id);
    const value = text === null ? undefined : valueOf(control, text);
    if (value === undefined) continue;
    state.values[control.id] = value;
    pages[page].settle?.(state.values, control.id);
  }
  for (const [key, usual] of Object.entries(SHELL)) {
    const text = given.get(key);
    if (text !== null) state[key] = typeof usual === 'boolean' ? text === '1' : text;
  }
  if (!['light', 'dark'].includes(state.theme)) state.theme = 'auto';
  return state;
}
