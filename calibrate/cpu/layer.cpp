// A layer of any kind.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/layer.h"

#include <variant>

#include "base/bug.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/layer_kinds.h"

namespace plumbline {
namespace {

template <class Tensors>
void check_names(const Tensors& tensors, const std::vector<std::string_view>& names) {
  PLUMBLINE_CHECK(tensors.size() == names.size(), tensors.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    PLUMBLINE_CHECK(tensors[i].name == names[i], tensors[i].name, names[i]);
}

}  // namespace

void check_names(const NetworkLayer& layer, const CpuLayerNames& names) {
  check_names(layer.parameters, names.parameters);
  check_names(layer.kept, names.kept);
  check_names(layer.left_for_weights, names.left);
}

std::unique_ptr<CpuLayer> cpu_layer(const NetworkLayer& layer, std::int64_t batch) {
  PLUMBLINE_CHECK(!cpu_library().empty(), layer.name, "needs a build with oneDNN");
  PLUMBLINE_CHECK(batch >= 1, layer.name, batch);
  return std::visit(
      [&]<class Kind>(const Kind& settings) {
        return make_cpu_layer(CpuLayerOf<Kind>{settings, layer, batch});
      },
      layer.settings);
}

std::string cpu_library() { return matrix_library(); }

}  // namespace plumbline
