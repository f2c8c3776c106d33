// Paints the timeline: lanes as exact shares of each pixel column, then text, lines and marks.
// SPDX-License-Identifier: MIT
import {CLASSES, densityColumns} from './density.js';
import {gapTexts} from './describe.js';
import {axisMarks, formatTime} from './format.js';
import {channels, mix, packed, tile} from './palette.js';
import {CAUSES, firstAfter, firstWhere, isTransfer, LETTERS, slotsOf} from './run.js';

/** More lines between devices than this are a blur and are left out. */
export const MOST_LINES = 1500;
/** An op this wide (in CSS pixels) bears its micro-batch. */
const LABELED = 17;

/**
 * The colours of a theme as the painter needs them: a tile for each of `classes`, and those of
 * idle time.
 */
export function inks(palette, classes) {
  return {
    palette,
    tiles: classes.map((c) => tile(CLASSES[c], palette)),
    bases: classes.map((c) => channels(palette[CLASSES[c]])),
    idle: channels(palette.idle),
    idleTile: tile('idle', palette),
    ground: packed(channels(palette.ground)),
  };
}

/** Where more ops than one in so many columns begin, the columns of a lane show shares. */
const CROWDED = 6;

/**
 * One lane as pixels, `height` rows of `edges.length - 1` columns from `top` in `pixels` (as wide
 * as `stride`). A column that one op or idle time fills is all of its pattern. In any other of a
 * lane with room for its ops stands an edge: it is the blend of what it holds. Where several ops
 * begin in a column, or there is no room, its classes stand one on the other, each as high as its
 * share, and above them the idle time. After the end of the run there is nothing.
 */
export function paintLane(pixels, stride, top, height, run, busySum, slot, edges, ink, scale) {
  const classes = ink.tiles.length;
  const columns = edges.length - 1;
  const busy = new Float64Array(columns * classes);
  const begins = new Uint32Array(columns);
  densityColumns(run, busySum, slot, edges, busy, begins);
  const shift = scale >= 1.5 ? 1 : 0;
  const crowded = begins.reduce((sum, count) => sum + count, 0) * CROWDED > columns;
  const first = top * stride;
  const rows = Math.min(8 << shift, height);  // then each pattern repeats
  const stacked = [];
  for (let x = 0; x < columns; ++x) {
    const width = edges[x + 1] - edges[x];
    let at = first + x;
    let total = 0;
    let most = 0;
    for (let c = 0; c < classes; ++c) {
      const share = busy[x * classes + c];
      total += share;
      if (share > busy[x * classes + most]) most = c;
    }
    if (edges[x] >= run.layout.makespan) {
      for (let y = 0; y < rows; ++y, at += stride) pixels[at] = ink.ground;
    } else if (width <= 0 || total <= 0) {
      for (let y = 0; y < rows; ++y, at += stride) {
        pixels[at] = ink.idleTile[(((y >> shift) & 7) << 3) | ((x >> shift) & 7)];
      }
    } else if (busy[x * classes + most] >= width) {
      const colorsOfTile = ink.tiles[most];
      for (let y = 0; y < rows; ++y, at += stride) {
        pixels[at] = colorsOfTile[(((y >> shift) & 7) << 3) | ((x >> shift) & 7)];
      }
    } else if (begins[x] <= 1 && !crowded) {
      const color = ink.idle.map((channel) => channel * (1 - total / width));
      for (let c = 0; c < classes; ++c) {
        const share = busy[x * classes + c] / width;
        for (let i = 0; i < 3; ++i) color[i] += ink.bases[c][i] * share;
      }
      const blended = packed(color.map(Math.round));
      for (let y = 0; y < rows; ++y, at += stride) pixels[at] = blended;
    } else {
      stacked.push(x);
    }
  }
  for (let y = rows, to = first + rows * stride; y < height; ++y, to += stride) {
    const from = to - rows * stride;
    pixels.copyWithin(to, from, from + columns);
  }
  for (const x of stacked)
    paintStack(pixels, stride, first + x, x, height, busy, edges[x + 1] - edges[x], ink, shift);
}

