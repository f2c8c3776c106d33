// The page of a comparison: the sentence, the bars, the timelines, the numbers.
// SPDX-License-Identifier: MIT
import {memoryBars, memoryTable, numbersTable, remarksOf, shareBars} from './compare_parts.js';
import {readTraces, Timelines} from './compare_timelines.js';
import {element} from './dom.js';
import {decodeState, encodeState} from './hash.js';
import {classLegend} from './legend.js';
import {addressKeeper, applyTheme, byId, listenToTheme, readData, readFacts, tellFailure,} from './page.js';
import {colors, isDark, patternDefinitions} from './palette.js';
import {exists} from './run.js';

function fillHead({comparison, version, command, sources}) {
  const {runs, verdict} = comparison;
  const title = runs.map((run) => run.title).join(' · ');
  document.title = `${title} · Plumbline`;
  byId('name').textContent = title;
  byId('headline').textContent = `${runs.length} runs side by side`;
  byId('verdict').textContent = `${verdict}.`;
  byId('version').textContent = `plumbline ${version}`;
  const remarks = remarksOf(comparison);
  byId('remarks').replaceChildren(...remarks.map((text) => element('li', {}, text)));
  byId('remarks').hidden = remarks.length === 0;
  byId('source').append(
      element('h3', {}, 'The command that writes this file'),
      element('pre', {tabindex: 0}, element('code', {}, command)),
      ...sources.flatMap(
          (source, r) =>
              [element('h3', {}, runs[r].title),
               element('pre', {tabindex: 0}, element('code', {}, source))]));
}

function fillBelow({comparison, memory_limits: limits, memories}) {
  const {runs} = comparison;
  document.body.append(patternDefinitions());
  byId('causes').append(...shareBars(runs));
  byId('memory').append(...memoryBars(runs, limits, memories), memoryTable(runs));
  byId('tables').append(numbersTable(runs));
}

/** Only what exists in this comparison. */
function checkedState(state, reports) {
  const {selected} = state;
  const run = selected ? reports[selected.run]?.runs[0] : null;
  if (selected && !(run && exists(run, selected))) state.selected = null;
  const length = reports.find((report) => report)?.length ?? 0;
  if (state.window && state.window.from >= length) state.window = null;
  return state;
}

class ComparePage {
  constructor(facts, traces) {
    this.facts = facts;
    this.traces = traces;
    this.state = checkedState(decodeState(location.hash), traces.reports);
    this.keep = addressKeeper(() => encodeState(this.state));
    const titles = facts.comparison.runs.map((run) => run.title);
    const missing = titles.filter((_, r) => !traces.reports[r]);
    byId('timelines-section').hidden = missing.length === titles.length;
    byId('left-out').hidden = missing.length === 0;
    byId('left-out').textContent =
        `A result file has no trace, so there is no timeline of ${missing.join(', ')}.`;
    this.timelines = new Timelines(
        byId('timelines'), byId('details'), traces.reports, titles, this.state,
        () => this.changed());
    this.connect();
  }

  connect() {
    const act = (id, what) => byId(id).addEventListener('click', () => {
      const timeline = this.timelines.current;
      if (timeline) what(timeline);
    });
    act('zoom-in', (timeline) => timeline.zoom(1.5));
    act('zoom-out', (timeline) => timeline.zoom(1 / 1.5));
    act('whole', (timeline) => timeline.showAll());
    for (const key of ['critical', 'transfers']) {
      byId(key).addEventListener('change', () => {
        this.state[key] = byId(key).checked;
        this.timelines.repaint();
        this.keep();
      });
    }
    listenToTheme((theme) => {
      this.state.theme = theme;
      this.showTheme();
      this.keep();
    }, () => this.showTheme());
    addEventListener('hashchange', () => {
      Object.assign(this.state, checkedState(decodeState(location.hash), this.traces.reports));
      this.show();
    });
  }

  changed() {
    this.tellWhose();
    this.keep();
  }

  tellWhose() {
    const {selected} = this.state;
    byId('details-of').textContent =
        selected ? `In ${this.facts.comparison.runs[selected.run].title}:` : '';
  }

  showTheme() {
    applyTheme(this.state.theme);
    const palette = colors(isDark(this.state.theme));
    byId('legend').replaceChildren(...classLegend(this.traces.classes, palette));
    this.timelines.repaint();
  }

  show() {
    for (const key of ['critical', 'transfers']) byId(key).checked = this.state[key];
    this.showTheme();
    this.tellWhose();
    this.timelines.current?.showDetails();
  }
}

async function start() {
  const facts = readFacts();
  const traces = readTraces(facts, await readData());
  fillHead(facts);
  const page = new ComparePage(facts, traces);
  page.show();
  fillBelow(facts);
  globalThis.plumbline = {page};  // for the tests: nothing else uses it
  requestAnimationFrame(() => {
    document.documentElement.dataset.ready = 'yes';
  });
}

start().catch(tellFailure);
