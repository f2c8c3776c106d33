// The quiz of a page: questions with the student's own figures, checked by the engine; and the
// result code of all answers. SPDX-License-Identifier: MIT
import {element} from '../sim/report/page/dom.js';

import {markedUp} from './texts.js';

const STORE = 'plumbline-lesson';

/**
 * What students have answered, {student: {question: {answer, tries, right}}}; kept by the browser
 * where it may.
 */
export class Answers {
  constructor() {
    this.all = Object.create(null);
    try {
      Object.assign(this.all, JSON.parse(localStorage.getItem(STORE)));
    } catch {
      // Some browsers keep nothing for pages from a disk. The answers are then those since the page
      // was opened.
    }
  }

  of(student) {
    return this.all[student.toLowerCase()] ?? {};
  }

  /** A right answer stays, whatever is tried behind it. */
  keep(student, question, answer, right) {
    const before = this.of(student)[question];
    const tries = (before?.tries ?? 0) + 1;
    const kept = before?.right && !right ? {...before, tries} : {answer, tries, right};
    this.all[student.toLowerCase()] = {...this.of(student), [question]: kept};
    try {
      localStorage.setItem(STORE, JSON.stringify(this.all));
    } catch {
      // See above.
    }
  }
}

/**
 * What an error of input says, without its place: "'abc' is no number; write a number of GPUs,
 * such as 4".
 */
function wordsOf({message, problems}) {
  const [first] = problems ?? [];
  if (!first) return message;
  return first.help ? `${first.message}; ${first.help}` : first.message;
}

/** One question: its words, a field for the answer, and what the engine says of it. */
class Question {
  constructor(quiz, question) {
    this.quiz = quiz;
    this.question = question;
    const {texts} = quiz;
    this.verdict = element('p', {class: 'verdict', role: 'status'});
    this.more = element('div', {class: 'tools'});
    const button = element('button', {type: 'submit'}, texts.say('quiz.check'));
    this.root = element(
        'form', {class: 'question', 'data-question': question.id},
        element(
            'fieldset', {}, element('legend', {}, ...markedUp(this.words())), this.field(), button,
            this.more, this.verdict));
    this.root.addEventListener('submit', (event) => {
      event.preventDefault();
      this.check();
    });
    this.showKept();
  }

  words() {
    const {texts} = this.quiz;
    return texts.translatedQuestion(this.question) ?? this.question.text;
  }

