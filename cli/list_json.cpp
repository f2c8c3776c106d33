// The registries as JSON.
//
// SPDX-License-Identifier: MIT
#include "cli/list_json.h"

#include <nlohmann/json.hpp>

#include "calibrate/cpu/layer.h"
#include "calibrate/cuda/check.h"
#include "models/hardware/device_presets.h"
#include "models/kernels/kernel_traits.h"
#include "models/kernels/stack_numbers.h"
#include "schedules/generators/generators.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

std::string document(const char* what, Json entries) {
  const Json whole = {{"schema_version", 1}, {what, std::move(entries)}};
  return whole.dump(1) + '\n';
}

Json products_json(const ProductTraits& products) {
  const double error = products.held_out_error;
  return {
      {"ceiling", products.ceiling}, {"depth", products.depth},
      {"tail", products.tail},       {"memory_share", products.memory_share},
      {"small", products.small},     {"held_out_error", error > 0 ? Json(error) : Json(nullptr)}};
}

Json attention_json(const AttentionTraits& attention) {
  Json sizes = Json::array();
  for (const AttentionTraits::AtSize& at : attention.at) {
    if (at.size > 0)
      sizes.push_back({{"head_size", at.size}, {"share", at.share}, {"keys", at.keys}});
  }
  return {{"at", std::move(sizes)}, {"fill", attention.fill}};
}

Json collectives_json(const CollectiveTraits& collectives) {
  return {{"start_s", collectives.start_s},
          {"step_s", collectives.step_s},
          {"root_s_per_sqrt_byte", collectives.root},
          {"all_reduce_share", collectives.all_reduce},
          {"all_gather_share", collectives.all_gather},
          {"reduce_scatter_share", collectives.reduce_scatter},
          {"all_to_all_share", collectives.all_to_all}};
}

Json kernels_json(const KernelTraits& traits) {
  Json kernels = {{"source", traits.source},
                  {"caveat", nullptr},
                  {"multiprocessors", traits.multiprocessors},
                  {"clock_hz", traits.clock_hz},
                  {"sustained", traits.sustained},
                  {"launch_s", traits.launch_s},
                  {"products", {{"bf16", products_json(traits.bf16)}, {"fp8", nullptr}}},
                  {"weights_factor", traits.weights_factor},
                  {"attention",
                   {{"forward", attention_json(traits.newest.forward)},
                    {"backward", attention_json(traits.newest.backward)}}},
                  {"memory_share", traits.memory_share},
                  {"permute_share", traits.permute_share},
                  {"update_share", traits.update_share},
                  {"memory_start_s", traits.memory_start_s},
                  {"collectives", collectives_json(traits.collectives)},
                  {"network_share", traits.network_share},
                  {"network_step_s", traits.network_step_s},
                  {"ring_step_s", traits.ring_step_s}};
  if (!traits.caveat.empty()) kernels["caveat"] = traits.caveat;
  if (traits.fp8) kernels["products"]["fp8"] = products_json(*traits.fp8);
  return kernels;
}

Json number_json(const StackNumber& number, const SoftwareStack& stack) {
  return number.is_choice() ? Json(number.of(stack) == 1) : Json(number.of(stack));
}

}  // namespace

std::optional<std::string> why_unavailable(const BackendName& backend) {
  if (backend.name == "cpu" && cpu_library().empty())
    return "this build has no cpu backend: it was made without oneDNN";
  if (backend.name != "cuda") return std::nullopt;
  const auto refused = cuda_is_missing();
  return refused ? std::optional(refused->message) : std::nullopt;
}

std::string schedules_json() {
  Json entries = Json::array();
  for (const ScheduleRule& rule : schedule_rules()) {
    entries.push_back({{"name", rule.name},
                       {"summary", rule.summary},
                       {"order", rule.order},
                       {"asynchronous", rule.asynchronous},
                       {"takes_warm_up", rule.takes_warm_up},
                       {"whole_model", rule.whole_model},
                       {"limits", limits_of(rule)},
                       {"bubble", rule.bubble},
                       {"in_flight", rule.in_flight},
                       {"makespan", rule.makespan},
                       {"makespan_elsewhere", nullptr},
                       {"source", rule.source}});
    if (!rule.elsewhere.empty()) entries.back()["makespan_elsewhere"] = rule.elsewhere;
  }
  return document("schedules", std::move(entries));
}

std::string backends_json() {
  Json entries = Json::array();
  for (const BackendName& backend : kBackends) {
    const auto reason = why_unavailable(backend);
    entries.push_back({{"name", backend.name},
                       {"summary", backend.text},
                       {"available", !reason},
                       {"reason", nullptr}});
    if (reason) entries.back()["reason"] = *reason;
  }
  return document("backends", std::move(entries));
}

std::string presets_json() {
  Json entries = Json::array();
  for (const DevicePreset& preset : device_presets()) {
    Json peaks = Json::object();
    for (const std::string_view format : kNumberFormats) {
      const auto peak = preset.peak(number_format(format));
      peaks[std::string(format)] = peak ? Json(peak->count) : Json(nullptr);
    }
    entries.push_back({{"name", preset.name},
                       {"peak_flops_per_s", std::move(peaks)},
                       {"memory_bytes", preset.memory.count},
                       {"memory_bandwidth_bytes_per_s", preset.memory_bandwidth.count},
                       {"link_bandwidth_bytes_per_s", preset.link_bandwidth.count},
                       {"link", preset.link},
                       {"network_bandwidth_bytes_per_s", preset.network_bandwidth.count},
                       {"network", preset.network},
                       {"source", preset.source},
                       {"memory_source", preset.memory_source},
                       {"kernels", kernels_json(kernel_traits(preset.name))}});
  }
  return document("presets", std::move(entries));
}

std::string stacks_json() {
  Json entries = Json::array();
  for (const SoftwareStack& stack : software_stacks()) {
    Json numbers = Json::object();
    for (const StackNumber& number : stack_numbers())
      numbers[std::string(number.name)] = number_json(number, stack);
    entries.push_back({{"name", stack.name},
                       {"summary", stack.summary},
                       {"usual", stack.name == usual_stack().name},
                       {"attention", name_of(stack.attention)},
                       {"numbers", std::move(numbers)},
                       {"source", stack.source}});
  }
  Json meanings = Json::array();
  for (const StackNumber& number : stack_numbers())
    meanings.push_back({{"name", number.name},
                        {"unit", number.unit},
                        {"meaning", number.meaning},
                        {"from_published_runs", number.from_runs}});
  const Json whole = {
      {"schema_version", 1}, {"stacks", std::move(entries)}, {"numbers", std::move(meanings)}};
  return whole.dump(1) + '\n';
}

}  // namespace plumbline