/** The shares of one column from the bottom up; the pixel in which they end is blended. */
function paintStack(pixels, stride, first, x, height, busy, width, ink, shift) {
  const classes = ink.tiles.length;
  let total = 0;
  let last = 0;
  for (let c = 0; c < classes; ++c) {
    total += (busy[x * classes + c] / width) * height;
    if (busy[x * classes + c] > 0) last = c;
  }
  const whole = Math.min(Math.floor(total + 1e-9), height);
  let painted = 0;
  let at = first + (height - 1) * stride;
  let level = 0;
  for (let c = 0; c <= last; ++c) {
    level += (busy[x * classes + c] / width) * height;
    const colorsOfTile = ink.tiles[c];
    const until = c < last ? Math.min(Math.round(level), whole) : whole;
    for (; painted < until; ++painted, at -= stride) {
      const y = height - 1 - painted;
      pixels[at] = colorsOfTile[(((y >> shift) & 7) << 3) | ((x >> shift) & 7)];
    }
  }
  if (painted < height && total > painted) {
    pixels[at] = packed(mix(ink.idle, ink.bases[last], total - painted));
    ++painted;
    at -= stride;
  }
  for (; painted < height; ++painted, at -= stride) {
    const y = height - 1 - painted;
    pixels[at] = ink.idleTile[(((y >> shift) & 7) << 3) | ((x >> shift) & 7)];
  }
}

/** The items of a lane that are in sight, as [first, end). */
export function itemsInSight(run, lane, window) {
  const first = firstAfter(run, lane, window.from);
  return [first, firstWhere(first, run.starts[lane + 1], (i) => run.begin[i] >= window.to)];
}

/**
 * The cause and the length of idle gaps, on a ground of their own, where there is room for them.
 */
export function paintGaps(context, run, slot, box, window, palette) {
  const gaps = run.gaps[slot];
  const count = gaps.begin.length;
  const first = firstWhere(0, count, (i) => gaps.end[i] > window.from);
  const end = firstWhere(first, count, (i) => gaps.begin[i] >= window.to);
  if (end - first > box.width / 5 || box.height < 14) return;
  const perTick = box.width / (window.to - window.from);
  for (let i = first; i < end; ++i) {
    const left = Math.max((gaps.begin[i] - window.from) * perTick, 0);
    const right = Math.min((gaps.end[i] - window.from) * perTick, box.width);
    if (right - left < 24) continue;
    const length = formatTime((gaps.end[i] - gaps.begin[i]) * run.layout.tick_ns);
    const text = gapTexts(CAUSES[gaps.cause[i]], length)
                     .find((one) => 0.58 * fontOf(box.height) * one.length + 18 <= right - left);
    if (!text) continue;
    const width = context.measureText(text).width + 10;
    const [x, y] = [box.left + (left + right) / 2, box.top + box.height / 2];
    const height = Math.min(box.height - 4, 1.6 * fontOf(box.height));
    context.fillStyle = palette.idle;
    context.fillRect(x - width / 2, y - height / 2, width, height);
    context.fillStyle = palette['idle-label'];
    context.fillText(text, x, y + 0.5);
  }
}

/** The size of the letters in a lane of this height. */
export function fontOf(height) {
  return Math.max(11, Math.min(26, Math.round(height * 0.3)));
}

/** Micro-batches, and edges between ops, where there is room for them. */
export function paintLabels(context, run, slot, box, window, palette) {
  const [first, end] = itemsInSight(run, slot, window);
  const perTick = box.width / (window.to - window.from);
  if (end - first > box.width / 5) return;
  for (let item = first; item < end; ++item) {
    const left = Math.max((run.begin[item] - window.from) * perTick, 0);
    const right = Math.min((run.end[item] - window.from) * perTick, box.width);
    if (right - left < 5) continue;
    context.fillStyle = palette.ground;
    context.fillRect(box.left + left - 0.5, box.top, 1, box.height);
    context.fillRect(box.left + right - 0.5, box.top, 1, box.height);
    if (right - left < LABELED || box.height < 11) continue;
    const number = String(run.microBatch[item]);
    const letter = isTransfer(run.kind[item]) ? '' : LETTERS[run.kind[item]];
    const size = fontOf(box.height) / 11;
    const text = right - left > size * 8 * (number.length + 1) + 8 ? `${letter}${number}` : number;
    if (right - left < size * 7 * text.length + 4) continue;
    context.fillStyle = palette.label;
    context.fillText(text, box.left + (left + right) / 2, box.top + box.height / 2 + 0.5);
  }
}

