// One page of the lesson: its text and quiz to the left; controls, picture and numbers to the
// right. SPDX-License-Identifier: MIT
import {numbersInShort} from '../sim/report/page/alike.js';
import {element} from '../sim/report/page/dom.js';

import {commandLine} from './command_line.js';
import {controlElement, setControl, shownControls} from './controls.js';
import {lanesOfValue, OrderEditor} from './editor.js';
import {figureTiles, layoutProblem, lectureTable, practicalTable, rankLines, rankOf,} from './extras.js';
import {csvOfLanes, lanesInShort, lanesOfCsv} from './order_text.js';
import {PAGES} from './page_list.js';
import {Picture} from './picture.js';
import {Quiz} from './quiz.js';
import {stalenessRows} from './staleness.js';
import {markedUp} from './texts.js';

const ORDER_FILE = 'order.csv';

/** Puts `text` on the clipboard, and says so on the button. */
async function copyText(text, button, texts) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a disk may not write the clipboard; the old way may.
    const field = element('textarea', {}, text);
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  button.textContent = texts.say('shell.copied');
  setTimeout(() => {
    button.textContent = texts.say('shell.copy');
  }, 1500);
}

/** The GPU of an order in the address that has no op; -1 = each has some, or there is no order. */
function laneWithoutOps(order) {
  return order === null ? -1 : lanesOfValue(order).findIndex((ops) => ops.length === 0);
}

/** A page as elements; `lesson` has the engine, the state and the texts. */
export class PageView {
  constructor(lesson, page) {
    const {texts} = lesson;
    Object.assign(this, {lesson, page, texts});
    const many = page.controls.length > 8 ? ' many' : '';
    this.controls = element('div', {class: `controls${many}`});
    this.problem = element('pre', {class: 'refusal', role: 'alert'});
    this.problem.hidden = true;
    this.pictureRoot = element('div', {class: 'pictures'});
    const moreOf = page.tellsStaleness ? (run, item) => stalenessRows(run, item, texts) : undefined;
    this.picture = new Picture(this.pictureRoot, texts, lesson.picture, moreOf);
    this.extra = element('div', {class: 'extra'});
    this.command = element('code', {});
    this.editor =
        page.extra === 'editor' ? new OrderEditor(texts, (lanes) => this.ordered(lanes)) : null;
    this.root = element('div', {class: 'lesson'}, this.story(), this.viewPart(), this.questions());
    this.showControls();
  }

  text(key) {
    return this.texts.get(`pages.${this.page.id}.${key}`);
  }

  /** What the page tells, before the picture. */
  story() {
    const {texts} = this;
    return element(
        'article', {class: 'story'},
        element('h1', {tabindex: -1}, `${this.lesson.state.page + 1} ${this.text('title')}`),
        ...this.text('lead').map((text) => element('p', {}, ...markedUp(text))),
        element('h2', {}, texts.say('shell.look')),
        element(
            'ul', {}, ...this.text('look').map((text) => element('li', {}, ...markedUp(text)))));
  }

  /** The quiz and the questions of the course: on a phone below the picture. */
  questions() {
    const {texts} = this;
    const questions = this.text('course').map(
        ([number, question, answer]) => element(
            'details', {},
            element('summary', {}, number === null ? question : `${number}. ${question}`),
            element('p', {}, ...markedUp(answer))));
    this.quizRoot = element('div', {});
    const course = questions.length > 0 ?
        [element('section', {}, element('h2', {}, texts.say('shell.course')), ...questions)] :
        [];
    const translated = texts.missing.size > 0 ?
        [element('p', {class: 'remark'}, texts.say('shell.not_translated'))] :
        [];
    return element(
        'div', {class: 'story questions'}, this.quizRoot, ...course, ...translated, this.turn());
  }

  turn() {
    const {lesson, texts} = this;
    const {page} = lesson.state;
    const link = (number, key) => element(
        'a', {href: lesson.addressOf(number), 'data-page': number},
        `${texts.say(`shell.${key}`)}: ${texts.say(`pages.${PAGES[number].id}.title`)}`);
    const links = [];
    if (page > 0) links.push(link(page - 1, 'previous'));
    if (page + 1 < PAGES.length) links.push(link(page + 1, 'next'));
    return element(
        'nav',
        {class: 'turn', 'aria-label': `${texts.say('shell.previous')}, ${texts.say('shell.next')}`},
        ...links);
  }

