// Options and progress of real runs.
// SPDX-License-Identifier: MIT
#include "cli/real.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>

namespace plumbline {

void add_real_arguments(CLI::App& command, RealArguments& arguments) {
  command.add_option("--backend", arguments.backend, "what runs the ops (plumbline list backends)")
      ->required()
      ->type_name("NAME");
  command.add_option("--iterations", arguments.run.iterations, "clean iterations to measure")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--warm-up", arguments.run.warm_up, "iterations before them")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  SyntheticOptions& synthetic = arguments.synthetic;
  command
      .add_option("--spread", synthetic.spread, "synthetic: relative deviation of each op's time")
      ->check(CLI::Range(0.0, 10.0))
      ->type_name("FRACTION");
  command
      .add_option("--straggler-probability", synthetic.straggler_probability,
                  "synthetic: the share of ops that take longer")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("FRACTION");
  command
      .add_option("--straggler-factor", synthetic.straggler_factor,
                  "synthetic: how many times longer those take")
      ->check(CLI::Range(1.0, 1000.0))
      ->type_name("FACTOR")
      ->capture_default_str();
  command.add_option("--seed", synthetic.seed, "synthetic: of spread and stragglers")
      ->type_name("N")
      ->capture_default_str();
}

Result<std::unique_ptr<Backend>> make_backend(const RealArguments& arguments) {
  if (arguments.backend == "synthetic") return synthetic_backend(arguments.synthetic);
  std::vector<std::string> names;
  for (const BackendName& backend : kBackends) names.emplace_back(backend.name);
  Diagnostic wrong;
  wrong.message = fmt::format("--backend is '{}', which is no backend", clipped(arguments.backend));
  wrong.help = did_you_mean(arguments.backend, names);
  if (wrong.help.empty()) wrong.help = fmt::format("one of {}", fmt::join(names, ", "));
  return wrong;
}

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (any_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::tell(const std::string& text) {
  if (!shown_) return;
  any_ = true;
  std::fputs(("\r\033[K" + text).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace plumbline
