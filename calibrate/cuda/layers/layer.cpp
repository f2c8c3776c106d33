// The networks that the cuda backend runs, and the making of their layers.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/layers/layer.h"

#include <fmt/format.h>

#include <variant>

#include "base/bug.h"
#include "calibrate/cuda/layers/layer_parts.h"

namespace plumbline {
std::optional<Diagnostic> check_for_cuda(const Network& network, const Mark& mark) {
  if (!std::holds_alternative<Head>(network.layers.back().settings)) {
    return input_error(mark,
                       fmt::format("the network '{}' does not end in a head, so it has no loss",
                                   clipped(network.name)),
                       "put {kind: head, classes: N} at its end");
  }
  return std::nullopt;
}

std::unique_ptr<CudaLayer> cuda_layer(const CudaQueue& queue, const NetworkLayer& layer,
                                      ElementType type, std::int64_t batch) {
  PLUMBLINE_CHECK(batch >= 1, layer.name, batch);
  const cuda::LayerSite site{queue, layer, type, batch};
  return std::visit([&](const auto& settings) { return cuda::make_layer(settings, site); },
                    layer.settings);
}

}  // namespace plumbline
