// What a network consists of, as a text and as a short number: to tell two networks apart.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/network/network.h"

namespace plumbline {

/// Everything that decides what is computed, a layer a line: name, kind, all settings, shapes. Two
/// files that differ in layout, comments, repeats written out, or defaults spelt out have the same.
std::string network_content(const Network& network);

/// 16 hexadecimal digits of that text (FNV-1a, 64 bits: Fowler, Noll and Vo). It guards against
/// mistakes, not against forgery.
std::string network_fingerprint(const Network& network);

}  // namespace plumbline
