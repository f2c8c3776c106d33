// The page of a sweep: charts, the chosen point, the front, and the rows; the page of a search is
// one, too. SPDX-License-Identifier: MIT
import {element} from './dom.js';
import {formatBytes, plural} from './format.js';
import {Grid} from './grid.js';
import {keysOfLooks, looksLegend} from './looks.js';
import {addressKeeper, applyTheme, byId, listenToTheme, readData, readFacts,} from './page.js';
import {scaleOf} from './scale.js';
import {filtered, readSweep} from './sweep.js';
import {decodeSweepState, encodeSweepState} from './sweep_hash.js';
import {layOut, plotOfFront, plotsOverKey} from './sweep_plots.js';
import {columnsOf, columnsOfInfeasible, hoverParts, pointParts} from './sweep_point.js';

/**
 * The key that the charts begin with: of those to scale the one with most values, else the first.
 */
function standardAxis({varying, axes}) {
  const toScale = varying.filter((i) => scaleOf(axes[i].values).kind !== 'steps');
  const values = (i) => axes[i].values.length;
  return (toScale.length > 0 ? toScale : varying)
      .reduce((best, i) => (best < 0 || values(i) > values(best) ? i : best), -1);
}

export class SweepPage {
  constructor(sweep) {
    this.sweep = sweep;
    this.standard = {x: Math.max(standardAxis(sweep), 0)};
    this.state = decodeSweepState(location.hash, sweep, this.standard);
    this.keep = addressKeeper(() => encodeSweepState(this.state, this.standard));
    this.plots = [];
    const listeners = {
      choose: (row) => this.choose(row),
      sorted: (sort) => {
        this.state.sort = sort;
        this.showTable();
        this.keep();
      },
    };
    this.grid =
        new Grid('All points shown, in the order of the command', columnsOf(sweep), listeners);
    this.infeasible =
        new Grid('Points that do not fit or cannot run, and why', columnsOfInfeasible(sweep), {
          ...listeners,
          sorted: (sort) => this.infeasible.show(this.infeasible.rows, sort),
        });
    byId('tables').append(this.grid.root);
    byId('infeasible').append(this.infeasible.root);
    this.fillHead();
    listenToTheme((theme) => {
      this.state.theme = theme;
      applyTheme(theme);
      this.keep();
    }, () => applyTheme(this.state.theme));
    addEventListener('hashchange', () => {
      this.state = decodeSweepState(location.hash, sweep, this.standard);
      this.show();
    });
  }

  get chosen() {
    return this.sweep.byPoint.get(this.state.point) ?? null;
  }

  fillHead() {
    const {facts} = this.sweep;
    document.title = `${facts.name} · Plumbline`;
    byId('name').textContent = facts.name;
    byId('headline').textContent = facts.question;
    byId('version').textContent = `plumbline ${facts.version}`;
    byId('remarks').replaceChildren(...facts.remarks.map((text) => element('li', {}, text)));
    byId('remarks').hidden = facts.remarks.length === 0;
    byId('source').append(
        element('h3', {}, 'The command that writes this file'),
        element('pre', {tabindex: 0}, element('code', {}, facts.command)),
        element('h3', {}, 'The scenario'),
        element('pre', {tabindex: 0}, element('code', {}, facts.file)));
  }

  /** The switches: the key of the x axis, and for each other key all its values or one. */
  showChoices() {
    const {axes, varying} = this.sweep;
    const choice = (name, options, value, chosen) => {
      const select = element(
          'select', {'aria-label': name},
          ...options.map(([key, text]) => element('option', {value: key}, text)));
      select.value = String(value);
      select.addEventListener('change', () => chosen(select.value));
      return element('label', {}, `${name} `, select);
    };
    const keys = varying.map((i) => [i, axes[i].key]);
    const others = varying.filter((i) => i !== this.state.x);
    byId('choices').replaceChildren(
        ...(varying.length > 1 ? [choice('x axis', keys, this.state.x, (key) => {
          this.state.x = Number(key);
          this.state.filter.delete(this.state.x);
          this.changed();
        })] : []), ...this.lookChoices(choice, others), ...others.map((i) => {
          const options = [['all', 'all'], ...axes[i].values.map((text, v) => [v, text])];
          return choice(axes[i].key, options, this.state.filter.get(i) ?? 'all', (value) => {
            if (value === 'all')
              this.state.filter.delete(i);
            else
              this.state.filter.set(i, Number(value));
            this.changed();
          });
        }));
  }

  /** The switches of what colour and shape tell, where there is a choice. */
  lookChoices(choice, others) {
    if (others.length < 2) return [];
    const keys = keysOfLooks(this.sweep, this.state.x, this.state);
    const options = others.map((i) => [i, this.sweep.axes[i].key]);
    return [['color', 'colour'], ['shape', 'shape']].map(
        ([what, name]) => choice(name, options, keys[what], (key) => {
          const other = what === 'color' ? 'shape' : 'color';
          if (keys[other] === Number(key)) this.state[other] = keys[what];
          this.state[what] = Number(key);
          this.changed();
        }));
  }

  changed() {
    this.show();
    this.keep();
  }