/** The marks of the time axis, and faint lines below them. */
export function paintAxis(context, view, palette) {
  const {window, tickNs, box} = view;
  const perTick = box.width / (window.to - window.from);
  context.font = `${view.letters}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const mark of axisMarks(window.from * tickNs, window.to * tickNs, box.width / 110)) {
    const x = Math.round(box.left + (mark.at / tickNs - window.from) * perTick) + 0.5;
    context.fillStyle = palette.line;
    context.fillRect(x - 0.5, box.top - 6, 1, box.height + 6);
    const half = context.measureText(mark.text).width / 2;
    const center = Math.min(Math.max(x, box.left + half), box.left + box.width - half);
    context.fillStyle = palette.soft;
    context.fillText(mark.text, center, box.top - 15);
  }
}

/** Above the axis, where in the whole run the window lies, unless it is all of it. */
export function paintPlace(context, view, length, palette) {
  const {window, box} = view;
  if (window.to - window.from >= length) return;
  context.fillStyle = palette.line;
  context.fillRect(box.left, 0, box.width, 3);
  context.fillStyle = palette.accent;
  const width = Math.max((box.width * (window.to - window.from)) / length, 3);
  context.fillRect(box.left + (box.width * window.from) / length, 0, width, 3);
}

/** The transfers of a run that are in sight, or null where they are too many to tell apart. */
export function transfersInSight(run, window) {
  const found = [];
  const lanes = run.starts.length - 2;
  let count = 0;
  const ranges = [];
  for (let lane = run.slots; lane < lanes; ++lane) {
    const range = itemsInSight(run, lane, window);
    count += range[1] - range[0];
    ranges.push(range);
    if (count > MOST_LINES) return null;
  }
  for (const [first, end] of ranges)
    for (let item = first; item < end; ++item) found.push(item);
  return found;
}

/** A line from where a transfer leaves to where it arrives. */
export function paintTransfer(context, run, item, view, laneBox) {
  const [from, to] = slotsOf(run, item);
  if (from < 0 || from === to) return;
  const perTick = view.box.width / (view.window.to - view.window.from);
  const x = (time) => view.box.left + (time - view.window.from) * perTick;
  const start = laneBox(from);
  const stop = laneBox(to);
  if (start.top === stop.top) return;
  const down = start.top < stop.top;
  context.beginPath();
  context.moveTo(x(run.begin[item]), down ? start.top + start.height : start.top);
  context.lineTo(x(run.end[item]), down ? stop.top : stop.top + stop.height);
  context.stroke();
}

/**
 * The critical path: a band below each of its ops, and, unless they are too many to tell apart,
 * lines where it goes over to another device. `lanes` are those of its items.
 */
export function paintCriticalPath(context, run, {items, lanes}, view, laneBox, palette) {
  const {window, box} = view;
  const perTick = box.width / (window.to - window.from);
  const x = (time) => box.left + Math.min(Math.max((time - window.from) * perTick, 0), box.width);
  const first = firstWhere(0, items.length, (i) => run.end[items[i]] >= window.from);
  const end = firstWhere(first, items.length, (i) => run.begin[items[i]] > window.to);
  const lined = end - first <= MOST_LINES;
  context.fillStyle = palette.ink;
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.5;
  const painted = new Float64Array(run.slots).fill(-1);  // how far, in each lane
  for (let at = first; at < end; ++at) {
    const item = items[at];
    const lane = lanes[at];
    if (lane >= run.slots) {
      if (lined) paintTransfer(context, run, item, view, laneBox);
      continue;
    }
    const right = x(run.end[item]);
    if (right < painted[lane] + 0.5) continue;
    painted[lane] = right;
    const left = x(run.begin[item]);
    const lower = laneBox(lane);
    context.fillRect(
        left, lower.top + lower.height, Math.max(right - left, 1), lower.height < 16 ? 2 : 3);
  }
}
