// Checks of options against a shape: one for each thing that devices share, and for number formats.
//
// SPDX-License-Identifier: MIT
#include "models/import/transformer_misfits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

/// What the devices of a tensor-parallel group divide.
struct Shared {
  std::int64_t whole;
  std::string_view what;
};

std::vector<Shared> shared_by_mixers(const BlockShape& block) {
  switch (block.mixer) {
    case Mixer::attention:
      if (block.latent) return {{block.heads, "attention heads"}};
      return {{block.heads, "attention heads"},
              {block.key_value_heads, "heads of keys and values"}};
    case Mixer::compressed:
      return {{block.heads, "attention heads"},
              {block.compressed->output_groups, "groups of heads"}};
    case Mixer::scan:
      return {{block.scan->heads, "heads of a scan"},
              {block.scan->key_heads, "heads of a scan's keys"}};
    case Mixer::linear:
    case Mixer::none:
      break;
  }
  return {};
}

class OptionChecks {
 public:
  OptionChecks(const TransformerShape& shape, const TransformerOptions& options)
      : shape_(shape), options_(options), names_(*options.names) {}

  Diagnostics run() && {
    check_shares();
    check_experts();
    check_divided_experts();
    check_context();
    check_servers();
    check_sequence_parallel();
    check_formats();
    check_predictions();
    check_split_blocks();
    check_fp8_dispatch();
    check_positions();
    return std::move(problems_);
  }

 private:
  void refuse(std::string message, std::string help) {
    problems_.push_back(input_error({}, std::move(message), std::move(help)));
  }

  /// Checks that the size of a tensor-parallel group divides `whole`.
  void must_divide(std::int64_t whole, std::string_view what) {
    const std::int64_t t = options_.tensor_parallel;
    if (whole % t == 0) return;
    std::string message = fmt::format("{} is {}, which does not divide the {} {}",
                                      names_.tensor_parallel, t, whole, what);
    const bool is_told = std::any_of(problems_.begin(), problems_.end(), [&](const Diagnostic& p) {
      return p.message == message;  // of another kind of block
    });
    if (!is_told)
      refuse(std::move(message), "every device of the group gets the same share of each layer");
  }

  void check_shares() {
    if (shape_.kinds.empty()) return check_block(shape_, shape_.has_dense_blocks());
    for (const BlockKind& kind : shape_.kinds)
      check_block(kind.block, kind.block.has_mlp && kind.block.experts == 0);
  }

  void check_block(const BlockShape& block, bool has_dense) {
    for (const Shared& one : shared_by_mixers(block)) must_divide(one.whole, one.what);
    if (has_dense) must_divide(block.feed_forward, "columns of an MLP");
    if (block.experts > 0 && options_.expert_parallel == 1)
      must_divide(block.expert_feed_forward, "columns of an expert");
    if (block.shared_feed_forward > 0)
      must_divide(block.shared_feed_forward, "columns of the shared experts");
  }

  void check_experts() {
    const std::int64_t p = options_.expert_parallel;
    if (p <= 1) return;
    if (!shape_.has_experts()) {
      refuse(fmt::format("{} is {}, and the model has no experts", names_.expert_parallel, p),
             fmt::format("{} divides every layer", names_.tensor_parallel));
    } else if (shape_.experts % p != 0) {
      refuse(fmt::format("{} is {}, which does not divide the {} experts", names_.expert_parallel,
                         p, shape_.experts),
             "every device of the group gets as many");
    }
    const std::int64_t t = options_.tensor_parallel;
    if (const std::int64_t each = options_.devices_per_sample();
        options_.expert_devices() % each != 0) {
      refuse(fmt::format("{} is {}{}, no multiple of the {} devices of a sample ({} {} x {} {})",
                         names_.expert_parallel, p, times_parts(), each, names_.tensor_parallel, t,
                         names_.context_parallel, options_.context_parallel),
             "experts are shared by all of them, whole, and by others with samples of their own");
    }
    if (t > 1 && !options_.sequence_parallel)
      refuse(fmt::format("{} with {} needs {}", names_.expert_parallel, names_.tensor_parallel,
                         names_.sequence_parallel),
             "so that each device sends tokens of its own to the experts");
  }

  /// " x --expert-tensor-parallel 2", where experts are divided.
  std::string times_parts() const {
    if (options_.expert_tensor_parallel == 1) return "";
    return fmt::format(" x {} {}", names_.expert_tensor_parallel, options_.expert_tensor_parallel);
  }

  void check_divided_experts() {
    const std::int64_t parts = options_.expert_tensor_parallel;
    if (parts == 1) return;
    if (options_.expert_parallel == 1) {
      refuse(fmt::format("{} is {} without {}", names_.expert_tensor_parallel, parts,
                         names_.expert_parallel),
             fmt::format("where a device holds all experts, {} divides them as all else",
                         names_.tensor_parallel));
    } else if (shape_.has_experts() && shape_.expert_feed_forward % parts != 0) {
      refuse(fmt::format("{} is {}, which does not divide the {} columns of an expert",
                         names_.expert_tensor_parallel, parts, shape_.expert_feed_forward),
             "every device that divides an expert gets the same share of it");
    }
  }

  void check_context() {
    const std::int64_t p = options_.context_parallel;
    if (p > 1 && !may_share_samples(shape_, options_))
      return refuse(fmt::format("{} is {}, and blocks of the model pass a state from token to "
                                "token, or choose the keys of each",
                                names_.context_parallel, p),
                    "needed: what devices that share a sample send each other for that; "
                    "tensor_parallel divides its heads");
    if (options_.exchanges_heads()) return check_heads();
    if (p <= 1 || options_.sequence % (2 * p) == 0) return;
    refuse(fmt::format("{} is {}, and {} parts do not divide the {} tokens of a sample",
                       names_.context_parallel, p, 2 * p, options_.sequence),
           "each device takes a part from the front and one from the back, so that all have as "
           "many scores");
  }