  /** Draws all that depends on the state. */
  show() {
    applyTheme(this.state.theme);
    this.showChoices();
    this.rows = filtered(this.sweep.rows, this.state.filter);
    const start = performance.now();
    this.layout = layOut(this.sweep, this.rows, this.state.x, this.state);
    const listeners = {
      hover: (row, event, others) => this.hover(row, event, others),
      choose: (row) => this.choose(row),
    };
    const over = plotsOverKey(
        this.sweep, this.rows, this.layout, {...listeners, step: (key) => this.stepAlong(key)});
    byId('over').replaceChildren(...over.map(
        ({title, plot, id}) => element(
            'figure', {id: `plot-${id}`}, element('figcaption', {}, element('strong', {}, title)),
            plot.svg)));
    this.showFront(listeners);
    this.plots = [...over.map(({plot}) => plot), this.frontPlot];
    this.showLegend();
    this.showTable();
    const infeasible = this.rows.filter((row) => row.reason !== null);
    byId('infeasible-section').hidden = infeasible.length === 0;
    this.infeasible.show(infeasible, null);
    this.showChosen();
    return performance.now() - start;
  }

  showFront(listeners) {
    const {front, limit, isNear, plot} = plotOfFront(
        this.sweep, this.rows, this.layout,
        {...listeners, step: (key) => this.stepAlongFront(key)});
    this.front = front;
    this.frontPlot = plot;
    byId('front').replaceChildren(element('figure', {id: 'plot-front'}, plot.svg));
    const far = limit !== null && !isNear ?
        ` The limit of ${formatBytes(limit)} for each device is far above.` :
        '';
    byId('front-words').textContent =
        `${plural(front.length, 'point')} of ${plural(this.rows.length, 'point')} shown, ringed, ${
            front.length === 1 ? 'is' :
                                 'are'} the Pareto front: no other feasible point has at least ` +
        `its throughput within its memory, and is better in one of them.${far}`;
  }

  showLegend() {
    byId('legend').replaceChildren(...looksLegend(this.sweep, this.layout.keys));
    const hasFormula = this.rows.some((row) => row.formula !== null);
    const has = (test) => this.rows.some((row) => row.reason !== null && test(row));
    byId('kinds').textContent = [
      'Dots are simulated.',
      hasFormula ? 'Solid lines are the closed formula: its bubble, and the throughput that the ' +
              'same work would have with it.' :
                   'No closed formula holds for these points.',
      'Faint dotted lines only guide the eye.',
      has((row) => row.hasNumbers) ? 'A cross is a point that does not fit the memory' +
              (has((row) => !row.hasNumbers) ? '; on the axis, one that cannot run.' : '.') :
          has(() => true) ? 'A cross on the axis is a point that cannot run.' :
                            '',
    ].join(' ');
  }

  showTable() {
    this.grid.show(this.rows, this.state.sort);
    this.grid.mark(this.chosen);
  }

  choose(row) {
    this.state.point = row ? row.point : null;
    this.showChosen();
    this.keep();
  }

  showChosen() {
    const row = this.chosen;
    for (const plot of this.plots) plot.show(row);
    this.grid.mark(row);
    this.infeasible.mark(row);
    byId('details').replaceChildren(...(row ? pointParts(this.sweep, row, new Set(this.front)) : [
      element(
          'p', {class: 'empty'},
          'Click a point, or focus a chart and press an arrow key, to see its scenario and the ' +
              'command that predicts it.')
    ]));
  }

  /** `others` are on the same spot, or nearly. */
  hover(row, event, others) {
    const hover = byId('hover');
    hover.hidden = !row;
    if (!row) return;
    hover.replaceChildren(...hoverParts(this.sweep, row, others));
    const left = event.clientX + 18 + hover.offsetWidth > innerWidth ?
        event.clientX - 14 - hover.offsetWidth :
        event.clientX + 18;
    const top = Math.min(event.clientY + 16, innerHeight - hover.offsetHeight - 8);
    hover.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(top, 0)}px)`;
  }

  /** Left and right go along a series, up and down to the series before and after. */
  stepAlong(key) {
    const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[key];
    if (!move) return false;
    const {series, scale, x} = this.layout;
    const along =
        (s) => [...series[s].rows].sort((a, b) => scale.places[a.at[x]] - scale.places[b.at[x]]);
    const s = series.findIndex(({rows}) => rows.includes(this.chosen));
    if (s < 0) {
      if (series.length > 0) this.choose(along(0)[0]);
      return true;
    }
    if (move[0] === 0) {
      const rows = along(s);
      const next = rows[rows.indexOf(this.chosen) + move[1]];
      if (next) this.choose(next);
    } else {
      const other = series[s + move[0]]?.rows.find((row) => row.at[x] === this.chosen.at[x]);
      if (other) this.choose(other);
    }
    return true;
  }

  /** Along the front, to more memory or less. */
  stepAlongFront(key) {
    const move = {ArrowLeft: 1, ArrowDown: 1, ArrowRight: -1, ArrowUp: -1}[key];
    if (!move) return false;
    const i = this.front.indexOf(this.chosen);
    const next = i < 0 ? this.front[this.front.length - 1] : this.front[i + move];
    if (next) this.choose(next);
    return true;
  }
}

/** Reads the file and shows it by a class of pages. */
export async function showPage(Page) {
  const facts = readFacts();
  const data = JSON.parse(new TextDecoder().decode(await readData()));
  const page = new Page(readSweep(facts, data));
  const painted = page.show();
  globalThis.plumbline = {page};  // for the tests: nothing else uses it
  Object.assign(document.documentElement.dataset, {
    paint: painted.toFixed(1),
    drawn: performance.now().toFixed(1),
    ready: 'yes',
  });
}
