// A table that can be sorted by each column and shows its rows in portions.
// SPDX-License-Identifier: MIT
import {breakable, cell, element, tableOf} from './dom.js';
import {plural} from './format.js';

const PORTION = 100;

/** Two values in order; those that do not exist are last, whichever way the others go. */
export function compareValues(a, b, isDown) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return isDown ? -order : order;
}

/**
 * A table of rows. `columns` are {name, value (what it is sorted by), text, words (no number)};
 * the first one chooses its row. `state.sort` says by which column it is sorted, null = as given.
 */
export class Grid {
  constructor(caption, columns, {choose, sorted}) {
    this.columns = columns;
    this.choose = choose;
    this.sorted = sorted;
    this.shown = PORTION;
    this.headings = columns.map((column, i) => this.heading(column, i));
    this.body = element('tbody', {role: 'rowgroup'});
    this.more = element('button', {type: 'button'});
    this.more.addEventListener('click', () => {
      this.shown *= 10;
      this.fill();
    });
    this.root = element(
        'div', {}, this.orderChoice(caption), tableOf(caption, this.headings, this.body, 'rows'),
        element('p', {}, this.more));
  }

  /** What the headings do, for screens on which there are none. */
  orderChoice(caption) {
    const option = (value, text) => element('option', {value}, text);
    this.order = element(
        'select', {'aria-label': `Order of: ${caption}`}, option('', 'as given'),
        ...this.columns.map(({name}, i) => option(i, name)));
    this.order.addEventListener('change', () => {
      const i = this.order.value;
      this.sorted(i === '' ? null : {column: Number(i), down: !this.columns[i].words});
    });
    return element('label', {class: 'order'}, 'Sorted by ', this.order);
  }

  heading(column, i) {
    const button = element('button', {type: 'button', class: 'sort'}, ...breakable(column.name));
    button.addEventListener('click', () => {
      const isSame = this.sort?.column === i;
      this.sorted({column: i, down: isSame ? !this.sort.down : !column.words});
    });
    return element(
        'th', {scope: 'col', role: 'columnheader', class: column.words ? null : 'number'}, button);
  }

  /** Shows these rows in this order. */
  show(rows, sort) {
    const column = sort ? this.columns[sort.column] : undefined;
    this.sort = column ? sort : null;
    this.rows = column ? rows.map((row) => [column.value(row), row])
                             .sort(([a], [b]) => compareValues(a, b, sort.down))
                             .map(([, row]) => row) :
                         rows;
    this.headings.forEach((heading, i) => {
      const is = this.sort?.column === i ? (sort.down ? 'descending' : 'ascending') : 'none';
      heading.setAttribute('aria-sort', is);
    });
    this.order.value = this.sort ? String(this.sort.column) : '';
    this.fill();
  }

  fill() {
    this.body.replaceChildren(...this.rows.slice(0, this.shown).map((row) => this.line(row)));
    const left = this.rows.length - this.shown;
    this.more.hidden = left <= 0;
    this.more.textContent = left > 0 ? `${plural(left, 'more row')}` : '';
  }

  line(row) {
    const cells = this.columns.map((column, i) => {
      const kind = {class: column.words ? null : 'number'};
      if (i > 0) return cell(false, column.name, kind, column.text(row));
      const button = element('button', {type: 'button', class: 'link'}, column.text(row));
      button.addEventListener('click', () => this.choose(row));
      return cell(true, column.name, kind, button);
    });
    return element('tr', {role: 'row', 'data-point': row.point}, ...cells);
  }

  /** Marks the chosen row, where it is in sight. */
  mark(row) {
    for (const line of this.body.children)
      line.classList.toggle('chosen', row !== null && line.dataset.point === String(row.point));
  }
}
