// Which kinds the cuda backend has, and their making. SPDX-License-Identifier: MIT
#include "calibrate/cuda/layer.h"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "calibrate/cuda/layer_parts.h"
#include "models/bug.h"

namespace plumbline {
namespace {

/// Whether there are kernels for a kind.
template <class Kind>
concept HasKernels = requires(const Kind& settings, const cuda::LayerSite& site) {
  cuda::make_layer(settings, site);
};

}  // namespace

std::optional<Diagnostic> refuse_for_cuda(const Network& network, const Mark& mark) {
  for (const NetworkLayer& layer : network.layers) {
    const bool known = std::visit(
        [](const auto& settings) { return HasKernels<std::decay_t<decltype(settings)>>; },
        layer.settings);
    if (known) continue;
    return input_error(
        mark,
        fmt::format("the layer '{}' of the network '{}' is of kind '{}', which the "
                    "cuda backend does not compute yet",
                    clipped(layer.name), clipped(network.name), kind_name(layer.settings)),
        "take --backend cpu");
  }
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
  return std::visit(
      [&](const auto& settings) -> std::unique_ptr<CudaLayer> {
        if constexpr (HasKernels<std::decay_t<decltype(settings)>>) {
          return cuda::make_layer(settings, site);
        } else {
          PLUMBLINE_CHECK(false, layer.name, kind_name(layer.settings));
          return nullptr;
        }
      },
      layer.settings);
}

}  // namespace plumbline
