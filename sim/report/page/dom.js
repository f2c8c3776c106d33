// Building the page: elements from text that stays text.
// SPDX-License-Identifier: MIT

const SVG = 'http://www.w3.org/2000/svg';

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children);
  return node;
}

/** An HTML element; strings among the children become text. */
export function element(name, attributes = {}, ...children) {
  return build(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function shape(name, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

/** A heading that may be cut behind dots and underscores, where keys have them. */
export function breakable(text) {
  return text.split(/(?<=[._])/).flatMap((part, i) => (i === 0 ? [part] : [element('wbr'), part]));
}

/** A table of rows with a caption; the roles hold where a small screen shows the rows as cards. */
export function tableOf(caption, headings, body, className = null) {
  return element(
      'div', {class: 'table', tabindex: 0, role: 'region', 'aria-label': caption},
      element(
          'table', {role: 'table', class: className}, element('caption', {}, caption),
          element('thead', {role: 'rowgroup'}, element('tr', {role: 'row'}, ...headings)), body));
}

/** A cell below the heading `label`; the first of a row names it. */
export function cell(isFirst, label, attributes, ...children) {
  return isFirst ? element('th', {scope: 'row', role: 'rowheader', ...attributes}, ...children) :
                   element('td', {role: 'cell', 'data-label': label, ...attributes}, ...children);
}

/**
 * A table with a caption and headings with scope. Cells are texts or elements;
 * those of all columns but the first `words` are numbers, to the right.
 */
export function table(caption, headings, rows, words = 1) {
  const kind = (column) => (column < words ? {} : {class: 'number'});
  const head = headings.map(
      (text, column) =>
          element('th', {scope: 'col', role: 'columnheader', ...kind(column)}, ...breakable(text)));
  const body = rows.map(
      (cells) => element(
          'tr', {role: 'row'},
          ...cells.map(
              (content, column) => cell(column === 0, headings[column], kind(column), content))));
  return tableOf(caption, head, element('tbody', {role: 'rowgroup'}, ...body));
}