  field() {
    const {question, quiz} = this;
    const {texts} = quiz;
    if (question.kind === 'choice') return this.choices();
    const name = texts.say('quiz.answer');
    if (question.kind === 'order') {
      this.input = element('textarea', {rows: 3, spellcheck: 'false', 'aria-label': name});
      if (!quiz.takeOrder) return this.input;
      const take = element('button', {type: 'button'}, texts.say('quiz.from_editor'));
      take.addEventListener('click', () => {
        this.input.value = quiz.takeOrder();
      });
      return element('div', {}, this.input, take);
    }
    this.input = element(
        'input', {type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': name});
    const unit = question.unit ? element('span', {class: 'unit'}, ` ${question.unit}`) : '';
    return element('span', {}, this.input, unit);
  }

  choices() {
    const {question} = this;
    const radios = question.choices.map(({id, text}) => {
      const radio = element('input', {type: 'radio', name: `choice-${question.id}`, value: id});
      return element(
          'label', {class: 'check'}, radio, this.quiz.texts.translatedChoice(question, id) ?? text);
    });
    this.radios = radios.map((label) => label.firstChild);
    return element('div', {class: 'choices'}, ...radios);
  }

  get answer() {
    if (this.radios) return this.radios.find(({checked}) => checked)?.value ?? '';
    return this.input.value.trim();
  }

  set answer(text) {
    if (this.radios) {
      for (const radio of this.radios) radio.checked = radio.value === text;
    } else {
      this.input.value = text;
    }
  }

  /**
   * Whether what the engine says of a wrong answer is no solution: an order of one's own, or a run
   * that may be seen before.
   */
  get tellsAtOnce() {
    return this.question.kind === 'order' || this.question.run !== null;
  }

  showKept() {
    const kept = this.quiz.kept(this.question.id);
    if (!kept) return;
    this.answer = kept.answer;
    this.tell(kept.right, '');
  }

  tell(right, said) {
    const {texts} = this.quiz;
    this.root.dataset.right = right ? 'yes' : 'no';
    const tries = this.quiz.kept(this.question.id)?.tries ?? 0;
    this.verdict.className = right ? 'verdict' : 'verdict over';
    this.verdict.textContent = `${texts.say(right ? 'quiz.right' : 'quiz.wrong')} ${said} ${
        texts.say('quiz.tries', {tries})}`;
  }

  check() {
    const {quiz, question, answer} = this;
    this.more.replaceChildren();
    if (answer === '') {
      this.root.dataset.right = 'unread';
      this.verdict.className = 'verdict over';
      this.verdict.textContent = quiz.texts.say('quiz.empty');
      return;
    }
    let told;
    try {
      told = quiz.plumbline.ask({ask: 'check', student: quiz.student, id: question.id, answer});
    } catch (error) {
      this.root.dataset.right = 'unread';
      this.verdict.className = 'verdict over';
      this.verdict.textContent = wordsOf(error);
      return;
    }
    quiz.keep(question.id, answer, told.right);
    const isTold = told.right || this.tellsAtOnce || quiz.kept(question.id).tries > 1;
    this.tell(told.right, isTold ? told.said : quiz.texts.say('quiz.again'));
    if (!told.shown || !isTold) return;
    const show = element('button', {type: 'button'}, quiz.texts.say('quiz.show'));
    show.addEventListener('click', () => quiz.show(told.shown));
    this.more.append(show);
  }
}

/** The questions of a page, the student number, and the result code. */
export class Quiz {
  constructor(plumbline, texts, page, answers, student, events) {
    Object.assign(this, {plumbline, texts, page, answers, takeOrder: events.takeOrder});
    this.show = events.show;
    this.student = student;
    this.list = element('div', {});
    this.code = element(
        'textarea',
        {readonly: '', rows: 3, id: 'result-code', 'aria-label': texts.say('quiz.code')});
    this.score = element('p', {class: 'score', role: 'status'});
    this.refusal = element('p', {class: 'verdict over', role: 'alert'});
    this.number =
        element('input', {type: 'text', id: 'student', autocomplete: 'off', spellcheck: 'false'});
    this.number.value = student;
    this.number.addEventListener('change', () => {
      this.student = this.number.value.trim();
      events.chosen(this.student);
      this.ask();
    });
    const copy = element('button', {type: 'button'}, texts.say('shell.copy'));
    copy.addEventListener('click', () => events.copy(this.code.value, copy));
    this.root = element(
        'section', {class: 'quiz', 'aria-labelledby': 'quiz-title'},
        element('h2', {id: 'quiz-title'}, texts.say('quiz.title')),
        element(
            'label', {class: 'student'}, element('span', {}, texts.say('quiz.student')),
            this.number),
        element('p', {class: 'remark'}, texts.say('quiz.student_help')), this.refusal, this.list,
        this.score,
        element(
            'div', {class: 'result-code'}, element('h3', {}, texts.say('quiz.code')),
            element('p', {class: 'remark'}, ...markedUp(texts.say('quiz.code_help'))), this.code,
            copy));
    this.ask();
  }

  /** Asks the engine for the questions of this student, and shows those of the page. */
  ask() {
    this.refusal.textContent = '';
    this.list.replaceChildren();
    try {
      this.questions = this.plumbline.ask({ask: 'questions', student: this.student}).questions;
    } catch (error) {
      this.questions = [];
      this.refusal.textContent = wordsOf(error);
    }
    const own = this.questions.filter(({page}) => page === this.page + 1);
    this.forms = own.map((question) => new Question(this, question));
    this.list.append(...this.forms.map((form) => form.root));
    this.root.hidden = own.length === 0 && this.questions.length > 0;
    this.score.hidden = this.questions.length === 0;
    this.showCode();
  }

  /** What stands in the fields, by question. */
  typed() {
    return Object.fromEntries(this.forms.map((form) => [form.question.id, form.answer]));
  }

  retype(typed) {
    for (const form of this.forms) form.answer = typed[form.question.id] ?? '';
  }

  kept(id) {
    return this.answers.of(this.student)[id];
  }

  keep(id, answer, right) {
    this.answers.keep(this.student, id, answer, right);
    this.showCode();
  }

  showCode() {
    const given = Object.entries(this.answers.of(this.student));
    const right = given.filter(([, {right: isRight}]) => isRight).length;
    this.score.textContent = this.texts.say('quiz.score', {right, all: this.questions.length});
    if (given.length === 0 || this.questions.length === 0) {
      this.code.value = '';
      return;
    }
    const answers = Object.fromEntries(given.map(([id, {answer, tries}]) => [id, {answer, tries}]));
    try {
      this.code.value = this.plumbline.ask({ask: 'code', student: this.student, answers}).code;
    } catch (error) {
      // What the browser has kept may be of another version; the page goes on without a code.
      this.code.value = '';
      this.refusal.textContent = wordsOf(error);
    }
  }
}
