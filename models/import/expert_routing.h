// Where the experts of a token are, and how it gets there.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline {

/// How tokens go to the experts of a group, and back.
enum class Dispatch : std::uint8_t {
  per_expert,  ///< A copy for each of its experts, to whichever device holds it.
  per_server,  ///< One to each server, and from there to each of its devices, that holds some of
               ///< its experts (DeepSeek-AI 2024, "DeepSeek-V3", section 3.2.2).
};

/// Their names, in the order of the enumeration.
inline constexpr std::array<std::string_view, 2> kDispatches = {"per-expert", "per-server"};

constexpr std::string_view name_of(Dispatch dispatch) {
  return kDispatches[static_cast<std::size_t>(dispatch)];
}

/// Requires: it is one of kDispatches.
constexpr Dispatch dispatch_of(std::string_view name) {
  return name == kDispatches[0] ? Dispatch::per_expert : Dispatch::per_server;
}

/// The experts that a token may have: of the `groups` groups of as many neighbours that the experts
/// are divided in `groups_per_token`, and of the experts in these `per_token`, each choice as
/// likely as another (DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2: node-limited routing).
/// Invariants: groups divides experts, groups_per_token <= groups, and these hold at least
/// `per_token`.
struct ExpertRouting {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;

  bool is_limited() const { return groups_per_token < groups; }
};

/// Whether each of `places` (servers or devices), which hold as many neighbours each, holds whole
/// groups, or each group whole places. Requires: places divides experts.
bool nests(const ExpertRouting& routing, std::int64_t places);

/// The mean number of `places` that hold an expert of a token: what one copy for each place sends.
/// Where places and groups do not nest, the groups do not count. Requires: places divides experts.
double mean_places(const ExpertRouting& routing, std::int64_t places);

}  // namespace plumbline
