// The columns of a run as the program packed them (sim/report/report_columns.h says how), unpacked.
// SPDX-License-Identifier: MIT

/** No item: nobody let it start. */
export const NOBODY = 0xffffffff;

/** How many kinds of activities there are. */
export const KINDS = 18;

/** The bytes behind a base64 text. */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** What gzip packed. */
export async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads LEB128 numbers one after the other; exact up to 2^53. */
export class NumberReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  next() {
    let byte = this.bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let unit = 0x80;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * unit;
      unit *= 0x80;
    } while (byte >= 0x80);
    return value;
  }

  /** A zigzag number. */
  nextSigned() {
    const value = this.next();
    if (value < 0x40000000) return (value >>> 1) ^ -(value & 1);
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** Values as differences to the item before, lane by lane. */
function readDifferences(reader, starts, values) {
  for (let lane = 0; lane + 1 < starts.length; ++lane) {
    let last = 0;
    for (let item = starts[lane]; item < starts[lane + 1]; ++item) {
      last += reader.nextSigned();
      values[item] = last;
    }
  }
}

/** Values as differences to the last item of the same kind, lane by lane. */
function readDifferencesInKind(reader, starts, kind, values) {
  const ofKind = new Float64Array(KINDS);
  for (let lane = 0; lane + 1 < starts.length; ++lane) {
    ofKind.fill(0);
    for (let item = starts[lane]; item < starts[lane + 1]; ++item) {
      values[item] = ofKind[kind[item]] += reader.nextSigned();
    }
  }
}

/** From gaps in `begin` and lengths in `end` to times. */
function addUp(starts, begin, end) {
  for (let lane = 0; lane + 1 < starts.length; ++lane) {
    let last = 0;
    for (let item = starts[lane]; item < starts[lane + 1]; ++item) {
      begin[item] += last;
      last = end[item] += begin[item];
    }
  }
}

function readReleases(reader, starts, kind, releasedBy) {
  const ofKind = new Float64Array(KINDS);
  for (let lane = 0; lane + 1 < starts.length; ++lane) {
    ofKind.fill(-1);
    for (let item = starts[lane]; item < starts[lane + 1]; ++item) {
      const code = reader.next();
      if (code < 2) {
        releasedBy[item] = code === 0 ? NOBODY : item - 1;
        continue;
      }
      const offset = code % 2 === 0 ? (code - 2) / 2 : -(code - 1) / 2;
      const reference = ofKind[kind[item]] < 0 ? item : ofKind[kind[item]];
      releasedBy[item] = ofKind[kind[item]] = reference + offset;
    }
  }
}

function readItems(reader, starts) {
  const count = starts[starts.length - 1];
  const kind = new Uint8Array(count);
  const stage = new Uint32Array(count);
  const microBatch = new Uint32Array(count);
  const cost = new Uint32Array(count);
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  const releasedBy = new Uint32Array(count);
  for (let item = 0; item < count; ++item) kind[item] = reader.next();
  readDifferences(reader, starts, stage);
  readDifferencesInKind(reader, starts, kind, microBatch);
  readDifferences(reader, starts, cost);
  for (let item = 0; item < count; ++item) begin[item] = reader.nextSigned();
  readDifferencesInKind(reader, starts, kind, end);
  addUp(starts, begin, end);
  readReleases(reader, starts, kind, releasedBy);
  return {kind, stage, microBatch, cost, begin, end, releasedBy};
}

function readGaps(reader, count) {
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  const cause = new Uint8Array(count);
  for (let i = 0; i < count; ++i) begin[i] = reader.next();
  let last = 0;
  for (let i = 0; i < count; ++i) {
    begin[i] += last;
    last = end[i] = begin[i] + reader.next();
  }
  for (let i = 0; i < count; ++i) cause[i] = reader.next();
  return {begin, end, cause};
}

function readMemory(reader, count) {
  const at = new Float64Array(count);
  const bytes = new Float64Array(count);
  let last = 0;
  for (let i = 0; i < count; ++i) at[i] = last += reader.next();
  const activations = new Float64Array(count);
  for (const values of [bytes, activations]) {
    last = 0;
    for (let i = 0; i < count; ++i) values[i] = last += reader.nextSigned();
  }
  return {at, bytes, activations};
}

/**
 * The next run of `reader`: its items column by column, lane after lane (slots, channels, the
 * rest), where each lane starts, and the idle gaps and the memory of each slot.
 */
export function decodeRun(reader, layout) {
  const counts = [...layout.slot_items, ...layout.channel_items, layout.moment_items];
  const starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, lane) => {
    starts[lane + 1] = starts[lane] + count;
  });
  const items = readItems(reader, starts);
  const gaps = layout.slot_gaps.map((count) => readGaps(reader, count));
  const memory = layout.memory_points.map((count) => readMemory(reader, count));
  return {...items, starts, gaps, memory, layout, slots: layout.slot_items.length};
}
