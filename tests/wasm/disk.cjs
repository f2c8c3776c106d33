// Opens the page of examples/web from a disk in headless Chromium: its numbers are the command's, a slider changes them,
// the address keeps them, and nothing is asked of anywhere.
// Usage: node disk.cjs ENGINE_FOLDER CHROMIUM PLUMBLINE
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const {launch, open} = require('../browser/browser.js');

const [engine, chromium, plumbline] = process.argv.slice(2);
const file = path.resolve(engine, 'bubble.html');
const AXE = fs.readFileSync(require.resolve('../browser/node_modules/axe-core/axe.min.js'), 'utf8');

const shown = (page) => page.evaluate(() => ({
  settings: document.getElementById('command').textContent.split(' ').slice(3),
  scenario: document.getElementById('scenario').textContent,
  simulated: document.getElementById('simulated').textContent,
  formula: document.getElementById('formula').textContent,
  iteration: document.getElementById('iteration').textContent,
  inFlight: document.getElementById('in_flight').textContent,
  timeline: document.getElementById('timeline').ariaLabel,
}));

/** What the command says of the scenario and the settings that the page shows. */
function command({scenario, settings}) {
  const copy = path.resolve(engine, 'page.yaml');
  fs.writeFileSync(copy, scenario);
  const told = JSON.parse(execFileSync(plumbline, ['simulate', copy, '--json', ...settings], {encoding: 'utf8'}));
  fs.rmSync(copy);
  return told;
}

async function agree(page, devices, microBatches) {
  const page_ = await shown(page);
  const told = command(page_);
  assert.equal(told.devices.length, devices);
  assert.equal(told.micro_batches, microBatches);
  assert.equal(page_.simulated, `${(100 * told.bubble_fraction).toFixed(2)} %`);
  assert.ok(page_.formula.startsWith(page_.simulated), page_.formula);
  assert.equal(page_.iteration, `${told.iteration_time_s * 1000} ms`);
  assert.equal(page_.inFlight, String(Math.max(...told.devices.map((device) => device.peak_in_flight))));
  const length = told.makespan_s * 1000;
  assert.equal(page_.timeline, `Timeline: ${told.operations} ops on ${devices} devices in ${length} ms`);
}

async function use(browser) {
  const {page, errors, requests, close} = await open(browser, file);
  await agree(page, 4, 8);
  await page.focus('#micro_batches');
  await page.keyboard.press('ArrowRight');
  await agree(page, 4, 9);
  await page.selectOption('#schedule', 'gpipe');
  await page.focus('#devices');
  await page.keyboard.press('End');
  await agree(page, 8, 9);
  await page.screenshot({path: path.resolve(engine, 'bubble.png')});
  const pixel = await page.evaluate(
      () => document.getElementById('timeline').getContext('2d').getImageData(2, 2, 1, 1).data.join());
  assert.equal(pixel, '126,199,245,255', 'the first forward of device 0');
  const address = new URL(page.url()).hash;
  const time = await page.evaluate(async () => {
    const slider = document.getElementById('micro_batches');
    slider.value = 32;
    const began = performance.now();
    for (let i = 0; i < 20; ++i) slider.dispatchEvent(new Event('input'));
    return (performance.now() - began) / 20;
  });
  console.log(`a slider move of 8 devices and 32 micro-batches takes ${time.toFixed(1)} ms`);
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations.map(({id}) => id));
  assert.deepEqual(violations, []);
  assert.deepEqual(errors, []);
  assert.ok(requests.every((url) => url.startsWith('file://')), `requests: ${requests}`);
  await close();
  const again = await open(browser, file, {fragment: address, dark: true, width: 390});
  await agree(again.page, 8, 9);
  const overflow = await again.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `on a phone, the page is ${overflow} pixels too wide`);
  await again.close();
  const wrong = await open(browser, file, {fragment: '#schedule=x&devices=99&micro_batches=y&no=1'});
  await agree(wrong.page, 8, 17);  // the most devices, and the middle of the slider, as browsers read such values
  assert.deepEqual(wrong.errors, []);
  await wrong.close();
}

launch(chromium).then(async (browser) => {
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
  console.log('the page of examples/web says what the command says, from a disk');
}).catch((error) => {
  console.log(`FAILED: ${error.stack}`);
  process.exitCode = 1;
});
