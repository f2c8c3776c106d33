// What the colours and patterns of the timeline stand for.
// SPDX-License-Identifier: MIT
import {CLASS_NAMES, CLASSES} from './density.js';
import {element} from './dom.js';
import {tile} from './palette.js';

/** A little picture of a class, drawn as the timeline draws it. */
function swatch(name, palette) {
  const canvas = element('canvas', {width: 24, height: 14, 'aria-hidden': 'true'});
  const context = canvas.getContext('2d');
  const image = context.createImageData(24, 14);
  const pixels = new Uint32Array(image.data.buffer);
  const colorsOfTile = tile(name, palette);
  pixels.forEach((_, i) => {
    pixels[i] = colorsOfTile[((Math.floor(i / 24) & 7) << 3) | (i % 24 & 7)];
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** What each class of ops looks like in the timeline, as items of a list. */
export function classLegend(classes, palette) {
  const ops =
      classes.map((c) => element('li', {}, swatch(CLASSES[c], palette), CLASS_NAMES[CLASSES[c]]));
  return [...ops, element('li', {}, swatch('idle', palette), 'idle')];
}
