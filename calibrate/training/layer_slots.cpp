// Tensors found by their names, each once.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/layer_slots.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/bug.h"

namespace plumbline {
namespace {

template <class Tensor>
std::size_t slot_or_none(const std::vector<Tensor>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? kNoSlot : static_cast<std::size_t>(found - tensors.begin());
}

/// One layer whose tensors are being found.
class Finder {
 public:
  explicit Finder(const NetworkLayer& layer) : layer_(layer) {}

  std::size_t parameter(const std::string& name) { return required(parameter_if_any(name), name); }
  std::size_t parameter_if_any(const std::string& name) {
    return counted(slot_or_none(layer_.parameters, name));
  }
  std::size_t kept(const std::string& name) { return required(kept_if_any(name), name); }
  std::size_t kept_if_any(const std::string& name) {
    return counted(slot_or_none(layer_.kept, name));
  }
  std::size_t left(const std::string& name) {
    return required(counted(slot_or_none(layer_.left_for_weights, name)), name);
  }

  // Parts that several kinds have. `prefix` distinguishes their names from others of the layer.

  DenseSlots dense(const std::string& prefix = "") {
    return {parameter(prefix + "weight"), parameter_if_any(prefix + "bias")};
  }
  NormSlots norm(const std::string& prefix) {
    return {parameter(prefix + "scale"), parameter_if_any(prefix + "shift"),
            kept_if_any(prefix + "mean"), kept(prefix + "rstd")};
  }
  BlockNormSlots block_norm() {
    return {norm("norm."), kept("norm.output"), left("norm.output_gradient")};
  }
  NormedConvolutionSlots normed_convolution(const std::string& name,
                                            const std::string& name_of_norm) {
    return {parameter(name + ".weight"), norm(name_of_norm + "."), kept(name),
            left(name + ".gradient")};
  }

  HeadNormSlots head_norm() {
    return {parameter("queries.scale"), parameter("keys.scale"), kept("heads.rstd"),
            kept("heads.input")};
  }

  bool has_parameter(const std::string& name) const {
    return slot_or_none(layer_.parameters, name) != kNoSlot;
  }

  /// Checks that the layer has no other tensors than those found.
  void finish() const {
    const std::size_t all =
        layer_.parameters.size() + layer_.kept.size() + layer_.left_for_weights.size();
    PLUMBLINE_CHECK(found_ == all, layer_.name, kind_name(layer_.settings), found_, all);
  }

 private:
  std::size_t counted(std::size_t slot) {
    found_ += slot == kNoSlot ? 0 : 1;
    return slot;
  }
  std::size_t required(std::size_t slot, const std::string& name) const {
    PLUMBLINE_CHECK(slot != kNoSlot, layer_.name, kind_name(layer_.settings), name);
    return slot;
  }

  const NetworkLayer& layer_;
  std::size_t found_ = 0;
};

/// The result of `find` for the layer. It must find all its tensors.
template <class Find>
auto all_slots(const NetworkLayer& layer, Find&& find) {
  Finder finder(layer);
  auto slots = find(finder);
  finder.finish();
  return slots;
}

}  // namespace

DenseSlots dense_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) { return of.dense(); });
}

NormSlots norm_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) { return of.norm(""); });
}

std::array<HeadPart, 2> head_parts(const AttentionWidths& widths, const HeadNormSlots& slots) {
  return {HeadPart{0, widths.heads, 0, slots.queries_scale},
          HeadPart{widths.queries(), widths.kv_heads, widths.heads, slots.keys_scale}};
}

AttentionSlots attention_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    std::optional<HeadNormSlots> head_norm;
    if (of.has_parameter("queries.scale")) head_norm = of.head_norm();
    return AttentionSlots{.norm = of.block_norm(),
                          .qkv = of.dense("qkv."),
                          .projection = of.dense("projection."),
                          .head_norm = head_norm,
                          .qkv_output = of.kept("qkv"),
                          .logsumexp = of.kept("logsumexp"),
                          .context = of.kept("context"),
                          .qkv_gradient = of.left("qkv.gradient")};
  });
}

MlpSlots mlp_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    return MlpSlots{.norm = of.block_norm(),
                    .up = of.dense("up."),
                    .down = of.dense("down."),
                    .hidden = of.kept("hidden"),
                    .activated = of.kept("activated"),
                    .hidden_gradient = of.left("hidden.gradient")};
  });
}

EmbeddingSlots embedding_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    return EmbeddingSlots{of.parameter("weight"), of.parameter_if_any("positions")};
  });
}

HeadSlots head_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    HeadSlots slots;
    if (of.has_parameter("norm.scale")) slots.norm = of.block_norm();
    slots.product = of.dense();
    slots.probabilities = of.kept("probabilities");
    return slots;
  });
}

LstmSlots lstm_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    return LstmSlots{.input_weight = of.parameter("input.weight"),
                     .hidden_weight = of.parameter("hidden.weight"),
                     .bias = of.parameter("bias"),
                     .gates = of.kept("gates"),
                     .cells = of.kept("cells"),
                     .hidden = of.kept_if_any("hidden"),
                     .gates_gradient = of.left("gates.gradient")};
  });
}

ResidualSlots residual_slots(const NetworkLayer& layer) {
  return all_slots(layer, [](Finder& of) {
    ResidualSlots slots{.first = of.normed_convolution("conv1", "norm1"),
                        .relu1 = of.kept("relu1"),
                        .second = of.normed_convolution("conv2", "norm2"),
                        .shortcut = {}};
    if (of.has_parameter("shortcut.weight"))
      slots.shortcut = of.normed_convolution("shortcut", "shortcut_norm");
    return slots;
  });
}

void check_no_slots(const NetworkLayer& layer) { Finder(layer).finish(); }

}  // namespace plumbline
