// The page from its data: read, draw the timeline first, then all that stands below it.
// SPDX-License-Identifier: MIT
import {causeCharts, memoryCharts, patternDefinitions} from './charts.js';
import {decodeRun, fromBase64, gunzip, NumberReader} from './codec.js';
import {busySums, CLASSES, classesIn, columnEdges, densityColumns} from './density.js';
import {element} from './dom.js';
import {plural} from './format.js';
import {decodeState, encodeState} from './hash.js';
import {channels, colors, isDark, tile} from './palette.js';
import {criticalPath, itemName} from './run.js';
import {deviceTables, figureCards, formulaParts, layerList, sourceParts, stageTable} from './tables.js';
import {Timeline} from './timeline.js';

const CLASS_NAMES = {
  forward: 'forward',
  backward: 'backward',
  input: 'backward, input',
  weight: 'backward, weights',
  update: 'update',
  transfer: 'blocking transfer',
};

const byId = (id) => document.getElementById(id);

async function readReport() {
  const facts = JSON.parse(byId('facts').textContent);
  let bytes = fromBase64(byId('columns').textContent);
  if (facts.encoding === 'gzip') bytes = await gunzip(bytes);
  const reader = new NumberReader(bytes);
  const runs =
      facts.runs.map((run) => Object.assign(decodeRun(reader, run.layout), {title: run.title}));
  const classes = classesIn(runs);
  return {
    facts,
    runs,
    classes,
    sums: runs.map((run) => busySums(run, classes)),
    paths: runs.map(criticalPath),
    length: Math.max(...runs.map((run) => run.layout.makespan)),
    tickNs: runs[0].layout.tick_ns,
  };
}

/** Only what exists in this report. */
function checkedState(state, report) {
  const {selected, window} = state;
  const run = selected ? report.runs[selected.run] : null;
  if (selected && !(run && selected.item < run.begin.length)) state.selected = null;
  if (window && window.from >= report.length) state.window = null;
  return state;
}

function fillHead(report) {
  const {facts} = report;
  document.title = `${facts.name} · Plumbline`;
  byId('name').textContent = facts.name;
  byId('headline').textContent = facts.runs[0].headline;
  byId('version').textContent = `plumbline ${facts.version}`;
  const figures = facts.figures.length > 0 ? facts.figures : facts.runs[0].figures;
  byId('figures').replaceChildren(...figureCards(figures));
  byId('figures').classList.toggle('two-rows', figures.length === 8);
  const remarks = [...facts.remarks, ...new Set(facts.runs.flatMap((run) => run.remarks))];
  byId('remarks').replaceChildren(...remarks.map((text) => element('li', {}, text)));
  byId('remarks').hidden = remarks.length === 0;
}

/** A little picture of a class, drawn as the timeline draws it. */
function swatch(name, palette) {
  const canvas = element('canvas', {width: 24, height: 14, 'aria-hidden': 'true'});
  const context = canvas.getContext('2d');
  const image = context.createImageData(24, 14);
  const pixels = new Uint32Array(image.data.buffer);
  const colorsOfTile = tile(name, palette);
  pixels.forEach((_, i) => {
    pixels[i] = colorsOfTile[((Math.floor(i / 24) & 7) << 3) | (i % 24 & 7)];
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function fillLegend(report, palette) {
  const ops = report.classes.map(
      (c) => element('li', {}, swatch(CLASSES[c], palette), CLASS_NAMES[CLASSES[c]]));
  const idle =
      element('span', {class: 'swatch', style: `background:rgb(${channels(palette.lane).join()})`});
  byId('legend').replaceChildren(...ops, element('li', {}, idle, 'idle'));
}

function fillBelow(report) {
  const run = report.facts.runs[0];
  document.body.append(patternDefinitions());
  byId('memory').append(...memoryCharts(report));
  byId('causes').append(...causeCharts(report));
  byId('formula').append(...formulaParts(report));
  byId('stages').append(stageTable(run), layerList(run));
  byId('tables').append(...deviceTables(report));
  byId('source').append(...sourceParts(report.facts));
}

/** Keeps the state in the address; browsers limit how often it may change. */
function addressKeeper(state) {
  let waiting = 0;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      history.replaceState(null, '', encodeState(state) || location.pathname + location.search);
    }, 150);
  };
}

function applyTheme(state, timeline, report) {
  document.documentElement.dataset.theme = isDark(state.theme) ? 'dark' : 'light';
  byId('theme').value = state.theme;
  fillLegend(report, colors(isDark(state.theme)));
  timeline.repaint();
}

function connectControls(report, state, timeline, keep) {
  const act = (id, what) => byId(id).addEventListener('click', what);
  act('zoom-in', () => timeline.zoom(1.5));
  act('zoom-out', () => timeline.zoom(1 / 1.5));
  act('whole', () => timeline.showAll());
  for (const key of ['critical', 'transfers']) {
    byId(key).addEventListener('change', () => {
      state[key] = byId(key).checked;
      timeline.update();
    });
  }
  const theme = () => applyTheme(state, timeline, report);
  byId('theme').addEventListener('change', () => {
    state.theme = byId('theme').value;
    theme();
    keep();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', theme);
  addEventListener('hashchange', () => {
    Object.assign(state, checkedState(decodeState(location.hash), report));
    showState(report, state, timeline);
  });
}

function showState(report, state, timeline) {
  for (const key of ['critical', 'transfers']) byId(key).checked = state[key];
  applyTheme(state, timeline, report);
  timeline.showDetails();
}

/** What the tests ask the page for: nothing else uses it. */
function expose(report, state, timeline) {
  globalThis.plumbline = {
    report,
    state,
    timeline,
    columnEdges,
    densityColumns,
    itemName,
    find: (name, run = 0) => {
      const of = report.runs[run];
      for (let item = 0; item < of.begin.length; ++item)
        if (itemName(of, item) === name) return item;
      return -1;
    },
  };
}

async function start() {
  const report = await readReport();
  const state = checkedState(decodeState(location.hash), report);
  const read = performance.now();
  fillHead(report);
  const keep = addressKeeper(state);
  const timeline = new Timeline(
      report, state, {
        scroller: byId('scroller'),
        canvas: byId('canvas'),
        hover: byId('hover'),
        details: byId('details'),
        hint: byId('hint'),
      },
      keep);
  connectControls(report, state, timeline, keep);
  byId('count').textContent = `${plural(report.facts.runs[0].summary.operations, 'op')} on ` +
      `${plural(report.runs[0].slots, 'device')}`;
  showState(report, state, timeline);
  const painted = timeline.paint();
  expose(report, state, timeline);
  Object.assign(document.documentElement.dataset, {
    read: read.toFixed(1),
    paint: painted.toFixed(1),
    drawn: performance.now().toFixed(1),
  });
  setTimeout(() => {
    fillBelow(report);
    document.documentElement.dataset.ready = 'yes';
  });
}

start().catch((error) => {
  byId('name').textContent = 'This page cannot be shown';
  byId('headline').textContent = typeof DecompressionStream === 'undefined' ?
      'The browser is too old: it has no DecompressionStream.' :
      String(error);
  throw error;
});
