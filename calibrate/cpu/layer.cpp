// A layer of any kind.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/layer.h"

#include <variant>

#include "base/bug.h"
#include "calibrate/cpu/gemm.h"
#include "calibrate/cpu/layer_kinds.h"

namespace plumbline {

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
