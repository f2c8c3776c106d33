// Uses the lesson from a disk in headless Chromium: every page and control, the editor, every quiz right and wrong, by mouse
// and by keyboard; its numbers are the command's, and nothing is asked of anywhere.
// Usage: node lesson.cjs LESSON_FOLDER CHROMIUM PLUMBLINE
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const {execFileSync, spawnSync} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {launch, open} = require('../browser/browser.js');

const [folder, chromium, plumbline] = process.argv.slice(2).map((name) => path.resolve(name));
const file = path.join(folder, 'index.html');
const repository = path.resolve(__dirname, '../..');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'lesson-'));
const AXE = fs.readFileSync(require.resolve('../browser/node_modules/axe-core/axe.min.js'), 'utf8');
const PAGES = 10;

/** What the page shows: the commands, and of each run the numbers in its lines. */
const shown = (page) => page.evaluate(() => ({
  commands: document.querySelector('.command').textContent.split('\n'),
  runs: [...document.querySelectorAll('.pictures .run-told')].map((run) => ({
    words: run.querySelector('.sentence').textContent,
    lines: Object.fromEntries([...run.querySelectorAll('.lines tr')].map(
        (row) => [row.cells[0].textContent, row.cells[1].textContent])),
  })),
  hidden: document.querySelector('.pictures').hidden,
  refused: document.querySelector('.refusal').hidden ? '' : document.querySelector('.refusal').textContent,
}));

/** The words of a shell's command line. */
const words = (line) => Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain]) => quoted ?? plain);

/** What the command says that the page tells to type. */
function told(command, order) {
  const [, , scenario, ...settings] = words(command);
  if (order) fs.writeFileSync(path.join(scratch, 'order.csv'), order);
  const own = settings.map((setting) => setting.replace('schedule.file=order.csv', `schedule.file=${scratch}/order.csv`));
  const result = spawnSync(plumbline, ['simulate', scenario, '--json', ...own], {cwd: repository, encoding: 'utf8'});
  return {status: result.status, run: result.stdout ? JSON.parse(result.stdout) : null, error: result.stderr};
}

const percent = (share) => `${(100 * share).toFixed(2)} %`;

/** The page's numbers are those of its own command, or it refuses what the command refuses. */
async function agree(page, order) {
  const {commands, runs, hidden, refused} = await shown(page);
  const answers = commands.map((command) => told(command, order));
  const failed = answers.find(({status}) => status !== 0 && status !== 4);
  if (failed) {
    assert.ok(hidden, `the page shows what the command refuses: ${commands}`);
    if (refused) assert.equal(refused.trim().split('\n')[0].split(': error: ')[1], failed.error.trim().split('\n')[0].split(': error: ')[1]);
    return;
  }
  assert.equal(hidden, false, `refused: ${refused} ${commands}`);
  assert.equal(runs.length, answers.length);
  answers.forEach(({run}, i) => {
    const {lines, words: sentence} = runs[i];
    const terms = run.bubble_terms;
    assert.equal(lines.Simulated, percent(terms ? terms.bubble_fraction : run.bubble_fraction), commands[i]);
    if (terms) assert.equal(lines[terms.base.formula ? 'By formula' : 'Equal stages, free links'], percent(terms.base.bubble_fraction));
    assert.equal(Number.parseFloat(lines['Most in flight']), Math.max(...run.devices.map((device) => device.peak_in_flight)));
    assert.ok(sentence.includes(`${run.operations} ops`), sentence);
    const units = {ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1};
    const [value, unit] = lines.Iteration.split(' ');
    assert.ok(Math.abs(value * units[unit] / run.iteration_time_s - 1) < 1e-5, lines.Iteration);
  });
}

async function clean(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations.map(
      ({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 120)).join(' | ')}`));
  assert.deepEqual(found, [], `${where}: axe-core`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${where} is ${wide} pixels too wide`);
}

async function closed({page, errors, requests, close}) {
  assert.deepEqual(errors, []);
  assert.ok(requests.length === 2 && requests.every((url) => url.startsWith('file://')), `requests: ${requests}`);
  await close();
}

