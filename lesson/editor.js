// The order of each GPU, typed or dragged; where no op can run, the circle of waits stands on the
// lanes. SPDX-License-Identifier: MIT
import {element, shape} from '../sim/report/page/dom.js';

import {lanesOfShort, opsOfText, waitsOf} from './order_text.js';

/** The editor of page 4. `changed` gets the lanes of each new order. */
export class OrderEditor {
  constructor(texts, changed) {
    this.texts = texts;
    this.changed = changed;
    this.lanes = [];
    this.chips = element('div', {class: 'lanes'});
    this.arrows = shape('svg', {class: 'arrows', 'aria-hidden': 'true'});
    this.stage = element('div', {class: 'editor-stage'}, this.chips, this.arrows);
    this.fields = element('div', {class: 'fields'});
    this.status = element('p', {class: 'remark', 'aria-live': 'polite'});
    this.problem = element('div', {class: 'problem', role: 'status'});
    this.root = element(
        'section', {class: 'editor'}, element('h3', {}, texts.say('editor.title')),
        element('p', {class: 'remark'}, texts.say('editor.help')), this.stage, this.fields,
        this.status, this.problem);
    new ResizeObserver(() => this.drawCircle()).observe(this.stage);
  }

  /** Shows an order. A field in which somebody types keeps its text. */
  show(lanes) {
    this.lanes = lanes.map((ops) => [...ops]);
    this.drawChips();
    this.drawFields();
    this.tell('', []);
  }

  drawFields() {
    if (this.fields.children.length !== this.lanes.length) {
      this.fields.replaceChildren(...this.lanes.map((_, gpu) => this.field(gpu)));
    }
    this.lanes.forEach((ops, gpu) => {
      const input = this.fields.children[gpu].lastChild;
      if (opsOfText(input.value).join(' ') !== ops.join(' ')) input.value = ops.join(' ');
    });
  }

  field(gpu) {
    const input =
        element('input', {type: 'text', spellcheck: 'false', autocomplete: 'off', 'data-gpu': gpu});
    input.addEventListener('input', () => {
      this.lanes[gpu] = opsOfText(input.value);
      this.status.textContent = '';
      this.drawChips();
      this.changed(this.lanes);
    });
    return element(
        'label', {}, element('span', {}, this.texts.say('editor.lane', {number: gpu})), input);
  }

  drawChips() {
    this.chips.replaceChildren(...this.lanes.map((ops, gpu) => this.lane(ops, gpu)));
  }

  lane(ops, gpu) {
    const chips = ops.map((op, at) => this.chip(op, gpu, at));
    return element(
        'div', {class: 'lane', 'data-gpu': gpu},
        element('span', {class: 'lane-name'}, this.texts.say('gpu', {number: gpu})), ...chips);
  }

