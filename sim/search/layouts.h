// The layouts that a scenario leaves open: which keys, which values.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "sim/scenario/model_section.h"

namespace plumbline {

struct YamlNode;

/// The keys of a layout, of which a search tries values: how a model is shared, how many stages and
/// copies there are, schedule, size of the micro-batch, recomputation.
const std::vector<std::string>& layout_keys();

/// What stands at a dotted path, or nullptr.
const YamlNode* value_at(const YamlNode& root, std::string_view path);

/// The layouts of one family: they differ in the size of the micro-batch alone, which ascends.
struct LayoutFamily {
  std::uint64_t number = 0;     ///< Of the families of a search,
  std::uint64_t first = 0;      ///< and the number of its first layout.
  std::size_t combination = 0;  ///< Of the arguments' values.
  std::vector<std::string> overrides;
  std::vector<std::int64_t> micro_batch_sizes;  ///< Empty: as the scenario says.

  std::uint64_t layouts() const { return micro_batch_sizes.empty() ? 1 : micro_batch_sizes.size(); }
};

/// All that the scenario leaves open.
struct LayoutSpace {
  std::vector<LayoutFamily> families;
  std::vector<std::string> open_keys;  ///< That have values there, in the order of writing.
};

/// Every combination of values of the open keys that the numbers divide; what else speaks against
/// one is left to its reader. Sharing is searched of a model by its config.json where GPUs are
/// counted: divisors of the GPUs, tensor parallelism within a server, context parallelism down to
/// 1024 tokens on each. Stages: divisors of the devices; copies fill them. 1f1b and
/// interleaved-1f1b with 2, 4 and 8 chunks and those that cut the blocks of each device evenly, and
/// data-parallel,
/// unless a schedule is given. Micro-batches of 1, 2, 4, ... samples, in multiples of the costs'
/// where these are of a group, and of one sample where they know no batch. Recomputation, where the
/// memory is known: none, or of as few layers as fit, selective or whole. `overrides` stand first
/// in those of each family. Errors: no devices, no mini-batch size, a file in the place of a plan
/// or a schedule.
Result<LayoutSpace> layout_space(const YamlNode& root, const ModelSection& model,
                                 std::vector<std::string> overrides);

}  // namespace plumbline
