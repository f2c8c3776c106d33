// The keys of a scenario's training that say what copies share, and how.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "schedules/stages/sharding.h"

namespace plumbline {

class SectionReader;

struct SharingKeys {
  Sharing sharing{};
  Mark state_mark{};               ///< Of zero_stage.
  Mark degree_mark{};              ///< Of shard_degree.
  bool shares_in_servers = false;  ///< shard_degree: server.
  std::optional<Mark> reshard_mark{};
};

/// Reads zero_stage, shard_degree, reduce, reshard and prefetch. A note tells of each key that
/// changes nothing. Adds all errors to the reader's problems.
SharingKeys read_sharing_keys(SectionReader& section, std::vector<std::string>& notes);

/// The keys, and their values, that say how the state is shared: all of the above but zero_stage,
/// where they are not their defaults.
std::vector<std::pair<std::string_view, std::string>> sharing_keys_of(const Sharing& sharing);

}  // namespace plumbline
