// The places of a token's experts, and the token's way to them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumbline {

/// The way of tokens to the experts of a group, and back.
enum class Dispatch : std::uint8_t {
  per_expert,  ///< One copy for each expert, to the device that holds it.
  per_server,  ///< One copy to each server that holds some of its experts, and from there to each
               ///< such device (DeepSeek-AI 2024, "DeepSeek-V3", section 3.2.2).
};

/// The names of the ways, in the order of the enumeration.
inline constexpr std::array<std::string_view, 2> kDispatches = {"per-expert", "per-server"};

constexpr std::string_view name_of(Dispatch dispatch) {
  return kDispatches[static_cast<std::size_t>(dispatch)];
}

/// Requires: `name` is one of kDispatches.
constexpr Dispatch dispatch_of(std::string_view name) {
  return name == kDispatches[0] ? Dispatch::per_expert : Dispatch::per_server;
}

/// The experts that a token may use (DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2: node-limited
/// routing). The experts are divided into `groups` groups of equally many neighbours. A token
/// chooses `groups_per_token` groups, and `per_token` experts in these; all choices are equally
/// likely. Invariants: `groups` divides `experts`, groups_per_token <= groups, and the chosen
/// groups hold at least `per_token` experts.
struct ExpertRouting {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;

  bool is_limited() const { return groups_per_token < groups; }
};

/// Whether places and groups nest: each place holds whole groups, or each group spans whole places.
/// A place is a server or a device; each of the `places` holds equally many neighbours. Requires:
/// `places` divides `experts`.
bool nests(const ExpertRouting& routing, std::int64_t places);

/// The mean number of `places` that hold an expert of a token. It is the number of copies of the
/// token where each place gets one. Where places and groups do not nest, the groups are ignored.
/// Requires: `places` divides `experts`.
double mean_places(const ExpertRouting& routing, std::int64_t places);

}  // namespace plumbline