/** Every value at an end of a slider, and every choice, of every page. */
async function moveAll(browser) {
  let moves = 0;
  for (let number = 1; number <= PAGES; ++number) {
    const opened = await open(browser, file, {fragment: `#page=${number}`});
    const {page} = opened;
    assert.equal(await page.textContent('h1').then((text) => text.split(' ')[0]), String(number));
    await agree(page);
    const ids = await page.evaluate(() => [...document.querySelectorAll('.controls [id]')].map(({id}) => id));
    for (const id of ids) {
      const kind = await page.evaluate((one) => {
        const control = document.getElementById(one);
        return {name: control.type, options: [...control.options ?? []].map(({value}) => value), value: control.value};
      }, id);
      if (kind.name === 'range') {
        for (const key of ['End', 'Home', 'ArrowRight']) {
          await page.focus(`#${id}`);
          await page.keyboard.press(key);
          await agree(page);
          ++moves;
        }
      } else if (kind.name === 'checkbox') {
        await page.focus(`#${id}`);
        await page.keyboard.press('Space');
        await agree(page);
        await page.keyboard.press('Space');
        moves += 2;
      } else {
        for (const option of [...kind.options.filter((value) => value !== 'own'), kind.value]) {
          await page.selectOption(`#${id}`, option);
          await agree(page);
          ++moves;
        }
      }
    }
    await clean(page, `page ${number}`);
    await page.screenshot({path: path.join(folder, `page-${number}.png`)});
    await closed(opened);
  }
  console.log(`${moves} moves of the controls of ${PAGES} pages say what the command says`);
}

/** The address keeps what was set, with wrong values as the page begins; dark, on a phone, embedded, printed. */
async function addresses(browser) {
  for (let number = 1; number <= PAGES; ++number) {
    const phone = await open(browser, file, {fragment: `#page=${number}`, dark: true, width: 390});
    await clean(phone.page, `page ${number} on a phone, dark`);
    if (number === 3) await phone.page.screenshot({path: path.join(folder, 'phone.png'), fullPage: true});
    await closed(phone);
  }
  const first = await open(browser, file, {fragment: '#page=2'});
  await first.page.focus('#control-m');
  for (let i = 0; i < 5; ++i) await first.page.keyboard.press('ArrowRight');
  await first.page.waitForTimeout(300);
  const address = new URL(first.page.url()).hash;
  assert.equal(address, '#page=2&m=9');
  await first.page.evaluate(() => location.assign('#page=3&m=5'));
  await first.page.waitForFunction(() => document.querySelector('h1').textContent.startsWith('3'));
  await agree(first.page);
  await closed(first);
  const again = await open(browser, file, {fragment: `${address}&embed=1`});
  assert.equal(await again.page.inputValue('#control-m'), '9');
  assert.equal(await again.page.isVisible('h1'), false, 'embedded: the timeline alone');
  assert.ok(await again.page.isVisible('.pictures canvas'));
  await closed(again);
  const wrong = await open(browser, file, {fragment: '#page=77&p=x&m=99&lang=xx&theme=y&no=1'});
  assert.equal(await wrong.page.inputValue('#control-p'), '4');
  assert.equal(await wrong.page.inputValue('#control-m'), '16', 'the nearest value that there is');
  await wrong.page.emulateMedia({media: 'print'});
  assert.equal(await wrong.page.isVisible('.controls'), false);
  assert.ok(await wrong.page.isVisible('.pictures canvas'));
  await closed(wrong);
  const student = await open(browser, file, {fragment: '#page=1'});
  await student.page.fill('#student', 'B12345');
  await student.page.keyboard.press('Tab');
  await student.page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await student.page.click('.turn a');
  await student.page.waitForFunction(() => document.querySelector('h1').textContent.startsWith('2'));
  assert.equal(await student.page.inputValue('#student'), 'B12345', 'the student number goes from page to page');
  assert.equal(await student.page.evaluate(() => scrollY), 0);
  assert.equal(await student.page.evaluate(() => document.activeElement.tagName), 'H1');
  const field = student.page.locator('form[data-question="fill-share"] input[type="text"]');
  await field.fill('12');
  await student.page.selectOption('#theme', 'light');
  await student.page.selectOption('#language', 'et');
  assert.equal(await field.inputValue(), '12', 'what was typed stays');
  await closed(student);
  const border = await open(browser, file, {fragment: '#page=6'});
  await border.page.focus('#control-first');
  await border.page.keyboard.press('End');
  assert.equal(await border.page.inputValue('#control-second'), '5', 'a border pushes the other one');
  await agree(border.page);
  await closed(border);
  const estonian = await open(browser, file, {fragment: '#page=1&lang=et'});
  assert.equal(await estonian.page.textContent('h1'), '1 Üks GPU korraga');
  assert.equal(await estonian.page.evaluate(() => document.documentElement.lang), 'et');
  await estonian.page.selectOption('#language', 'en');
  assert.equal(await estonian.page.textContent('h1'), '1 One GPU at a time');
  await estonian.page.selectOption('#theme', 'dark');
  await estonian.page.waitForTimeout(300);
  assert.ok(estonian.page.url().endsWith('theme=dark'));
  await closed(estonian);
}

