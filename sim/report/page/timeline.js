// The timeline as one uses it: mouse, keys, what is pointed at and what is selected.
// SPDX-License-Identifier: MIT
import {describeGap, describeItem} from './describe.js';
import {element} from './dom.js';
import {MOST_LINES} from './paint.js';
import {colors, isDark} from './palette.js';
import {firstAfter, gapAt, itemAt, nearestItem, neighbour, spanOf, stateAt} from './run.js';
import {Stage} from './stage.js';
import {clampWindow, panWindow, revealInWindow, wholeRun, zoomWindow} from './window.js';

const ZOOM = 1.5;
const PAN = 0.15;

/**
 * The timeline of a report in the page's elements; `changed` is told when its state changes. Where
 * a page has several, `parts.takesKeys` says whether keys that no element has are for this one.
 */
export class Timeline {
  constructor(report, state, parts, changed) {
    this.report = report;
    this.state = state;
    this.parts = parts;
    this.changed = changed;
    this.hovered = null;
    this.pointer = null;
    this.spot = null;
    this.stage = new Stage(report, parts.scroller, parts.canvas);
    this.listen();
  }

  /** Shows another report in the same place: all of it, and nothing of it is selected. */
  replace(report) {
    this.report = report;
    this.hovered = null;
    this.parts.hover.hidden = true;
    this.state.window = null;
    this.stage.replace(report);
    if (!this.state.selected) return;
    this.state.selected = null;
    this.showDetails();
  }

  get window() {
    return this.state.window ?? wholeRun(this.report.length);
  }

  set window(window) {
    const {from, to} = clampWindow(window, this.report.length);
    const whole = to - from >= this.report.length;
    this.state.window = whole ? null : {from, to};
    this.update();
  }

  /** What of the run is told of, see Presentation; null = all. */
  setSpot(spot) {
    this.spot = spot;
    this.repaint();
  }

  /** Brings a time into sight. */
  revealTime(time) {
    this.window = revealInWindow(this.window, time, time, this.report.length);
  }

  /** Paints in the next frame, and tells of the change. */
  update() {
    this.changed();
    this.repaint();
  }

  repaint() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  /** Paints now; returns how many milliseconds it took. */
  paint() {
    const start = performance.now();
    const {state, parts} = this;
    const crowded = this.stage.paint({
      window: this.window,
      palette: colors(isDark(state.theme)),
      critical: state.critical,
      transfers: state.transfers,
      selected: state.selected,
      hovered: this.hovered,
      spot: this.spot
    });
    parts.hint.textContent =
        crowded ? `More than ${MOST_LINES} transfers in sight: zoom in to see them.` : '';
    return performance.now() - start;
  }

  listen() {
    const {canvas, scroller} = this.parts;
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerleave', () => this.onLeave());
    canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    canvas.addEventListener('pointerup', (event) => this.onUp(event));
    canvas.addEventListener('pointercancel', () => {
      this.drag = null;
    });
    canvas.addEventListener('dblclick', () => this.showSelected());
    canvas.addEventListener('wheel', (event) => this.onWheel(event), {passive: false});
    scroller.addEventListener('scroll', () => this.repaint());
    document.addEventListener('keydown', (event) => this.onKey(event));
    new ResizeObserver(() => {
      if (scroller.clientWidth === this.stage.width) return;
      this.stage.resize();
      this.repaint();
    }).observe(scroller);
  }

