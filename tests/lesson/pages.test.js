// The settings of every page, with every value of every control, are what the command accepts.
// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {readdirSync, readFileSync} from 'node:fs';
import test from 'node:test';

import {initialValues} from '../../lesson/address.js';
import {exampleOf, filesOfPages, PAGES} from '../../lesson/page_list.js';

const repository = new URL('../../', import.meta.url);
const plumbline = process.env.PLUMBLINE;
const DOES_NOT_FIT = 4;

/**
 * The values with which a page begins, and those with one control at an end or at another choice.
 */
function statesOf(page) {
  const first = initialValues(page);
  const others = page.controls.flatMap((control) => {
    const values = control.kind === 'range' ? [control.from, control.to] :
        control.kind === 'choice'           ? control.options.filter((option) => option !== 'own') :
        control.kind === 'check'            ? [true] :
                                              [];
    return values.map((value) => {
      const state = {...first, [control.id]: value};
      page.settle?.(state, control.id);
      return state;
    });
  });
  return [first, ...others];
}

for (const page of PAGES) {
  test(`the runs of page ${page.id}`, {skip: plumbline ? false : 'there is no command'}, () => {
    for (const values of statesOf(page)) {
      for (const {settings} of page.runs(values)) {
        const arguments_ =
            ['simulate', `examples/${exampleOf(page, values)}.yaml`, '--json', ...settings];
        const {status, stdout, stderr} =
            spawnSync(plumbline, arguments_, {cwd: repository, encoding: 'utf8'});
        assert.ok(
            status === 0 || (page.id === 'engineers' && status === DOES_NOT_FIT),
            `${arguments_.join(' ')}: ${stderr}`);
        if (status === 0) assert.ok(JSON.parse(stdout).iteration_time_s > 0);
      }
    }
  });
}

test('the files that pages name exist', () => {
  for (const path of filesOfPages(PAGES))
    assert.ok(readFileSync(new URL(path, repository)).length > 0, path);
});

test('the modules of the lesson and those that it takes of the report have different names', () => {
  const owner = new Map();
  const seen = new Set();
  const visit = (url) => {
    if (seen.has(url.href)) return;
    seen.add(url.href);
    const text = readFileSync(url, 'utf8');
    for (const [, name] of text.matchAll(/^import [^;]*? from '([^']+)';/gm))
      visit(new URL(name, url));
    for (const [, own] of text.matchAll(
             /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)/gm)) {
      assert.equal(owner.get(own), undefined, `${own} of ${url.href}`);
      owner.set(own, url.href);
    }
  };
  visit(new URL('lesson/main.js', repository));
  const own = readdirSync(new URL('lesson/', repository)).filter((name) => name.endsWith('.js'));
  for (const name of own)
    assert.ok([...seen].some((href) => href.endsWith(`/lesson/${name}`)), `${name} is used`);
});
