// The canvas of the timeline: where its lanes lie, and one frame of it.
// SPDX-License-Identifier: MIT
import {deviceNames} from './alike.js';
import {columnEdges} from './density.js';
import {fontOf, inks, paintAxis, paintCriticalPath, paintGaps, paintLabels, paintLane, paintPlace, paintTransfer, transfersInSight,} from './paint.js';
import {firstAfter, slotsOf, spanOf} from './run.js';

const AXIS = 30;
const BETWEEN_DEVICES = 5;
const MOST_HEIGHT = 760;
/** On a canvas narrower than this, names are short. */
const NARROW = 500;
/** How high the timeline may be, and each of its lanes. */
const USUAL_ROOM = {
  all: 700,
  lane: 38
};

/** What is shown in a row: the slots of a group as one, or, of a group that is open, each slot. */
export function rowsOf(groups, open) {
  return groups.flatMap(
      (group) =>
          (open.has(group[0]) ? group.map((slot) => ({slots: [slot], group})) :
                                [{slots: group, group}]));
}

/**
 * Where every lane lies, from the top of the first one: what is shown in a row after the other, its
 * runs together.
 */
export function layLanes(shown, runs, room = USUAL_ROOM) {
  const lanes = runs * shown.length;
  const below = lanes > 24 ? 4 : 6;  // the band of the critical path, and air
  const height = Math.max(9, Math.min(room.lane, Math.floor(room.all / lanes) - below));
  const rows = [];
  let top = 4;
  for (const {slots, group} of shown) {
    for (let run = 0; run < runs; ++run) {
      rows.push({run, slot: slots[0], slots, group, top, height});
      top += height + below;
    }
    if (runs > 1) top += BETWEEN_DEVICES;
  }
  return {rows, height: top + 4};
}

/** A canvas that shows a window of time of all lanes, and scrolls where they do not fit. */
export class Stage {
  constructor(report, scroller, canvas) {
    this.report = report;
    this.scroller = scroller;
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.open = new Set();
    this.room = USUAL_ROOM;
    this.scrolled = 0;  // kept, for the browser lays the page anew to tell it
    scroller.addEventListener('scroll', () => {
      this.scrolled = scroller.scrollTop;
    });
    this.arrange();
  }

  /**
   * Shows another report. Where it has the same rows nothing is laid anew; else a group that was
   * open stays so where its first slot leads one, too.
   */
  replace(report) {
    const layout = ({runs, groups}) =>
        JSON.stringify([runs.length, groups, runs[0].layout.devices]);
    const isSame = layout(report) === layout(this.report);
    if (String(report.classes) !== String(this.report.classes)) this.ink = null;
    this.report = report;
    if (!isSame) this.arrange();
  }

  /** Lays the lanes anew: after a change of what is open, or of the room for all. */
  arrange() {
    const {runs, groups} = this.report;
    const shown = rowsOf(groups, this.open);
    this.lanes = layLanes(shown, runs.length, this.room);
    this.rowOfSlot = new Uint32Array(runs[0].slots);
    shown.forEach(({slots}, i) => slots.forEach((slot) => {
      this.rowOfSlot[slot] = i * runs.length;
    }));
    const most = this.room === USUAL_ROOM ? MOST_HEIGHT : this.room.all + AXIS;
    this.height = Math.min(this.lanes.height + AXIS, most);
    this.scroller.style.height = `${this.height}px`;
    this.canvas.parentElement.style.height = `${this.lanes.height + AXIS}px`;
    this.resize();
  }

  /** Gives the lanes so much room, {all, lane}; null = what is usual. */
  setRoom(room) {
    if (room === null && this.room === USUAL_ROOM) return;
    this.room = room ?? USUAL_ROOM;
    this.arrange();
  }

  /** Whether this slot has a row of its own, or stands for the others in one. */
  isShown(slot) {
    return this.lanes.rows[this.rowOfSlot[slot]].slot === slot;
  }

  /** What stands before a row. */
  nameOf({run, slots, group}) {
    const name = deviceNames(this.report.runs[run], slots);
    if (group.length === 1) return name;
    const mark = slots.length > 1 ? '▸' : slots[0] === group[0] ? '▾' : '\u2007';
    return `${mark} ${this.width < NARROW ? name.replace(' (alike)', '') : name}`;
  }

