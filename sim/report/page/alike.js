// Devices that do the same at the same times, as one: copies of a pipeline, members of a group.
// SPDX-License-Identifier: MIT

/** A number that is equal for slots that do the same. */
function traitOf(runs, slot) {
  let trait = 0;
  for (const run of runs) {
    const end = run.starts[slot + 1];
    for (let item = run.starts[slot]; item < end; ++item)
      trait = (Math.imul(trait, 31) + (run.begin[item] | 0) + Math.imul(run.end[item] | 0, 7)) | 0;
  }
  return trait;
}

function areEqual(a, b) {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}

/**
 * Whether two slots do the same for the same stages at the same times, wait for the same, and hold
 * as much.
 */
export function areAlike(runs, a, b) {
  return runs.every((run) => {
    const first = run.starts[a];
    const count = run.starts[a + 1] - first;
    if (run.starts[b + 1] - run.starts[b] !== count) return false;
    for (let i = 0; i < count; ++i) {
      for (const column of ['kind', 'stage', 'begin', 'end'])
        if (run[column][first + i] !== run[column][run.starts[b] + i]) return false;
    }
    return areEqual(run.gaps[a].begin, run.gaps[b].begin) &&
        areEqual(run.gaps[a].cause, run.gaps[b].cause) &&
        areEqual(run.memory[a].at, run.memory[b].at) &&
        areEqual(run.memory[a].bytes, run.memory[b].bytes);
  });
}

/** The slots of all runs in groups of those that are alike, each group where its first one is. */
export function alikeGroups(runs) {
  const groups = [];
  const byTrait = new Map();
  for (let slot = 0; slot < runs[0].slots; ++slot) {
    const trait = traitOf(runs, slot);
    const known = byTrait.get(trait) ?? [];
    const group = known.find(([first]) => areAlike(runs, first, slot));
    if (group) {
      group.push(slot);
      continue;
    }
    groups.push([slot]);
    byTrait.set(trait, [...known, groups[groups.length - 1]]);
  }
  return groups;
}

/** Rising numbers in short: "4-7", "0, 2", "0, 4, ..., 60", or "0 and 9 more". */
export function numbersInShort(numbers) {
  if (numbers.length === 1) return String(numbers[0]);
  const step = numbers[1] - numbers[0];
  const last = numbers[numbers.length - 1];
  const isEven = numbers.every((number, i) => number === numbers[0] + i * step);
  if (isEven && step === 1) return `${numbers[0]}-${last}`;
  if (numbers.length <= 3) return numbers.join(', ');
  return isEven ? `${numbers[0]}, ${numbers[1]}, ..., ${last}` :
                  `${numbers[0]} and ${numbers.length - 1} more`;
}

/** "device 3", or "devices 0-3 (alike)"; a page may have its own names, `run.nameOf(slots)`. */
export function deviceNames(run, slots) {
  if (run.nameOf) return run.nameOf(slots);
  const numbers = numbersInShort(slots.map((slot) => run.layout.devices[slot]));
  return slots.length > 1 ? `devices ${numbers} (alike)` : `device ${numbers}`;
}
