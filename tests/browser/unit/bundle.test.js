// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import {readdirSync, readFileSync} from 'node:fs';
import test from 'node:test';

const report = new URL('../../../sim/report/', import.meta.url);
const read = (name) => readFileSync(new URL(name, report), 'utf8');

// The modules of a page become one script, so their names have to differ.
const lists =
    readdirSync(report)
        .filter((name) => name.endsWith('_html.cpp') || name === 'html_report.cpp')
        .flatMap((source) => [...read(source).matchAll(/ (k\w*Modules)\[\] = \{([^}]*)\}/g)]);

test('all pages are looked at', () => assert.equal(lists.length, 4));

for (const [, name, list] of lists) {
  const modules = [...list.matchAll(/"([\w.]+)"/g)].map(([, module]) => module);
  test(`the modules of ${name} have different names, and all that they import`, () => {
    const owner = new Map();
    for (const module of modules) {
      const text = read(`page/${module}`);
      for (const [, own] of text.matchAll(
               /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)/gm)) {
        assert.equal(owner.get(own), undefined, `${own} of ${module}`);
        owner.set(own, module);
      }
      for (const [, imported] of text.matchAll(/^import .*? from '\.\/([\w.]+)';/gms))
        assert.ok(modules.includes(imported), `${module} imports ${imported}`);
    }
  });
}
