// Uses the pages of sweeps as people do. Environment: as of report.test.js.
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit: visitFile} = require('./browser.js');

const fileOf = (name) => path.join(process.env.REPORTS, name);
const shot = (page, name) =>
    page.screenshot({path: path.join(process.env.SHOTS, `${name}.png`), fullPage: true});
const readJson = (name) => JSON.parse(fs.readFileSync(fileOf(name), 'utf8'));

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

const visit = (name, options, use) => visitFile(browser, fileOf(`${name}.html`), options, use);

/** Where a point lies on the screen in a chart: 0 throughput, 1 memory, 2 bubble, 3 the front. */
async function placeOf(page, chart, point) {
  await page.locator('.plot').nth(chart).scrollIntoViewIfNeeded();
  return page.evaluate(([c, number]) => {
    const plot = globalThis.plumbline.page.plots[c];
    const i = plot.spec.points.findIndex(({row}) => row.point === number);
    const box = plot.svg.getBoundingClientRect();
    const scale = box.width / plot.spec.width;
    return {x: box.left + plot.places[i][0] * scale, y: box.top + plot.places[i][1] * scale};
  }, [chart, point]);
}

const chosen = (page) => page.evaluate(() => globalThis.plumbline.page.state.point);
const details = (page) => page.locator('#details').innerText();

test(
    'a click on a point shows its scenario, its numbers and its command, which gives them',
    () => visit('sweep', {}, async (page) => {
      const row = readJson('sweep.json').rows.find(({point}) => point === 28);
      const at = await placeOf(page, 0, 28);
      await page.mouse.move(at.x, at.y);
      assert.ok((await page.locator('#hover').innerText()).startsWith('point 28'));
      await page.mouse.click(at.x, at.y);
      assert.equal(await chosen(page), 28);
      const text = await details(page);
      for (const part
               of ['1f1b', '25 GB/s', '4.002 s', '63.973 samples/s', '13.64 %',
                   '8.656 GiB on device 0, of 40 GiB']) {
        assert.ok(text.includes(part), `${part} in: ${text}`);
      }
      const command = await page.locator('#details .command').innerText();
      assert.equal(
          command,
          'plumbline simulate examples/sweep.yaml schedule.name=1f1b schedule.micro_batches=64 ' +
              'schedule.recompute=none \'cluster.link.bandwidth=25 GB/s\'');
      const told = execFileSync(
          'bash', ['-c', `${command.replace('plumbline', '"$PLUMBLINE"')} --json`],
          {encoding: 'utf8'});
      assert.equal(JSON.parse(told).iteration_time_s, row.iteration_time_s);
      // Every chart has its ring, and the table its line.
      assert.equal(await page.locator('.ring[visibility=visible]').count(), 4);
      assert.equal(await page.locator('#tables tr.chosen').getAttribute('data-point'), '28');
      await shot(page, 'sweep');
      await page.keyboard.press('Tab');
      await page.mouse.move(0, 0);
      const empty = await placeOf(page, 0, 0);
      await page.mouse.click(empty.x, empty.y - 60);
      assert.equal(await chosen(page), null, 'a click beside all points lets it go');
    }));

test(
    'colour tells one key, shape another, and names stand at the lines',
    () => visit('sweep', {}, async (page) => {
      const looks = () => page.evaluate(() => {
        const {sweep, layout} = globalThis.plumbline.page;
        return layout.series.map(({rows: [row]}, i) => ({
                                   ...layout.styles[i],
                                   values: row.at.map((v, axis) => sweep.axes[axis].values[v]),
                                 }));
      });
      const tells = (all, look, axis) => all.every(
          (a) => all.every((b) => (a[look] === b[look]) === (a.values[axis] === b.values[axis])));
      assert.ok(tells(await looks(), 'color', 0) && tells(await looks(), 'shape', 2));
      const names = await page.locator('#plot-throughput .line-name').allTextContents();
      assert.equal(names.length, 12);
      assert.ok(names.includes('eager-1f1b, none, 25 GB/s'), names.join('; '));
      await page.getByLabel('colour').selectOption('cluster.link.bandwidth');
      assert.ok(tells(await looks(), 'color', 3));
      await page.waitForFunction(() => location.hash.includes('color=3'));
      const beside = await page.locator('#plot-front .point-name').allTextContents();
      assert.ok(beside.length >= 3, beside.join('; '));
    }));

