// Timelines of runs, one above the other on one axis of time, painted by the modules of the report.
// SPDX-License-Identifier: MIT
import {alikeGroups} from '../sim/report/page/alike.js';
import {decodeRun, fromBase64, NumberReader} from '../sim/report/page/codec.js';
import {ownState} from '../sim/report/page/compare_timelines.js';
import {busySums, classesIn} from '../sim/report/page/density.js';
import {element, table} from '../sim/report/page/dom.js';
import {fileName, saveFile, timelineSvg} from '../sim/report/page/export_svg.js';
import {classLegend} from '../sim/report/page/legend.js';
import {colors, isDark} from '../sim/report/page/palette.js';
import {criticalPath} from '../sim/report/page/run.js';
import {Timeline} from '../sim/report/page/timeline.js';

import {deviceRows, resultLines, sentence} from './result.js';

/** What the engine answered of a run, as the report's timeline takes it. */
export function decoded({title, timeline, nameOf}) {
  const reader = new NumberReader(fromBase64(timeline.columns));
  const run = Object.assign(decodeRun(reader, timeline.layout), {title});
  run.nameOf = (slots) => nameOf(slots.map((slot) => run.layout.devices[slot]));
  return run;
}

/** The reports of runs on one axis of time; each is a picture of its own. */
export function reportsOf(runs) {
  const classes = classesIn(runs);
  const end = (run) => run.layout.makespan * run.layout.tick_ns;
  const longest = Math.max(...runs.map(end));
  return runs.map((run) => ({
                    runs: [run],
                    classes,
                    sums: [busySums(run, classes)],
                    paths: [criticalPath(run)],
                    groups: alikeGroups([run]),
                    length: longest / run.layout.tick_ns,
                    tickNs: run.layout.tick_ns,
                  }));
}

/** A table that is filled when it is opened, so that a slider does not wait for it. */
class LazyTable {
  constructor(texts) {
    this.body = element('div', {});
    this.root = element(
        'details', {class: 'numbers'}, element('summary', {}, texts.say('shell.numbers')),
        this.body);
    this.root.addEventListener('toggle', () => this.fill());
  }

  show(make) {
    this.make = make;
    this.fill();
  }

  fill() {
    if (this.root.open && this.make) this.body.replaceChildren(this.make());
  }
}

function deviceTable(json, title, columns, texts) {
  const heads = ['device', ...columns].map((column) => texts.say(`table.${column}`));
  return table(texts.say('table.caption', {name: title}), heads, deviceRows(json, columns));
}

/** One timeline with its sentence, its table and its buttons. */
class Frame {
  constructor(picture, number) {
    const {texts} = picture;
    this.picture = picture;
    this.number = number;
    this.canvas = element('canvas', {tabindex: 0, role: 'application'});
    this.scroller =
        element('div', {class: 'scroller'}, element('div', {class: 'canvas-room'}, this.canvas));
    this.hover = element('div', {class: 'hover'});
    this.hover.hidden = true;
    this.heading = element('h3', {});
    this.words = element('p', {class: 'sentence'});
    this.lines = element('div', {'aria-live': 'polite'});
    this.table = new LazyTable(texts);
    const button = (key, act) => {
      const made = element('button', {type: 'button', 'data-act': key}, texts.say(`shell.${key}`));
      made.addEventListener('click', act);
      return made;
    };
    this.root = element(
        'section', {class: 'run'},
        element(
            'div', {class: 'bar-head'}, this.heading,
            element(
                'div', {class: 'tools'}, button('whole', () => this.timeline.showAll()),
                button('save_svg', () => this.saveSvg()),
                button('save_png', () => this.savePng()))),
        element('div', {class: 'frame'}, this.scroller, this.hover));
    this.name = element('h3', {});
    this.told =
        element('div', {class: 'run-told'}, this.name, this.lines, this.words, this.table.root);
  }

