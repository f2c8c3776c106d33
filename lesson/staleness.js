// How old the weights of an op are where the pipeline is never flushed: updates before it, and
// since its forward. SPDX-License-Identifier: MIT
import {laneOf, LETTERS} from '../sim/report/page/run.js';

/** The updates of a stage that have ended on a slot when an op of it begins. */
export function updatesBefore(run, item) {
  const slot = laneOf(run, item);
  let updates = 0;
  for (let other = run.starts[slot]; other < item; ++other) {
    const isUpdate = LETTERS[run.kind[other]] === 'U' && run.stage[other] === run.stage[item];
    if (isUpdate && run.end[other] <= run.begin[item]) ++updates;
  }
  return updates;
}

/** The forward of a backward, on the same slot; -1 = there is none. */
export function forwardOf(run, item) {
  const slot = laneOf(run, item);
  for (let other = item - 1; other >= run.starts[slot]; --other) {
    const isForward = LETTERS[run.kind[other]] === 'F' && run.stage[other] === run.stage[item];
    if (isForward && run.microBatch[other] === run.microBatch[item]) return other;
  }
  return -1;
}

/**
 * Rows for what is told of an op: the version of its weights, and by how many updates a gradient
 * is stale.
 */
export function stalenessRows(run, item, texts) {
  const letter = LETTERS[run.kind[item]];
  if (laneOf(run, item) >= run.slots || (letter !== 'F' && letter !== 'B')) return [];
  const updates = updatesBefore(run, item);
  const rows = [{label: texts.say('staleness.updates'), text: String(updates)}];
  const forward = letter === 'B' ? forwardOf(run, item) : -1;
  if (forward >= 0)
    rows.push(
        {label: texts.say('staleness.since'), text: String(updates - updatesBefore(run, forward))});
  return rows;
}
