// What a choice is made by is in sight in every table, on a laptop and on a phone. Environment: as
// of report.test.js. SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit} = require('./browser.js');

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

/**
 * The cells of peak memory and of what fits that are not wholly in sight across; and how many are.
 */
function checkCells() {
  const names = /^(peak memory|peak|fits)$/i;
  const hidden = [];
  let seen = 0;
  for (const table of document.querySelectorAll('table')) {
    const frame = table.parentElement.getBoundingClientRect();
    for (const line of table.querySelectorAll('tbody tr')) {
      const isAcross = names.test(line.firstElementChild.textContent);
      for (const one of line.querySelectorAll('td')) {
        if (!isAcross && !names.test(one.dataset.label ?? '')) continue;
        const {left, right, width} = one.getBoundingClientRect();
        if (width === 0) continue;
        ++seen;
        if (left < frame.left - 1 || right > Math.min(frame.right, innerWidth) + 1)
          hidden.push(`${one.dataset.label}: ${one.textContent}`);
      }
    }
  }
  return {hidden, seen, tooWide: document.documentElement.scrollWidth - innerWidth};
}

for (const [width, height] of [[1280, 800], [390, 844]]) {
  for (const name
           of ['four', 'reserve', 'validated', 'sweep', 'sweep-broken', 'compared',
               'compared-result', 'search']) {
    test(`peak memory and what fits are in sight at ${width} pixels: ${name}`, async () => {
      const file = path.join(process.env.REPORTS, `${name}.html`);
      await visit(browser, file, {width, height}, async (page) => {
        const {hidden, seen, tooWide} = await page.evaluate(checkCells);
        assert.deepEqual(hidden, []);
        assert.ok(seen > 0, 'no such cell');
        assert.ok(tooWide <= 0, `${tooWide} pixels too wide`);
      });
    });
  }
}