  /**
   * Takes a run into the timeline; nothing of the page is changed, so that it can be painted at
   * once.
   */
  take(run, report) {
    const {picture} = this;
    this.run = run;
    if (this.timeline) {
      this.timeline.replace(report);
    } else {
      const parts = {
        scroller: this.scroller,
        canvas: this.canvas,
        hover: this.hover,
        details: picture.details,
        hint: picture.hint,
        takesKeys: () => false,
        moreOf: picture.moreOf,
      };
      const state = ownState(picture.state, this.number);
      this.timeline = new Timeline(report, state, parts, () => picture.repaint());
    }
    if (picture.apart) this.timeline.setApart(true);
  }

  /** What stands around the timeline. */
  tell(page) {
    const {picture, run} = this;
    const {texts} = picture;
    this.heading.textContent = run.title;
    this.name.textContent = run.title;
    this.name.hidden = picture.frames.length === 1;
    if (page.opensTable && !this.table.make) this.table.root.open = true;
    this.lines.replaceChildren(resultLines(run.json, texts, page));
    this.words.textContent = sentence(run.json, run.title, texts);
    this.canvas.setAttribute(
        'aria-label', `${run.title}. ${this.words.textContent} ${texts.say('shell.keys')}`);
    this.table.show(() => deviceTable(run.json, run.title, page.columns, texts));
  }

  remove() {
    this.root.remove();
    this.told.remove();
  }

  saveSvg() {
    const {stage, window, report} = this.timeline;
    const named = {name: this.run.title, headline: this.words.textContent};
    const palette = colors(isDark(this.picture.state.theme));
    saveFile(
        fileName(this.run.title, 'svg'), 'image/svg+xml',
        timelineSvg(report, stage, window, palette, named));
  }

  savePng() {
    this.canvas.toBlob((blob) => saveFile(fileName(this.run.title, 'png'), 'image/png', blob));
  }
}

/**
 * The timelines of the runs of a page, in `root`; `state` has what is chosen in them. `details` is
 * for the page to place: it tells of what is chosen, with rows of `moreOf(run, item)`.
 */
export class Picture {
  constructor(root, texts, state, moreOf = undefined) {
    this.texts = texts;
    this.state = state;
    this.frames = [];
    this.moreOf = moreOf;
    this.details = element('div', {class: 'details', 'aria-live': 'polite'});
    this.hint = element('p', {class: 'remark', role: 'status'});
    this.legend = element('ul', {class: 'legend'});
    this.runs = element('div', {});
    this.told = element('div', {class: 'told'});
    root.append(this.runs, this.legend, this.hint, this.told);
  }

  /**
   * Paints runs: {title, json, timeline, nameOf}. Where a page has ranks, each device has a row of
   * its own.
   */
  show(runs, page) {
    this.apart = page.ranks !== undefined;
    const reports = reportsOf(runs.map(decoded));
    while (this.frames.length > runs.length) this.frames.pop().remove();
    runs.forEach((run, i) => {
      if (!this.frames[i]) {
        this.frames.push(new Frame(this, i));
        this.runs.append(this.frames[i].root);
        this.told.append(this.frames[i].told);
      }
      this.frames[i].take(run, reports[i]);
    });
    this.paint();
    this.told.classList.toggle('several', runs.length > 1);
    for (const frame of this.frames) frame.tell(page);
    this.showLegend(reports[0]?.classes);
  }

  showLegend(classes) {
    if (!classes) return;
    const key = `${classes} ${isDark(this.state.theme)}`;
    if (key === this.legendKey) return;
    this.legendKey = key;
    this.legend.replaceChildren(...classLegend(classes, colors(isDark(this.state.theme))));
  }

  paint() {
    for (const {timeline} of this.frames) timeline.paint();
  }

  repaint() {
    for (const {timeline} of this.frames) timeline?.repaint();
  }

  /** After a change of theme. */
  restyle() {
    this.showLegend(this.frames[0]?.timeline.report.classes);
    this.repaint();
  }
}
