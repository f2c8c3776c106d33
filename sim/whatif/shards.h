// Shards: the parts of one piece of work on several machines.
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

namespace plumbline {

/// One of `count` similar parts of a sweep or a search; index is from 1 to count.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;

  /// Points are dealt to the shards in turn, shifted by one in each round. So an axis with as many
  /// values as there are shards is spread over all of them.
  bool holds(std::uint64_t point) const { return (point + point / count) % count == index - 1; }

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// A file with the results of a part, or of the whole.
struct ShardFile {
  std::shared_ptr<const Source> source;
  std::string fingerprint;     ///< Equal for parts of the same work.
  std::optional<Shard> shard;  ///< Nothing for the whole.
};

/// The errors that keep files from being merged into one piece of work, named by `noun` ("sweep"):
/// parts of other work, another number of parts, parts that are missing or stand twice. Requires:
/// files.
Diagnostics check_parts(const std::vector<ShardFile>& files, std::string_view noun);

}  // namespace plumbline
