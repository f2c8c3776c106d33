// Sliders, choices and boxes: each with its name and its value, for mouse, finger and keyboard.
// SPDX-License-Identifier: MIT
import {element} from '../sim/report/page/dom.js';

function rangeInput(control, value, shown, changed) {
  const input = element('input', {
    type: 'range',
    id: `control-${control.id}`,
    min: control.from,
    max: control.to,
    step: control.step,
  });
  input.value = value;
  input.addEventListener('input', () => {
    shown.textContent = `${input.value}${control.unit}`;
    changed(Number(input.value));
  });
  return input;
}

function choiceInput(control, value, texts, changed) {
  const options =
      control.options.map((option) => element('option', {value: option}, texts.option(option)));
  const select = element('select', {id: `control-${control.id}`}, ...options);
  select.value = value;
  select.addEventListener('change', () => changed(select.value));
  return select;
}

function checkInput(control, value, changed) {
  const input = element('input', {type: 'checkbox', id: `control-${control.id}`});
  input.checked = value;
  input.addEventListener('change', () => changed(input.checked));
  return input;
}

/**
 * A control with its name; `changed` gets each new value. Without an element where nothing is to
 * be chosen.
 */
export function controlElement(control, value, texts, changed) {
  const name = element('span', {}, texts.say(`controls.${control.id}`));
  if (control.kind === 'range') {
    const shown = element('output', {for: `control-${control.id}`
    }, `${value}${control.unit}`);
    return element(
        'label', {class: 'range'}, name, rangeInput(control, value, shown, changed), shown);
  }
  if (control.kind === 'choice')
    return element('label', {class: 'choice'}, name, choiceInput(control, value, texts, changed));
  return element('label', {class: 'check'}, checkInput(control, value, changed), name);
}

/** Shows another value of a slider that stands on the page. */
export function setControl({id, kind, unit}, value) {
  const input = document.getElementById(`control-${id}`);
  if (!input || kind !== 'range') return;
  input.value = value;
  input.parentElement.querySelector('output').textContent = `${value}${unit}`;
}

/** The controls of a page that can be set now. */
export function shownControls(page, values) {
  return page.controls.filter(({kind, when}) => kind !== 'text' && (!when || when(values)));
}
