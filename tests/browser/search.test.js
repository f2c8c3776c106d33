// Uses the page of a search as people do. Environment: as of report.test.js.
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit: visitFile} = require('./browser.js');

const fileOf = (name) => path.join(process.env.REPORTS, name);
const shot = (page, name) =>
    page.screenshot({path: path.join(process.env.SHOTS, `${name}.png`), fullPage: true});
const search = JSON.parse(fs.readFileSync(fileOf('search.json'), 'utf8'));

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

const visit = (options, use) => visitFile(browser, fileOf('search.html'), options, use);

test(
    'the choices differ in their sizes, and the first is the first of the search',
    () => visit({}, async (page) => {
      const choices = await page.evaluate(() => {
        const {choiceList, sweep} = globalThis.plumbline.page;
        const sizes =
            ['TP', 'CP', 'EP', 'PP'].map((key) => sweep.axes.findIndex((axis) => axis.key === key));
        return choiceList.map(({of: row, alike}) => ({
                                time: row.time,
                                sizes: String(sizes.map((axis) => row.at[axis])),
                                alike,
                              }));
      });
      assert.ok(choices.length > 3);
      assert.equal(new Set(choices.map(({sizes}) => sizes)).size, choices.length);
      assert.equal(choices[0].time, search.rows[0].iteration_time_s);
      assert.ok(choices.every(({time}, i) => i === 0 || time >= choices[i - 1].time));
      assert.equal(await page.locator('#decision tbody tr').count(), choices.length);
      await shot(page, 'search');
    }));

test(
    'a click on a choice shows its command and its times at other efficiencies',
    () => visit({}, async (page) => {
      await page.locator('#decision tbody button').nth(1).click();
      const {time, utilization} = await page.evaluate(() => globalThis.plumbline.page.chosen);
      assert.ok(
          (await page.locator('#details .command').innerText()).startsWith('plumbline simulate'));
      const cells = await page.locator('#efficiency tbody tr').nth(1).locator('td').allInnerTexts();
      const wanted = (time * utilization) / 0.4;
      assert.equal(cells[0], `${Number(wanted.toPrecision(4))} s`);
      assert.ok((await page.locator('#efficiency').innerText())
                    .includes('This is arithmetic, not a prediction.'));
    }));

test(
    'the front is what no row beats, in time against memory',
    () => visit({}, async (page) => {
      const {rows, front} = await page.evaluate(() => {
        const of = (row) => [row.time, row.peak];
        const {page: all} = globalThis.plumbline;
        return {rows: all.rows.map(of), front: all.front.map(of)};
      });
      const beats = (a, b) => a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1]);
      assert.ok(front.length > 1);
      for (const one of front) assert.ok(!rows.some((row) => beats(row, one)), `${one}`);
      assert.equal(await page.locator('#plot-front .front-mark').count(), 1);
    }));

test(
    'the memory of each choice adds up to its peak, and what was left out to all layouts',
    () => visit({dark: true}, async (page) => {
      const apart = await page.evaluate(
          () => globalThis.plumbline.page.choiceList.map(
              ({of: row, memory}) =>
                  Object.values(memory).reduce((sum, bytes) => sum + bytes, 0) - row.peak));
      assert.ok(apart.length > 3 && apart.every((bytes) => bytes === 0), `${apart}`);
      const counts = await page.locator('#left-out tbody td:first-of-type').allInnerTexts();
      const all = counts.reduce((sum, text) => sum + Number(text.replaceAll(',', '')), 0);
      assert.equal(all, search.layouts);
      await shot(page, 'search-dark');
    }));
