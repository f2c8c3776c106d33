// Any bytes as a scenario, and behind a NUL as an override; what is valid and small is predicted
// and printed in every form.
//
// SPDX-License-Identifier: MIT
#include "base/bug.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/dot.h"
#include "sim/report/report.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace plumbline;

constexpr double kMaxOps = 3'000;

bool is_small(const Scenario& scenario) {
  const double layers = static_cast<double>(scenario.model->graph.size());
  const double devices = std::min<double>(scenario.cluster.device_count(), layers) *
                         static_cast<double>(scenario.copies);
  if (scenario.plan.is_planned() && (layers > 12 || scenario.cluster.device_count() > 8))
    return false;
  if (scenario.noise && scenario.noise->samples > 50) return false;
  return devices * scenario.schedule.micro_batches * scenario.schedule.mini_batches * 2 <=
             kMaxOps &&
         scenario.cluster.device_count() <= 64;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text(data, size);
  const std::size_t end = text.find('\0');
  std::vector<std::string> overrides;
  if (end != std::string::npos) overrides.push_back(text.substr(end + 1));
  const auto scenario = parse_scenario(fuzz::source(text.substr(0, end)), overrides);
  if (!scenario) {
    fuzz::use(to_text(scenario.problems()));
    return 0;
  }
  if (!is_small(*scenario)) return 0;
  const auto settled = resolve_plan(*scenario);
  if (!settled) {
    fuzz::use(to_text(settled.problems()));
    return 0;
  }
  const auto prediction = predict(*settled);
  if (!prediction) {
    fuzz::use(to_text(prediction.problems()));
    return 0;
  }
  fuzz::use(to_table(*prediction, TimelineStyle{}).print());
  fuzz::use(to_json(*prediction, "0"));
  fuzz::use(chrome_trace(*prediction));
  fuzz::use(layer_graph_dot(scenario->model->graph, prediction->setup.partition));
  const auto events = prediction->trace;
  if (!prediction->graph.rates_change())
    PLUMBLINE_CHECK(longest_path(prediction->graph) == events, "two evaluations differ");
  return 0;
}