  get fontOfNames() {
    const {height} = this.lanes.rows[0];
    return height < 11 ? 11 : Math.max(13, Math.min(20, Math.round(height * 0.28)));
  }

  /** The width of the names. */
  measureGutter() {
    this.context.font = `${this.fontOfNames}px system-ui, sans-serif`;
    const widths = (texts) =>
        texts.reduce((most, text) => Math.max(most, this.context.measureText(text).width), 0);
    const names = widths(this.lanes.rows.map((row) => this.nameOf(row)));
    const {runs} = this.report;
    const titles = runs.length > 1 ? widths(runs.map((run) => run.title)) + 12 : 0;
    return Math.ceil(Math.max(names + titles + 20, 84));
  }

  resize() {
    this.scale = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.width = Math.max(this.scroller.clientWidth, 320);
    this.gutter = this.measureGutter();
    const [columns, rows] = [this.width, this.height].map((size) => Math.round(size * this.scale));
    if (this.canvas.width !== columns || this.canvas.height !== rows) {
      this.canvas.width = columns;
      this.canvas.height = rows;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    this.box = {
      left: this.gutter,
      top: AXIS,
      width: this.width - this.gutter - 8,
      height: this.height - AXIS
    };
  }

  /** The lane of a run's slot as it lies on the canvas now. */
  laneBox(run, slot) {
    const row = this.lanes.rows[this.rowOfSlot[slot] + run];
    return {
      left: this.box.left,
      width: this.box.width,
      height: row.height,
      top: AXIS + row.top - this.scrolled
    };
  }

  /** The row at this height of the canvas, or null. */
  rowAt(y) {
    if (y < AXIS) return null;
    const inside = y - AXIS + this.scroller.scrollTop;
    return this.lanes.rows.find((row) => inside >= row.top && inside <= row.top + row.height + 3) ??
        null;
  }

  timeAt(x, window) {
    return window.from + ((x - this.box.left) / this.box.width) * (window.to - window.from);
  }

  /** Scrolls as far as it takes for this lane to be in sight. */
  reveal(run, slot) {
    const row = this.lanes.rows[this.rowOfSlot[slot] + run];
    if (!row) return;
    const {scroller} = this;
    const room = this.box.height - row.height - 12;
    if (row.top < scroller.scrollTop) scroller.scrollTop = row.top - 8;
    if (row.top > scroller.scrollTop + room) scroller.scrollTop = row.top - room;
    this.scrolled = scroller.scrollTop;
  }

  /** Paints everything; returns whether there were too many transfers to show. */
  paint({window, palette, critical, transfers, selected, hovered, spot}) {
    const {context, scale, box, report} = this;
    if (!this.ink || this.ink.palette !== palette) this.ink = inks(palette, report.classes);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, this.width, this.height);
    const rows = this.lanes.rows.filter((row) => {
      const {top, height} = this.laneBox(row.run, row.slot);
      return top + height > AXIS - 4 && top < this.height;
    });
    this.paintLanes(rows, window);
    const letters = this.room === USUAL_ROOM ? 12 : 16;
    const view = {window, box, tickNs: report.tickNs, letters};
    context.save();
    context.beginPath();
    context.rect(box.left, AXIS, box.width, this.height - AXIS);
    context.clip();
    context.font = `600 ${fontOf(this.lanes.rows[0].height)}px system-ui, sans-serif`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const crowded = transfers ? this.paintTransfers(view, palette) : false;
    for (const {run, slot} of rows) {
      const lane = this.laneBox(run, slot);
      paintGaps(context, report.runs[run], slot, lane, window, palette);
      paintLabels(context, report.runs[run], slot, lane, window, palette);
    }
    if (critical) {
      report.runs.forEach((run, r) => {
        const laneBox = (slot) => this.laneBox(r, slot);
        paintCriticalPath(context, run, report.paths[r], view, laneBox, palette);
      });
    }
    if (spot) rows.forEach((row) => this.paintVeil(row, spot, view, palette));
    for (const [marked, width] of [[hovered, 1.5], [selected, 2.5]]) {
      if (marked) this.paintMark(marked, width, view, palette);
    }
    context.restore();
    this.paintNames(rows, palette);
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, this.width, AXIS - 2);
    paintAxis(context, {...view, box: {...box, height: 0}}, palette);
    paintPlace(context, view, report.length, palette);
    return crowded;
  }

  paintLanes(rows, window) {
    const {context, scale, box, report} = this;
    const columns = Math.round(box.width * scale);
    const height = Math.round(this.lanes.rows[0].height * scale);
    if (!this.strip || this.strip.width !== columns || this.strip.height !== height) {
      this.strip = context.createImageData(columns, height);
      this.pixels = new Uint32Array(this.strip.data.buffer);
    }
    const edges = columnEdges(window.from, window.to, columns);
    for (const row of rows) {
      paintLane(
          this.pixels, columns, 0, height, report.runs[row.run], report.sums[row.run], row.slot,
          edges, this.ink, scale);
      const {top} = this.laneBox(row.run, row.slot);
      context.putImageData(this.strip, Math.round(box.left * scale), Math.round(top * scale));
    }
  }

  paintTransfers(view, palette) {
    const {context, report} = this;
    let crowded = false;
    context.strokeStyle = palette.soft;
    context.globalAlpha = report.runs.length > 1 ? 0.45 : 0.75;
    context.lineWidth = 1;
    report.runs.forEach((run, r) => {
      const items = transfersInSight(run, view.window);
      if (items === null) crowded = true;
      for (const item of items ?? []) {
        const [from, to] = slotsOf(run, item);
        if (from >= 0 && !this.isShown(from) && !this.isShown(to)) continue;
        paintTransfer(context, run, item, view, (slot) => this.laneBox(r, slot));
      }
    });
    context.globalAlpha = 1;
    return crowded;
  }

  /** Dims what was before the spot, and hides what comes after it. */
  paintVeil({run, slot}, spot, view, palette) {
    const {context, report, box} = this;
    const of = report.runs[run];
    const perTick = box.width / (view.window.to - view.window.from);
    const x = (time) =>
        box.left + Math.min(Math.max((time - view.window.from) * perTick, 0), box.width);
    const lane = this.laneBox(run, slot);
    const veil = (from, until, alpha) => {
      context.globalAlpha = alpha;
      context.fillRect(x(from), lane.top - 2, x(until) - x(from), lane.height + 8);
    };
    // Of ops all that has begun is shown to its end.
    const first = firstAfter(of, slot, spot.until);
    const isRunning = spot.ops && first < of.starts[slot + 1] && of.begin[first] <= spot.until;
    context.fillStyle = palette.ground;
    if (!spot.ops) veil(0, spot.from, 0.6);
    veil(isRunning ? of.end[first] : spot.until, view.window.to, 0.9);
    context.globalAlpha = 1;
    for (const op of spot.ops ?? [])
      if (op.slot === slot) this.paintMark({run, item: op.item}, 4, view, palette);
  }

  paintMark(marked, width, view, palette) {
    const {context, report, box} = this;
    const {run} = marked;
    const of = report.runs[run];
    const {lane: place, begin, end} = spanOf(of, marked);
    context.strokeStyle = palette.accent;
    context.lineWidth = width;
    const laneBox = (slot) => this.laneBox(run, slot);
    if (place >= of.slots) {
      if (slotsOf(of, marked.item)[0] >= 0) paintTransfer(context, of, marked.item, view, laneBox);
      return;
    }
    const perTick = box.width / (view.window.to - view.window.from);
    const left = box.left + (begin - view.window.from) * perTick;
    const length = Math.max((end - begin) * perTick, 3);
    const lane = laneBox(place);
    context.strokeRect(left, lane.top - 1, length, lane.height + 2);
  }

  paintNames(rows, palette) {
    const {context, report} = this;
    context.fillStyle = palette.ground;
    context.fillRect(0, AXIS - 2, this.gutter - 1, this.height);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.font = `${this.fontOfNames}px system-ui, sans-serif`;
    for (const row of rows) {
      const box = this.laneBox(row.run, row.slot);
      const middle = box.top + box.height / 2;
      if (report.runs.length > 1) {
        context.fillStyle = palette.soft;
        context.fillText(report.runs[row.run].title, this.gutter - 12, middle);
        if (row.run > 0) continue;
        context.textAlign = 'left';
      }
      context.fillStyle = palette.ink;
      context.fillText(this.nameOf(row), report.runs.length > 1 ? 0 : this.gutter - 12, middle);
      context.textAlign = 'right';
    }
  }
}
