// The layouts that a scenario leaves open: the keys and their values.
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

/// The keys of a layout whose values a search tries: the sharing of the model, the numbers of
/// stages and copies, the schedule, the size of the micro-batch, recomputation.
const std::vector<std::string>& layout_keys();

/// The node at a dotted path, or nullptr.
const YamlNode* value_at(const YamlNode& root, std::string_view path);

/// The layouts of one family. They differ only in the size of the micro-batch, which ascends.
struct LayoutFamily {
  std::uint64_t number = 0;     ///< Number among the families of a search.
  std::uint64_t first = 0;      ///< Number of its first layout.
  std::size_t combination = 0;  ///< Index of the combination of the arguments' values.
  std::vector<std::string> overrides;
  std::vector<std::int64_t> micro_batch_sizes;  ///< Empty: the scenario gives the size.

  std::uint64_t layouts() const { return micro_batch_sizes.empty() ? 1 : micro_batch_sizes.size(); }
};

/// All layouts that the scenario leaves open.
struct LayoutSpace {
  std::vector<LayoutFamily> families;
  std::vector<std::string>
      open_keys;  ///< The keys that have values there, in the order of writing.
};

/// Every combination of values of the open keys that divide the sizes. Other errors of a layout are
/// reported when it is read. Sharing is searched if the model is given by its config.json and GPUs
/// are counted: divisors of the GPUs, tensor parallelism within a server, context parallelism down
/// to 1024 tokens on each GPU. Stages: divisors of the devices; copies of the pipeline fill all
/// devices. Schedules, unless one is given: data-parallel, 1f1b, and interleaved-1f1b with 2, 4 and
/// 8 chunks and the numbers that cut the blocks of each device evenly. Micro-batches of 1, 2, 4,
/// ... samples. If the costs are those of a group, these are multiples of the costs' micro-batch;
/// if the costs know no batch, of one sample. Recomputation, if the memory is known: none, or
/// recomputation of as few layers as fit, either selective or of whole layers. `overrides` stand
/// first in the overrides of each family. Errors: no devices, no mini-batch size, a file instead of
/// a plan or a schedule.
Result<LayoutSpace> layout_space(const YamlNode& root, const ModelSection& model,
                                 std::vector<std::string> overrides);

}  // namespace plumbline