  viewPart() {
    const {texts, lesson} = this;
    const copy = element('button', {type: 'button', 'data-act': 'copy'}, texts.say('shell.copy'));
    copy.addEventListener('click', () => copyText(this.command.textContent, copy, texts));
    const box = (key) => {
      const input = element('input', {type: 'checkbox', id: key});
      input.checked = lesson.state[key];
      lesson.picture[key] = lesson.state[key];
      input.addEventListener('change', () => {
        lesson.state[key] = lesson.picture[key] = input.checked;
        lesson.keep();
        this.picture.repaint();
      });
      return element('label', {}, input, ` ${texts.say(`shell.${key}`)}`);
    };
    const view = element(
        'div', {class: 'view'}, this.controls, this.editor?.root ?? '', this.problem,
        ...this.pictureAndMore(),
        element('div', {class: 'tools marks'}, box('critical'), box('transfers')),
        this.picture.details,
        element(
            'section', {class: 'command-line'}, element('h2', {}, texts.say('shell.command')),
            element('pre', {class: 'command'}, this.command), copy));
    // What is higher than the window does not stick to it: its lower part could not be reached.
    const fit = () => view.classList.toggle('tall', view.offsetHeight > innerHeight - 24);
    new ResizeObserver(fit).observe(view);
    return view;
  }

  /** The picture and what only this page has; figures for engineers stand above it. */
  pictureAndMore() {
    const {pictureRoot, extra, page} = this;
    return page.extra === 'cards' ? [extra, pictureRoot] : [pictureRoot, extra];
  }

  showControls() {
    const {lesson, page, texts} = this;
    const {values} = lesson.state;
    const shown = shownControls(page, values);
    const key = shown.map(({id}) => id).join();
    if (key === this.shownKey) return;
    this.shownKey = key;
    const focused = document.activeElement?.id;
    this.controls.replaceChildren(
        ...shown.map((control) => controlElement(control, values[control.id], texts, (value) => {
                       this.changed(control.id, value);
                     })));
    if (focused?.startsWith('control-')) document.getElementById(focused)?.focus();
  }

  /** A control has a new value: others may follow it, come or go, and the page runs anew. */
  changed(id, value) {
    const {page} = this;
    const {values} = this.lesson.state;
    values[id] = value;
    if (value === 'own') values.order = lanesInShort(this.editor.lanes);
    if (page.settle) {
      page.settle(values, id);
      for (const control of page.controls) setControl(control, values[control.id]);
    }
    this.showControls();
    this.update();
  }

  /** The reader made an order. */
  ordered(lanes) {
    const {values} = this.lesson.state;
    values.order = lanesInShort(lanes);
    values.schedule = 'own';
    const select = this.controls.querySelector('#control-schedule');
    if (select) select.value = 'own';
    this.showControls();
    this.typing = true;
    this.update();
    this.typing = false;
  }

  /** Runs what the controls say, and shows it. */
  update() {
    const {lesson, page} = this;
    const runs = page.runs(lesson.state.values);
    if (this.editor) this.extra.replaceChildren();
    lesson.keep();
    const idle = this.editor ? laneWithoutOps(runs[0].order) : -1;
    try {
      if (idle >= 0) {
        this.refuse(this.texts.say('editor.empty', {number: idle}));
      } else {
        this.show(runs.map((run) => this.ask(run)));
        this.problem.hidden = true;
      }
    } catch (error) {
      if (error.name !== 'PlumblineError') throw error;
      this.refuse(error.message);
    }
    this.command.textContent =
        runs.map(({settings}) => commandLine(lesson.fileOf(page), settings)).join('\n');
  }

  ask({title, settings, order = null}) {
    const {lesson, page, texts} = this;
    const want = ['json', 'timeline', ...(this.editor ? ['order_csv'] : [])];
    const files = order === null ? {} : {[ORDER_FILE]: csvOfLanes(lanesOfValue(order))};
    const question = {ask: 'simulate', file: lesson.fileOf(page), settings, files, want};
    const answer = lesson.plumbline.ask(question);
    return {
      ...answer,
      json: JSON.parse(answer.json),
      title: texts.option(title),
      nameOf: (gpus) => this.nameOf(gpus),
    };
  }

  nameOf(gpus) {
    const ranks = this.page.ranks?.(this.lesson.state.values);
    const number = numbersInShort(gpus);
    if (this.page.extra === 'cards') return this.texts.say('group', {number});
    if (ranks) return this.texts.say('rank', {rank: rankOf(gpus[0], ranks), number});
    return this.texts.say('gpu', {number});
  }

  show(answers) {
    const {page} = this;
    this.pictureRoot.hidden = false;
    this.picture.show(answers, {...page, copies: page.ranks?.(this.lesson.state.values)});
    if (this.editor) {
      const {order, schedule} = this.lesson.state.values;
      const lanes = schedule === 'own' ? lanesOfValue(order) : lanesOfCsv(answers[0].order_csv);
      if (!this.typing) this.editor.show(lanes);
      this.editor.tell('');
    }
    this.showExtra(answers[0].json, answers[0]);
  }