/** Orders by keyboard, typed and dragged; a deadlock as a circle; a wrong order as the engine's words. */
async function edit(browser) {
  const opened = await open(browser, file, {fragment: '#page=4'});
  const {page} = opened;
  await page.selectOption('#control-schedule', 'own');
  assert.equal(await page.inputValue('.fields input[data-gpu="0"]'), 'F0 F1 B0 F2 B1 F3 B2 B3', 'it begins with what was shown');
  assert.equal(await page.locator('#control-m').count(), 0);
  const order = () => page.textContent('.extra pre');
  await page.focus('.lane[data-gpu="1"] [data-at="2"]');
  await page.keyboard.press('Alt+ArrowLeft');
  assert.equal(await page.inputValue('.fields input[data-gpu="1"]'), 'F0 B0 F1 F2 B1 F3 B2 B3');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'B0', 'the focus goes with the op');
  await agree(page, await order());
  const [from, to] = await Promise.all([3, 0].map((at) => page.locator(`.lane[data-gpu="0"] [data-at="${at}"]`).boundingBox()));
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + 4, to.y + to.height / 2, {steps: 5});
  await page.mouse.up();
  assert.equal(await page.inputValue('.fields input[data-gpu="0"]'), 'F2 F0 F1 B0 B1 F3 B2 B3');
  await page.fill('.fields input[data-gpu="0"]', 'f0, f1 b1 b0');
  await page.fill('.fields input[data-gpu="1"]', 'F0 B0 F1 B1');
  await agree(page, await order());
  await page.fill('.fields input[data-gpu="1"]', 'F1 B0 F0 B1');
  assert.deepEqual(await page.locator('.stuck').allTextContents(), ['B1', 'B0']);
  assert.ok(await page.locator('.arrows path.wait').count() >= 2);
  assert.match(await page.textContent('.problem'), /deadlock.*GPU 1 is at 1B0, which waits for 1F0/);
  await page.screenshot({path: path.join(folder, 'deadlock.png')});
  await clean(page, 'a deadlock');
  await page.fill('.fields input[data-gpu="1"]', '');
  assert.match(await page.textContent('.problem'), /GPU 1 has no op/);
  await page.fill('.fields input[data-gpu="1"]', 'F1 B0 F0 X1');
  assert.match(await page.textContent('.problem'), /refuses.*X1/s);
  await page.waitForTimeout(300);
  const address = new URL(page.url()).hash;
  await closed(opened);
  const again = await open(browser, file, {fragment: address});
  assert.equal(await again.page.inputValue('.fields input[data-gpu="1"]'), 'F1 B0 F0 X1');
  await closed(again);
}

