// The timeline for a lecture: large, and gone through step by step.
// SPDX-License-Identifier: MIT
import {element} from './dom.js';
import {unbroken} from './figures.js';
import {formatTime} from './format.js';
import {beginningInWords, beginsOf, opsBeginningAt, phasesOf} from './phases.js';

/** The keys that step, by what they add to the step. */
const STEPS = {
  n: 1,
  ' ': 1,
  ArrowRight: 1,
  PageDown: 1,
  p: -1,
  ArrowLeft: -1,
  PageUp: -1,
  Home: -Infinity,
  End: Infinity,
};
const LEAST_ROOM = 140;
const LANE_ROOM = 170;

/** The report in its large form; `parts` are elements, `changed` is told when the step changes. */
export class Presentation {
  constructor(report, state, timeline, parts, changed) {
    Object.assign(this, {report, state, timeline, parts, changed});
    parts.next.addEventListener('click', () => this.step(1));
    parts.previous.addEventListener('click', () => this.step(-1));
    parts.leave.addEventListener('click', () => this.leave());
    parts.by.addEventListener('change', () => this.goBy(parts.by.value));
    document.addEventListener('keydown', (event) => this.onKey(event), true);
    addEventListener('resize', () => this.state.present && this.fit());
  }

  get run() {
    return this.report.runs[0];
  }

  /** How many steps there are; the first one shows all. */
  get count() {
    return 1 + (this.state.present.by === 'ops' ? this.begins.length : this.phases.length);
  }

  get begins() {
    this.knownBegins ??= beginsOf(this.run);
    return this.knownBegins;
  }

  get phases() {
    this.knownPhases ??= phasesOf(this.run);
    return this.knownPhases;
  }

  start() {
    this.state.present = {by: 'phases', step: 0};
    this.state.window = null;
    this.timeline.select(null);
    this.show();
    this.parts.next.focus();
  }

  leave() {
    this.state.present = null;
    this.show();
    this.parts.start.focus();
  }

  goBy(by) {
    this.state.present = {by, step: this.state.present.step === 0 ? 0 : 1};
    this.show();
  }

  step(by) {
    const {present} = this.state;
    present.step = Math.min(Math.max(present.step + by, 0), this.count - 1);
    this.show();
  }

  onKey(event) {
    if (!this.state.present || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const isControl = document.activeElement?.matches('select, button');
    if (isControl &&
        (key === ' ' || document.activeElement.matches('select') && key.startsWith('Arrow')))
      return;
    if (key === 'Escape')
      this.leave();
    else if (key === 'o')
      this.goBy(this.state.present.by === 'ops' ? 'phases' : 'ops');
    else if (key in STEPS)
      this.step(STEPS[key]);
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Shows the state: the large form at its step, or the page as usual. */
  show() {
    const {present} = this.state;
    document.documentElement.classList.toggle('presenting', present !== null);
    this.parts.bar.hidden = present === null;
    if (present) {
      present.step = Math.min(present.step, this.count - 1);
      this.parts.by.value = present.by;
      this.tell(present);
    }
    this.timeline.setSpot(present ? this.spotOf(present) : null);
    this.fit();
    this.changed();
  }

  /** What of the timeline is told of: {from, until}, and with `ops` only those that have begun. */
  spotOf({by, step}) {
    if (step === 0) return null;
    if (by === 'phases') return this.phases[step - 1];
    const time = this.begins[step - 1];
    this.timeline.revealTime(time);
    return {from: time, until: time, ops: opsBeginningAt(this.run, time)};
  }

  tell({by, step}) {
    const {caption, count, formula} = this.parts;
    const figures = this.report.facts.figures.length > 0 ? this.report.facts.figures :
                                                           this.report.facts.runs[0].figures;
    formula.replaceChildren(...figures.filter((figure) => figure.is_main)
                                .map(
                                    ({label, value, remark}) => element(
                                        'p', {}, element('strong', {}, `${label} ${value}`), ' ',
                                        ...unbroken(remark))));
    count.textContent = `${step} of ${this.count - 1}`;
    if (step === 0) {
      caption.replaceChildren(
          element('strong', {}, 'The whole run.'),
          ' N steps on, P back, O changes between phases and ops, Esc leaves.');
    } else if (by === 'phases') {
      const {name, from, until, words} = this.phases[step - 1];
      caption.replaceChildren(
          element('strong', {}, `${name}, ${this.time(until - from)}.`), ` ${words}`);
    } else {
      const time = this.begins[step - 1];
      caption.replaceChildren(
          element('strong', {}, `At ${this.time(time)}:`), ` ${beginningInWords(this.run, time)}`);
    }
  }

  time(ticks) {
    return formatTime(ticks * this.report.tickNs);
  }

  /** Gives the lanes the room that the rest of the window leaves. */
  fit() {
    const {stage} = this.timeline;
    if (!this.state.present) {
      stage.setRoom(null);
    } else {
      stage.setRoom({all: LEAST_ROOM, lane: LANE_ROOM});
      const rest = document.body.scrollHeight - stage.scroller.offsetHeight;
      stage.setRoom({all: Math.max(innerHeight - rest - 40, LEAST_ROOM), lane: LANE_ROOM});
    }
    this.timeline.repaint();
  }
}
