// The texts in a language, and what is shown where a translation lacks one: English.
// SPDX-License-Identifier: MIT
import {element} from '../sim/report/page/dom.js';

import {en} from './texts/en.js';
import {et} from './texts/et.js';

/** The languages of the lesson, by the codes of ISO 639-1. */
export const LANGUAGES = {
  en,
  et
};

/** What stands behind the keys, such as 'pages.naive.title'; undefined where nothing does. */
export function textAt(texts, path) {
  return path.split('.').reduce((part, key) => part?.[key], texts);
}

/** `text` with each {name} replaced by its value; a name without a value stays. */
export function fillIn(text, values) {
  return text.replace(/\{(\w+)\}/g, (mark, name) => (name in values ? String(values[name]) : mark));
}

/** The texts of the lesson in one language. */
export class Texts {
  constructor(language) {
    this.language = Object.hasOwn(LANGUAGES, language) ? language : 'en';
    this.missing = new Set();
  }

  /** What stands behind the keys: a text, or a list or a map of texts. */
  get(path) {
    const own = textAt(LANGUAGES[this.language], path);
    if (own !== undefined) return own;
    this.missing.add(path);
    return textAt(en, path);
  }

  /** A text, filled in. */
  say(path, values = {}) {
    return fillIn(this.get(path) ?? path, values);
  }

  /** A question of the quiz in this language, filled in; undefined where it is not translated. */
  translatedQuestion({id, values}) {
    const text = textAt(LANGUAGES[this.language], `questions.${id}.text`);
    return text === undefined ? undefined : fillIn(text, values);
  }

  /** A choice of a question in this language; undefined where it is not translated. */
  translatedChoice({id, values}, choice) {
    const text = textAt(LANGUAGES[this.language], `questions.${id}.choices.${choice}`);
    return text === undefined ? undefined : fillIn(text, values);
  }

  /** What an option of a control is called: its text, or itself. */
  option(value) {
    return textAt(LANGUAGES[this.language], `options.${value}`) ?? en.options[value] ?? value;
  }
}

/** A text with `code` and *stress* as elements. */
export function markedUp(text) {
  return text.split(/(`[^`]+`|\*[^*\s][^*]*\*)/).filter((part) => part !== '').map((part) => {
    if (part.startsWith('`')) return element('code', {}, part.slice(1, -1));
    if (/^\*[^*\s]/.test(part) && part.endsWith('*')) return element('em', {}, part.slice(1, -1));
    return part;
  });
}
