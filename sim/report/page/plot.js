// A chart of points with axes, as SVG: drawn, pointed at, clicked, and walked along by keys.
// SPDX-License-Identifier: MIT
import {shape} from './dom.js';
import {placeBeside} from './looks.js';
import {crossPath, markPath} from './marks.js';

/** From this far away a point is still meant, in units of the chart. */
const NEAR = 26;

/** A line through places ([x, y]) as an SVG path; null breaks it. */
export function linePath(places) {
  let path = '';
  let isDown = false;
  for (const place of places) {
    if (place) path += `${isDown ? 'L' : 'M'}${place[0].toFixed(1)} ${place[1].toFixed(1)}`;
    isDown = place !== null;
  }
  return path;
}

/** The index of the place nearest to (x, y), none farther than `reach`; -1 where there is none. */
export function nearestPlace(places, x, y, reach = NEAR) {
  let nearest = -1;
  let least = reach * reach;
  places.forEach(([px, py], i) => {
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance > least) return;
    least = distance;
    nearest = i;
  });
  return nearest;
}

/**
 * A chart. `spec` has its name, width and height, the marks of its axes ({at from 0 to 1, text}),
 * their titles, `points` ({row, x and y from 0 to 1, series, crossed}), `lines` ({places, class}),
 * `linesAbove` the points, `limits` ({x or y, text}), and `styles` by series. `listeners` are told
 * of a row that is pointed at (`hover`, with the event, or null) or chosen (`choose`), and of keys
 * (`step`).
 */
export class Plot {
  constructor(spec, listeners) {
    this.spec = spec;
    this.box = {
      left: 66,
      top: 12,
      width: spec.width - 66 - (spec.right ?? 16),
      height: spec.height - 12 - 46
    };
    this.places = spec.points.map(({x, y}) => this.place(x, y));
    this.ring = shape('circle', {r: 9, class: 'ring', visibility: 'hidden'});
    this.svg = shape(
        'svg', {
          viewBox: `0 0 ${spec.width} ${spec.height}`,
          tabindex: 0,
          role: 'application',
          'aria-label': `${spec.name}. ${spec.points.length} points; arrow keys go from point to ` +
              'point, Escape lets it go. The table below holds the same numbers.',
          class: 'plot',
        },
        ...this.axes(), ...this.limits(), ...this.lines(this.spec.lines), ...this.marks(),
        ...this.lines(this.spec.linesAbove ?? []), ...this.namesAtEnds(), ...this.namesBeside(),
        this.ring);
    this.listen(listeners);
  }

  place(x, y) {
    const {left, top, width, height} = this.box;
    return [left + x * width, top + (1 - y) * height];
  }

  axes() {
    const {left, top, width, height} = this.box;
    const {xMarks, yMarks, xTitle} = this.spec;
    const bottom = top + height;
    return [
      ...yMarks.flatMap(({at, text}) => {
        const [, y] = this.place(0, at);
        return [
          shape('line', {x1: left, x2: left + width, y1: y, y2: y, class: 'grid'}),
          shape('text', {x: left - 8, y: y + 4, 'text-anchor': 'end', class: 'tick'}, text),
        ];
      }),
      ...xMarks.flatMap(({at, text}) => {
        const [x] = this.place(at, 0);
        return [
          shape('line', {x1: x, x2: x, y1: bottom, y2: bottom + 4, class: 'axis'}),
          shape('text', {x, y: bottom + 18, 'text-anchor': 'middle', class: 'tick'}, text),
        ];
      }),
      shape('line', {x1: left, x2: left + width, y1: bottom, y2: bottom, class: 'axis'}),
      shape(
          'text',
          {x: left + width / 2, y: bottom + 38, 'text-anchor': 'middle', class: 'axis-title'},
          xTitle),
    ];
  }

  limits() {
    const {left, top, width, height} = this.box;
    return this.spec.limits.flatMap(({x, y, text}) => {
      const [px, py] = this.place(x ?? 1, y ?? 1);
      const ends = x === undefined ? {x1: left, x2: left + width, y1: py, y2: py} :
                                     {x1: px, x2: px, y1: top, y2: top + height};
      const beside = x === undefined ? {x: left + width, y: py - 4} : {x: px - 5, y: top + 10};
      return [
        shape('line', {...ends, class: 'limit'}),
        shape('text', {...beside, 'text-anchor': 'end', class: 'limit-text'}, text),
      ];
    });
  }