/** The keys of the timeline, what is selected, and the pictures as files. */
async function pictures(browser) {
  const opened = await open(browser, file, {fragment: '#page=3'});
  const {page} = opened;
  await page.focus('.pictures canvas');
  await page.keyboard.press('ArrowRight');
  assert.match(await page.textContent('.view .details'), /0F0/);
  for (const [act, ending, begin] of [['save_svg', '.svg', '<svg'], ['save_png', '.png', '\u0089PNG']]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`[data-act="${act}"] >> nth=0`)]);
    assert.ok(download.suggestedFilename().endsWith(ending));
    assert.equal(fs.readFileSync(await download.path(), 'latin1').slice(0, begin.length), begin);
  }
  assert.equal(await page.locator('.numbers table tbody tr').count(), 8, 'both tables of page 3 are open');
  await page.check('#critical');
  await page.waitForTimeout(300);
  assert.ok(page.url().endsWith('critical=1'));
  // A row of pixels through the first lane has the colours of forwards and of idle time.
  const colors = await page.locator('.pictures canvas').first().evaluate((canvas) => {
    const {data} = canvas.getContext('2d').getImageData(0, 40, canvas.width, 1);
    const found = new Set();
    for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 3).join());
    return ['126,199,245', '196,22,42'].map((color) => found.has(color));
  });
  assert.deepEqual(colors, [true, true], 'light blue and red');
  await closed(opened);
}

/** Answers a question of the page as its form asks for it. */
async function answer(page, id, text) {
  const form = page.locator(`form[data-question="${id}"]`);
  if (await form.locator('input[type="radio"]').count() > 0)
    await form.locator(`input[type="radio"][value="${text}"]`).check();
  else
    await form.locator('textarea, input[type="text"]').first().fill(text);
  await form.locator('button[type="submit"]').click();
  return {right: await form.getAttribute('data-right'), said: await form.locator('.verdict').textContent()};
}

/** All questions of a student, wrong and right by the key of `plumbline quiz`; the code is what `plumbline grade` reads. */
async function quiz(browser, student) {
  const key = JSON.parse(execFileSync(plumbline, ['quiz', ...(student ? [student] : []), '--key', '--json'], {encoding: 'utf8'}));
  const {questions} = key.students[0];
  assert.ok(questions.length >= 15);
  const opened = await open(browser, file, {fragment: `#page=1&student=${student}`});
  const {page} = opened;
  let wrong = 0;
  for (const question of questions) {
    await page.evaluate((target) => location.assign(target), `#page=${question.page}&student=${student}`);
    await page.waitForFunction((number) => document.querySelector('h1').textContent.startsWith(`${number} `), question.page);
    for (const other of wrongAnswers(question)) {
      await answer(page, question.id, other);
      const {right, said} = await answer(page, question.id, other);
      assert.equal(right, 'no', `${question.id}: ${other}: ${said}`);
      assert.ok(said.length > 20, `${question.id}: a wrong answer is told why: ${said}`);
      ++wrong;
      const show = page.locator(`form[data-question="${question.id}"] .tools button`);
      if (await show.count() === 0) continue;
      await show.click();
      if (question.kind === 'order')
        assert.equal(await page.inputValue('#control-schedule'), 'own', 'the order stands in the editor');
      else
        assert.ok(await page.locator('.answer-run canvas, .answer-run pre').count() > 0, `${question.id} ${other}: its run`);
    }
    const {right, said} = await answer(page, question.id, question.key.answer);
    assert.equal(right, 'yes', `${question.id}: ${question.key.answer}: ${said}`);
  }
  const unread = questions.find(({kind}) => kind === 'number');
  await page.evaluate((target) => location.assign(target), `#page=${unread.page}&student=${student}`);
  await page.waitForSelector(`form[data-question="${unread.id}"]`);
  assert.match((await answer(page, unread.id, 'abc')).said, /'abc' is no number/);
  await clean(page, 'a page with answers');
  const code = await page.inputValue('#result-code');
  const graded = JSON.parse(execFileSync(plumbline, ['grade', code, '--json'], {encoding: 'utf8'}));
  const [result] = graded.students ?? graded.codes ?? [graded];
  assert.equal(result.student, student.toLowerCase());
  assert.equal(result.right, questions.length, JSON.stringify(result).slice(0, 800));
  await closed(opened);
  console.log(`student '${student}': ${questions.length} right and ${wrong} wrong answers, and a code`);
  return graded;
}

