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

/**
 * A table with a caption and headings with scope. Cells are texts; those of all columns but the
 * first `words` are numbers, to the right.
 */
export function table(caption, headings, rows, words = 1) {
  const cell = (text, column, name) => element(name, column < words ? {} : {class: 'number'}, text);
  const head = headings.map((text, column) => {
    const heading = cell(text, column, 'th');
    heading.scope = 'col';
    return heading;
  });
  const body = rows.map((texts) => element('tr', {}, ...texts.map((text, column) => {
                          const made = cell(text, column, column === 0 ? 'th' : 'td');
                          if (column === 0) made.scope = 'row';
                          return made;
                        })));
  return element(
      'div', {class: 'table', tabindex: 0, role: 'region', 'aria-label': caption},
      element(
          'table', {}, element('caption', {}, caption),
          element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...body)));
}