  /** The engine refuses the run: its words stand where the picture was. */
  refuse(message) {
    this.pictureRoot.hidden = true;
    this.extra.replaceChildren();
    if (this.editor) {
      if (!this.typing) this.editor.show(lanesOfValue(this.lesson.state.values.order));
      this.editor.tell(message);
      return;
    }
    const {values} = this.lesson.state;
    const why = this.page.extra === 'cards' ? layoutProblem(values, this.texts) : '';
    this.problem.textContent = why || message;
    this.problem.hidden = false;
  }

  showExtra(json, answer) {
    const {page, texts, lesson} = this;
    if (page.extra === 'ranks')
      this.extra.replaceChildren(rankLines(json, page.ranks(lesson.state.values), texts));
    if (page.extra === 'cards')
      this.extra.replaceChildren(
          figureTiles(json, answer.timeline.memory_limit_bytes, texts), this.launchLine());
    if (page.extra === 'lecture') this.extra.replaceChildren(lectureTable(texts));
    if (page.extra === 'editor' && lesson.state.values.schedule === 'own')
      this.extra.replaceChildren(
          element('h3', {}, ORDER_FILE),
          element('pre', {}, csvOfLanes(lanesOfValue(lesson.state.values.order))));
    if (page.extra === 'practical') this.fillPractical();
  }

  /** The command that prints the layout as a launcher's arguments. */
  launchLine() {
    const {lesson, page, texts} = this;
    const [{settings}] = page.runs(lesson.state.values);
    const command = `${commandLine(lesson.fileOf(page), settings)} --emit megatron`;
    const body = element('pre', {class: 'command-launch'}, element('code', {}, command));
    return element('details', {}, element('summary', {}, texts.say('cards.launch')), body);
  }

  /** The practical's table is nine runs, so it waits until the slider rests. */
  fillPractical() {
    const {lesson, page, texts} = this;
    clearTimeout(this.resting);
    const fill = () => {
      const rows =
          lesson.plumbline.sweep({file: lesson.fileOf(page)}, page.practical(lesson.state.values))
              .rows;
      this.extra.replaceChildren(practicalTable(rows, texts));
    };
    if (this.extra.children.length === 0)
      fill();
    else
      this.resting = setTimeout(fill, 120);
  }

  showQuiz() {
    const {lesson, texts} = this;
    const takeOrder =
        this.editor ? () => this.editor.lanes.map((ops) => ops.join(' ')).join('\n') : null;
    const quiz =
        new Quiz(lesson.plumbline, texts, lesson.state.page, lesson.answers, lesson.state.student, {
          takeOrder,
          chosen: (student) => {
            lesson.state.student = student;
            lesson.keep();
          },
          copy: (text, button) => copyText(text, button, texts),
          show: (shown) => this.showAnswer(shown),
        });
    this.quiz = quiz;
    this.answerRoot = element('div', {class: 'answer-run'});
    quiz.root.append(this.answerRoot);
    this.quizRoot.replaceChildren(quiz.root);
  }

  /** The run of an answer: of an order in the editor, else below the quiz; or why there is none. */
  showAnswer({scenario, settings, files}) {
    const {lesson, texts} = this;
    if (this.editor && files[ORDER_FILE]) return this.takeOrder(lanesOfCsv(files[ORDER_FILE]));
    this.answerRoot.replaceChildren();
    const want = ['json', 'timeline'];
    let answer;
    try {
      answer = lesson.plumbline.ask({ask: 'simulate', text: scenario, settings, files, want});
    } catch (error) {
      if (error.name !== 'PlumblineError') throw error;
      this.answerRoot.append(element('pre', {class: 'refusal'}, error.message));
      return;
    }
    const run = {
      ...answer,
      json: JSON.parse(answer.json),
      title: texts.say('quiz.shown'),
      nameOf: (gpus) => this.nameOf(gpus),
    };
    const state = {...lesson.picture, window: null, selected: null};
    this.answerPicture = new Picture(this.answerRoot, texts, state);
    this.answerPicture.show([run], {columns: ['busy', 'idle', 'bubble', 'in_flight']});
    this.answerRoot.append(this.answerPicture.details);
    this.answerRoot.scrollIntoView({block: 'nearest'});
  }

  /** Puts an order into the editor, and shows it there. */
  takeOrder(lanes) {
    this.ordered(lanes);
    this.editor.show(lanes);
    this.update();
    this.editor.root.scrollIntoView({block: 'nearest'});
  }

  restyle() {
    this.picture.restyle();
    this.answerPicture?.restyle();
  }
}