/** Answers that are none: other choices; another number; the list the other way round; an order that is too slow. */
function wrongAnswers({kind, choices, key: {answer: right}, id, values}) {
  if (kind === 'choice') return choices.map((choice) => choice.id).filter((choice) => choice !== right);
  if (kind === 'number') return [String(Number.parseFloat(right) + 1)];
  if (kind === 'numbers') return [right.match(/\d+/g).map((one, i) => (i === 0 ? Number(one) + 1 : i === 1 ? Number(one) - 1 : one)).join(' ')];
  if (id === 'order-time') {
    const naive = Array.from({length: Number(values.m)}, (_, i) => `F${i} B${i}`).join(' ');
    return [`${naive} | ${naive}`, 'F0 F1 B1 B0 | F1 B0 F0 B1'];
  }
  return [id === 'loop-index' ? 'F0' : 'F0 B0 F1'];
}

/** Page 8 tells of each backward by how many updates its gradient is stale: under 1F1B p-1-s on stage s. */
async function staleness(browser) {
  const opened = await open(browser, file, {fragment: '#page=8&p=4'});
  const {page} = opened;
  for (let stage = 0; stage < 4; ++stage) {
    await page.evaluate((slot) => {
      const {timeline} = globalThis.lesson.view.picture.frames[0];
      const [run] = timeline.report.runs;
      const backward = 1;
      for (let item = run.starts[slot]; item < run.starts[slot + 1]; ++item)
        if (run.kind[item] === backward && run.microBatch[item] === 8) timeline.select({run: 0, item});
    }, stage);
    assert.match(await page.textContent('.view .details'), new RegExp(`Updates since its forward${3 - stage}$`));
  }
  await closed(opened);
}

/** Page 10 has the command's memory limit, days and cost. */
async function engineers(browser) {
  const opened = await open(browser, file, {fragment: '#page=10&tp=4'});
  const {page} = opened;
  assert.equal(await page.locator('.numbers table').count(), 0);
  await page.click('summary:has-text("The same in numbers")');
  await page.locator('.numbers table').waitFor();
  assert.equal(await page.locator('.numbers table tbody tr').count(), 32, 'a row for each group of GPUs');
  const {commands: [command]} = await shown(page);
  const {status, run, error} = told(command);
  assert.equal(status, 4, 'that layout does not fit');
  assert.match(await page.textContent('.estimates .verdict'), /does not fit/);
  const [, limit] = /than its (\S+ GiB)/.exec(error);
  assert.ok((await page.textContent('.estimates h3')).includes(`limit ${limit}`), limit);
  const tiles = await page.textContent('.tiles');
  assert.ok(tiles.includes(`${Number(run.days.toPrecision(4))}days`), tiles);
  assert.ok(tiles.includes(`${Number((run.cost / 1e3).toPrecision(4))}k USD`), tiles);
  await closed(opened);
}

/** How long a slider takes on the longest run of the first pages, and how soon the page stands. */
async function times(browser) {
  const {page, close} = await open(browser, file, {fragment: '#page=2&p=8&m=32'});
  const drawn = await page.evaluate(() => document.documentElement.dataset.drawn);
  const moves = await page.evaluate(async () => {
    const slider = document.getElementById('control-m');
    const all = [];
    for (let i = 0; i < 60; ++i) {
      slider.value = 32 - i % 2;
      const began = performance.now();
      slider.dispatchEvent(new Event('input'));
      all.push(performance.now() - began);
      await new Promise((done) => requestAnimationFrame(done));
    }
    const median = (some) => some.sort((a, b) => a - b)[Math.floor(some.length / 2)];
    return {first: median(all.slice(0, 20)), later: median(all.slice(40))};
  });
  console.log(`the page stands after ${drawn} ms; a slider move of 8 GPUs and 32 micro-batches takes ${
      moves.first.toFixed(1)} ms, once warm ${moves.later.toFixed(1)} ms`);
  await close();
}

launch(chromium).then(async (browser) => {
  try {
    await moveAll(browser);
    await addresses(browser);
    await edit(browser);
    await pictures(browser);
    await staleness(browser);
    await engineers(browser);
    for (const student of ['', 'B12345']) await quiz(browser, student);
    await times(browser);
  } finally {
    await browser.close();
    fs.rmSync(scratch, {recursive: true});
  }
  console.log('the lesson says what the command says, from a disk');
}).catch((error) => {
  console.log(`FAILED: ${error.stack}`);
  process.exitCode = 1;
});
