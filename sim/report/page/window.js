// The part of the run that is in sight: a window of time that zooms and moves within the run.
// SPDX-License-Identifier: MIT

/** The fewest ticks that a window shows. */
export const LEAST_SPAN = 20;

/** All of a run of `length` ticks. */
export function wholeRun(length) {
  return {from: 0, to: Math.max(length, 1)};
}

/** The window of this middle and span that lies within the run. */
export function clampWindow(window, length) {
  const whole = wholeRun(length);
  const span =
      Math.min(Math.max(window.to - window.from, Math.min(LEAST_SPAN, whole.to)), whole.to);
  const middle = (window.from + window.to) / 2;
  const from = Math.min(Math.max(middle - span / 2, 0), whole.to - span);
  return {from, to: from + span};
}

/** Shows 1/factor as much time; `at` stays where it is on the screen. */
export function zoomWindow(window, at, factor, length) {
  const span = window.to - window.from;
  const least = Math.min(LEAST_SPAN, Math.max(length, 1));
  const wanted = Math.min(Math.max(span / factor, least), Math.max(length, 1));
  const from = at - ((at - window.from) * wanted) / span;
  return clampWindow({from, to: from + wanted}, length);
}

/** Moves by a share of what is in sight. */
export function panWindow(window, share, length) {
  const move = (window.to - window.from) * share;
  return clampWindow({from: window.from + move, to: window.to + move}, length);
}

/** The same span, moved no farther than needed for [begin, end] to be in sight with some room. */
export function revealInWindow(window, begin, end, length) {
  const span = window.to - window.from;
  const room = span * 0.05;
  if (end - begin > span * 0.9) {
    const wider = (end - begin) * 1.25;
    const middle = (begin + end) / 2;
    return clampWindow({from: middle - wider / 2, to: middle + wider / 2}, length);
  }
  let from = window.from;
  if (begin - room < from) from = begin - room;
  if (end + room > from + span) from = end + room - span;
  return clampWindow({from, to: from + span}, length);
}