  lines(lines) {
    return lines.map(({places, class: name}) => {
      const path = linePath(places.map((at) => at && this.place(...at)));
      return shape('path', {d: path, class: `series-line ${name}`});
    });
  }

  /** The names of lines, to the right of the chart, each with a thin line to its end. */
  namesAtEnds() {
    const {names = [], spread: apart} = this.spec;
    if (names.length === 0) return [];
    const {left, top, width, height} = this.box;
    const ends = names.map(({at}) => this.place(...at));
    const heights = apart(ends.map(([, y]) => y), 13.5, top + 2, top + height - 2);
    const x = left + width + 14;
    return names.flatMap(({text, color}, i) => {
      const [endX, endY] = ends[i];
      const line = `M${endX + 7} ${endY.toFixed(1)}L${x - 4} ${heights[i].toFixed(1)}`;
      return [
        shape('path', {d: line, class: `leader ${color}`}),
        shape('text', {x, y: heights[i] + 4, class: `line-name ${color}`}, text),
      ];
    });
  }

  /** The names of some points, beside them where there is room. */
  namesBeside() {
    const {beside = [], points} = this.spec;
    const named =
        beside.filter(({text}) => text !== '')
            .map(({row, text}) => ({text, i: points.findIndex((point) => point.row === row)}));
    const {left, top, width, height} = this.box;
    const found = placeBeside(
        named.map(({i}) => this.places[i]), named.map(({text}) => 7 * text.length),
        {left, right: left + width, top, bottom: top + height});
    return found.flatMap(
        (place, k) =>
            (place ? [shape(
                         'text',
                         {x: place.x, y: place.y, 'text-anchor': place.anchor, class: 'point-name'},
                         named[k].text)] :
                     []));
  }

  /** A path for each series, so that ten thousand points are a handful of elements. */
  marks() {
    const {points, styles} = this.spec;
    const size = points.length > 2000 ? 2.4 : points.length > 300 ? 3.4 : 4.6;
    const plain = new Map();
    const crossed = [];
    points.forEach(({series, crossed: isCrossed}, i) => {
      if (isCrossed) return crossed.push(this.places[i]);
      if (!plain.has(series)) plain.set(series, []);
      return plain.get(series).push(this.places[i]);
    });
    const front = points.flatMap(({front: isOnIt}, i) => (isOnIt ? [this.places[i]] : []));
    return [
      ...[...plain].map(([series, places]) => shape('path', {
                          d: markPath(styles[series], places, size),
                          class: `mark ${styles[series].color}`,
                        })),
      shape('path', {d: crossPath(crossed, size - 0.4), class: 'cross'}),
      shape('path', {d: markPath({shape: 0}, front, size + 3.6), class: 'front-mark'}),
    ];
  }

  listen({hover, choose, step}) {
    const found = (event) => {
      const box = this.svg.getBoundingClientRect();
      const scale = this.spec.width / box.width;
      const at = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      return nearestPlace(this.places, ...at);
    };
    const rowOf = (i) => this.spec.points[i]?.row ?? null;
    this.svg.addEventListener('pointermove', (event) => {
      const i = found(event);
      hover(rowOf(i), event, i < 0 ? 0 : this.sameSpot(i).length - 1);
    });
    this.svg.addEventListener('pointerleave', () => hover(null));
    this.svg.addEventListener('click', (event) => choose(this.rowToChoose(found(event))));
    this.svg.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Escape')
        choose(null);
      else if (!step(event.key))
        return;
      event.preventDefault();
    });
  }

  /** The points that the eye cannot tell from this one, itself among them. */
  sameSpot(i) {
    const [x, y] = this.places[i];
    return this.spec.points.filter((_, j) => {
      const [px, py] = this.places[j];
      return Math.abs(px - x) < 2 && Math.abs(py - y) < 2;
    });
  }

  /** Of several points on a spot each click chooses another. */
  rowToChoose(i) {
    if (i < 0) return null;
    const spot = this.sameSpot(i);
    const current = spot.findIndex(({row}) => row === this.shown);
    return current < 0 ? this.spec.points[i].row : spot[(current + 1) % spot.length].row;
  }

  /** Puts the ring around the row's point, where it has one here. */
  show(row) {
    this.shown = row;
    const i = row ? this.spec.points.findIndex((point) => point.row === row) : -1;
    this.ring.setAttribute('visibility', i < 0 ? 'hidden' : 'visible');
    if (i < 0) return;
    this.ring.setAttribute('cx', this.places[i][0].toFixed(1));
    this.ring.setAttribute('cy', this.places[i][1].toFixed(1));
  }
}
