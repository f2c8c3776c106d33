// Opens report files in headless Chromium, and counts what a page must not do.
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const {chromium} = require('playwright-core');
const {pathToFileURL} = require('node:url');

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A browser without a GPU; `executable` is the path of Chromium. */
function launch(executable) {
  return chromium.launch({executablePath: executable, args: ARGUMENTS});
}

/**
 * A page that shows `file`, once all of it stands: with `errors`, what it threw or wrote to the
 * console as an error, and `requests`, all that it asked for.
 */
async function open(
    browser, file, {fragment = '', dark = false, width = 1440, height = 1000} = {}) {
  const context = await browser.newContext({
    viewport: {width, height},
    colorScheme: dark ? 'dark' : 'light',
  });
  const page = await context.newPage();
  const errors = [];
  const requests = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
  });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href + fragment);
  await page
      .waitForFunction(
          () => document.documentElement.dataset.ready === 'yes', undefined, {timeout: 60000})
      .catch((error) => {
        throw new Error(`${error.message}\n${errors.join('\n')}`);
      });
  return {page, errors, requests, close: () => context.close()};
}

/** Opens a report, runs `use`, and then holds the page to what every page must keep. */
async function visit(browser, file, options, use) {
  const opened = await open(browser, file, options);
  await use(opened.page);
  assert.deepEqual(opened.errors, [], 'errors and warnings of the page');
  assert.equal(opened.requests.length, 1, `requests: ${opened.requests}`);
  await opened.close();
}

module.exports = {
  launch,
  open,
  visit
};