test(
    'of points on one spot each click chooses another',
    () => visit('sweep', {}, async (page) => {
      const at = await placeOf(page, 1, 8);
      await page.mouse.move(at.x, at.y);
      assert.ok((await page.locator('#hover').innerText()).includes('1 other point here'));
      const found = new Set();
      for (let i = 0; i < 2; ++i) {
        await page.mouse.click(at.x, at.y);
        found.add(await chosen(page));
      }
      assert.deepEqual([...found].sort(), [8, 9]);
    }));

test(
    'keys go along a series, to the next one, and along the front',
    () => visit('sweep', {}, async (page) => {
      await page.locator('.plot').first().focus();
      for (const [key, point] of [
               ['ArrowRight', 0], ['ArrowRight', 4], ['ArrowRight', 8], ['ArrowDown', 9],
               ['ArrowLeft', 5], ['ArrowUp', 4], ['ArrowLeft', 0], ['ArrowLeft', 0]]) {
        await page.keyboard.press(key);
        assert.equal(await chosen(page), point, key);
      }
      await page.keyboard.press('Escape');
      assert.equal(await chosen(page), null);
      await page.locator('#plot-front .plot').focus();
      const walked = [];
      for (let i = 0; i < 5; ++i) {
        await page.keyboard.press('ArrowRight');
        walked.push(await chosen(page));
      }
      const front = readJson('sweep.pareto.json').rows.map(({point}) => point).reverse();
      assert.deepEqual(walked, [...front, front[front.length - 1]]);
    }));

for (const name of ['sweep', 'sweep-broken']) {
  test(
      `the front is that of --pareto: ${name}`,
      () => visit(name, {}, async (page) => {
        const front =
            await page.evaluate(() => globalThis.plumbline.page.front.map(({point}) => point));
        assert.deepEqual(front, readJson(`${name}.pareto.json`).rows.map(({point}) => point));
        assert.ok(front.length > 0);
      }));
}

test(
    'rows are those of the JSON, number by number',
    () => visit('sweep-broken', {}, async (page) => {
      const rows = await page.evaluate(() => globalThis.plumbline.page.sweep.rows);
      const all = readJson('sweep-broken.json').rows;
      assert.equal(rows.length, all.length);
      all.forEach((row, i) => {
        assert.equal(rows[i].point, row.point);
        assert.equal(rows[i].reason, row.reason);
        for (const [own, theirs] of [
                 ['time', 'iteration_time_s'], ['throughput', 'throughput_samples_per_s'],
                 ['bubble', 'bubble_fraction'], ['overhead', 'bubble_overhead'],
                 ['steady', 'steady_bubble_fraction'], ['formula', 'formula_bubble_fraction'],
                 ['stall', 'communication_stall_fraction'], ['peak', 'peak_memory_bytes'],
                 ['device', 'peak_memory_device'], ['fits', 'fits'],
                 ['limit', 'memory_limit_bytes'], ['spare', 'devices_without_stage'],
                 ['devices', 'devices_used'], ['flops', 'model_flops_per_device_per_s'],
                 ['utilization', 'model_flops_utilization']]) {
          assert.equal(rows[i][own], row[theirs], `${theirs} of point ${row.point}`);
        }
      });
      assert.equal(rows.find((row) => row.hasNumbers).limit, 40 * 2 ** 30);
    }));

test(
    'what is not feasible is listed with its reason, and crossed',
    () => visit('sweep-broken', {dark: true}, async (page) => {
      const text = await page.locator('#infeasible').innerText();
      assert.ok(text.includes('the number of stages is 32, but that of layers is 24'), text);
      assert.ok(text.includes('more than its 40 GiB'), text);
      const wanted = readJson('sweep-broken.json').rows.filter(({reason}) => reason !== null);
      assert.equal(await page.locator('#infeasible tbody tr').count(), wanted.length);
      const crossed = await page.evaluate(
          () => globalThis.plumbline.page.plots[0].spec.points.filter((p) => p.crossed).length);
      assert.equal(crossed, wanted.length);
      await page.locator('#infeasible tbody button').last().click();
      assert.equal(await chosen(page), wanted[wanted.length - 1].point);
      await shot(page, 'sweep-dark');
    }));

test(
    'the closed formula is a line, and the simulation stands on it',
    () => visit('sweep-formula', {}, async (page) => {
      assert.equal(await page.locator('#plot-bubble .formula').count(), 2);
      assert.equal(await page.locator('#plot-throughput .formula').count(), 2);
      assert.equal(await page.locator('#plot-memory .formula').count(), 0);
      const apart = await page.evaluate(() => {
        const {plots} = globalThis.plumbline.page;
        return [0, 2].map((c) => {
          const {points, lines} = plots[c].spec;
          return Math.max(...points.map(({x, y, series}) => {
            const at = lines[series].places.find((place) => Math.abs(place[0] - x) < 1e-9);
            return Math.abs(at[1] - y);
          }));
        });
      });
      assert.ok(apart.every((distance) => distance < 1e-9), `${apart}`);
      await shot(page, 'sweep-formula');
    }));

