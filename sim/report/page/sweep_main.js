// The page of a sweep from its data.
// SPDX-License-Identifier: MIT
import {tellFailure} from './page.js';
import {showPage, SweepPage} from './sweep_page.js';

showPage(SweepPage).catch(tellFailure);
