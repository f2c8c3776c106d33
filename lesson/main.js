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
    byId('theme').addEventListener('change', () => this.choose('theme', byId('theme').value));
    byId('language').addEventListener('change', () => this.choose('lang', byId('language').value));
  }

  /** Goes where the address leads, unless this page wrote it. */
  follow() {
    if (location.hash === this.written) return;
    this.state = readAddress(PAGES, location.hash);
    this.open();
  }

  choose(key, value) {
    this.state[key] = value;
    this.open();
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
          'a', {href: this.addressOf(number), title, 'aria-label': `${number + 1} ${title}`},
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

  /** Keeps the state in the address. */
  keep() {
    this.written = writeAddress(PAGES, this.state);
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
  globalThis.lesson = new Lesson(plumbline);
  byId('version').textContent = `plumbline ${plumbline.version()}`;
  Object.assign(
      document.documentElement.dataset, {drawn: performance.now().toFixed(1), ready: 'yes'});
}

startLesson().catch((error) => {
  if (globalThis.openPlumbline) byId('page').replaceChildren(element('pre', {}, String(error)));
  throw error;
});