  chip(op, gpu, at) {
    const kind = {F: 'forward', B: 'backward', I: 'input', W: 'weight'}[op[0]] ?? 'unknown';
    const chip = element('button', {type: 'button', class: `chip ${kind}`, 'data-at': at}, op);
    chip.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      event.preventDefault();
      if (event.altKey) return this.move(gpu, at, at + step);
      this.chipAt(gpu, at + step)?.focus();
    });
    chip.addEventListener('pointerdown', (event) => this.drag(event, chip, gpu, at));
    return chip;
  }

  chipAt(gpu, at) {
    return this.chips.children[gpu]?.querySelector(`[data-at="${at}"]`);
  }

  /** Moves an op of a GPU to another place, and keeps the focus on it. */
  move(gpu, from, to) {
    const ops = this.lanes[gpu];
    const place = Math.min(Math.max(to, 0), ops.length - 1);
    if (place === from) return;
    const [op] = ops.splice(from, 1);
    ops.splice(place, 0, op);
    this.drawChips();
    this.drawFields();
    this.chipAt(gpu, place).focus();
    this.status.textContent =
        this.texts.say('editor.moved', {op, place: place + 1, gpu: gpu, number: gpu});
    this.changed(this.lanes);
  }

  drag(event, chip, gpu, from) {
    if (event.button !== 0) return;
    const start = event.clientX;
    chip.setPointerCapture(event.pointerId);
    const follow = (moved) => {
      chip.style.transform = `translateX(${moved.clientX - start}px)`;
    };
    const drop = (dropped) => {
      chip.removeEventListener('pointermove', follow);
      chip.removeEventListener('pointerup', drop);
      chip.removeEventListener('pointercancel', drop);
      chip.style.transform = '';
      if (dropped.type === 'pointercancel' || Math.abs(dropped.clientX - start) < 4) return;
      this.move(gpu, from, this.placeAt(gpu, from, dropped));
    };
    chip.addEventListener('pointermove', follow);
    chip.addEventListener('pointerup', drop);
    chip.addEventListener('pointercancel', drop);
  }

  /**
   * The place in a lane at which an op is dropped: behind all chips that lie before the pointer,
   * line by line.
   */
  placeAt(gpu, from, {clientX, clientY}) {
    const others = [...this.chips.children[gpu].querySelectorAll('.chip')].filter(
        (chip) => Number(chip.dataset.at) !== from);
    return others
        .filter((chip) => {
          const box = chip.getBoundingClientRect();
          if (clientY > box.bottom) return true;
          return clientY >= box.top && box.left + box.width / 2 < clientX;
        })
        .length;
  }

  /** Shows what the engine says of an order that it refuses; '' = nothing is wrong. */
  tell(message) {
    const waits = message ? waitsOf(message) : [];
    this.waits = waits;
    this.problem.replaceChildren();
    if (waits.length > 0) {
      const words =
          waits.map(({gpu, op, other}) => this.texts.say('editor.waits', {number: gpu, op, other}));
      this.problem.append(
          element('p', {}, this.texts.say('editor.circle', {waits: words.join(' ')})));
    } else if (message) {
      this.problem.append(
          element('p', {}, this.texts.say('editor.wrong')), element('pre', {}, message),
          element('p', {}, this.texts.say('editor.hint')));
    }
    this.drawCircle();
  }

  find(name) {
    const [, gpu, op] = /^(\d+)(.*)$/.exec(name) ?? [];
    const at = this.lanes[Number(gpu)]?.indexOf(op) ?? -1;
    return at < 0 ? null : this.chipAt(Number(gpu), at);
  }

  /**
   * Arrows from each op that waits to the op that it waits for, and along the lane to what stands
   * before that.
   */
  drawCircle() {
    const frame = this.stage.getBoundingClientRect();
    this.arrows.setAttribute('width', frame.width);
    this.arrows.setAttribute('height', frame.height);
    const marker = shape(
        'marker', {
          id: 'tip',
          viewBox: '0 0 8 8',
          refX: 7,
          refY: 4,
          markerWidth: 7,
          markerHeight: 7,
          orient: 'auto'
        },
        shape('path', {d: 'M0 0L8 4L0 8z', class: 'tip'}));
    const middle = (chip) => {
      const box = chip.getBoundingClientRect();
      return {
        x: box.left + box.width / 2 - frame.left,
        y: box.top + box.height / 2 - frame.top,
        height: box.height
      };
    };
    const lines = [];
    for (const chip of this.chips.querySelectorAll('.stuck')) chip.classList.remove('stuck');
    for (const {op, other} of this.waits ?? []) {
      const [from, to] = [this.find(op), this.find(other)];
      if (!from || !to) continue;
      from.classList.add('stuck');
      const [a, b] = [middle(from), middle(to)];
      const down = Math.sign(b.y - a.y) || 1;
      const way = a.y === b.y ?
          `M${a.x} ${a.y + a.height / 2}v9H${b.x}v-9` :
          `M${a.x} ${a.y + down * a.height / 2}L${b.x} ${b.y - down * b.height / 2}`;
      lines.push(shape('path', {d: way, class: 'wait', 'marker-end': 'url(#tip)'}));
      const blocked = this.waits.find(({gpu}) => other.startsWith(String(gpu)));
      const head = blocked && this.find(blocked.op);
      if (!head || a.y === b.y) continue;
      const c = middle(head);
      const side = b.y + down * (b.height / 2 + 5);
      lines.push(shape('path', {
        d: `M${b.x} ${b.y + down * b.height / 2}V${side}H${c.x}V${c.y + down * c.height / 2}`,
        class: 'wait behind',
        'marker-end': 'url(#tip)'
      }));
    }
    this.arrows.replaceChildren(shape('defs', {}, marker), ...lines);
  }
}

/** The lanes of an order in the address, for two GPUs. */
export function lanesOfValue(text) {
  const lanes = lanesOfShort(text);
  return [lanes[0] ?? [], lanes[1] ?? []];
}
