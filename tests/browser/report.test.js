// Uses the HTML report as people do, in a real browser. Environment: CHROMIUM (its path), REPORTS
// (the folder with what tests/browser.sh wrote), SHOTS (where screenshots go).
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const path = require('node:path');
const {after, before, test} = require('node:test');
const {launch, visit: visitFile} = require('./browser.js');

const report = (name) => path.join(process.env.REPORTS, `${name}.html`);
const shot = (page, name) => page.screenshot({path: path.join(process.env.SHOTS, `${name}.png`)});

let browser;
before(async () => {
  browser = await launch(process.env.CHROMIUM);
});
after(() => browser.close());

const visit = (name, options, use) => visitFile(browser, report(name), options, use);

/** Where an op of a run lies on the canvas: the middle of its part in sight. */
function placeOf(page, op, run = 0) {
  return page.evaluate(([name, r]) => {
    const {find, report: all, timeline} = globalThis.plumbline;
    const item = find(name, r);
    const of = all.runs[r];
    const {from, to} = timeline.window;
    let slot = 0;
    while (of.starts[slot + 1] <= item) ++slot;
    const box = timeline.stage.laneBox(r, slot);
    const middle = (Math.max(of.begin[item], from) + Math.min(of.end[item], to)) / 2;
    return {
      item,
      x: box.left + ((middle - from) / (to - from)) * box.width,
      y: box.top + box.height / 2
    };
  }, [op, run]);
}

async function hover(page, op, run) {
  const {x, y} = await placeOf(page, op, run);
  await page.locator('#canvas').hover({position: {x, y}});
  return page.locator('#hover').innerText();
}

const selectedName = (page) => page.evaluate(() => {
  const {state, report: all, itemName} = globalThis.plumbline;
  return state.selected ? itemName(all.runs[state.selected.run], state.selected.item) : null;
});
const span = (page) => page.evaluate(() => {
  const {from, to} = globalThis.plumbline.timeline.window;
  return to - from;
});
const from = (page) => page.evaluate(() => globalThis.plumbline.timeline.window.from);

test(
    'pointing at an op says what it is, when, why now and why the device was idle',
    () => visit('four', {}, async (page) => {
      const text = await hover(page, '0B0');
      for (const part
               of ['0B0 backward, stage 0, micro-batch 0', '10 ms to 12 ms, 2 ms long', 'device 0',
                   'recv 0B0 let it start', 'dependency 6 ms', '1B0 on device 1']) {
        assert.ok(text.includes(part), `${part} in: ${text}`);
      }
      await page.locator('#canvas').hover({position: (await placeOf(page, '0F0'))});
      assert.ok((await page.locator('#hover').innerText()).includes('it began with the run'));
      await shot(page, 'hover');
      // In the gap before 0B0.
      const gap = await placeOf(page, '0B0');
      await page.locator('#canvas').hover({position: {x: gap.x - 120, y: gap.y}});
      assert.ok((await page.locator('#hover').innerText()).startsWith('idle: dependency'));
    }));

test(
    'a click selects, and what released an op is one more click away',
    () => visit('four', {}, async (page) => {
      const {x, y} = await placeOf(page, '2B3');
      await page.locator('#canvas').click({position: {x, y}});
      assert.equal(await selectedName(page), '2B3');
      assert.equal(await page.locator('#details h3').innerText(), '2B3');
      await page.locator('#details button').first().click();
      assert.notEqual(await selectedName(page), '2B3');
      await page.locator('#canvas').dblclick({position: {x, y}});
      assert.ok(await span(page) <= 20e6, 'a double-click zooms to the op');
    }));

