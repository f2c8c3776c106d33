// The timeline as an SVG file that needs nothing else: for slides and papers.
// SPDX-License-Identifier: MIT
import {CLASS_NAMES, CLASS_OF_KIND, CLASSES, columnEdges, densityColumns} from './density.js';
import {gapTexts} from './describe.js';
import {axisMarks, formatTime} from './format.js';
import {itemsInSight} from './paint.js';
import {channels, IDLE_INK_SHARE, INK_SHARE, mix} from './palette.js';
import {CAUSES, firstWhere, isTransfer, itemName, LETTERS} from './run.js';

const SVG_WIDTH = 1200;
const SVG_HEAD = 62;
const SVG_AXIS = 26;
/** Of more ops than this the file has no element each, but how much of each column they take. */
const MOST_ELEMENTS = 20000;
const COLUMNS = 1000;

/** The lines of the patterns, as paths in an 8 x 8 tile. */
const HATCHES = {
  forward: '',
  backward: 'M-2 2L2 -2M0 8L8 0M6 10L10 6',
  input: 'M-1 1L1 -1M0 4L4 0M0 8L8 0M4 8L8 4',
  weight: 'M-2 6L2 10M0 0L8 8M6 -2L10 2',
  update: 'M1 1h2M5 1h2M1 5h2M5 5h2',
  transfer: 'M0 1H8M0 5H8',
  idle: 'M-2 6L2 10M0 0L8 8M6 -2L10 2',
};

