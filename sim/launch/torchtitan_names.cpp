// Tables.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/torchtitan_names.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLlamaWords = 128'256;
constexpr std::int64_t kQwenWords = 151'936;

TorchtitanModel llama(std::string_view flavor, std::int64_t layers, std::int64_t hidden,
                      std::int64_t heads, std::int64_t feed_forward) {
  return {"llama3", flavor, layers, hidden, heads, 8, hidden / heads, feed_forward, kLlamaWords};
}

TorchtitanModel qwen(std::string_view flavor, std::int64_t layers, std::int64_t hidden,
                     std::int64_t heads, std::int64_t feed_forward, bool tied = false) {
  return {"qwen3", flavor, layers, hidden, heads, 8, 128, feed_forward, kQwenWords, tied};
}

TorchtitanModel qwen_experts(std::string_view flavor, std::int64_t layers, std::int64_t hidden,
                             std::int64_t heads, std::int64_t feed_forward, std::int64_t width) {
  TorchtitanModel model{"qwen3", flavor, layers, hidden, heads, 4, 128, feed_forward, kQwenWords};
  model.experts = 128;
  model.chosen = 8;
  model.expert_width = width;
  return model;
}

/// `experts`, `chosen`, `shared` of each block but the `dense` first ones.
TorchtitanModel deepseek(std::string_view flavor, std::int64_t layers, std::int64_t hidden,
                         std::int64_t heads, std::int64_t feed_forward, std::int64_t words,
                         std::int64_t width, std::array<std::int64_t, 3> experts) {
  TorchtitanModel model{"deepseek_v3", flavor, layers,       hidden, heads,
                        heads,         0,      feed_forward, words};
  model.experts = experts[0];
  model.chosen = experts[1];
  model.shared = experts[2];
  model.expert_width = width;
  model.dense = 1;
  return model;
}

