// The kernels that layouts of a model launch, each once: what there is to measure.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/import/transformer_layers.h"
#include "models/kernels/kernel_model.h"
#include "models/ops/layer_op.h"
#include "models/profile/profile.h"

namespace plumbline {

/// A kernel of some layouts.
struct ListedKernel {
  KernelKey key;
  std::int64_t per_layer = 0;   ///< The most launches in one layer, all passes together.
  double modelled_seconds = 0;  ///< One launch alone, as it would be measured: without the closure.
  double weight = 0;            ///< Its time in all layouts, by which the list is ordered.
};

/// Kernels by their keys. Collectives are not among them: one device cannot time them.
class KernelList {
 public:
  /// Adds the kernels of all passes over the layers of a model whose ops are known, but for those
  /// that the table of `kernels` has measured. Their times count `weight` times.
  void add(const Model& model, const KernelModel& kernels, double weight = 1);

  /// All kernels, those of the largest weight first.
  std::vector<ListedKernel> kernels() const;

 private:
  void add_layer(const LayerOps& ops, const KernelModel& kernels, double weight);

  std::map<KernelKey, ListedKernel> kernels_;
};

/// Layouts: each combination of these sizes, and for all of them the other options. A size that
/// stands twice counts once.
struct ListedLayouts {
  std::vector<std::int64_t> sequences, batches, tensor, context, expert;
  TransformerOptions options;
};

/// The kernels that layouts need.
struct NeededKernels {
  std::vector<ListedKernel> kernels;            ///< The largest weight comes first.
  std::int64_t layouts = 0;                     ///< How many combinations are possible.
  std::map<std::string, std::int64_t> misfits;  ///< How many others there are, by what is wrong.
};

/// The kernels of all layouts of a model: of those with tensor parallelism also sequence-parallel,
/// as Megatron Core trains. With a table in `model`, those that it lacks.
NeededKernels needed_kernels(const TransformerShape& shape, const ListedLayouts& layouts,
                             const KernelModel& model);

/// The list as CSV, in the columns that `plumbline import kernels --from csv` reads, without times:
/// kind, dtype, pass, a to f, us, spread, how; and keys (where they are more than the queries),
/// accumulate, per_layer, modelled_us.
std::string kernel_list_csv(const std::vector<ListedKernel>& kernels);

/// The same as a JSON array of objects, without columns that are empty.
std::string kernel_list_json(const std::vector<ListedKernel>& kernels);

}  // namespace plumbline
