// The lesson: opens the engine, shows a page, and runs it anew whenever something changes.
// SPDX-License-Identifier: MIT
import {element} from '../sim/report/page/dom.js';
import {applyTheme, byId} from '../sim/report/page/page.js';

import {initialValues, readAddress, writeAddress} from './address.js';
import {exampleOf, PAGES} from './page_list.js';
import {PageView} from './page_view.js';
import {Answers} from './quiz.js';
import {LANGUAGES, Texts} from './texts.js';

class Lesson {
  constructor(plumbline) {
    this.plumbline = plumbline;
    this.answers = new Answers();
    this.picture = {window: null, selected: null};
    this.state = readAddress(PAGES, location.hash);
    this.open();
    addEventListener('hashchange', () => this.follow());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.restyle());
    byId('theme').addEventListener('change', () => this.chooseTheme(byId('theme').value));
    byId('language').addEventListener('change', () => this.chooseLanguage(byId('language').value));
    addEventListener('beforeprint', () => this.beforePrint());
    addEventListener('afterprint', () => this.restyle());
  }

  /** Goes where the address leads, unless this page wrote it. */
  follow() {
    if (location.hash === this.written) return;
    const {page} = this.state;
    this.state = readAddress(PAGES, location.hash);
    this.open();
    if (page === this.state.page) return;
    scrollTo(0, 0);
    document.querySelector('h1').focus({preventScroll: true});
  }

  chooseTheme(theme) {
    this.state.theme = theme;
    this.restyle();
    this.keep();
  }

  /** Another language is another page, with what was typed into the quiz. */
  chooseLanguage(language) {
    const typed = this.view.quiz.typed();
    this.state.lang = language;
    this.open();
    this.view.quiz.retype(typed);
  }

  /** On paper all answers are open, and the page is light. */
  beforePrint() {
    for (const details of document.querySelectorAll('main details')) details.open = true;
    document.documentElement.dataset.theme = 'light';
    this.picture.theme = 'light';
    this.view.restyle();
    this.view.picture.paint();
  }

  /** Builds the page of the state. */
  open() {
    const {state} = this;
    this.texts = new Texts(state.lang);
    const {texts} = this;
    document.documentElement.lang = texts.language;
    document.documentElement.classList.toggle('embedded', state.embed);
    this.showSwitches();
    this.showPages();
    const page = PAGES[state.page];
    document.title = `${state.page + 1} ${texts.say(`pages.${page.id}.title`)} · Plumbline`;
    Object.assign(this.picture, {window: null, selected: null});
    this.view = new PageView(this, page);
    byId('page').replaceChildren(this.view.root);
    this.restyle();
    this.view.update();
    if (this.isOpen) this.view.showQuiz();
  }

  restyle() {
    applyTheme(this.state.theme);
    this.picture.theme = this.state.theme;
    this.view.restyle();
  }

  showSwitches() {
    const {texts, state} = this;
    byId('language-name').textContent = texts.say('shell.language');
    byId('language')
        .replaceChildren(...Object.entries(LANGUAGES).map(
            ([code, {language}]) => element('option', {value: code, lang: code}, language)));
    byId('language').value = texts.language;
    byId('theme-name').textContent = texts.say('shell.theme');
    byId('theme').replaceChildren(...Object.entries(texts.get('shell.themes'))
                                      .map(([value, name]) => element('option', {value}, name)));
    byId('theme').value = state.theme;
  }

  showPages() {
    const {texts, state} = this;
    const links = PAGES.map((page, number) => {
      const title = texts.say(`pages.${page.id}.title`);
      const link = element(
          'a', {
            href: this.addressOf(number),
            'data-page': number,
            title,
            'aria-label': `${number + 1} ${title}`
          },
          String(number + 1));
      if (number === state.page) link.setAttribute('aria-current', 'page');
      return element('li', {}, link);
    });
    byId('pages').setAttribute('aria-label', texts.say('shell.pages'));
    byId('pages').replaceChildren(element('ol', {}, ...links));
  }

  /** The address of a page as it begins, with the switches as they are now. */
  addressOf(number) {
    return writeAddress(PAGES, {...this.state, page: number, values: initialValues(PAGES[number])});
  }

  /** Keeps the state in the address, and the switches in those of other pages. */
  keep() {
    this.written = writeAddress(PAGES, this.state);
    const shell = JSON.stringify({...this.state, values: null});
    if (shell !== this.shell) {
      for (const link of document.querySelectorAll('a[data-page]'))
        link.href = this.addressOf(Number(link.dataset.page));
    }
    this.shell = shell;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => history.replaceState(null, '', this.written), 150);
  }

  /** The example of a page's state, as a file that the engine has. */
  fileOf(page) {
    return `examples/${exampleOf(page, this.state.values)}.yaml`;
  }
}

async function startLesson() {
  const texts = new Texts(readAddress(PAGES, location.hash).lang);
  byId('starting').textContent =
      texts.say(globalThis.openPlumbline ? 'shell.starting' : 'shell.no_engine');
  const plumbline = await globalThis.openPlumbline();
  for (const [path, content] of Object.entries(globalThis.lessonFiles))
    plumbline.writeFile(`/${path}`, content);
  const lesson = new Lesson(plumbline);
  globalThis.lesson = lesson;
  byId('version').textContent = `plumbline ${plumbline.version()}`;
  document.documentElement.dataset.drawn = performance.now().toFixed(1);
  // The first picture does not wait for the quiz.
  setTimeout(() => {
    lesson.isOpen = true;
    lesson.view.showQuiz();
    document.documentElement.dataset.ready = 'yes';
  });
}

startLesson().catch((error) => {
  if (globalThis.openPlumbline) byId('page').replaceChildren(element('pre', {}, String(error)));
  throw error;
});
