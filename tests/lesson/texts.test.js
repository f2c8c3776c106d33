// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {PAGES} from '../../lesson/page_list.js';
import {en} from '../../lesson/texts/en.js';
import {et} from '../../lesson/texts/et.js';

const source = (name) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');

/** The texts below a part, by their paths. */
function leaves(part, path = '') {
  if (typeof part === 'string') return [[path, part]];
  return Object.entries(part ?? {}).flatMap(([
                                              key, value
                                            ]) => leaves(value, path ? `${path}.${key}` : key));
}

const names = (text) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

test('every page, control and term has its texts', () => {
  for (const page of PAGES) {
    const {title, lead, look, course} = en.pages[page.id];
    assert.ok(title && lead.length > 0 && look.length > 0 && course, page.id);
    for (const control of page.controls)
      if (control.kind !== 'text') assert.ok(en.controls[control.id], `${page.id} ${control.id}`);
    for (const column of page.columns) assert.ok(en.table[column], column);
  }
  assert.equal(Object.keys(en.pages).length, PAGES.length);
  const [, causes] =
      /kBubbleCauses> names = \{([^}]*)\}/s.exec(source('sim/prediction/bubble_terms.cpp'));
  for (const [, cause] of causes.matchAll(/"(\w+)"/g)) assert.ok(en.terms[cause], cause);
});

test('the course\'s 38 questions are answered, each once or where it comes up again', () => {
  const asked =
      new Set(Object.values(en.pages).flatMap(({course}) => course.map(([number]) => number)));
  for (let number = 1; number <= 38; ++number) assert.ok(asked.has(number), `question ${number}`);
});

test('a translation has no key that English lacks, and fills in the same names', () => {
  const english = new Map(leaves({...en, questions: undefined}));
  for (const [path, text] of leaves({...et, questions: undefined})) {
    const of = english.get(path);
    if (path.match(/\.course\.\d+\.[12]$/)) continue;
    assert.ok(of !== undefined, path);
    assert.deepEqual(names(text), names(of), path);
  }
});

test('every key that the scripts name exists', () => {
  for (const name
           of ['main', 'page_view', 'picture', 'result', 'extras', 'editor', 'quiz', 'controls']) {
    for (const [, path] of source(`lesson/${name}.js`).matchAll(/(?:say|get)\('([\w.]+)'/g)) {
      const found = path.split('.').reduce((part, key) => part?.[key], en);
      assert.ok(found !== undefined, `${name}.js: ${path}`);
    }
  }
});