test(
    'keys zoom, move, and go from op to op',
    () => visit('four', {}, async (page) => {
      const whole = await span(page);
      await page.keyboard.press('w');
      assert.ok(Math.abs(await span(page) - whole / 1.5) < 2, 'W zooms in');
      const start = await from(page);
      await page.keyboard.press('d');
      assert.ok(await from(page) > start, 'D moves right');
      await page.keyboard.press('a');
      await page.keyboard.press('a');
      assert.ok(await from(page) < start, 'A moves left');
      await page.keyboard.press('s');
      await page.keyboard.press('s');
      assert.equal(await span(page), whole, 'S zooms out to the whole run and no farther');
      await page.locator('#canvas').focus();
      await page.keyboard.press('ArrowRight');
      assert.equal(await selectedName(page), '0F0');
      for (const [key, name] of [
               ['ArrowRight', '0F1'], ['ArrowRight', '0F2'], ['ArrowDown', '1F1'],
               ['ArrowLeft', '1F0'], ['ArrowUp', '0F1']]) {
        await page.keyboard.press(key);
        assert.equal(await selectedName(page), name, key);
      }
      await page.keyboard.press('f');
      assert.ok(Math.abs(await span(page) - 10e6) < 2, 'F shows ten times the op');
      await page.keyboard.press('Escape');
      assert.equal(await selectedName(page), null);
      await page.keyboard.press('Escape');
      assert.equal(await span(page), whole);
      await page.keyboard.press('w');
      await page.keyboard.press('Home');
      assert.equal(await span(page), whole);
      await page.keyboard.press('w');
      await page.keyboard.press('0');
      assert.equal(await span(page), whole);
    }));

test(
    'dragging and the wheel move and zoom',
    () => visit('four', {}, async (page) => {
      await page.keyboard.press('w');
      const start = await from(page);
      const {x, y} = await placeOf(page, '1B3');
      const box = await page.locator('#canvas').boundingBox();
      await page.mouse.move(box.x + x, box.y + y);
      await page.mouse.down();
      await page.mouse.move(box.x + x + 120, box.y + y, {steps: 4});
      await page.mouse.up();
      assert.ok(await from(page) < start);
      assert.equal(await selectedName(page), null, 'a drag selects nothing');
      const before = await span(page);
      await page.keyboard.down('Control');
      await page.mouse.wheel(0, -300);
      await page.keyboard.up('Control');
      await page.waitForFunction((was) => {
        const {from: a, to: b} = globalThis.plumbline.timeline.window;
        return b - a < was;
      }, before);
    }));

test('the address keeps window, op and switches, and brings them back', async () => {
  let fragment = '';
  await visit('four', {}, async (page) => {
    const {x, y} = await placeOf(page, '3B2');
    await page.locator('#canvas').click({position: {x, y}});
    await page.keyboard.press('w');
    await page.locator('#critical').uncheck();
    await page.locator('#theme').selectOption('dark');
    await page.waitForFunction(() => location.hash.includes('theme=dark'));
    fragment = await page.evaluate(() => location.hash);
  });
  await visit('four', {fragment}, async (page) => {
    assert.equal(await selectedName(page), '3B2');
    assert.ok(Math.abs(await span(page) - 22e6) < 2);
    assert.equal(await page.locator('#critical').isChecked(), false);
    assert.equal(await page.locator('#transfers').isChecked(), true);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await shot(page, 'restored');
  });
  await visit('four', {fragment: '#op=7:999999&t=99999999999-999999999999'}, async (page) => {
    assert.equal(await selectedName(page), null, 'what does not exist is not selected');
  });
});

test(
    'the page is dark where the system is',
    () => visit('split', {dark: true}, async (page) => {
      assert.equal(
          await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
          'rgb(22, 27, 34)');
      await shot(page, 'dark');
    }));

for (const name of ['four', 'split', 'blocking', 'irregular', 'validated', 'large']) {
  test(
      `the columns of every device add up to its busy time: ${name}`,
      () => visit(name, {}, async (page) => {
        const differences = await page.evaluate(() => {
          const {report: all, columnEdges, densityColumns} = globalThis.plumbline;
          const wrong = [];
          all.runs.forEach((run, r) => {
            for (let slot = 0; slot < run.slots; ++slot) {
              for (const columns of [1, 3, 1213]) {
                const busy = new Float64Array(columns * all.classes.length);
                const edges = columnEdges(0, all.length, columns);
                densityColumns(run, all.sums[r], slot, edges, busy, new Uint32Array(columns));
                let sum = 0;
                busy.forEach((ticks) => {
                  sum += ticks;
                });
                const overfull = busy.some((ticks) => ticks < 0 || ticks > edges[1] - edges[0] + 1);
                if (sum !== run.layout.slot_busy[slot] || overfull)
                  wrong.push([r, slot, columns, sum]);
              }
              const {gaps: {[slot]: gaps}, layout} = run;
              let idle = 0;
              gaps.begin.forEach((at, i) => {
                idle += gaps.end[i] - at;
              });
              if (idle + layout.slot_busy[slot] !== layout.makespan)
                wrong.push([r, slot, 'idle', idle]);
            }
          });
          return wrong;
        });
        assert.deepEqual(differences, []);
      }));
}

