// Uses the pages of comparisons as people do. Environment: as of report.test.js.
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit: visitFile} = require('./browser.js');

const fileOf = (name) => path.join(process.env.REPORTS, `${name}.html`);
const shot = (page, name) =>
    page.screenshot({path: path.join(process.env.SHOTS, `${name}.png`), fullPage: true});

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

const visit = (name, options, use) => visitFile(browser, fileOf(name), options, use);
const cellsOf = async (page, name) =>
    (await page.locator('#tables tr', {hasText: name}).first().innerText())
        .split('\t')
        .map((text) => text.trim().replace(/\s+/g, ' '));

test(
    'numbers stand side by side with differences, below the sentence',
    () => visit('compared', {}, async (page) => {
      assert.ok((await page.locator('#verdict').innerText())
                    .startsWith('gpipe and eager-1f1b are as fast as each other (1.261 s)'));
      assert.deepEqual(
          await cellsOf(page, 'Iteration time'),
          ['Iteration time', '1.261 s', '1.296 s +2.79 %', '1.261 s same']);
      assert.deepEqual(
          await cellsOf(page, 'Bubble fraction'),
          ['Bubble fraction', '31.48 %', '33.34 % +1.86 points', '31.48 % same']);
      assert.ok(
          (await page.locator('#memory table').innerText()).includes('8.656 GiB, 8 in flight'));
      assert.ok((await page.locator('#source').innerText())
                    .includes('plumbline simulate examples/sweep.yaml schedule.name=1f1b'));
      assert.equal(await page.locator('#memory .bar-group').count(), 8);
      await shot(page, 'compared');
    }));

test(
    'the bars of each run add up to its iteration time, on one scale',
    () => visit('compared', {}, async (page) => {
      const bars =
          await page.locator('#causes .bar svg')
              .evaluateAll(
                  (all) => all.map(
                      (svg) => [...svg.querySelectorAll('rect')].reduce(
                          (sum, rect) => sum + 10 * parseFloat(rect.getAttribute('width')), 0)));
      const times = await page.evaluate(
          () => globalThis.plumbline.page.facts.comparison.runs.map((r) => r.iteration_time_s));
      assert.equal(bars.length, 3);
      bars.forEach((width, r) => {
        const wanted = (1000 * times[r]) / Math.max(...times);
        assert.ok(Math.abs(width - wanted) < 1e-2, `${width} for ${wanted}`);
      });
    }));

test(
    'timelines stand on one axis, zoom together, and tell of their own ops',
    () => visit('compared', {}, async (page) => {
      assert.equal(await page.locator('#timelines canvas').count(), 3);
      const windows = () => page.evaluate(
          () => globalThis.plumbline.page.timelines.all.map(
              ({timeline: {window: {from, to}}}) => [from, to]));
      const whole = await windows();
      assert.deepEqual(whole[0], whole[1]);
      await page.keyboard.press('w');
      const zoomed = await windows();
      assert.ok(Math.abs((zoomed[0][1] - zoomed[0][0]) * 1.5 - whole[0][1]) < 2, 'zoomed once');
      assert.deepEqual(zoomed, [zoomed[0], zoomed[0], zoomed[0]]);
      await page.keyboard.press('Escape');
      assert.deepEqual(await windows(), whole);
      await page.locator('#timelines canvas').nth(1).focus();
      await page.keyboard.press('ArrowRight');
      assert.equal(await page.locator('#details h3').innerText(), '0F0');
      assert.equal(await page.locator('#details-of').innerText(), 'In 1f1b:');
      await page.waitForFunction(() => location.hash.includes('op=1:0'));
      await page.locator('#timelines canvas').nth(2).focus();
      await page.keyboard.press('ArrowRight');
      assert.equal(await page.locator('#details-of').innerText(), 'In eager-1f1b:');
      await page.keyboard.press('Escape');
      assert.equal(await page.locator('#details h3').count(), 0);
      await page.locator('#timelines canvas').nth(0).click({position: {x: 110, y: 50}});
      assert.equal(await page.locator('#details-of').innerText(), 'In gpipe:');
    }));

test('the address brings an op back, and drops one that does not exist', async () => {
  await visit('compared', {fragment: '#op=2:3&theme=dark'}, async (page) => {
    assert.equal(await page.locator('#details h3').innerText(), '0F3');
    assert.equal(await page.locator('#details-of').innerText(), 'In eager-1f1b:');
    await shot(page, 'compared-dark');
  });
  await visit('compared', {fragment: '#op=9:3'}, async (page) => {
    assert.equal(await page.locator('#details h3').count(), 0);
  });
});

test(
    'runs with other devices, result files and hostile names stand beside each other',
    () => visit('compared-result', {}, async (page) => {
      assert.equal(await page.locator('#timelines canvas').count(), 2);
      assert.ok((await page.locator('#left-out').innerText()).includes('no timeline of result'));
      assert.ok((await page.locator('#memory').innerText()).includes('not used'));
      assert.equal(await page.evaluate(() => globalThis.broken), undefined);
      await shot(page, 'compared-result');
    }));

test(
    'on a small screen nothing is wider than it',
    () => visit('compared', {width: 390, height: 800}, async (page) => {
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, `${width} pixels too wide`);
    }));
