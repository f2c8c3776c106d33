// A model given by its config.json, and the sharing of its layers: a source of layers in a
// scenario.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "base/shared_value.h"
#include "models/import/transformer_layers.h"
#include "models/profile/profile.h"

namespace plumbline {

class SectionReader;

/// The largest number of tokens in a sample, and of GPUs in a group.
inline constexpr std::int64_t kMaxTokens = 100'000'000;
inline constexpr std::int64_t kMaxShared = 65'536;

/// The keys of the model section beside `huggingface`. The layers are derived when the micro-batch
/// and the servers are known.
struct TransformerChoice {
  std::string name;
  std::string file;  ///< The path of the config.json.
  std::shared_ptr<const TransformerShape> shape;
  TransformerOptions options;  ///< The options without a batch and devices_per_server.
  Mark mark;

  /// The number of devices that each device of the scenario stands for.
  std::int64_t group() const { return options.group(); }
};

/// The keys that are allowed only beside `huggingface`.
const std::vector<std::string_view>& transformer_keys();

/// Reads `huggingface` and these keys. Requires: `huggingface` is there. Adds all errors to
/// `problems`.
std::optional<TransformerChoice> read_transformer(SectionReader& section);

/// A model whose layers have FLOPs and bytes, with what its numbers do not cover.
struct DerivedModel {
  SharedValue<Model> model;
  std::vector<std::string> uncounted;
};

/// The models that were derived from one config.json under different options, so that none is
/// derived twice. Several threads may use it at once.
class DerivedModels {
 public:
  /// The model for these options. Requires: a choice of the same file, read in the same way, at
  /// every call. Errors: those of transformer_profile().
  Result<DerivedModel> of(const TransformerChoice& choice, const TransformerOptions& options);

 private:
  std::mutex mutex_;
  std::vector<std::pair<TransformerOptions, std::shared_ptr<const Result<DerivedModel>>>> known_;
};

/// A model whose layers have FLOPs and bytes for micro-batches of `micro_batch_size` samples on a
/// group. `per_server` devices of the group share a server (nothing: all). Adds a note on effects
/// that the numbers do not cover to `notes`. `known`, if given, remembers it. Errors: a group that
/// does not divide the sizes that it has to divide; a micro-batch that cannot be divided among the
/// devices with samples of their own, reported at `size_mark`.
Result<SharedValue<Model>> derive_model(const TransformerChoice& choice,
                                        std::int64_t micro_batch_size,
                                        std::optional<std::int64_t> per_server,
                                        const Mark& size_mark, std::vector<std::string>& notes,
                                        DerivedModels* known = nullptr);

}  // namespace plumbline
