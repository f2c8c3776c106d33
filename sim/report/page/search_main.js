// The page of a search: what there is to decide, then the rows as on the page of a sweep.
// SPDX-License-Identifier: MIT
import {element} from './dom.js';
import {figureCards} from './figures.js';
import {plural} from './format.js';
import {byId, tellFailure} from './page.js';
import {choicesOf, choiceTable, efficiencyParts, figuresOfFirst, leftOutParts, memoryOfChoices, plotOfTimes,} from './search_parts.js';
import {showPage, SweepPage} from './sweep_page.js';

class SearchPage extends SweepPage {
  constructor(sweep) {
    super(sweep);
    const {decision} = sweep.facts;
    this.choiceList = choicesOf(sweep);
    byId('figures').append(...figureCards(figuresOfFirst(this.choiceList[0])));
    byId('decision-words').textContent = this.choiceList.length === 0 ?
        'No layout fits: the table of what was left out says why.' :
        `${
            plural(
                this.choiceList.length, 'layout')} that differ in what matters: of each tensor, ` +
            'context, expert and pipeline size the best. A click on one shows its command.';
    if (this.choiceList.length > 0)
      byId('decision').append(choiceTable(this.choiceList, (row) => this.choose(row)));
    byId('memory').append(...memoryOfChoices(this.choiceList));
    byId('left-out').append(...leftOutParts(sweep.facts));
    this.onFront = decision.front.map((i) => sweep.rows[i]).filter((row) => row);
  }

  /** Time against memory; throughput instead of time where mini-batches differ. */
  showFront(listeners) {
    if (this.sweep.facts.decision.mini_batch === 0 || !this.rows.some((row) => row.time !== null))
      return super.showFront(listeners);
    this.front = this.onFront.filter((row) => this.rows.includes(row));
    const {plot, isZoomed} = plotOfTimes(
        this.sweep, this.rows, this.front, this.layout,
        {...listeners, step: (key) => this.stepAlongFront(key)});
    this.frontPlot = plot;
    byId('front').replaceChildren(element('figure', {id: 'plot-front'}, plot.svg));
    byId('front-words').textContent = `${plural(this.front.length, 'layout')}, ringed, ${
                                          this.front.length === 1 ? 'is' : 'are'} ` +
        'the Pareto front: no other layout is as fast within its memory, and better in one of them.' +
        (isZoomed ? ' The axes do not begin at 0.' : '');
  }

  showChosen() {
    super.showChosen();
    byId('efficiency').replaceChildren(...efficiencyParts(this.chosen ?? this.choiceList[0]?.of));
  }
}

showPage(SearchPage).catch(tellFailure);
