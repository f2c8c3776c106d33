// Every kind of page is clean to axe-core, light and dark, on a laptop and on a phone. Environment:
// as of report.test.js. SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit} = require('./browser.js');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

/** What axe-core finds wrong, a line each. */
async function violations(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const {violations: all} = await globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return all;
  });
  return found.flatMap(
      ({id, nodes}) => nodes.map(
          ({target, any, all, none}) =>
              `${id} ${target}: ${[...any, ...all, ...none].map(({message}) => message)}`));
}

const PAGES = [
  ['four', '#op=0:3'],
  ['four', '#idle=0:0:0'],
  ['four', '#present=phases:1'],
  ['copies', ''],
  ['reserve', ''],
  ['split', ''],
  ['validated', ''],
  ['compared', '#op=1:2'],
  ['compared-result', ''],
  ['sweep', '#point=28'],
  ['sweep-broken', ''],
  ['sweep-formula', ''],
  ['search', ''],
];

for (const [name, fragment] of PAGES) {
  for (const dark of [false, true]) {
    for (const width of [1280, 390]) {
      test(
          `axe-core finds nothing: ${name}${fragment}, ${dark ? 'dark' : 'light'}, ${width} pixels`,
          async () => {
            const file = path.join(process.env.REPORTS, `${name}.html`);
            await visit(browser, file, {fragment, dark, width, height: 900}, async (page) => {
              assert.deepEqual(await violations(page), []);
            });
          });
    }
  }
}
