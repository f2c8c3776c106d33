// Timelines of runs that have nothing to do with each other, one above the other on one time axis.
// SPDX-License-Identifier: MIT
import {alikeGroups} from './alike.js';
import {decodeRun, NumberReader} from './codec.js';
import {busySums, classesIn} from './density.js';
import {element} from './dom.js';
import {criticalPath} from './run.js';
import {Timeline} from './timeline.js';

/** What the timeline of each run needs; null for a run without a trace. */
export function readTraces(facts, bytes) {
  const reader = new NumberReader(bytes);
  const runs = facts.layouts.map((layout) => (layout ? decodeRun(reader, layout) : null));
  const traced = runs.filter((run) => run !== null);
  if (traced.length === 0) return {classes: [], reports: runs};
  const classes = classesIn(traced);
  const length = Math.max(...traced.map((run) => run.layout.makespan));
  const reports = runs.map((run) => run && {
    runs: [run],
    classes,
    sums: [busySums(run, classes)],
    paths: [criticalPath(run)],
    groups: alikeGroups([run]),
    length,
    tickNs: run.layout.tick_ns,
  });
  return {classes, reports};
}

/** The state of the page as the timeline of one run sees it: there is no run but its own. */
export function ownState(shared, run) {
  return {
    get window() {
      return shared.window;
    },
    set window(window) {
      shared.window = window;
    },
    get selected() {
      return shared.selected?.run === run ? {...shared.selected, run: 0} : null;
    },
    set selected(selected) {
      if (selected)
        shared.selected = {...selected, run};
      else if (shared.selected?.run === run)
        shared.selected = null;
    },
    get critical() {
      return shared.critical;
    },
    get transfers() {
      return shared.transfers;
    },
    get theme() {
      return shared.theme;
    },
  };
}

/** The timelines in `root`; all show the same window of time. `changed` is told of changes. */
export class Timelines {
  constructor(root, details, reports, titles, shared, changed) {
    this.shared = shared;
    this.all = [];
    this.first = reports.findIndex((report) => report !== null);
    reports.forEach((report, r) => {
      if (report) this.add(root, details, report, titles[r], r, changed);
    });
  }

  add(root, details, report, title, r, changed) {
    const canvas = element('canvas', {
      tabindex: 0,
      role: 'application',
      'aria-label': `Timeline of ${title}. W and S zoom, A and D move, arrow keys go from op to ` +
          'op and from device to device, F zooms to the op, Escape and 0 show the whole run.',
    });
    const scroller =
        element('div', {class: 'scroller'}, element('div', {class: 'canvas-room'}, canvas));
    const hover = element('div', {class: 'hover'});
    hover.hidden = true;
    const hint = element('p', {class: 'remark', role: 'status'});
    root.append(element(
        'div', {class: 'run'}, element('h3', {}, title),
        element('div', {class: 'frame'}, scroller, hover), hint));
    const takesKeys = () => r === (this.shared.selected?.run ?? this.first);
    const timeline = new Timeline(
        report, ownState(this.shared, r), {scroller, canvas, hover, details, hint, takesKeys},
        () => {
          this.repaint();
          changed();
        });
    this.all.push({run: r, timeline});
  }

  /** The timeline of the run with the selection, else the first one. */
  get current() {
    const wanted = this.shared.selected?.run ?? this.first;
    return this.all.find(({run}) => run === wanted)?.timeline ?? null;
  }

  repaint() {
    for (const {timeline} of this.all) timeline.repaint();
  }
}
