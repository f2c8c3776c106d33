// Words and numbers of what copies share.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/sharing_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bug.h"
#include "base/quantity.h"
#include "base/section_reader.h"

namespace plumbline {
namespace {

struct ReductionWord {
  std::string_view word;
  Reduction reduction;
};

constexpr std::array<ReductionWord, 4> kReductions = {{
    {"each-backward", Reduction::each_backward},
    {"in-groups-each-backward", Reduction::in_groups_each_backward},
    {"with-last-backward", Reduction::with_last_backward},
    {"behind-last-backward", Reduction::behind_last_backward},
}};

struct ReshardWord {
  std::string_view word;
  bool after_forward, after_backward;
};

constexpr std::array<ReshardWord, 4> kReshards = {{
    {"each-pass", true, true},
    {"after-forward", true, false},
    {"after-backward", false, true},
    {"after-mini-batch", false, false},
}};

/// The entry with this word. The format of scenarios lists the same words.
template <typename Words>
const auto& entry_of(const Words& words, std::string_view word) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& entry) { return entry.word == word; });
  PLUMBLINE_CHECK(found != words.end(), word);
  return *found;
}

}  // namespace

SharingKeys read_sharing_keys(SectionReader& section, std::vector<std::string>& notes) {
  SharingKeys keys;
  Sharing& sharing = keys.sharing;
  if (const auto stage = section.count("zero_stage")) {
    sharing.state = static_cast<Sharded>(stage->value);
    keys.state_mark = stage->mark;
  }
  const int state = static_cast<int>(sharing.state);
  const auto matters = [&](std::string_view key, Sharded least, std::string_view why) {
    if (sharing.state >= least) return true;
    notes.push_back(fmt::format("training.{} changes nothing: training.zero_stage is {}, and {}",
                                key, state, why));
    return false;
  };
  if (const YamlNode* const node = section.child("shard_degree")) {
    std::int64_t degree = 0;
    if (node->text.empty() || parse_count(node->text).value) {
      if (const auto number = section.count("shard_degree")) {
        degree = number->value;
        keys.degree_mark = number->mark;
      }
    } else if (const auto word =
                   section.choice("shard_degree", "number of copies", "or a number")) {
      keys.shares_in_servers = true;
      keys.degree_mark = word->mark;
    }
    if (matters("shard_degree", Sharded::optimizer, "copies share nothing")) {
      sharing.degree = static_cast<std::uint32_t>(degree);
    } else {
      keys.shares_in_servers = false;
    }
  }
  const auto reduce = section.choice("reduce", "time to reduce gradients");
  if (reduce && matters("reduce", Sharded::gradients, "gradients are reduced once anyway"))
    sharing.reduction = entry_of(kReductions, reduce->value).reduction;
  constexpr std::string_view not_gathered = "no pass gathers weights";
  const auto reshard = section.choice("reshard", "time to free weights");
  if (reshard && matters("reshard", Sharded::weights, not_gathered)) {
    const ReshardWord& when = entry_of(kReshards, reshard->value);
    keys.reshard_mark = reshard->mark;
    sharing.frees_after_forward = when.after_forward;
    sharing.frees_after_backward = when.after_backward;
  }
  const auto prefetch = section.count("prefetch");
  if (prefetch && matters("prefetch", Sharded::weights, not_gathered))
    sharing.prefetch = static_cast<std::uint32_t>(prefetch->value);
  if (sharing.reduction == Reduction::in_groups_each_backward && sharing.degree == 0 &&
      !keys.shares_in_servers)
    notes.emplace_back(
        "training.reduce is in-groups-each-backward, but there is one group without "
        "training.shard_degree: the key says the same as each-backward");
  return keys;
}

std::vector<std::pair<std::string_view, std::string>> sharing_keys_of(const Sharing& sharing) {
  std::vector<std::pair<std::string_view, std::string>> keys;
  const Sharing usual;
  if (sharing.degree != usual.degree)
    keys.emplace_back("shard_degree", std::to_string(sharing.degree));
  for (const auto& [word, reduction] : kReductions) {
    if (sharing.reduction == reduction && reduction != usual.reduction)
      keys.emplace_back("reduce", word);
  }
  for (const auto& [word, after_forward, after_backward] : kReshards) {
    const bool is_usual = after_forward && after_backward;
    if (!is_usual && sharing.frees_after_forward == after_forward &&
        sharing.frees_after_backward == after_backward)
      keys.emplace_back("reshard", word);
  }
  if (sharing.prefetch != usual.prefetch)
    keys.emplace_back("prefetch", std::to_string(sharing.prefetch));
  return keys;
}

}  // namespace plumbline