test('the address keeps axis, choices, point and order, and brings them back', async () => {
  let fragment = '';
  await visit('sweep', {}, async (page) => {
    await page.getByLabel('x axis').selectOption('schedule.name');
    await page.getByLabel('schedule.recompute').selectOption('full');
    await page.locator('#tables th button', {hasText: 'Peak memory'}).click();
    await page.locator('#tables tbody button').first().click();
    await page.waitForFunction(() => location.hash.includes('point='));
    fragment = await page.evaluate(() => location.hash);
    assert.equal(await page.locator('#tables tbody tr').count(), 24);
  });
  await visit('sweep', {fragment}, async (page) => {
    assert.equal(await page.getByLabel('x axis').inputValue(), '0');
    assert.equal(await page.getByLabel('schedule.recompute').inputValue(), '1');
    assert.equal(await page.locator('[aria-sort=descending]').innerText(), 'Peak memory');
    const peaks = await page.evaluate(() => globalThis.plumbline.page.grid.rows.map((r) => r.peak));
    assert.deepEqual(peaks, [...peaks].sort((a, b) => b - a));
    assert.notEqual(await chosen(page), null);
    await page.locator('#tables th button', {hasText: 'Peak memory'}).click();
    assert.equal(await page.locator('[aria-sort=ascending]').innerText(), 'Peak memory');
  });
});

test(
    'names and values that look like HTML stay text',
    () => visit('sweep-hostile', {fragment: '#point=2'}, async (page) => {
      assert.ok((await page.locator('#name').innerText()).includes('</script><script>'));
      for (const place of ['#tables', '#legend']) {
        const text = await page.locator(place).innerText();
        assert.ok(text.includes('<img src=x onerror=globalThis.broken=1>'), text);
        assert.ok(text.includes('</script><b>it\'s'), text);
      }
      assert.ok((await page.locator('.command').innerText())
                    .includes('\'name=</script><b>it\'\\\'\'s\''));
      await page.getByLabel('x axis').selectOption('name');
      assert.ok((await page.locator('#plot-bubble svg').innerHTML()).includes('&lt;img src=x'));
      assert.equal(await page.evaluate(() => globalThis.broken), undefined);
      assert.equal(await page.locator('img').count(), 0);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, 'nothing is wider than the window');
      await shot(page, 'sweep-hostile');
    }));

test(
    'merged shards are the sweep in one piece',
    () => visit('merged', {}, async (page) => {
      const rows = await page.evaluate(
          () => globalThis.plumbline.page.sweep.rows.map((r) => [r.point, r.time, r.limit]));
      assert.deepEqual(
          rows,
          readJson('sweep.json')
              .rows.map((r) => [r.point, r.iteration_time_s, r.memory_limit_bytes]));
      assert.equal(
          await page.evaluate(() => globalThis.plumbline.page.sweep.facts.file),
          'examples/sweep.yaml');
    }));

test(
    'on a small screen nothing is wider than it, and on paper the controls are gone',
    () => visit('sweep', {width: 390, height: 800}, async (page) => {
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, `${width} pixels too wide`);
      await page.emulateMedia({media: 'print'});
      assert.equal(await page.locator('.tools').isVisible(), false);
      assert.equal(await page.locator('#plot-front svg').isVisible(), true);
    }));

// The aim is for a quiet machine; a busy one is given ten times as long.
test(
    '10000 points are drawn in time',
    (t) => visit('sweep-many', {}, async (page) => {
      const told = await page.evaluate(() => ({...document.documentElement.dataset}));
      const again = await page.evaluate(() => globalThis.plumbline.page.show());
      const points = await page.evaluate(() => globalThis.plumbline.page.rows.length);
      t.diagnostic(
          `${points} points: drawn after ${told.drawn} ms from the start of the page, of which ` +
          `drawing ${told.paint} ms; again ${again.toFixed(1)} ms`);
      assert.equal(points, 10000);
      assert.ok(Number(told.drawn) < 10000, `drawn after ${told.drawn} ms`);
      assert.equal(await page.locator('#tables tbody tr').count(), 100);
      await page.locator('#tables p button').click();
      assert.equal(await page.locator('#tables tbody tr').count(), 1000);
      await shot(page, 'sweep-many');
    }));