test(
    'the tables hold what the JSON says, and charts stand beside them',
    () => visit('four', {}, async (page) => {
      const cells =
          await page.locator('#tables table').first().locator('tbody tr').first().innerText();
      assert.deepEqual(
          cells.split(/\s*\t\s*/),
          ['0', '0', '24 ms', '9 ms', '27.27 %', '4', '1', '228 MiB', '0B0', 'yes']);
      assert.equal(await page.locator('#tables caption').count(), 3);
      assert.equal(await page.locator('table th:not([scope])').count(), 0);
      assert.equal(await page.locator('#memory svg').count(), 4);
      assert.equal(await page.locator('#causes .bar').count(), 4);
      assert.ok(
          (await page.locator('#formula').innerText()).includes('the simulation says the same'));
      assert.ok((await page.locator('#source').innerText())
                    .includes('plumbline simulate examples/four-stages.yaml'));
      await page.locator('#stages summary').click();
      await page.locator('#stages ol li').first().waitFor();
      assert.ok((await page.locator('#stages ol').innerText()).includes('layer_0, layer_1'));
      await shot(page, 'below');
    }));

test(
    'a validation shows the measured run below the predicted one, with the error of every op',
    () => visit('validated', {}, async (page) => {
      const predicted = await placeOf(page, '1B0', 0);
      const measured = await placeOf(page, '1B0', 1);
      assert.ok(measured.y > predicted.y);
      const text = await hover(page, '1B0', 1);
      for (const part of ['measured 1B0', 'Predicted begin', 'Predicted length', 'error']) {
        assert.ok(text.includes(part), `${part} in: ${text}`);
      }
      assert.ok(!(await hover(page, '1B0', 0)).includes('Predicted'));
      await shot(page, 'validated');
    }));

test(
    'names that look like HTML stay text',
    () => visit('hostile', {}, async (page) => {
      const name = await page.locator('#name').innerText();
      assert.ok(
          name.includes('</script><script>globalThis.broken=1</script><!--'), name.slice(0, 200));
      assert.ok(name.includes('"quoted" \'single\' `back` &amp; \\u003c'), name.slice(0, 200));
      assert.equal(await page.evaluate(() => globalThis.broken), undefined);
      assert.equal(await page.locator('img').count(), 0);
      assert.ok((await page.evaluate(() => document.getElementById('name').textContent))
                    .includes('\u2028'));
      assert.ok(
          (await page.evaluate(() => document.getElementById('name').textContent.length)) > 9800);
      assert.ok((await page.locator('#stages table').innerText())
                    .includes('<img src=x onerror=globalThis.broken=1>'));
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(width <= 0, 'nothing is wider than the window');
      await shot(page, 'hostile');
    }));

test(
    'on paper the controls are gone',
    () => visit('four', {}, async (page) => {
      await page.emulateMedia({media: 'print'});
      assert.equal(await page.locator('.tools').isVisible(), false);
      assert.equal(await page.locator('#tables table').first().isVisible(), true);
    }));

// The aims are for a quiet machine; a busy one is given ten times as long.
for (const [name, ops, aim] of [['large', 131072, 200], ['huge', 1048576, 2000]]) {
  test(
      `${ops} ops are drawn in time`,
      (t) => visit(name, {}, async (page) => {
        const told = await page.evaluate(() => ({...document.documentElement.dataset}));
        const frames = await page.evaluate(() => {
          const {timeline} = globalThis.plumbline;
          return Array
              .from(
                  {length: 9},
                  (_, i) => {
                    timeline.window = {from: 1000 * i, to: timeline.report.length - 1000 * (9 - i)};
                    return timeline.paint();
                  })
              .sort((a, b) => a - b);
        });
        t.diagnostic(
            `${ops} ops: read after ${told.read} ms, drawn after ${
                told.drawn} ms from the start of the ` +
            `page, of which painting ${told.paint} ms; a frame of the whole run ${
                frames[4].toFixed(1)} ms`);
        const counted =
            await page.evaluate(() => globalThis.plumbline.report.facts.runs[0].summary.operations);
        assert.equal(counted, ops);
        assert.ok(Number(told.drawn) < 10 * aim, `drawn after ${told.drawn} ms`);
        assert.ok(frames[4] < 500, `a frame takes ${frames[4]} ms`);
        await shot(page, name);
      }));
}
