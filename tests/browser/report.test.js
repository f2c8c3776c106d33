// Uses the HTML report as people do, in a real browser. Environment: CHROMIUM (its path), REPORTS
// (the folder with what tests/browser.sh wrote), SHOTS (where screenshots go).
// SPDX-License-Identifier: MIT
'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
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
      assert.ok(
          (await page.locator('#hover').innerText()).startsWith('idle: waiting for an input'));
    }));

test(
    'idle time is painted in its colour, tells its cause, and leads to what it waited for',
    () => visit('four', {}, async (page) => {
      const gap = await placeOf(page, '0B0');
      const at = {x: gap.x - 120, y: gap.y};
      const painted = await page.evaluate(({x, y}) => {
        const {stage} = globalThis.plumbline.timeline;
        const size = [20, 20].map((side) => side * stage.scale);
        const {data} = stage.context.getImageData(x * stage.scale, y * stage.scale, ...size);
        return Array.from({length: data.length / 4}, (_, i) => [...data.subarray(4 * i, 4 * i + 3)])
            .filter((rgb) => String(rgb) === '196,22,42')
            .length;
      }, at);
      assert.ok(painted > 100, `${painted} of 400 pixels are of the colour of idle time`);
      await page.locator('#canvas').click({position: at});
      assert.equal(await page.locator('#details h3').innerText(), 'idle: waiting for an input');
      const told = await page.locator('#details').innerText();
      for (const part of ['4 ms to 10 ms, 6 ms long', 'device 0', '1B0 on device 1'])
        assert.ok(told.includes(part), `${part} in: ${told}`);
      await page.waitForFunction(() => location.hash.includes('idle=0:0:0'));
      await page.locator('#details button', {hasText: '1B0'}).click();
      assert.equal(await selectedName(page), '1B0');
      await page.locator('#canvas').focus();
      for (const name of ['idle: waiting for an input', '1F2']) {
        await page.keyboard.press('ArrowLeft');
        assert.equal(await page.locator('#details h3').innerText(), name);
      }
    }));

test(
    'devices that are alike stand in one row, which opens',
    () => visit('copies', {}, async (page) => {
      const rows = () => page.evaluate(
          () => globalThis.plumbline.timeline.stage.lanes.rows.map((row) => row.slots));
      const together = [[0, 1], [2, 3], [4, 5], [6, 7]];
      assert.deepEqual(await rows(), together);
      const {y} = await placeOf(page, '1F0');
      await page.locator('#canvas').click({position: {x: 30, y}});
      assert.deepEqual(await rows(), [[0, 1], [2], [3], [4, 5], [6, 7]]);
      await page.locator('#canvas').click({position: {x: 30, y}});
      assert.deepEqual(await rows(), together);
      assert.equal(await page.locator('#memory svg').count(), 4);
      assert.ok((await page.locator('#causes').innerText()).includes('devices 2-3 (alike)'));
      await page.locator('#apart').check();
      assert.equal((await rows()).length, 8);
      await page.waitForFunction(() => location.hash.includes('apart=1'));
    }));

test(
    'two numbers are large, and the formula stands beside the bubble',
    () => visit('four', {}, async (page) => {
      const main = await page.locator('.main-figures').innerText();
      for (const part
               of ['Iteration time', '33 ms', '27.27 %',
                   'of the device time is idle; the formula (p-1)/(m+p-1) says the same'])
        assert.ok(main.includes(part), `${part} in: ${main}`);
      const sizes =
          await page.locator('.card .value')
              .evaluateAll((all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize)));
      assert.ok(sizes.slice(0, 2).every((size) => size >= 2 * sizes[2]), `${sizes}`);
    }));

/** The file that the button gives, and what an XML parser says of it. */
async function saveSvg(page) {
  const [download] =
      await Promise.all([page.waitForEvent('download'), page.locator('#save-svg').click()]);
  const file = path.join(process.env.SHOTS, download.suggestedFilename());
  await download.saveAs(file);
  const text = fs.readFileSync(file, 'utf8');
  const parsed = await page.evaluate((source) => {
    const root = new DOMParser().parseFromString(source, 'image/svg+xml').documentElement;
    return {
      root: root.nodeName,
      titles: [...root.querySelectorAll('rect > title')].map((title) => title.textContent),
      title: root.querySelector('title').textContent,
      loaded: [...root.querySelectorAll('[href], image, script, use')].length,
    };
  }, text);
  return {...parsed, bytes: text.length, file: path.basename(file)};
}

