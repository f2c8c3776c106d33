// `plumbline calibrate`: time the layers of a network on this machine.
// SPDX-License-Identifier: MIT
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <chrono>
#include <memory>

#include "calibrate/cpu_calibration.h"
#include "calibrate/overheads.h"
#include "cli/command.h"
#include "cli/real.h"
#include "models/network_reader.h"
#include "models/profile_writer.h"
#include "models/quantity.h"
#include "sim/model_section.h"
#include "sim/table.h"

namespace plumbline {
namespace {

struct Arguments {
  std::string network;
  std::string backend;
  std::string output;
  CalibrationOptions options;
};

int calibrate(const Arguments& arguments) {
  if (arguments.backend != "cpu") {
    Diagnostic wrong;
    wrong.message =
        fmt::format("--backend is '{}', which calibrates nothing", clipped(arguments.backend));
    wrong.help = "cpu times real kernels; synthetic takes the times that a model says";
    return fail({wrong});
  }
  const auto network = read_network(arguments.network);
  if (!network) return fail(network.problems());
  if (const int trouble = try_output(arguments.output); trouble != ExitCode::done) return trouble;
  auto calibration = [&] {
    ProgressLine line;
    CalibrationOptions options = arguments.options;
    options.progress = [&](const std::string& what, double share) {
      line.tell(fmt::format("{}: {:.0f} % of the time", what, 100 * share));
    };
    return calibrate_cpu(*network, {}, options);
  }();
  if (!calibration) return fail(calibration.problems());
  Profile& profile = calibration->model.profile;
  profile.overheads = measure_overheads();
  profile.provenance["tool"] = fmt::format("plumbline {}", kVersion);
  profile.provenance["network"] = arguments.network;
  const auto today = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  profile.provenance["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(today));
  const int written = write_output(profile_yaml(calibration->model), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  std::string text = fmt::format(
      "{}: {} layers at {} batch size{}\n"
      "  passes    {}, {} dropped because other work took the core\n"
      "  noise     {} at most: half the 95 % interval of a stage's pass\n"
      "  drift     {} at most, from the first half to the second\n"
      "  overheads {} an op, {} a hand-over\n",
      arguments.output, network->layers.size(), profile.measurements.size(),
      profile.measurements.size() == 1 ? "" : "s", calibration->passes,
      percent(calibration->dropped), percent(calibration->noise), percent(calibration->drift),
      to_text(profile.overheads->per_op), to_text(profile.overheads->hand_over));
  return write_output(text, "");
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "time the layers of a network on this machine, and write a profile");
  command->add_option("network", arguments->network, "a network file (kind: network)")
      ->required()
      ->type_name("NETWORK");
  command->add_option("--backend", arguments->backend, "what runs the layers: cpu")
      ->required()
      ->type_name("NAME");
  command->add_option("-o,--output", arguments->output, "write the profile here; absent = stdout")
      ->type_name("FILE");
  command
      ->add_option("--batch", arguments->options.batches,
                   "samples of a micro-batch; several, parted by commas, are all measured")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, kMostBatch))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--devices", arguments->options.devices,
                   "cores that work at the same time, each on its part of the network")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--least-time", arguments->options.least_seconds,
                   "seconds to measure each batch size for, at least")
      ->check(CLI::Range(0.0, 86'400.0))
      ->type_name("S")
      ->capture_default_str();
  command
      ->add_option("--most-time", arguments->options.most_seconds,
                   "seconds, at most; between the two the noise decides")
      ->check(CLI::Range(0.0, 86'400.0))
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--seed", arguments->options.seed, "of weights and data")
      ->type_name("N")
      ->capture_default_str();
  command->callback([arguments, &exit_code] { exit_code = calibrate(*arguments); });
}

}  // namespace plumbline
