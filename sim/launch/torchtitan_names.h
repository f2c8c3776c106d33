// What torchtitan calls models and schedules.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

/// A model that torchtitan has sizes of, under a name and a flavor. Source: torchtitan/models/*/
/// __init__.py.
struct TorchtitanModel {
  std::string_view name;    ///< model.name: "llama3".
  std::string_view flavor;  ///< model.flavor: "8B".
  std::int64_t layers, hidden, heads, groups, head_width, feed_forward, vocabulary;
  bool tied = false;
  std::int64_t experts = 0, chosen = 0, expert_width = 0, shared = 0;  ///< 0 = dense.
  std::int64_t dense = 0, query_rank = 0;  ///< Of deepseek_v3: dense blocks, q_lora_rank.
  std::int64_t router_groups = 1, chosen_groups = 1;
};

/// The model of this name and flavor; null where it is not known here.
const TorchtitanModel* find_torchtitan_model(std::string_view name, std::string_view flavor);
/// A config.json of its sizes.
std::string config_of(const TorchtitanModel& model);
/// The model whose config.json has the sizes of `config`, the text of one; null if there is none.
const TorchtitanModel* torchtitan_model_of(const std::string& config);

/// A schedule by torchtitan's name (that of PyTorch's class) as schedule.name has it, and back;
/// nothing for one that the other side does not have. Case does not count.
std::optional<std::string> schedule_of_torchtitan(std::string_view name);
std::optional<std::string_view> torchtitan_schedule(std::string_view schedule);

}  // namespace plumbline
