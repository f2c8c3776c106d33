// Layouts become layers, and layers become kernels.
//
// SPDX-License-Identifier: MIT
#include "models/tables/kernel_list.h"

#include <algorithm>
#include <utility>

#include "models/import/transformer_profile.h"
#include "models/kernels/launches.h"

namespace plumbline {
namespace {

constexpr KernelPass kPasses[] = {KernelPass::forward, KernelPass::input, KernelPass::weights};

/// The sizes in their order, each once.
std::vector<std::int64_t> each_once(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> once;
  for (const std::int64_t size : sizes) {
    if (std::find(once.begin(), once.end(), size) == once.end()) once.push_back(size);
  }
  return once;
}

/// All combinations of the sizes, as options.
std::vector<TransformerOptions> combinations(const ListedLayouts& layouts) {
  std::vector<TransformerOptions> all = {layouts.options};
  const auto multiply = [&](const std::vector<std::int64_t>& given,
                            std::int64_t TransformerOptions::*size) {
    const std::vector<std::int64_t> sizes = each_once(given);
    std::vector<TransformerOptions> more;
    more.reserve(all.size() * sizes.size());
    for (const TransformerOptions& one : all) {
      for (const std::int64_t value : sizes) {
        more.push_back(one);
        more.back().*size = value;
      }
    }
    all = std::move(more);
  };
  multiply(layouts.sequences, &TransformerOptions::sequence);
  multiply(layouts.batches, &TransformerOptions::batch);
  multiply(layouts.tensor, &TransformerOptions::tensor_parallel);
  multiply(layouts.context, &TransformerOptions::context_parallel);
  multiply(layouts.expert, &TransformerOptions::expert_parallel);
  for (TransformerOptions& one : all) one.sequence_parallel = one.tensor_parallel > 1;
  return all;
}

}  // namespace

void KernelList::add_layer(const LayerOps& ops, const KernelModel& kernels, double weight) {
  std::map<KernelKey, std::int64_t> launched;
  for (const KernelPass pass : kPasses) {
    for (const Kernel& kernel : launches(ops, pass, kernels.stack())) {
      const auto* product = std::get_if<ProductKernel>(&kernel);
      const auto key = key_of(
          kernel, product ? kernels.stack().accumulation(product->format) : Accumulation::none);
      if (!key || key->group.kernels == KernelClass::collectives) continue;
      const KernelTime time = kernels.time_of(kernel);
      if (time.origin == KernelOrigin::measured) continue;
      ++launched[*key];
      ListedKernel& listed = kernels_[*key];
      listed.key = *key;
      listed.modelled_seconds = time.alone();
      listed.weight += weight * time.seconds;
    }
  }
  for (const auto& [key, count] : launched) {
    ListedKernel& listed = kernels_[key];
    listed.per_layer = std::max(listed.per_layer, count);
  }
}

void KernelList::add(const Model& model, const KernelModel& kernels, double weight) {
  std::vector<std::pair<const LayerOps*, std::int64_t>> layers;  // in the order of the model
  for (const LayerCosts& costs : model.profile.measurements.front().layers) {
    const LayerOps* const ops = costs.ops.get();
    if (!ops) continue;
    const auto known = std::find_if(layers.begin(), layers.end(),
                                    [&](const auto& other) { return other.first == ops; });
    if (known == layers.end()) {
      layers.emplace_back(ops, 1);
    } else {
      ++known->second;
    }
  }
  for (const auto& [ops, count] : layers)
    add_layer(*ops, kernels, weight * static_cast<double>(count));
}

std::vector<ListedKernel> KernelList::kernels() const {
  std::vector<ListedKernel> all;
  all.reserve(kernels_.size());
  for (const auto& [key, kernel] : kernels_) all.push_back(kernel);
  std::stable_sort(all.begin(), all.end(), [](const ListedKernel& a, const ListedKernel& b) {
    return a.weight > b.weight;
  });
  return all;
}

NeededKernels needed_kernels(const TransformerShape& shape, const ListedLayouts& layouts,
                             const KernelModel& model) {
  NeededKernels needed;
  KernelList list;
  for (const TransformerOptions& options : combinations(layouts)) {
    const auto profile = transformer_profile("", shape, options);
    if (!profile) {
      ++needed.misfits[profile.problems().front().message];
      continue;
    }
    ++needed.layouts;
    list.add(profile->model, model);
  }
  needed.kernels = list.kernels();
  return needed;
}

}  // namespace plumbline