std::vector<TorchtitanModel> make_models() {
  std::vector<TorchtitanModel> models = {
      {"llama3", "debugmodel", 6, 256, 16, 16, 16, 768, 2048},
      llama("8B", 32, 4096, 32, 14'336),
      llama("70B", 80, 8192, 64, 28'672),
      llama("405B", 126, 16'384, 128, 53'248),
      {"qwen3", "debugmodel", 8, 256, 16, 8, 128, 3072, 2048, true},
      qwen("0.6B", 28, 1024, 16, 3072, true),
      qwen("1.7B", 28, 2048, 16, 6144, true),
      qwen("4B", 36, 2560, 32, 9728, true),
      qwen("8B", 36, 4096, 32, 12'288),
      qwen("14B", 40, 5120, 40, 17'408),
      qwen("32B", 64, 5120, 64, 25'600),
      qwen_experts("30B-A3B", 48, 2048, 32, 6144, 768),
      qwen_experts("235B-A22B", 94, 4096, 64, 12'288, 1536),
      deepseek("16B", 27, 2048, 16, 10'944, 102'400, 1408, {64, 6, 2}),
      deepseek("236B", 60, 5120, 128, 12'288, 102'400, 1536, {160, 6, 2}),
      deepseek("671B", 61, 7168, 128, 18'432, 129'280, 2048, {256, 8, 1}),
  };
  TorchtitanModel& second = models[models.size() - 2];
  second.query_rank = 1536;
  second.router_groups = 8;
  second.chosen_groups = 3;
  TorchtitanModel& last = models.back();
  last.dense = 3;
  last.query_rank = 1536;
  last.router_groups = 8;
  last.chosen_groups = 4;
  return models;
}

const std::vector<TorchtitanModel>& models() {
  static const std::vector<TorchtitanModel> all = make_models();
  return all;
}

/// Names of classes in torch/distributed/pipelining/schedules.py, without "Schedule".
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSchedules = {
    {{"GPipe", "gpipe"},
     {"1F1B", "1f1b"},
     {"Interleaved1F1B", "interleaved-1f1b"},
     {"LoopedBFS", "looped-bfs"},
     {"InterleavedZeroBubble", "interleaved-zb"},
     {"ZBVZeroBubble", "zb-v"},
     {"DualPipeV", "dualpipev"}}};

}  // namespace

const TorchtitanModel* find_torchtitan_model(std::string_view name, std::string_view flavor) {
  // The same weights with another kernel of attention: "8B_flex", "debugmodel_varlen_attn".
  const std::size_t kernel = std::min(flavor.find("_flex"), flavor.find("_varlen"));
  const std::string_view sizes = flavor.substr(0, kernel);
  const auto found = std::find_if(
      models().begin(), models().end(),
      [&](const TorchtitanModel& one) { return one.name == name && one.flavor == sizes; });
  return found == models().end() ? nullptr : &*found;
}

std::string config_of(const TorchtitanModel& model) {
  const bool is_latent = model.name == "deepseek_v3";
  const bool has_experts = model.experts > 0;
  Json json = {{"model_type", is_latent                ? "deepseek_v3"
                              : model.name == "llama3" ? "llama"
                              : has_experts            ? "qwen3_moe"
                                                       : "qwen3"},
               {"hidden_size", model.hidden},
               {"num_hidden_layers", model.layers},
               {"num_attention_heads", model.heads},
               {"num_key_value_heads", model.groups},
               {"intermediate_size", model.feed_forward},
               {"vocab_size", model.vocabulary},
               {"tie_word_embeddings", model.tied}};
  if (!is_latent) json["head_dim"] = model.head_width;
  if (has_experts) {
    json[is_latent ? "n_routed_experts" : "num_experts"] = model.experts;
    json["num_experts_per_tok"] = model.chosen;
    json["moe_intermediate_size"] = model.expert_width;
  }
  if (is_latent) {
    json["n_shared_experts"] = model.shared;
    json["first_k_dense_replace"] = model.dense;
    json["n_group"] = model.router_groups;
    json["topk_group"] = model.chosen_groups;
    json["q_lora_rank"] = model.query_rank > 0 ? Json(model.query_rank) : Json(nullptr);
    json["kv_lora_rank"] = 512;
    json["qk_nope_head_dim"] = 128;
    json["qk_rope_head_dim"] = 64;
    json["v_head_dim"] = 128;
    json["num_nextn_predict_layers"] = 0;
  }
  return json.dump(1) + '\n';
}

const TorchtitanModel* torchtitan_model_of(const std::string& config) {
  const Json given = Json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) return nullptr;
  // What a config.json of these families leaves out has these values.
  Json usual = {{"tie_word_embeddings", false},
                {"n_group", 1},
                {"topk_group", 1},
                {"first_k_dense_replace", 0},
                {"q_lora_rank", nullptr}};
  const auto number = [&](const char* key) {
    return given.contains(key) && given[key].is_number_integer() ? given[key].get<std::int64_t>()
                                                                 : 0;
  };
  if (const std::int64_t heads = number("num_attention_heads"); heads > 0) {
    usual["num_key_value_heads"] = heads;
    usual["head_dim"] = number("hidden_size") / heads;
  }
  const auto same = [&](const TorchtitanModel& model) {
    const Json own = Json::parse(config_of(model));
    return std::all_of(own.items().begin(), own.items().end(), [&](const auto& item) {
      if (item.key() == "num_nextn_predict_layers") return true;  // not trained there
      const Json& source = given.contains(item.key()) ? given : usual;
      return source.contains(item.key()) && source[item.key()] == item.value();
    });
  };
  const auto found = std::find_if(models().begin(), models().end(), same);
  return found == models().end() ? nullptr : &*found;
}

std::optional<std::string> schedule_of_torchtitan(std::string_view name) {
  std::string plain = lower_case(name);
  if (plain.starts_with("schedule")) plain.erase(0, std::string_view("schedule").size());
  for (const auto& [theirs, ours] : kSchedules) {
    if (lower_case(theirs) == plain) return std::string(ours);
  }
  return std::nullopt;
}

std::optional<std::string_view> torchtitan_schedule(std::string_view schedule) {
  for (const auto& [theirs, ours] : kSchedules) {
    if (ours == schedule) return theirs;
  }
  return std::nullopt;
}

}  // namespace plumbline