test('the timeline is a file that stands by itself, with every op', async () => {
  await visit('four', {}, async (page) => {
    const {root, titles, loaded, file} = await saveSvg(page);
    assert.deepEqual([root, loaded, file], ['svg', 0, 'four-equal-stages.svg']);
    for (let stage = 0; stage < 4; ++stage) {
      for (let batch = 0; batch < 8; ++batch) {
        assert.ok(titles.includes(`${stage}F${batch}, 1 ms`), `${stage}F${batch}`);
        assert.ok(titles.includes(`${stage}B${batch}, 2 ms`), `${stage}B${batch}`);
      }
    }
    assert.ok(titles.includes('idle 6 ms: waiting for an input'));
  });
  await visit('hostile', {}, async (page) => {
    const {root, title} = await saveSvg(page);
    assert.equal(root, 'svg');
    assert.ok(title.includes('</script><script>globalThis.broken=1</script><!--'));
  });
  await visit('huge', {}, async (page) => {
    const {root, bytes} = await saveSvg(page);
    assert.equal(root, 'svg');
    assert.ok(bytes < 20e6, `${bytes} bytes`);
  });
});

test('a lecturer goes through the run by keys, phase by phase and op by op', async () => {
  await visit('four', {}, async (page) => {
    const caption = () => page.locator('#present-caption').innerText();
    const count = () => page.locator('#present-count').innerText();
    const laneHeight = () =>
        page.evaluate(() => globalThis.plumbline.timeline.stage.lanes.rows[0].height);
    const usual = await laneHeight();
    await page.locator('#present').click();
    assert.ok(await laneHeight() > 2 * usual, 'lanes are large');
    assert.equal(await page.locator('#tables').isVisible(), false);
    assert.ok((await page.locator('#present-formula').innerText())
                  .includes('the formula (p-1)/(m+p-1) says the same'));
    const fits = await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight);
    assert.ok(fits, 'all of it is in sight');
    for (const [key, told] of [
             ['n', 'Fill, 3 ms.'], ['ArrowRight', 'Steady, 24 ms.'], [' ', 'Drain, 6 ms.'],
             ['n', 'Drain, 6 ms.'], ['p', 'Steady, 24 ms.'], ['ArrowLeft', 'Fill, 3 ms.'],
             ['Home', 'The whole run.']]) {
      if (key === ' ') await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press(key);
      assert.ok((await caption()).startsWith(told), `${key}: ${await caption()}`);
    }
    await page.keyboard.press('o');
    await page.keyboard.press('n');
    await page.keyboard.press('n');
    assert.equal(await caption(), 'At 1 ms: 0F1 on device 0, 1F0 on device 1 begin.');
    assert.equal(await count(), '2 of 30');
    await page.waitForFunction(() => location.hash.includes('present=ops:2'));
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('#present-bar').isVisible(), false);
    assert.equal(await laneHeight(), usual);
    await page.waitForFunction(() => !location.hash.includes('present'));
  });
  await visit('four', {fragment: '#present'}, async (page) => {
    assert.ok((await page.locator('#present-caption').innerText()).startsWith('The whole run.'));
    await page.locator('#present-next').click();
    assert.ok((await page.locator('#present-caption').innerText()).startsWith('Fill'));
    await shot(page, 'present');
  });
});

test(
    'devices of several kinds have their own limit of memory, and a kind in the table',
    () => visit('unlike', {}, async (page) => {
      const texts = await page.locator('figure svg')
                        .evaluateAll((charts) => charts.map((chart) => chart.textContent));
      const limits = ['limit 1 GiB', 'limit 4 GiB'].map(
          (limit) => texts.filter((text) => text.includes(limit)).length);
      assert.deepEqual(limits, [4, 4]);
      const rows = await page.locator('table tr').allTextContents();
      assert.equal(rows.filter((row) => /^[0-3]old/.test(row)).length, 4);
      assert.equal(rows.filter((row) => /^[4-7]new/.test(row)).length, 4);
    }));

test(
    'memory over time is stacked by what it holds, with the limit and the reserve',
    () => visit('reserve', {}, async (page) => {
      const chart = page.locator('#memory svg').first();
      for (const part of ['weights', 'gradients', 'optimizer', 'activations'])
        assert.equal(await chart.locator(`.m-${part}`).count(), 1, part);
      const text = await chart.textContent();
      assert.ok(
          text.includes('limit 1.805 GiB') && text.includes('memory 2 GiB, with the reserve'),
          text);
      assert.equal(await chart.locator('line.reserve').count(), 1);
      // The parts of the peak, one on the other, are as high as the chart's highest point.
      const apart = await page.evaluate(() => {
        const {runs: [run], facts} = globalThis.plumbline.report;
        const {memory, peak_memory_bytes: peak} = facts.runs[0].summary.devices[0];
        const i = run.memory[0].bytes.indexOf(peak);
        return Math.abs(run.memory[0].activations[i] - memory.activations_bytes);
      });
      assert.equal(apart, 0);
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
          ['0', '0', '228 MiB', 'yes', '27.27 %', '24 ms', '9 ms', '0B0', '4', '1']);
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
      assert.equal(await page.locator('.tools').first().isVisible(), false);
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
