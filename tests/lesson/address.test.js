// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import test from 'node:test';

import {initialValues, readAddress, valueOf, writeAddress} from '../../lesson/address.js';
import {PAGES} from '../../lesson/page_list.js';

test('an address without anything is the first page as it begins', () => {
  const state = readAddress(PAGES, '');
  assert.equal(state.page, 0);
  assert.deepEqual(state.values, initialValues(PAGES[0]));
  assert.equal(writeAddress(PAGES, state), '#page=1');
});

test('what is written is read again, for every control of every page', () => {
  for (const [number, page] of PAGES.entries()) {
    for (const control of page.controls) {
      const values = control.kind === 'choice' ? control.options :
          control.kind === 'check'             ? [true, false] :
          control.kind === 'range' ? [control.from, control.from + control.step, control.to] :
                                     ['F0.B0_F0.B0', 'x&y=1#é'];
      for (const value of values) {
        const state = {...readAddress(PAGES, `#page=${number + 1}&lang=et&student=B%201&embed=1`)};
        state.values = {...state.values, [control.id]: value};
        page.settle?.(state.values, control.id);
        assert.deepEqual(
            readAddress(PAGES, writeAddress(PAGES, state)), state,
            `${page.id} ${control.id} ${value}`);
      }
    }
  }
});

test('values that a control does not have are the nearest, or those of the beginning', () => {
  const slider = {kind: 'range', id: 'm', from: 1, to: 16, value: 4, step: 1};
  assert.equal(valueOf(slider, '99'), 16);
  assert.equal(valueOf(slider, '-3'), 1);
  assert.equal(valueOf(slider, '2.6'), 3);
  for (const text of ['', ' ', 'x', 'NaN', 'Infinity'])
    assert.equal(valueOf(slider, text), undefined, text);
  assert.equal(valueOf({kind: 'choice', options: ['a']}, 'b'), undefined);
  assert.equal(readAddress(PAGES, '#page=0').page, 0);
  assert.equal(readAddress(PAGES, '#page=11').page, 0);
  assert.equal(readAddress(PAGES, '#page=1.5').page, 0);
  assert.equal(readAddress(PAGES, '#page=x').page, 0);
  assert.equal(readAddress(PAGES, '#theme=red').theme, 'auto');
});