/** A text as it may stand in XML; characters that XML cannot hold are replaced. */
export function xmlText(text) {
  return String(text)
      .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '\ufffd')
      .replace(/[&<>"]/g, (c) => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'}[c]));
}

const hexOf = (rgb) => `#${rgb.map((c) => c.toString(16).padStart(2, '0')).join('')}`;
const rounded = (number) => Number(number.toFixed(2));

function patternsOfFile(names, palette) {
  return names
      .map((name) => {
        const base = channels(palette[name]);
        const ink = name === 'idle' ? mix(base, channels(palette['idle-label']), IDLE_INK_SHARE) :
                                      mix(base, channels(palette.label), INK_SHARE);
        const lines = HATCHES[name] &&
            `<path d="${HATCHES[name]}" fill="none" stroke="${hexOf(ink)}" stroke-width="1.6"/>`;
        return `<pattern id="${name}" width="8" height="8" patternUnits="userSpaceOnUse">` +
            `<rect width="8" height="8" fill="${palette[name]}"/>${lines}</pattern>`;
      })
      .join('');
}

/** Draws into a box of the file; times are those of a window. */
class LaneInFile {
  constructor(run, slot, box, window, palette) {
    Object.assign(this, {run, slot, box, window, palette});
    this.perTick = box.width / (window.to - window.from);
  }

  /** Left and right edge of a time that is in sight. */
  edges(begin, end) {
    const {box, window, perTick} = this;
    return [
      box.left + Math.max((begin - window.from) * perTick, 0),
      box.left + Math.min((end - window.from) * perTick, box.width),
    ];
  }

  bar(begin, end, name, title) {
    const [left, right] = this.edges(begin, end);
    return `<rect x="${rounded(left)}" y="${this.box.top}" width="${
        rounded(right - left)}" height="${this.box.height}" fill="url(#${name})"><title>${
        xmlText(title)}</title></rect>`;
  }

  /** The first of these texts that is narrower than the time, in its middle. */
  text(begin, end, texts, color, plate = '') {
    const [left, right] = this.edges(begin, end);
    const text = texts.find((one) => 6.6 * one.length + (plate ? 16 : 4) <= right - left);
    if (!text) return '';
    const x = rounded((left + right) / 2);
    const y = this.box.top + this.box.height / 2;
    const width = rounded(6.6 * text.length + 8);
    const ground = plate &&
        `<rect x="${rounded(x - width / 2)}" y="${y - 9}" width="${width}" height="18" fill="${
                       plate}"/>`;
    return `${ground}<text x="${x}" y="${y + 4}" text-anchor="middle" font-weight="600" fill="${
        color}">${xmlText(text)}</text>`;
  }

  ops() {
    const {run, slot, window, palette} = this;
    const [first, end] = itemsInSight(run, slot, window);
    const parts = [];
    for (let item = first; item < end; ++item) {
      const kind = run.kind[item];
      if (CLASS_OF_KIND[kind] === 255) continue;
      const long = run.end[item] - run.begin[item];
      const time = formatTime(long * run.layout.tick_ns);
      parts.push(this.bar(
          run.begin[item], run.end[item], CLASSES[CLASS_OF_KIND[kind]],
          `${itemName(run, item)}, ${time}`));
      const number = String(run.microBatch[item]);
      const texts = isTransfer(kind) ? [number] : [`${LETTERS[kind]}${number}`, number];
      parts.push(this.text(run.begin[item], run.end[item], texts, palette.label));
    }
    return parts;
  }

  gaps() {
    const {run, slot, window, palette} = this;
    const gaps = run.gaps[slot];
    const parts = [];
    let i = firstWhere(0, gaps.begin.length, (k) => gaps.end[k] > window.from);
    for (; i < gaps.begin.length && gaps.begin[i] < window.to; ++i) {
      const length = formatTime((gaps.end[i] - gaps.begin[i]) * run.layout.tick_ns);
      const texts = gapTexts(CAUSES[gaps.cause[i]], length);
      parts.push(this.bar(gaps.begin[i], gaps.end[i], 'idle', texts[0]));
      parts.push(this.text(gaps.begin[i], gaps.end[i], texts, palette['idle-label'], palette.idle));
    }
    return parts;
  }

  /** How much of each column each class takes, one on the other. */
  shares(sums, classes) {
    const {box, run, slot, window} = this;
    const edges = columnEdges(window.from, window.to, COLUMNS);
    const busy = new Float64Array(COLUMNS * classes.length);
    densityColumns(run, sums, slot, edges, busy, new Uint32Array(COLUMNS));
    const width = box.width / COLUMNS;
    const bottom = box.top + box.height;
    const level = new Float64Array(COLUMNS).fill(bottom);
    const [left, right] = this.edges(0, run.layout.makespan);
    return [
      `<rect x="${rounded(left)}" y="${box.top}" width="${rounded(right - left)}" height="${
          box.height}" fill="url(#idle)"/>`,
      ...classes.map((c, k) => {
        let path = '';
        for (let x = 0; x < COLUMNS; ++x) {
          const long = edges[x + 1] - edges[x];
          const height = long > 0 ? (box.height * busy[x * classes.length + k]) / long : 0;
          if (height <= 0) continue;
          level[x] -= height;
          path += `M${rounded(box.left + x * width)} ${rounded(level[x])}h${rounded(width)}v${
              rounded(height)}h-${rounded(width)}z`;
        }
        return `<path d="${path}" fill="url(#${CLASSES[c]})"/>`;
      }),
    ];
  }
}

function axisOfFile(report, window, box, palette) {
  const {tickNs} = report;
  return axisMarks(window.from * tickNs, window.to * tickNs, 10).map(({at, text}) => {
    const x =
        rounded(box.left + ((at / tickNs - window.from) / (window.to - window.from)) * box.width);
    return `<text x="${x}" y="${SVG_HEAD + 14}" text-anchor="middle" fill="${palette.soft}">${
               text}</text>` +
        `<path d="M${x} ${SVG_HEAD + 18}v6" stroke="${palette.soft}"/>`;
  });
}

function legendOfFile(names, top, palette) {
  let x = 0;
  return names.map((name) => {
    const text = CLASS_NAMES[name];
    const part = `<rect x="${x}" y="${top}" width="24" height="14" fill="url(#${name})"/>` +
        `<text x="${x + 30}" y="${top + 11}" fill="${palette.ink}">${text}</text>`;
    x += 30 + 7 * text.length + 22;
    return part;
  });
}

/**
 * The timeline of a report as `stage` shows its rows, in a window of time, as the text of a file.
 */
export function timelineSvg(report, stage, window, palette, {name, headline}) {
  const {rows, height} = stage.lanes;
  const gutter = Math.ceil(stage.gutter);
  const box = {left: gutter, width: SVG_WIDTH - gutter - 8};
  const ops = rows.reduce((sum, {run, slot}) => {
    const [first, end] = itemsInSight(report.runs[run], slot, window);
    return sum + end - first;
  }, 0);
  const lanes = rows.flatMap((row) => {
    const laneBox = {...box, top: SVG_HEAD + SVG_AXIS + row.top, height: row.height};
    const lane = new LaneInFile(report.runs[row.run], row.slot, laneBox, window, palette);
    const title = report.runs.length > 1 ? ` ${report.runs[row.run].title}` : '';
    return [
      `<text x="${gutter - 10}" y="${laneBox.top + row.height / 2 + 4}" text-anchor="end" fill="${
          palette.ink}">${xmlText(stage.nameOf(row).replace(/^[▸▾]\s*/, '') + title)}</text>`,
      ...(ops > MOST_ELEMENTS ? lane.shares(report.sums[row.run], report.classes) :
                                [...lane.gaps(), ...lane.ops()]),
    ];
  });
  const names = [...report.classes.map((c) => CLASSES[c]), 'idle'];
  const top = SVG_HEAD + SVG_AXIS + height + 8;
  const whole = top + 30;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${SVG_WIDTH + 24}" height="${
        whole + 12}" viewBox="-12 -6 ${SVG_WIDTH + 24} ${
        whole + 12}" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="11.5">`,
    `<title>${xmlText(name)}</title>`,
    `<defs>${patternsOfFile(names, palette)}</defs>`,
    `<rect x="-12" y="-6" width="${SVG_WIDTH + 24}" height="${whole + 12}" fill="${
        palette.ground}"/>`,
    `<text x="0" y="24" font-size="20" font-weight="650" fill="${palette.ink}">${
        xmlText(name)}</text>`,
    `<text x="0" y="46" font-size="14" fill="${palette.soft}">${xmlText(headline)}</text>`,
    ...axisOfFile(report, window, box, palette),
    ...lanes,
    ...legendOfFile(names, top, palette),
    '</svg>',
    '',
  ].join('\n');
}

/** Gives the reader a file. */
export function saveFile(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], {type}));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A name of a file from a name of a scenario. */
export function fileName(name, ending) {
  const plain = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  return `${plain.slice(0, 60) || 'timeline'}.${ending}`;
}
