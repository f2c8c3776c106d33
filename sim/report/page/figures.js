// The numbers at the head of a page, the main ones large.
// SPDX-License-Identifier: MIT
import {element} from './dom.js';

/**
 * A text whose formulas, such as "(p-1)/(m+p-1)", and percentages are not cut at the end of a
 * line.
 */
export function unbroken(text) {
  return text.replaceAll(' %', '\u00a0%')
      .split(/(\S*\)\/\(\S*)/)
      .map((part, i) => (i % 2 === 1 ? element('span', {class: 'formula'}, part) : part));
}

/** The numbers at the head of the page: the main ones large, then the others. */
export function figureCards(figures) {
  const card = ({label, value, remark}) => element(
      'div', {class: 'card'}, element('dt', {}, label),
      element(
          'dd', {}, element('span', {class: 'value'}, value),
          element('span', {class: 'remark'}, ...unbroken(remark))));
  const list = (name, some) =>
      some.length > 0 ? [element('dl', {class: name}, ...some.map(card))] : [];
  return [
    ...list('main-figures', figures.filter((figure) => figure.is_main)),
    ...list('cards', figures.filter((figure) => !figure.is_main)),
  ];
}
