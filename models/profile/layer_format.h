// The keys of a layer, and the tables that scenarios and profiles share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "base/file_format.h"

namespace plumbline {

/// A layer in a list: its name and the keys of layer_cost_keys().
const SectionFormat& layer_format();

/// The costs of a layer: kind, times, sizes, work.
std::vector<KeyFormat> layer_cost_keys();

/// The groups of costs, of which a layer has one: its times, or the work for an estimate.
std::vector<std::vector<std::string_view>> layer_cost_groups();
/// The costs that are given only together.
std::vector<std::vector<std::string_view>> layer_cost_needs();

/// A time as a map of statistics, and the work of the passes of a layer.
const SectionFormat& statistics_format();
const SectionFormat& pass_flops_format();
const SectionFormat& pass_bytes_format();

/// The part of a layer that `recompute: selective` recomputes.
const SectionFormat& selective_format();

/// `layers`, `edges`, `dtype` and `group`, as scenarios and profiles have them.
KeyFormat layers_key();
KeyFormat edges_key();
KeyFormat dtype_key();
KeyFormat group_key();

/// per_op, hand_over, per_iteration, add_up and stash.
const SectionFormat& overheads_format();

}  // namespace plumbline