  position(event) {
    const box = this.parts.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  /** What is at a place of the canvas: {run, slot, item} or {run, slot, gap}, or null. */
  pick({x, y}) {
    const row = this.stage.rowAt(y);
    if (!row || x < this.stage.box.left) return null;
    const run = this.report.runs[row.run];
    const time = this.stage.timeAt(x, this.window);
    const item = itemAt(run, row.slot, time);
    if (item >= 0) return {run: row.run, slot: row.slot, item};
    const near = nearestItem(run, row.slot, time);
    const pixel = (this.window.to - this.window.from) / this.stage.box.width;
    const isNear = near >= 0 &&
        Math.min(Math.abs(run.begin[near] - time), Math.abs(run.end[near] - time)) < 2 * pixel;
    const gap = gapAt(run, row.slot, time);
    if (gap >= 0 &&
        !(isNear && run.gaps[row.slot].end[gap] - run.gaps[row.slot].begin[gap] < 4 * pixel)) {
      return {run: row.run, slot: row.slot, gap};
    }
    return isNear ? {run: row.run, slot: row.slot, item: near} : null;
  }

  describe(found) {
    const {runs} = this.report;
    const run = runs[found.run];
    if (found.item !== undefined) {
      const told = describeItem(run, found.item, runs.length > 1 ? runs[0] : null);
      return {...told, rows: [...told.rows, ...(this.parts.moreOf?.(run, found.item) ?? [])]};
    }
    const next = firstAfter(run, found.slot, run.gaps[found.slot].begin[found.gap]);
    return describeGap(run, found.slot, found.gap, next < run.starts[found.slot + 1] ? next : -1);
  }

  onMove(event) {
    const at = this.position(event);
    this.pointer = at;
    this.tellGroup(at);
    if (this.drag) {
      const moved = this.drag.x - at.x;
      if (Math.abs(moved) > 3) this.drag.moved = true;
      if (this.drag.moved) {
        const span = this.drag.window.to - this.drag.window.from;
        const move = (moved / this.stage.box.width) * span;
        this.window = {from: this.drag.window.from + move, to: this.drag.window.to + move};
      }
      return;
    }
    const found = this.pick(at);
    this.hovered = found;
    this.showHover(found, at);
    this.repaint();
  }

  /** The pointer is a hand where a click opens a group. */
  tellGroup(at) {
    const isName = at.x < this.stage.box.left;
    const group = isName ? this.stage.rowAt(at.y)?.group : null;
    this.parts.canvas.style.cursor = group && group.length > 1 ? 'pointer' : '';
  }

  onLeave() {
    this.pointer = null;
    this.hovered = null;
    this.parts.hover.hidden = true;
    this.repaint();
  }

  showHover(found, at) {
    const {hover, scroller} = this.parts;
    hover.hidden = !found;
    if (!found) return;
    const {name, title, rows} = this.describe(found);
    const run = this.report.runs.length > 1 ? `${this.report.runs[found.run].title} ` : '';
    hover.replaceChildren(
        element(
            'p', {class: 'name'}, element('strong', {}, `${run}${name}`), title ? ` ${title}` : ''),
        element(
            'dl', {},
            ...rows.flatMap(
                ({label, text}) => [element('dt', {}, label), element('dd', {}, text)])));
    const frame = scroller.getBoundingClientRect();
    const left =
        at.x + 18 + hover.offsetWidth > frame.width ? at.x - 14 - hover.offsetWidth : at.x + 18;
    const top = frame.top + at.y + 20 + hover.offsetHeight > innerHeight ?
        at.y - 16 - hover.offsetHeight :
        at.y + 20;
    hover.style.transform = `translate(${Math.max(left, 0)}px, ${top}px)`;
  }

  onDown(event) {
    if (event.button !== 0) return;
    this.parts.hover.hidden = true;
    this.drag = {...this.position(event), window: {...this.window}, moved: false};
    this.parts.canvas.setPointerCapture(event.pointerId);
  }

  onUp(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.moved) return;
    const at = this.position(event);
    if (at.x < this.stage.box.left) return this.toggleGroup(this.stage.rowAt(at.y)?.group);
    const found = this.pick(at);
    this.select(found);
  }

  /** Shows the devices of a group each in a row, or all in one. */
  toggleGroup(group) {
    if (!group || group.length === 1) return;
    const {open} = this.stage;
    if (!open.delete(group[0])) open.add(group[0]);
    this.rearrange();
  }

  /** Shows the devices of all groups each in a row, or each group in one. */
  setApart(apart) {
    this.stage.open = new Set(apart ? this.report.groups.map(([first]) => first) : []);
    this.rearrange();
  }

  rearrange() {
    this.stage.arrange();
    this.update();
  }

