// Checks that parts belong together and that none is missing.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace plumbline {
namespace {

/// An error if the files do not belong to the same work in the same number of parts.
std::optional<Diagnostic> check_strangers(const std::vector<ShardFile>& files,
                                          std::string_view noun) {
  const ShardFile& first = files.front();
  for (const ShardFile& file : files) {
    if (file.fingerprint != first.fingerprint) {
      return input_error({file.source},
                         fmt::format("is of another {} than {}", noun, first.source->name),
                         "the scenario, a file that it names, or an axis differs");
    }
    if (!file.shard && files.size() > 1) {
      return input_error({file.source}, fmt::format("is a whole {}, and no shard", noun),
                         "it needs nothing beside it");
    }
    if (file.shard && file.shard->count != first.shard->count) {
      return input_error({file.source},
                         fmt::format("is of {} shards, and {} of {}", file.shard->count,
                                     first.source->name, first.shard->count));
    }
  }
  return std::nullopt;
}

}  // namespace

Diagnostics check_parts(const std::vector<ShardFile>& files, std::string_view noun) {
  if (auto refused = check_strangers(files, noun)) return {*std::move(refused)};
  if (!files.front().shard) return {};
  Diagnostics problems;
  std::vector<const ShardFile*> of_shard(files.front().shard->count, nullptr);
  for (const ShardFile& file : files) {
    const Shard& shard = *file.shard;
    const ShardFile*& place = of_shard[shard.index - 1];
    if (place) {
      problems.push_back(input_error(
          {file.source},
          fmt::format("is shard {} of {}, as {} is", shard.index, shard.count, place->source->name),
          "give each shard once"));
    }
    place = &file;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < of_shard.size(); ++i) {
    if (!of_shard[i]) missing.push_back(std::to_string(i + 1));
  }
  if (missing.empty()) return problems;
  constexpr std::size_t max_listed = 10;
  const std::size_t more = missing.size() - std::min(missing.size(), max_listed);
  missing.resize(missing.size() - more);
  std::string list = fmt::format("{}", fmt::join(missing, ", "));
  if (more > 0) list += fmt::format(" and {} more", more);
  problems.push_back(
      input_error({},
                  fmt::format("of {} shards {} {} missing", of_shard.size(), list,
                              missing.size() == 1 ? "is" : "are"),
                  fmt::format("plumbline {} ... --shard i/n --json -o FILE writes one", noun)));
  return problems;
}

}  // namespace plumbline
