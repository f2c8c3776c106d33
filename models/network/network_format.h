// The tables of a network file.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/file_format.h"

namespace plumbline {

/// A network file, and the sections in it.
const SectionFormat& network_format();
const SectionFormat& network_input_format();
const SectionFormat& layer_group_format();

/// A layer of any kind; its cases say which keys each kind has.
const SectionFormat& network_layer_format();

}  // namespace plumbline
