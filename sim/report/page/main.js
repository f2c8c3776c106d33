// The page from its data: read, draw the timeline first, then all that stands below it.
// SPDX-License-Identifier: MIT
import {alikeGroups} from './alike.js';
import {causeCharts, memoryCharts} from './charts.js';
import {decodeRun, NumberReader} from './codec.js';
import {busySums, classesIn, columnEdges, densityColumns} from './density.js';
import {element} from './dom.js';
import {fileName, saveFile, timelineSvg} from './export_svg.js';
import {figureCards} from './figures.js';
import {plural} from './format.js';
import {decodeState, encodeState} from './hash.js';
import {classLegend} from './legend.js';
import {addressKeeper, applyTheme, byId, listenToTheme, readData, readFacts, tellFailure,} from './page.js';
import {colors, isDark, patternDefinitions} from './palette.js';
import {Presentation} from './present.js';
import {criticalPath, exists, itemName} from './run.js';
import {deviceTables, formulaParts, layerList, sourceParts, stageTable} from './tables.js';
import {Timeline} from './timeline.js';

async function readReport() {
  const facts = readFacts();
  const reader = new NumberReader(await readData());
  const runs =
      facts.runs.map((run) => Object.assign(decodeRun(reader, run.layout), {title: run.title}));
  const classes = classesIn(runs);
  return {
    facts,
    runs,
    classes,
    sums: runs.map((run) => busySums(run, classes)),
    paths: runs.map(criticalPath),
    groups: alikeGroups(runs),
    length: Math.max(...runs.map((run) => run.layout.makespan)),
    tickNs: runs[0].layout.tick_ns,
  };
}

/** Only what exists in this report. */
function checkedState(state, report) {
  const {selected, window} = state;
  const run = selected ? report.runs[selected.run] : null;
  if (selected && !(run && exists(run, selected))) state.selected = null;
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
  const remarks = [...facts.remarks, ...new Set(facts.runs.flatMap((run) => run.remarks))];
  byId('remarks').replaceChildren(...remarks.map((text) => element('li', {}, text)));
  byId('remarks').hidden = remarks.length === 0;
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

function showTheme(state, timeline, report) {
  applyTheme(state.theme);
  byId('legend').replaceChildren(...classLegend(report.classes, colors(isDark(state.theme))));
  timeline.repaint();
}

function saveTimeline(report, state, timeline) {
  const {name, runs} = report.facts;
  const palette = colors(isDark(state.theme));
  const svg = timelineSvg(
      report, timeline.stage, timeline.window, palette, {name, headline: runs[0].headline});
  saveFile(fileName(name, 'svg'), 'image/svg+xml', svg);
}

function connectControls(report, state, timeline, presentation, keep) {
  const act = (id, what) => byId(id).addEventListener('click', what);
  act('zoom-in', () => timeline.zoom(1.5));
  act('zoom-out', () => timeline.zoom(1 / 1.5));
  act('whole', () => timeline.showAll());
  act('present', () => presentation.start());
  act('save-svg', () => saveTimeline(report, state, timeline));
  for (const key of ['critical', 'transfers']) {
    byId(key).addEventListener('change', () => {
      state[key] = byId(key).checked;
      timeline.update();
    });
  }
  byId('apart').addEventListener('change', () => {
    state.apart = byId('apart').checked;
    timeline.setApart(state.apart);
  });
  const theme = () => showTheme(state, timeline, report);
  listenToTheme((chosen) => {
    state.theme = chosen;
    theme();
    keep();
  }, theme);
  addEventListener('hashchange', () => {
    Object.assign(state, checkedState(decodeState(location.hash), report));
    showState(report, state, timeline, presentation);
  });
}

function showState(report, state, timeline, presentation) {
  for (const key of ['critical', 'transfers', 'apart']) byId(key).checked = state[key];
  timeline.setApart(state.apart);
  showTheme(state, timeline, report);
  timeline.showDetails();
  presentation.show();
}

function presentationParts() {
  const part = (name) => byId(`present-${name}`);
  return {
    start: byId('present'),
    bar: part('bar'),
    caption: part('caption'),
    count: part('count'),
    formula: part('formula'),
    by: part('by'),
    previous: part('previous'),
    next: part('next'),
    leave: part('leave'),
  };
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
  const keep = addressKeeper(() => encodeState(state));
  const timeline = new Timeline(
      report, state, {
        scroller: byId('scroller'),
        canvas: byId('canvas'),
        hover: byId('hover'),
        details: byId('details'),
        hint: byId('hint'),
      },
      keep);
  byId('apart-choice').hidden = report.groups.length === report.runs[0].slots;
  const presentation = new Presentation(report, state, timeline, presentationParts(), keep);
  connectControls(report, state, timeline, presentation, keep);
  byId('count').textContent = `${plural(report.facts.runs[0].summary.operations, 'op')} on ` +
      `${plural(report.runs[0].slots, 'device')}`;
  showState(report, state, timeline, presentation);
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

start().catch(tellFailure);
