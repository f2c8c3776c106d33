// What the reader of a sweep looks at, as the fragment of the page's address.
// SPDX-License-Identifier: MIT

/** The fragment for a state: axis, filter, point, order of the table, theme. */
export function encodeSweepState(state, standard) {
  const parts = [];
  if (state.x !== standard.x) parts.push(`x=${state.x}`);
  for (const key of ['color', 'shape'])
    if (state[key] !== null) parts.push(`${key}=${state[key]}`);
  if (state.filter.size > 0) {
    parts.push(`only=${[...state.filter].map(([axis, value]) => `${axis}:${value}`).join()}`);
  }
  if (state.point !== null) parts.push(`point=${state.point}`);
  if (state.sort) parts.push(`sort=${state.sort.column}:${state.sort.down ? 'down' : 'up'}`);
  if (state.theme !== 'auto') parts.push(`theme=${state.theme}`);
  return parts.length > 0 ? `#${parts.join('&')}` : '';
}

/** The state of a fragment; what is missing or does not exist in this sweep is at its default. */
export function decodeSweepState(fragment, sweep, standard) {
  const state = {
    x: standard.x,
    color: null,
    shape: null,
    filter: new Map(),
    point: null,
    sort: null,
    theme: 'auto',
  };
  for (const part of fragment.replace(/^#/, '').split('&')) {
    const [key, value = ''] = part.split('=', 2);
    const isNumber = /^\d{1,9}$/.test(value);
    const order = /^(\d{1,3}):(up|down)$/.exec(value);
    if (key === 'x' && isNumber && sweep.varying.includes(Number(value))) {
      state.x = Number(value);
    } else if (
        (key === 'color' || key === 'shape') && isNumber && sweep.varying.includes(Number(value))) {
      state[key] = Number(value);
    } else if (key === 'point' && isNumber && sweep.byPoint.has(Number(value))) {
      state.point = Number(value);
    } else if (key === 'only') {
      for (const pair of value.split(',')) {
        const found = /^(\d{1,9}):(\d{1,9})$/.exec(pair);
        if (!found || !sweep.varying.includes(Number(found[1]))) continue;
        if (Number(found[2]) < sweep.axes[Number(found[1])].values.length)
          state.filter.set(Number(found[1]), Number(found[2]));
      }
    } else if (key === 'sort' && order) {
      state.sort = {column: Number(order[1]), down: order[2] === 'down'};
    } else if (key === 'theme' && (value === 'light' || value === 'dark')) {
      state.theme = value;
    }
  }
  return state;
}
