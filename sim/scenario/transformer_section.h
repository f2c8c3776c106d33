// A model by its config.json, and how its layers are shared: a source of layers in a scenario.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "models/import/transformer_layers.h"
#include "models/profile/profile.h"

namespace plumbline {

class SectionReader;

/// The most tokens of a sample, and GPUs of a group.
inline constexpr std::int64_t kMaxTokens = 100'000'000;
inline constexpr std::int64_t kMaxShared = 65'536;

/// What stands in the model section beside `huggingface`. The layers follow once the micro-batch
/// and the servers are known.
struct TransformerChoice {
  std::string name;
  std::shared_ptr<const TransformerShape> shape;
  TransformerOptions options;  ///< Without a batch and devices_per_server.
  Mark mark;

  /// Devices that each of the scenario's stands for.
  std::int64_t group() const { return options.group(); }
};

/// The keys that stand beside `huggingface` alone.
const std::vector<std::string_view>& transformer_keys();

/// Reads `huggingface`, which is there, and these keys. Adds all that is wrong to `problems`.
std::optional<TransformerChoice> read_transformer(SectionReader& section);

/// A model whose layers have FLOPs and bytes for micro-batches of `micro_batch_size` samples on a
/// group, of which `per_server` share a server (nothing: all). What the numbers do not cover is
/// added to `notes`. Errors: a group that does not divide what it has to; a micro-batch that the
/// devices with samples of their own do not divide, told at `size_mark`.
Result<Model> derive_model(const TransformerChoice& choice, std::int64_t micro_batch_size,
                           std::optional<std::int64_t> per_server, const Mark& size_mark,
                           std::vector<std::string>& notes);

}  // namespace plumbline
