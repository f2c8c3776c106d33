// `plumbline plan`: choose a partition.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/emit.h"
#include "cli/interrupt.h"
#include "cli/option_checks.h"
#include "sim/planning/planning.h"
#include "sim/planning/predict.h"
#include "sim/report/report.h"

namespace plumbline {
namespace {

/// Shows the progress of long planning if stderr is a terminal, and gives up on Ctrl-C.
class Watch {
 public:
  Watch() = default;
  ~Watch() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  bool tell(double share) {
    if (elapsed_s() - last_shown_s_ > 0.5 && isatty(STDERR_FILENO) != 0) {
      last_shown_s_ = elapsed_s();
      shown_ = true;
      std::fputs(fmt::format("\rplanning: {:3.0f} %, {:.0f} s", 100 * share, elapsed_s()).c_str(),
                 stderr);
    }
    return !InterruptGuard::interrupted();
  }

 private:
  InterruptGuard guard_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double last_shown_s_ = 0.5;
  bool shown_ = false;
};

/// Writes the configuration of `launcher` for the plan.
int emit_plan(const ScenarioArguments& arguments, const std::string& launcher) {
  const auto scenario = load_scenario(arguments);
  if (!scenario) return fail(scenario.problems());
  const auto outcome = predict(*scenario, Evaluation::fastest);
  if (!outcome) return fail(outcome.problems());
  return emit_launch(launcher, *scenario, *outcome, "");
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  struct Arguments : ScenarioArguments {
    bool json = false;
    PlanningOptions options;
    std::uint32_t devices_at_most = 0;
    std::uint32_t candidates = 0;
    std::string emit;  ///< A launcher; "" = the table or JSON.
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("plan", "choose stages, replicas, devices and warm-ups");
  add_scenario_arguments(*command, *arguments);
  command->get_option("--output")->description("write the plan section here, for plan.file");
  command->add_flag("--json", arguments->json, "print JSON and nothing else");
  command->add_flag("--straight", arguments->options.straight, "one replica a stage");
  command->add_option("--devices-at-most", arguments->devices_at_most, "leave the others free")
      ->check(between(1, 10'000))
      ->type_name("N");
  command
      ->add_option("--candidates", arguments->candidates,
                   "how many plans of the formula are simulated and printed")
      ->check(between(1, 1'000))
      ->type_name("K");
  add_emit_option(*command, arguments->emit);
  for (const char* other :
       {"--output", "--json", "--straight", "--devices-at-most", "--candidates"})
    command->get_option("--emit")->excludes(command->get_option(other));
  command->callback([arguments, &exit_code] {
    if (!arguments->emit.empty()) return void(exit_code = emit_plan(*arguments, arguments->emit));
    auto scenario = read_scenario(arguments->scenario, arguments->overrides);
    if (!scenario) return void(exit_code = fail(scenario.problems()));
    if (arguments->candidates > 0) scenario->plan.candidates = arguments->candidates;
    if (arguments->devices_at_most > 0)
      arguments->options.devices_at_most = arguments->devices_at_most;
    double planning_time_s = 0;
    const auto planning = [&] {
      Watch watch;
      arguments->options.progress = [&](double share) { return watch.tell(share); };
      auto result = plan_scenario(*scenario, arguments->options);
      planning_time_s = watch.elapsed_s();
      return result;
    }();
    if (InterruptGuard::interrupted()) return void(exit_code = ExitCode::interrupted);
    if (!planning) return void(exit_code = fail(planning.problems()));
    if (!arguments->output.empty()) {
      exit_code = write_output(plan_yaml(*scenario, *planning), arguments->output);
      if (exit_code != ExitCode::done) return;
    }
    exit_code = write_output(
        arguments->json ? to_json(*scenario, *planning, planning_time_s)
                        : to_table(*scenario, *planning).print(page_width(arguments->page, "")),
        "");
  });
}

}  // namespace plumbline