  /// Checks that devices which exchange tokens for heads get as many of both.
  void check_heads() {
    const std::int64_t p = options_.context_parallel;
    const std::int64_t t = options_.tensor_parallel;
    const auto refuse_of = [&](std::int64_t whole, std::string_view what) {
      refuse(
          fmt::format("{} is {}, which does not divide the {} {}", names_.context_parallel, p,
                      whole, what),
          fmt::format("{} 'heads' gives each device as many tokens in front of attention, and as "
                      "many heads in it",
                      names_.context_exchange));
    };
    if (options_.sequence % p != 0) refuse_of(options_.sequence, "tokens of a sample");
    if (shape_.heads % t != 0) return;  // reported already
    if (const std::int64_t heads = shape_.heads / t; heads % p != 0)
      return refuse_of(heads,
                       t > 1 ? "attention heads of a tensor-parallel device" : "attention heads");
    const std::int64_t keys = shape_.key_value_heads / t;
    if (shape_.latent || shape_.key_value_heads % t != 0) return;
    if (std::max(keys, p) % std::min(keys, p) != 0)
      refuse_of(keys, "heads of keys and values, nor they it");
  }

  /// Checks that a server holds a whole number of groups of devices, or a group of servers.
  void must_fill(std::int64_t server, std::int64_t devices, std::string_view what) {
    if (std::max(devices, server) % std::min(devices, server) == 0) return;
    refuse(fmt::format("{} is {}, which the {} of {} does not fill", names_.devices_per_server,
                       server, what, devices),
           "servers hold several of these, or these several servers");
  }

  void check_servers() {
    if (!options_.devices_per_server) return;
    const std::int64_t server = *options_.devices_per_server;
    must_fill(server, options_.tensor_parallel, "tensor-parallel group");
    if (options_.expert_devices() > 1)
      must_fill(server, options_.expert_tensor_parallel, "group that divides an expert");
    if (options_.devices_per_sample() < options_.group())
      must_fill(server, options_.devices_per_sample(), "group for a sample");
    must_fill(server, options_.group(), "group");
  }

  void check_sequence_parallel() {
    if (!options_.sequence_parallel) return;
    if (options_.tensor_parallel == 1)
      refuse(fmt::format("{} without {}", names_.sequence_parallel, names_.tensor_parallel),
             "it divides what the devices of such a group would each hold");
    must_divide(
        options_.sequence / options_.context_parallel,
        options_.context_parallel > 1 ? "tokens of a sample on each device" : "tokens of a sample");
  }

  void check_formats() {
    if (!options_.fp8_linear || options_.dtype != NumberFormat::fp8) return;
    refuse(fmt::format("{} with {} fp8", names_.fp8_linear, names_.dtype),
           "it says that linear layers alone multiply in fp8; the rest is in bf16, mostly");
  }

  void check_predictions() {
    if (!options_.mtp || shape_.further_predictions != 0) return;
    refuse(fmt::format("{} of a model without modules that predict further tokens", names_.mtp),
           "num_nextn_predict_layers in config.json says how many it has");
  }

  void check_split_blocks() {
    if (!options_.split_blocks || !shape_.is_parallel()) return;
    refuse(
        fmt::format("{} of a model whose attention and MLP run side by side", names_.split_blocks),
        "both take a block's input, and none the other's output");
  }

  void check_fp8_dispatch() {
    if (!options_.fp8_dispatch) return;
    if (!shape_.has_experts())
      refuse(fmt::format("{} of a model without experts", names_.fp8_dispatch),
             "it is for tokens on their way to experts");
    if (!options_.fp8_linear)
      refuse(fmt::format("{} without {}", names_.fp8_dispatch, names_.fp8_linear),
             "experts take tokens in fp8 where they multiply in fp8");
  }

  void check_positions() {
    if (!shape_.learned_positions || options_.sequence <= shape_.positions) return;
    refuse(fmt::format("{} is {}, but the model has a table of {} positions", names_.sequence,
                       options_.sequence, shape_.positions),
           fmt::format("at most {}", shape_.positions));
  }

  const TransformerShape& shape_;
  const TransformerOptions& options_;
  const TransformerOptionNames& names_;
  Diagnostics problems_;
};

}  // namespace

bool may_divide(const TransformerShape& shape, std::int64_t devices) {
  const bool has_dense = shape.has_dense_blocks();
  return !shape.any_block([&](const BlockShape& block) {
    const std::vector<Shared> shared = shared_by_mixers(block);
    const bool is_dense = shape.kinds.empty() ? has_dense : block.has_mlp && block.experts == 0;
    return (is_dense && block.feed_forward % devices != 0) ||
           std::any_of(shared.begin(), shared.end(),
                       [&](const Shared& one) { return one.whole % devices != 0; });
  });
}

bool may_share_samples(const TransformerShape& shape, const TransformerOptions& options) {
  return !shape.any_block([&](const BlockShape& block) {
    return block.mixer == Mixer::scan || block.mixer == Mixer::compressed ||
           (block.latent && block.reach(options.sequence));
  });
}

Diagnostics misfits(const TransformerShape& shape, const TransformerOptions& options) {
  return OptionChecks(shape, options).run();
}

}  // namespace plumbline
