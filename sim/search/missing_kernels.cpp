// Every layout that was predicted, read again for its kernels.
//
// SPDX-License-Identifier: MIT
#include "sim/search/missing_kernels.h"

#include <algorithm>

#include "models/kernels/kernel_model.h"

namespace plumbline {
namespace {

/// The time of one micro-batch's passes over all layers, in seconds.
double passes_s(const Model& model) {
  double sum = 0;
  for (const LayerCosts& costs : model.profile.measurements.front().layers)
    sum += seconds(costs.forward.mean) + seconds(costs.backward.mean);
  return sum;
}

}  // namespace

Result<std::vector<ListedKernel>> missing_kernels(const Search& search, const SearchPart& part) {
  KernelList list;
  bool any = false;
  for (const FamilyResult& family : part.families) {
    for (const SearchRow& row : family.rows) {
      const auto scenario = search.read(row.layout);
      if (!scenario || !scenario->kernels) continue;
      any = true;
      list.add(*scenario->model, *scenario->kernels,
               1 / std::max(1e-9, passes_s(*scenario->model)));
    }
  }
  if (!any) {
    return input_error({}, "no layout has times that come from kernels, so none is missing",
                       "they do for a model.huggingface on a cluster.device without an efficiency");
  }
  return list.kernels();
}

}  // namespace plumbline
