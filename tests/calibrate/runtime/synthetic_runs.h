// Real runs of scenarios on the synthetic backend.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "calibrate/runtime/runner.h"
#include "calibrate/runtime/synthetic.h"
#include "sim/engine/idle.h"
#include "tests/support/subject.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

inline Subject subject_of(const std::string& text) {
  return Subject(parse_scenario(text_source("runner.yaml", text), {}), /*for_run=*/true);
}

inline RunOptions few(std::uint32_t iterations) {
  RunOptions options;
  options.warm_up = 0;
  options.iterations = options.max_iterations = iterations;
  return options;
}

inline RunRecord record_of(const Subject& subject, const Noise& synthetic,
                           const RunOptions& options) {
  const auto backend = synthetic_backend(synthetic);
  auto result = run(subject.plan(), *backend, nodes_by_slot(subject.graph), options);
  const auto* failure = std::get_if<RunFailure>(&result);
  REQUIRE_MESSAGE(
      !failure, (failure ? failure->message + "\n" + to_text(subject.graph, failure->stands) : ""));
  return std::get<RunRecord>(std::move(result));
}

/// Ops of 200 to 300 us, updates, sizes that differ, and what else is asked for.
inline std::string uneven(std::string_view schedule, std::string_view cluster,
                          std::string_view plan, std::string_view more,
                          std::string_view training = "") {
  return fmt::format(
      "version: 1\nmodel:\n  layers:\n"
      "    - {{name: a, forward: 200 us, backward: 300 us, update: 30 us, output: 64 KiB, "
      "activation: 512 KiB, parameters: 1 MiB}}\n"
      "    - {{name: b, forward: 150 us, backward: 350 us, update: 20 us, output: 96 KiB, "
      "activation: 256 KiB, parameters: 3 MiB}}\n"
      "    - {{name: c, forward: 220 us, backward: 230 us, update: 10 us, output: 32 KiB, "
      "activation: 640 KiB, parameters: 2 MiB}}\n"
      "cluster: {{{}}}\nplan: {{{}}}\nschedule: {{name: {}{}}}\n"
      "training: {{optimizer_state: 2{}}}\n",
      cluster, plan, schedule, more, training);
}

}  // namespace plumbline::test
