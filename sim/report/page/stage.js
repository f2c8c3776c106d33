// The canvas of the timeline: where its lanes lie, and one frame of it.
// SPDX-License-Identifier: MIT
import {columnEdges} from './density.js';
import {inks, paintAxis, paintCriticalPath, paintLabels, paintLane, paintPlace, paintTransfer, transfersInSight,} from './paint.js';
import {laneOf, slotsOf} from './run.js';

const AXIS = 30;
const BETWEEN_DEVICES = 5;
const MOST_HEIGHT = 760;

/**
 * Where every lane lies, from the top of the first one: a device after the other, its runs
 * together.
 */
export function layLanes(runs) {
  const lanes = runs.length * runs[0].slots;
  const below = lanes > 24 ? 4 : 6;  // the band of the critical path, and air
  const height = Math.max(9, Math.min(38, Math.floor(700 / lanes) - below));
  const rows = [];
  let top = 4;
  for (let slot = 0; slot < runs[0].slots; ++slot) {
    runs.forEach((_, run) => {
      rows.push({run, slot, top, height});
      top += height + below;
    });
    if (runs.length > 1) top += BETWEEN_DEVICES;
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
    this.lanes = layLanes(report.runs);
    const titled = report.runs.length > 1;
    this.gutter = titled ? 150 : 84;
    this.height = Math.min(this.lanes.height + AXIS, MOST_HEIGHT);
    scroller.style.height = `${this.height}px`;
    canvas.parentElement.style.height = `${this.lanes.height + AXIS}px`;
    this.resize();
  }

  resize() {
    this.scale = Math.min(globalThis.devicePixelRatio || 1, 2);
    this.width = Math.max(this.scroller.clientWidth, 320);
    this.canvas.width = Math.round(this.width * this.scale);
    this.canvas.height = Math.round(this.height * this.scale);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.box = {
      left: this.gutter,
      top: AXIS,
      width: this.width - this.gutter - 8,
      height: this.height - AXIS
    };
    this.strip = null;
  }

  /** The lane of a run's slot as it lies on the canvas now. */
  laneBox(run, slot) {
    const row = this.lanes.rows[slot * this.report.runs.length + run];
    return {
      left: this.box.left,
      width: this.box.width,
      height: row.height,
      top: AXIS + row.top - this.scroller.scrollTop
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
    const row = this.lanes.rows[slot * this.report.runs.length + run];
    if (!row) return;
    const {scroller} = this;
    const room = this.box.height - row.height - 12;
    if (row.top < scroller.scrollTop) scroller.scrollTop = row.top - 8;
    if (row.top > scroller.scrollTop + room) scroller.scrollTop = row.top - room;
  }

  /** Paints everything; returns whether there were too many transfers to show. */
  paint({window, palette, critical, transfers, selected, hovered}) {
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
    const view = {window, box, tickNs: report.tickNs};
    context.save();
    context.beginPath();
    context.rect(box.left, AXIS, box.width, this.height - AXIS);
    context.clip();
    context.font = '600 11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const crowded = transfers ? this.paintTransfers(view, palette) : false;
    for (const row of rows) {
      paintLabels(
          context, report.runs[row.run], row.slot, this.laneBox(row.run, row.slot), window,
          palette);
    }
    if (critical) {
      report.runs.forEach((run, r) => {
        const laneBox = (slot) => this.laneBox(r, slot);
        paintCriticalPath(context, run, report.paths[r], view, laneBox, palette);
      });
    }
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
    context.strokeStyle = palette.link;
    context.globalAlpha = report.runs.length > 1 ? 0.45 : 0.75;
    context.lineWidth = 1;
    report.runs.forEach((run, r) => {
      const items = transfersInSight(run, view.window);
      if (items === null) crowded = true;
      for (const item of items ?? []) {
        paintTransfer(context, run, item, view, (slot) => this.laneBox(r, slot));
      }
    });
    context.globalAlpha = 1;
    return crowded;
  }

  paintMark({run, item}, width, view, palette) {
    const {context, report, box} = this;
    const of = report.runs[run];
    context.strokeStyle = palette.select;
    context.lineWidth = width;
    const laneBox = (slot) => this.laneBox(run, slot);
    if (laneOf(of, item) >= of.slots) {
      if (slotsOf(of, item)[0] >= 0) paintTransfer(context, of, item, view, laneBox);
      return;
    }
    const perTick = box.width / (view.window.to - view.window.from);
    const left = box.left + (of.begin[item] - view.window.from) * perTick;
    const length = Math.max((of.end[item] - of.begin[item]) * perTick, 3);
    const lane = laneBox(laneOf(of, item));
    context.strokeRect(left, lane.top - 1, length, lane.height + 2);
  }

  paintNames(rows, palette) {
    const {context, report} = this;
    context.fillStyle = palette.ground;
    context.fillRect(0, AXIS - 2, this.gutter - 1, this.height);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const row of rows) {
      const box = this.laneBox(row.run, row.slot);
      const middle = box.top + box.height / 2;
      const device = `device ${report.runs[row.run].layout.devices[row.slot]}`;
      context.font = `${row.height < 11 ? 11 : 13}px system-ui, sans-serif`;
      if (report.runs.length === 1) {
        context.fillStyle = palette.ink;
        context.fillText(device, this.gutter - 12, middle);
        continue;
      }
      context.fillStyle = palette.soft;
      context.fillText(report.runs[row.run].title, this.gutter - 12, middle);
      if (row.run > 0) continue;
      context.fillStyle = palette.ink;
      context.textAlign = 'left';
      context.fillText(device, 0, middle);
      context.textAlign = 'right';
    }
  }
}