  onWheel(event) {
    const along = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const at = this.stage.timeAt(this.position(event).x, this.window);
      this.window = zoomWindow(this.window, at, 1.002 ** -event.deltaY, this.report.length);
    } else if (Math.abs(along) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.window = panWindow(this.window, along / this.stage.box.width, this.report.length);
    }
  }

  /** Where the keys zoom to: the pointer, else what is selected, else the middle. */
  get anchor() {
    const {from, to} = this.window;
    if (this.pointer) {
      return Math.min(Math.max(this.stage.timeAt(this.pointer.x, this.window), from), to);
    }
    const {selected} = this.state;
    if (selected) {
      const {begin, end} = spanOf(this.report.runs[selected.run], selected);
      const middle = (begin + end) / 2;
      if (middle >= from && middle <= to) return middle;
    }
    return (from + to) / 2;
  }

  zoom(factor) {
    this.window = zoomWindow(this.window, this.anchor, factor, this.report.length);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const onCanvas = document.activeElement === this.parts.canvas;
    const isOurs = document.activeElement === document.body && (this.parts.takesKeys?.() ?? true);
    if (!onCanvas && !isOurs) return;
    const {length} = this.report;
    const acts = {
      w: () => this.zoom(ZOOM),
      '+': () => this.zoom(ZOOM),
      '=': () => this.zoom(ZOOM),
      s: () => this.zoom(1 / ZOOM),
      '-': () => this.zoom(1 / ZOOM),
      a: () => {
        this.window = panWindow(this.window, -PAN, length);
      },
      d: () => {
        this.window = panWindow(this.window, PAN, length);
      },
      f: () => this.showSelected(),
      0: () => this.showAll(),
      Escape: () => (this.state.selected ? this.select(null) : this.showAll()),
    };
    const onlyOnCanvas = {
      Home: () => this.showAll(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.stepLane(-1),
      ArrowDown: () => this.stepLane(1),
      Enter: () => this.showSelected(),
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = acts[key] ?? (onCanvas ? onlyOnCanvas[key] : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  }

  showAll() {
    this.window = wholeRun(this.report.length);
  }

  /** So near that the selected item takes a tenth of the width. */
  showSelected() {
    const {selected} = this.state;
    if (!selected) return;
    const {begin, end} = spanOf(this.report.runs[selected.run], selected);
    const length = Math.max(end - begin, 1);
    const middle = (begin + end) / 2;
    this.window = {from: middle - 5 * length, to: middle + 5 * length};
    this.reveal();
  }

  /**
   * Selects an item ({run, item}), an idle gap ({run, slot, gap}) or nothing, and brings it into
   * sight.
   */
  select(selected) {
    this.state.selected = selected;
    if (selected) this.reveal();
    this.showDetails();
    this.update();
  }

  reveal() {
    const {selected} = this.state;
    const run = this.report.runs[selected.run];
    const {lane, begin, end} = spanOf(run, selected);
    this.state.window = (() => {
      const shown = revealInWindow(this.window, begin, end, this.report.length);
      return shown.to - shown.from >= this.report.length ? null : shown;
    })();
    if (lane < run.slots) this.stage.reveal(selected.run, lane);
  }

  /** To what is before or after on the same device; without a selection to the first in sight. */
  step(direction) {
    const {selected} = this.state;
    if (!selected) return this.selectNear(0, 0, this.window.from);
    const found = neighbour(this.report.runs[selected.run], selected, direction);
    if (found) this.select({run: selected.run, ...found});
  }

  /** To what is at the same time in the lane above or below. */
  stepLane(direction) {
    const {selected} = this.state;
    if (!selected) return this.selectNear(0, 0, this.window.from);
    const {runs} = this.report;
    const run = runs[selected.run];
    const {lane, begin, end} = spanOf(run, selected);
    if (lane >= run.slots) return;
    const other = this.stage.lanes.rows[this.stage.rowOfSlot[lane] + selected.run + direction];
    if (!other) return;
    const found = stateAt(runs[other.run], other.slot, (begin + end) / 2);
    if (found) this.select({run: other.run, ...found});
  }

  selectNear(run, slot, time) {
    const item = nearestItem(this.report.runs[run], slot, time);
    if (item >= 0) this.select({run, item});
  }

  /** What is selected, in words, with ways to what it tells of. */
  showDetails() {
    const {details} = this.parts;
    const {selected} = this.state;
    if (!selected) {
      details.replaceChildren(element(
          'p', {class: 'empty'},
          'Point at an op or at idle time to see what it is; click it, or focus the timeline and ' +
              'press an arrow key, to keep it here.'));
      return;
    }
    const {name, title, rows} = this.describe(selected);
    const run = this.report.runs.length > 1 ? `${this.report.runs[selected.run].title} ` : '';
    const value = ({text, item}) => {
      if (item === undefined) return text;
      const button = element('button', {type: 'button', class: 'link'}, text);
      button.addEventListener('click', () => this.select({run: selected.run, item}));
      return button;
    };
    details.replaceChildren(
        element('h3', {}, `${run}${name}`), element('p', {class: 'kind'}, title),
        element(
            'dl', {},
            ...rows.flatMap(
                (row) => [element('dt', {}, row.label), element('dd', {}, value(row))])));
  }
}
