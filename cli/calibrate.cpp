// `plumbline calibrate`: time the layers of a network on this machine.
//
// SPDX-License-Identifier: MIT
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/document.h"
#include "base/quantity.h"
#include "base/table.h"
#include "calibrate/cpu/calibration.h"
#include "calibrate/cuda/check.h"
#include "calibrate/measure/calibrate_network.h"
#include "calibrate/measure/sampling.h"
#include "cli/calibrate_kernels.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/option_checks.h"
#include "cli/progress.h"
#include "cli/real.h"
#include "cli/record/commit.h"
#include "models/network/network_reader.h"
#include "models/profile/profile_writer.h"
#include "sim/scenario/model_section.h"

namespace plumbline {
namespace {

struct Arguments {
  std::string command_line;   ///< For the profile.
  std::string network;        ///< A network file, or a config.json.
  KernelCalibration kernels;  ///< What only a config.json takes.
  std::string backend;
  std::string output;
  std::string optimizer = "sgd";
  bool resume = false;
  bool check = false;
  CudaDeviceOptions cuda;
  bool min_is_given = false;
  CalibrationOptions options;
};

/// The error of the command line that does not depend on the network, if there is one.
std::optional<Diagnostic> refuse(const Arguments& arguments) {
  if (arguments.check && arguments.backend != "cuda") {
    return input_error({},
                       fmt::format("--check with --backend {}: there is nothing to prove",
                                   clipped(arguments.backend)),
                       "it proves the devices of --backend cuda");
  }
  if (arguments.network.empty() && !arguments.check)
    return input_error({}, "no NETWORK is given", "a network file (kind: network)");
  if (arguments.check) return std::nullopt;
  if (arguments.backend != "cpu" && arguments.backend != "cuda") {
    return input_error(
        {}, fmt::format("--backend is '{}', which calibrates nothing", clipped(arguments.backend)),
        "cpu and cuda time real kernels; synthetic takes the times that a model says");
  }
  const CalibrationOptions& options = arguments.options;
  if (std::isnan(options.min_seconds) || std::isnan(options.max_seconds))
    return input_error({}, "--least-time or --most-time is nan, which is no time");
  if (options.min_seconds > options.max_seconds) {
    return input_error({},
                       fmt::format("--least-time is {} s, above the --most-time of {} s",
                                   options.min_seconds, options.max_seconds),
                       "raise --most-time, or leave --least-time out");
  }
  if (arguments.resume && arguments.output.empty()) {
    return input_error({}, "--resume without -o: what was measured is kept beside a file",
                       "-o FILE, the one that was interrupted");
  }
  return std::nullopt;
}

/// The content of the file, with a note on stderr. Errors: it cannot be read, or belongs to another
/// calibration.
Result<KeptCalibration> resumed(CalibrationFile& file, const CalibrationHead& head) {
  auto kept = file.resume();
  if (!kept) return kept.problems();
  if (!*kept) {
    say(fmt::format("note: there is no {} to go on with: measuring from the beginning\n",
                    file.path()));
    return KeptCalibration();
  }
  if (auto other = check_other_calibration(**kept, head)) return *other;
  if ((*kept)->cut_line > 0) {
    say(fmt::format("note: {}:{}: the last line is cut off, and dropped\n", file.path(),
                    (*kept)->cut_line));
  }
  say(fmt::format("note: {} passes in {} are kept in {}\n", (*kept)->passes(),
                  to_text((*kept)->measured()), file.path()));
  return **std::move(kept);
}

/// The errors of options that the file does not take: networks and config.json files have some
/// each.
Diagnostics misplaced_options(const CLI::App& command, bool is_config) {
  static const std::vector<std::string> of_networks = {
      "--devices",   "--copies", "--optimizer",   "--least-time",
      "--most-time", "--seed",   "--no-slowdown", "--no-in-flight"};
  Diagnostics misplaced;
  for (const std::string& name : is_config ? of_networks : kernel_calibration_options()) {
    if (command.count(name) == 0) continue;
    misplaced.push_back(input_error({},
                                    fmt::format("{} is an option of {}, not of {}", name,
                                                is_config ? "a network" : "a config.json",
                                                is_config ? "a config.json" : "a network"),
                                    "leave it out, or name the other kind of file"));
  }
  return misplaced;
}

/// The kernels of a config.json.
int calibrate_config(const Arguments& arguments, const CLI::App& command) {
  if (const auto wrong = refuse(arguments)) return fail({*wrong});
  if (const auto wrong = misplaced_options(command, true); !wrong.empty()) return fail(wrong);
  KernelCalibration kernels = arguments.kernels;
  kernels.command_line = arguments.command_line;
  kernels.config = arguments.network;
  kernels.backend = arguments.backend;
  kernels.output = arguments.output;
  kernels.resume = arguments.resume;
  kernels.cuda = arguments.cuda;
  if (command.count("--batch") > 0) kernels.layouts.batches = arguments.options.batches;
  return calibrate_kernels(std::move(kernels));
}

int calibrate(Arguments arguments);

/// What the file asks for: layers of a network, or kernels of a model.
int calibrate_file(const Arguments& arguments, const CLI::App& command) {
  if (!arguments.network.empty()) {
    const auto is_config = is_config_json(arguments.network);
    if (!is_config) return fail(is_config.problems());
    if (*is_config) return calibrate_config(arguments, command);
  }
  if (const auto wrong = misplaced_options(command, false); !wrong.empty()) return fail(wrong);
  return calibrate(arguments);
}

/// Adds the provenance that this command knows to the profile.
void add_provenance(const Arguments& arguments, int resumed, Profile& profile) {
  profile.provenance["tool"] = fmt::format("plumbline {}", kVersion);
  profile.provenance["commit"] = commit();
  profile.provenance["command"] = arguments.command_line;
  profile.provenance["network"] = arguments.network;
  if (resumed > 0) profile.provenance["resumed"] = std::to_string(resumed);
  const auto today = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  profile.provenance["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(today));
}

int tell_interrupted(const CalibrationFile& file, std::size_t passes) {
  const std::string text =
      file.holds_something()
          ? fmt::format(
                "interrupted: {} passes are kept in {}; the same command with --resume goes "
                "on\n",
                passes, file.path())
          : "interrupted: nothing is kept\n";
  say(text);
  return ExitCode::interrupted;
}

/// The largest relative change by the first factors (the fewest), with its sign.
double largest_change(const KindFactors& of_kinds) {
  double max = 0;
  for (const auto& [kind, factors] : of_kinds) {
    if (std::abs(factors.front() - 1) > std::abs(max)) max = factors.front() - 1;
  }
  return max;
}

/// A line on the change by neighbours at rest; "" where that was not measured.
std::string neighbours_line(const Calibration& calibration) {
  if (calibration.slowdown.empty()) return "";
  return fmt::format(
      "  neighbours {} at most: what a kind of layer takes longer while they rest; "
      "kept from {} on\n",
      percent(largest_change(calibration.slowdown)), percent(calibration.min_slowdown()));
}

/// A line on the change by fewer micro-batches in flight; "" where that was not measured.
std::string in_flight_line(const Calibration& calibration) {
  if (calibration.in_flight.empty()) return "";
  return fmt::format(
      "  in flight {} at most: what a kind of layer takes longer with one micro-batch in flight; "
      "kept from {} on\n",
      percent(largest_change(calibration.in_flight)), percent(calibration.min_in_flight()));
}

/// A line on updates of all devices at once; "" where that was not measured.
std::string updates_line(const Calibration& calibration) {
  if (!calibration.updates_at_once) return "";
  return fmt::format("  updates   {} where all devices update at once, as behind a flush\n",
                     percent(*calibration.updates_at_once - 1));
}

/// A line on the size that others' work slows down the most; "" where that was not measured.
std::string beside_work_line(const MeasuredLink& link) {
  if (link.busy.empty()) return "";
  const BusyTransfers& busy = link.busy.back();
  const Link at_rest{link.latency, link.bandwidth, link.table};
  const auto ratio = [&](const std::pair<Bytes, Duration>& row) {
    return seconds(row.second) / std::max(seconds(at_rest.time_of(row.first).whole()), 1e-9);
  };
  const auto slowest =
      std::max_element(busy.table.begin(), busy.table.end(),
                       [&](const auto& a, const auto& b) { return ratio(a) < ratio(b); });
  if (slowest == busy.table.end()) return "";
  return fmt::format("            {} take {} while {} other device{} compute{}, and {} at rest\n",
                     to_text(slowest->first), to_text(slowest->second), busy.workers,
                     busy.workers == 1 ? "" : "s", busy.workers == 1 ? "s" : "",
                     to_text(at_rest.time_of(slowest->first).whole()));
}

std::string link_lines(const Profile& profile) {
  std::string lines;
  for (const MeasuredLink& link : profile.links) {
    const auto fit = fit_link(link.table);
    lines += fmt::format("  link      {}: {} and {}, at most {} off any of {} sizes\n", link.kind,
                         to_text(link.latency),
                         link.bandwidth ? to_text(*link.bandwidth) : "any bandwidth",
                         percent(fit ? fit->largest_residual : 0), link.table.size());
    lines += beside_work_line(link);
  }
  return lines;
}

/// A line on the cost of timing a pass; "" where that is unknown.
std::string stamps_line(const Calibration& calibration) {
  if (!calibration.stamps) return "";
  return fmt::format("  stamps    {} at most: what timing adds to a pass, taken off again\n",
                     to_text(*calibration.stamps));
}

/// The rates of adding up gradients and of stashing weights, where they were measured.
std::string update_text(const Overheads& overheads) {
  std::string text;
  if (overheads.add_up)
    text += fmt::format("; gradients of a replica are added up at {}", to_text(*overheads.add_up));
  if (overheads.stash)
    text +=
        fmt::format("; weights beside stashed ones are written at {}", to_text(*overheads.stash));
  return text;
}

int report(const std::string& output, const Calibration& calibration, std::string_view why) {
  const Profile& profile = calibration.model.profile;
  Document text;
  text.sentence(
      fmt::format("{}: {} layers at {} batch size{}\n"
                  "  passes    {}, {} dropped because {}\n"
                  "  noise     {} at most: half the 95 % interval of a stage's pass\n"
                  "  drift     {} at most, from the first half to the second\n"
                  "  overheads {} an op, {} a hand-over{}\n"
                  "{}{}{}{}{}",
                  output, calibration.model.graph.size(), profile.measurements.size(),
                  profile.measurements.size() == 1 ? "" : "s", calibration.passes,
                  percent(calibration.dropped), why, percent(calibration.noise),
                  percent(calibration.drift), to_text(profile.overheads->per_op),
                  to_text(profile.overheads->hand_over), update_text(*profile.overheads),
                  stamps_line(calibration), link_lines(profile), neighbours_line(calibration),
                  updates_line(calibration), in_flight_line(calibration)),
      12);
  return write_output(text.print(page_width({}, "")), "");
}

/// `--check`: prints the devices, the libraries and what was proven. Errors go to stderr.
int check(std::uint32_t devices) {
  const auto proof = check_cuda_here(devices);
  if (!proof) return fail(proof.problems());
  const int written = write_output(proof->text, "");
  if (written != ExitCode::done) return written;
  for (const std::string& failure : proof->failures) say(fmt::format("error: {}\n", failure));
  return proof->failures.empty() ? ExitCode::done : ExitCode::check_failed;
}

int calibrate(Arguments arguments) {
  // All errors of the input are reported before anything is measured.
  CalibrationOptions& options = arguments.options;
  if (!arguments.min_is_given)
    options.min_seconds = std::min(options.min_seconds, options.max_seconds);
  options.optimizer =
      arguments.optimizer == "adam" ? OptimizerKind::adam : OptimizerKind::gradient_descent;
  if (const auto wrong = refuse(arguments)) return fail({*wrong});
  if (arguments.check) return check(options.devices);
  const auto network = read_network(arguments.network);
  if (!network) return fail(network.problems());
  if (const int trouble = try_output(arguments.output); trouble != ExitCode::done) return trouble;
  const auto devices =
      recorded_devices(arguments.backend, *network, options.devices, arguments.cuda);
  if (!devices) return fail(devices.problems());
  const CalibrationHead head = calibration_head(
      **devices, *network, options, fmt::format("plumbline {}, commit {}", kVersion, commit()));
  const bool keeps = !arguments.output.empty() && !holds_outputs();
  CalibrationFile file(arguments.output);
  if (arguments.resume && !holds_outputs()) {
    auto kept = resumed(file, head);
    if (!kept) return fail(kept.problems());
    options.kept = *std::move(kept);
  } else if (const auto there = keeps ? file.check_existing() : std::nullopt) {
    return fail({*there});
  }
  // Measure; each round is on the disk before the next one begins.
  const InterruptGuard guard;
  auto run = [&] {
    ProgressLine line;
    options.progress = [&](const std::string& what, double share) {
      line.tell(fmt::format("{}: {:.0f} % of the time", what, 100 * share));
    };
    options.interrupted = InterruptGuard::interrupted;
    return calibrate_network(**devices, *network, std::move(options), head,
                             keeps ? &file : nullptr);
  }();
  if (!run) return fail(run.problems());
  if (!run->calibration) return tell_interrupted(file, run->passes);
  Calibration& calibration = *run->calibration;
  // Write the profile; then remove the kept passes.
  for (const std::string& sentence : calibration.left_out) say(fmt::format("note: {}\n", sentence));
  add_provenance(arguments, run->resumed, calibration.model.profile);
  const int written = write_output(profile_yaml(calibration.model), arguments.output);
  if (written != ExitCode::done || arguments.output.empty()) return written;
  if (keeps) file.remove();
  return report(
      arguments.output, calibration,
      arguments.backend == "cpu" ? "other work took the core" : "the clock was below 75 %");
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "time the layers of a network, or the kernels of a model, on this machine: a profile, or a "
      "table");
  command
      ->add_option("network", arguments->network,
                   "a network file (kind: network), or a model's config.json; not for --check")
      ->type_name("NETWORK");
  command->add_option("--backend", arguments->backend, "what runs the layers: cpu, cuda")
      ->required()
      ->type_name("NAME");
  command
      ->add_option("-o,--output", arguments->output,
                   "write the profile, or the table, here; absent = stdout")
      ->type_name("FILE");
  command
      ->add_option("--batch", arguments->options.batches,
                   "samples of a micro-batch; several, separated by commas, are all measured; of a "
                   "config.json 1 if absent")
      ->delimiter(',')
      ->check(between(1, kMaxBatch))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--devices", arguments->options.devices,
          "cores or GPUs (or parts of one GPU) that work at the same time, each on its part")
      ->check(between(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--copies", arguments->options.copies,
                   "so many of them hold the same part, as with plan.data_parallel: each of "
                   "--devices 2 --copies 2 holds the whole network")
      ->check(between(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--optimizer", arguments->optimizer,
                   "whose updates are timed: sgd, or adam for training.optimizer_state 2 and more")
      ->check(one_of({"sgd", "adam"}))
      ->type_name("NAME")
      ->capture_default_str();
  CLI::Option* min = command
                         ->add_option("--least-time", arguments->options.min_seconds,
                                      "seconds to measure each batch size for, at least")
                         ->check(between_reals(0.0, 86'400.0))
                         ->type_name("S")
                         ->capture_default_str();
  command
      ->add_option("--most-time", arguments->options.max_seconds,
                   "seconds, at most; between the two the noise decides")
      ->check(between_reals(0.0, 86'400.0))
      ->type_name("S")
      ->capture_default_str();
  command->add_option("--seed", arguments->options.seed, "of weights and data")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag_callback(
      "--no-slowdown", [arguments] { arguments->options.slowdown = false; },
      "do not also measure with fewer devices at work, nor links beside work: what neighbours "
      "cost");
  command->add_flag_callback(
      "--no-in-flight", [arguments] { arguments->options.in_flight = false; },
      "do not also measure with one micro-batch in flight: what the number of them changes");
  command->add_flag(
      "--resume", arguments->resume,
      "go on with what an interrupted calibration has kept beside -o FILE, or with the table "
      "in it");
  add_kernel_calibration(*command, arguments->kernels);
  add_cuda_device_arguments(*command, arguments->cuda);
  command->add_flag("--check", arguments->check,
                    "cuda: prove that --devices parts of a GPU keep to themselves and work at the "
                    "same time; measures nothing");
  command->callback([arguments, command, min, &exit_code] {
    arguments->command_line = command_line(*command);
    arguments->min_is_given = min->count() > 0;
    exit_code = calibrate_file(*arguments, *command);
  });
}

}  // namespace plumbline
