// The content of a network as a text and as a short number, to tell two networks apart.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/network/network.h"

namespace plumbline {

/// All facts that decide the computation, one line per layer: name, kind, all settings, shapes.
/// Files that differ only in layout, comments, repeats written out or defaults spelt out have the
/// same content.
std::string network_content(const Network& network);

/// A hash of that text in 16 hexadecimal digits (FNV-1a, 64 bits: Fowler, Noll and Vo). It guards
/// against mistakes, not against forgery.
std::string network_fingerprint(const Network& network);

}  // namespace plumbline
