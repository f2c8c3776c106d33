// The list of kernels, a bench, a table that grows, and blocks that close it.
//
// SPDX-License-Identifier: MIT
#include "cli/calibrate_kernels.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/bug.h"
#include "base/table.h"
#include "base/yaml.h"
#include "calibrate/kernels/measure_kernels.h"
#include "calibrate/kernels/walked_blocks.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/option_checks.h"
#include "cli/preset_kernels.h"
#include "cli/progress.h"
#include "cli/real.h"
#include "cli/record/commit.h"
#include "models/architectures/huggingface.h"
#include "models/import/transformer_network.h"
#include "models/import/transformer_words.h"
#include "models/kernels/kernel_table_reader.h"
#include "models/kernels/kernel_table_writer.h"
#include "sim/scenario/bare_model.h"

namespace plumbline {
namespace {

/// The device by whose modelled times the list is ordered.
constexpr std::string_view kOrderedBy = "h100-sxm";
/// The stack whose kernels are all here.
constexpr std::string_view kOwnStack = "plumbline";
/// The part of the budget in which blocks are walked.
constexpr double kShareOfWalk = 0.25;
constexpr std::int64_t kWalkedBlocks = 2;
/// The key in provenance for the tokens of the micro-batch that was walked.
constexpr std::string_view kWalkedTokens = "walked_tokens";
/// The table is written at most so often.
constexpr std::chrono::seconds kBetweenWrites{2};

/// One calibration from its arguments to its report.
class Calibrating {
 public:
  explicit Calibrating(KernelCalibration arguments) : arguments_(std::move(arguments)) {}

  int run() {
    if (const auto wrong = read_model()) return fail(*wrong);
    if (const auto wrong = list_kernels()) return fail(*wrong);
    if (const auto wrong = open_devices()) return fail(*wrong);
    if (const int trouble = try_output(arguments_.output); trouble != ExitCode::done)
      return trouble;
    if (const auto wrong = open_table()) return fail(*wrong);
    if (kept_ > 0) {  // list those that the table lacks
      if (const auto wrong = list_kernels()) return fail(*wrong);
    }
    tell_limits();
    const InterruptGuard guard;
    const MeasuredList list = measure_or_write();
    if (list.interrupted) return tell_interrupted();
    tell_left_out(list);
    if (table_.rows.empty())
      return fail({input_error({}, "no kernel was measured, so there is no table")});
    if (const int written = write(); written != ExitCode::done) return written;
    const auto wrong = close();
    if (InterruptGuard::interrupted()) return tell_interrupted();
    if (wrong) {
      say(fmt::format("note: closure is {}: {}\n", table_.closure.gemm ? "as it was" : "not known",
                      *wrong));
    }
    if (arguments_.output.empty()) return write_output(kernel_table_yaml(table_), "");
    const int written = write();
    return written == ExitCode::done ? report(list) : written;
  }

 private:
  bool on_cpu() const { return arguments_.backend == "cpu"; }

  /// Checks the arguments, and reads the model.
  std::optional<Diagnostics> read_model() {
    if (std::isnan(arguments_.budget))
      return Diagnostics{input_error({}, "--budget is nan, which is no time")};
    if (arguments_.layouts.sequences.empty()) {
      return Diagnostics{input_error({}, "--sequence is missing: the tokens of a sample",
                                     "kernels are as large as the samples that they take")};
    }
    if (arguments_.dtype.empty()) arguments_.dtype = on_cpu() ? "fp32" : "bf16";
    if (arguments_.stack.empty()) arguments_.stack = kOwnStack;
    if (on_cpu() && arguments_.dtype != "fp32") {
      return Diagnostics{input_error(
          {}, fmt::format("--dtype is {}: the cpu backend computes in fp32", arguments_.dtype))};
    }
    if (arguments_.resume && arguments_.output.empty()) {
      return Diagnostics{input_error({},
                                     "--resume without -o: what was measured is kept in that file",
                                     "-o FILE, the one that was interrupted")};
    }
    auto shape = read_huggingface(arguments_.config);
    if (!shape) return shape.problems();
    shape_ = *std::move(shape);
    arguments_.layouts.options.dtype = number_format(arguments_.dtype);
    arguments_.layouts.options.dtype_given = true;
    return std::nullopt;
  }

  /// Opens the devices for a network of the model.
  std::optional<Diagnostics> open_devices() {
    const auto* const element =
        std::find(kElementTypes.begin(), kElementTypes.end(), arguments_.dtype);
    read_network(static_cast<ElementType>(element - kElementTypes.begin()));
    auto devices = recorded_devices(arguments_.backend, network_, 1, arguments_.cuda);
    if (!devices) return devices.problems();
    devices_ = *std::move(devices);
    if (auto wrong = devices_->check_network_runs(network_, {})) return Diagnostics{*wrong};
    return std::nullopt;
  }

  /// The largest micro-batch is walked: its kernels weigh the most.
  std::int64_t walked_sequence() const {
    const auto& sequences = arguments_.layouts.sequences;
    return *std::max_element(sequences.begin(), sequences.end());
  }
  std::int64_t walked_batch() const {
    const auto& batches = arguments_.layouts.batches;
    return *std::max_element(batches.begin(), batches.end());
  }
  std::int64_t walked_tokens() const { return walked_sequence() * walked_batch(); }

  /// The blocks that will be walked, or where there is no such network, one small layer.
  void read_network(ElementType element) {
    const ListedLayouts& layouts = arguments_.layouts;
    const auto lacks_one = [](const std::vector<std::int64_t>& sizes) {
      return std::find(sizes.begin(), sizes.end(), 1) == sizes.end();
    };
    const NetworkOptions options{.sequence = walked_sequence(),
                                 .dtype = element,
                                 .layers = std::min(kWalkedBlocks, shape_.blocks)};
    if (lacks_one(layouts.tensor)) {
      why_not_walked_ = "blocks are walked whole, and no layout has --tensor-parallel 1";
    } else if (lacks_one(layouts.context)) {
      why_not_walked_ = "blocks are walked whole, and no layout has --context-parallel 1";
    } else if (auto made = transformer_network(shape_.family, shape_, options)) {
      network_ = std::move(made->network);
      walk_notes_ = std::move(made->notes);
      return;
    } else {
      why_not_walked_ = made.problems().front().message;
    }
    network_.name = shape_.family;
    network_.element = element;
    network_.input.shape = {{shape_.hidden}};
    network_.layers = {*derive_layer(Head{2, false, false}, network_.input, {})};
    network_.layers.front().name = "head_0";
  }

  /// The table so far: that of the file to go on with, or an empty one.
  std::optional<Diagnostics> open_table() {
    const CalibrationHead head = table_head();
    const bool is_there = !arguments_.output.empty() && std::filesystem::exists(arguments_.output);
    if (is_there && !arguments_.resume) {
      return Diagnostics{input_error(
          {}, fmt::format("{} is there: a calibration would overwrite it", arguments_.output),
          "--resume goes on with it; else remove it, or name another file")};
    }
    if (is_there) {
      auto table = read_kernel_table(arguments_.output);
      if (!table) return table.problems();
      table_ = *std::move(table);
      kept_ = table_.rows.size();
      for (const auto& [key, value] : head) {
        const auto found = table_.provenance.find(key);
        if (found != table_.provenance.end() && found->second == value) continue;
        return Diagnostics{input_error(
            {},
            fmt::format("{} has other times: its provenance has {}: {}, and here it is {}",
                        arguments_.output, key,
                        found == table_.provenance.end() ? "nothing" : found->second, value),
            "measure into another file")};
      }
      say(fmt::format("note: {} kept in {}\n", plural(kept_, "kernel"), arguments_.output));
    } else if (arguments_.resume) {
      say(fmt::format("note: there is no {} to go on with: measuring from the beginning\n",
                      arguments_.output));
    }
    table_.provenance.merge(devices_->provenance(1));
    for (const auto& [key, value] : head) table_.provenance[key] = value;
    const auto device = table_.provenance.find(on_cpu() ? "processor" : "gpu");
    table_.device = device == table_.provenance.end() ? arguments_.backend : device->second;
    table_.provenance["source"] = "measured";
    table_.provenance["tool"] = fmt::format("plumbline {}", kVersion);
    table_.provenance["commit"] = commit();
    table_.provenance["command"] = arguments_.command_line;
    std::string& models = table_.provenance["model"];
    if (models.find(arguments_.config) == std::string::npos)
      models += (models.empty() ? "" : ", ") + arguments_.config;
    table_.provenance["method"] =
        "each kernel alone, the median of its runs, with many copies of the operands in turn";
    const auto today = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    table_.provenance["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(today));
    return std::nullopt;
  }

  /// Kernels of the stack with the times of the table, if any.
  Result<KernelModel> kernel_model() const {
    KernelTable alone = table_;
    alone.closure = {1, 1, 1, {}};
    return preset_kernels(std::string(kOrderedBy), arguments_.stack,
                          number_format(arguments_.dtype),
                          std::make_shared<MeasuredKernels>(std::move(alone)));
  }

  std::optional<Diagnostics> list_kernels() {
    const auto model = kernel_model();
    if (!model) return model.problems();
    NeededKernels needed = needed_kernels(shape_, arguments_.layouts, *model);
    if (needed.layouts == 0)
      return Diagnostics{
          input_error({}, "no layout is possible: " + needed.misfits.begin()->first)};
    kernels_ = std::move(needed.kernels);
    if (takes_products_alone()) {
      others_left_out_ = std::erase_if(kernels_, [](const ListedKernel& kernel) {
        return !is_product(kernel.key.group.kernels);
      });
    }
    misfits_ = std::move(needed.misfits);
    return std::nullopt;
  }

  /// Tells what is not measured, or other than in the model, before the time is spent.
  void tell_limits() const {
    for (const auto& [why, count] : misfits_) {
      say(fmt::format("note: {} left out: {}\n",
                      plural(static_cast<std::uint64_t>(count), "layout"), why));
    }
    if (others_left_out_ > 0) {
      say(fmt::format("note: {} left out: only products are those of {}; --stack {} measures all\n",
                      plural(others_left_out_, "kernel"), arguments_.stack, kOwnStack));
    }
    const DropoutRates& dropout = shape_.facts.dropout;
    if (dropout.residual.value_or(0) > 0 || dropout.embedding.value_or(0) > 0)
      say("note: residuals and lookups are measured without dropout\n");
    const bool has_windows = shape_.any_block([&](const BlockShape& block) {
      return block.mixer == Mixer::attention && block.reach(walked_sequence());
    });
    if (has_windows) say("note: attention with a window is not measured: no table holds it\n");
    for (const std::string& text : walk_notes_) say(fmt::format("note: walked blocks: {}\n", text));
  }

  KernelForms forms() const {
    KernelForms forms;
    forms.norm = shape_.layer_norm ? NormKind::layer_norm : NormKind::rms_norm;
    forms.activation = activation_of(shape_);
    forms.gated = shape_.gated;
    forms.head_size = shape_.head_dim;
    forms.tokens = arguments_.layouts.sequences.front();
    if (shape_.query_key_norm) forms.hidden_beside_head_norms = shape_.hidden;
    return forms;
  }

  /// What decides the times of the rows, by name: the device, the stack, and what keys leave open.
  CalibrationHead table_head() const {
    CalibrationHead head = devices_->head();
    const KernelForms of_model = forms();
    head.emplace_back("stack", arguments_.stack);
    head.emplace_back(
        "forms",
        fmt::format("{}; {}{}; heads of {}{}", kNormKinds[static_cast<std::size_t>(of_model.norm)],
                    of_model.activation
                        ? kActivationNames[static_cast<std::size_t>(*of_model.activation)]
                        : shape_.facts.activation,
                    of_model.gated ? ", gated" : "", of_model.head_size,
                    of_model.hidden_beside_head_norms > 0 ? ", each with a norm" : ""));
    return head;
  }

  /// Other frameworks have kernels of their own for all but products, which are the library's.
  bool takes_products_alone() const { return arguments_.stack != kOwnStack; }

  /// A device that fails takes no row with it.
  MeasuredList measure_or_write() {
    try {
      return measure();
    } catch (const std::runtime_error&) {
      write();
      throw;
    }
  }

  MeasuredList measure() {
    const std::unique_ptr<KernelBench> bench = devices_->kernel_bench(forms());
    PLUMBLINE_CHECK(bench != nullptr, arguments_.backend);
    ProgressLine line;
    auto written = std::chrono::steady_clock::now();
    KernelBudget budget;
    budget.seconds = arguments_.budget * (1 - kShareOfWalk);
    budget.progress = [&](const KernelKey& next, std::size_t measured, double share) {
      line.tell(fmt::format("{} of {} kernels, {:.0f} % of the time: {}", measured, kernels_.size(),
                            100 * share, described(next)));
    };
    bool is_written = true;
    budget.interrupted = [&] { return !is_written || InterruptGuard::interrupted(); };
    budget.measured = [&](const KernelRow& row) {
      table_.rows.push_back(row);
      const auto now = std::chrono::steady_clock::now();
      if (now - written < kBetweenWrites) return;
      is_written = write() == ExitCode::done;
      written = now;
    };
    return measure_kernels(*bench, kernels_, budget);
  }

  /// Writes the file, if there is one.
  int write() const {
    if (arguments_.output.empty() || table_.rows.empty()) return ExitCode::done;
    return write_output(kernel_table_yaml(table_), arguments_.output);
  }

  int tell_interrupted() {
    if (arguments_.output.empty() || table_.rows.empty()) {
      say("interrupted: nothing is kept\n");
      return ExitCode::interrupted;
    }
    const int written = write();
    if (written != ExitCode::done) return written;
    say(fmt::format("interrupted: {} kept in {}; the same command with --resume goes on\n",
                    plural(table_.rows.size(), "kernel"), arguments_.output));
    return ExitCode::interrupted;
  }

  static void tell_some(const std::vector<ListedKernel>& kernels, std::string_view why) {
    if (kernels.empty()) return;
    std::vector<std::string> names;
    names.reserve(kernels.size());
    for (const ListedKernel& kernel : kernels) names.push_back(described(kernel.key));
    constexpr std::size_t most = 3;
    const std::size_t more = names.size() > most ? names.size() - most : 0;
    names.resize(names.size() - more);
    say(fmt::format("note: {} {}: {}{}\n", plural(kernels.size(), "kernel"), why,
                    fmt::join(names, "; "), more > 0 ? fmt::format("; and {} more", more) : ""));
  }

  void tell_left_out(const MeasuredList& list) const {
    tell_some(list.not_computed, "not measured: the backend has no such kernel");
    tell_some(list.too_large, "not measured: the memory does not hold the operands");
    tell_some(list.no_time_left, "not measured: a larger --budget, or --resume, has time for them");
  }

  /// Gives the table its closure, which holds for all rows: that of the most tokens that were ever
  /// walked. Returns why there is no new one.
  std::optional<std::string> close() {
    const auto before = table_.closure.gemm;
    const auto known = table_.provenance.find(std::string(kWalkedTokens));
    if (before && known != table_.provenance.end() &&
        std::strtoll(known->second.c_str(), nullptr, 10) > walked_tokens())
      return fmt::format("micro-batches of {} tokens were walked for it", known->second);
    if (auto wrong = walk()) return wrong;
    table_.provenance[std::string(kWalkedTokens)] = std::to_string(walked_tokens());
    if (before)
      say(fmt::format("note: the closure was {:.3f}; the new one holds for all rows\n", *before));
    return std::nullopt;
  }

  /// Walks blocks. Returns why it could not.
  std::optional<std::string> walk() {
    if (why_not_walked_) return why_not_walked_;
    if (takes_products_alone())
      return fmt::format("blocks are not walked with the kernels of {}", arguments_.stack);
    TransformerShape few = shape_;
    few.blocks = std::min(kWalkedBlocks, shape_.blocks);
    const auto blocks = static_cast<std::size_t>(few.blocks);
    if (!few.kind_of.empty()) few.kind_of.resize(blocks);
    if (!few.sparse.empty()) few.sparse.resize(blocks);
    few.further_predictions = 0;
    TransformerOptions options = arguments_.layouts.options;
    options.sequence = walked_sequence();
    options.batch = walked_batch();
    const auto model = kernel_model();
    if (!model) return model.problems().front().message;
    auto walked = [&]() -> Result<WalkedBlocks> {
      ProgressLine line;
      line.tell(fmt::format("{} are walked in place", plural(blocks, "block")));
      try {
        return walk_blocks(*devices_, network_, few, options, *model,
                           std::max(arguments_.budget * kShareOfWalk, 1.0),
                           InterruptGuard::interrupted);
      } catch (const std::bad_alloc&) {
        return input_error({}, "the memory does not hold two blocks");
      } catch (const std::runtime_error& error) {
        return failed_device(error);
      }
    }();
    if (!walked) return walked.problems().front().message;
    walked_ = *std::move(walked);
    const double factor = walked_->factor();
    table_.closure = {
        factor,
        factor,
        factor,
        {fmt::format("{} of {} over {} x {} tokens, walked in place: {} for {} alone",
                     plural(blocks, "block"), shape_.family, options.batch, options.sequence,
                     seconds_text(walked_->walked_s()), seconds_text(walked_->alone_s()))}};
    return std::nullopt;
  }

  static std::string seconds_text(double seconds) {
    return to_text(Duration{static_cast<std::int64_t>(seconds * 1e9)});
  }

  static std::string ratio_text(const WalkedLayer& layer) {
    return fmt::format("{} {:.3f}", layer.name, layer.walked_s / layer.alone_s);
  }

  int report(const MeasuredList& list) const {
    std::map<KernelClass, std::size_t> by_class;
    for (const KernelRow& row : table_.rows) ++by_class[row.key.group.kernels];
    std::vector<std::string> classes;
    classes.reserve(by_class.size());
    for (const auto& [kernels, count] : by_class)
      classes.push_back(fmt::format("{} {}", count, name_of(kernels)));
    std::string text = fmt::format(
        "{}: {} on {}\n  kernels   {}{}\n", arguments_.output, plural(table_.rows.size(), "kernel"),
        table_.device, fmt::join(classes, ", "),
        kept_ > 0 ? fmt::format("; {} measured now, {} before", list.measured, kept_) : "");
    if (walked_) {
      std::vector<std::string> layers;
      layers.reserve(walked_->blocks.size());
      for (const WalkedLayer& layer : walked_->blocks) layers.push_back(ratio_text(layer));
      text += fmt::format("  closure   {:.3f}: {}\n  by layer  {}; not in it: {}\n",
                          walked_->factor(), table_.closure.from.front(), fmt::join(layers, ", "),
                          ratio_text(walked_->head));
    }
    return write_output(text, "");
  }

  KernelCalibration arguments_;
  TransformerShape shape_;
  Network network_;
  std::optional<std::string> why_not_walked_;
  std::vector<std::string> walk_notes_;  ///< What differs between these blocks and the model's.
  std::unique_ptr<CalibrationDevices> devices_;
  KernelTable table_;
  std::size_t kept_ = 0;  ///< Rows of the file that is gone on with.
  std::vector<ListedKernel> kernels_;
  std::size_t others_left_out_ = 0;              ///< Kernels that the stack has of its own.
  std::map<std::string, std::int64_t> misfits_;  ///< Layouts that are not possible, by the reason.
  std::optional<WalkedBlocks> walked_;
};

}  // namespace

void add_kernel_calibration(CLI::App& command, KernelCalibration& arguments) {
  const auto add = [&](const char* name, std::vector<std::int64_t>& sizes, std::int64_t max,
                       const char* what) {
    command.add_option(name, sizes, what)
        ->delimiter(',')
        ->check(between(1, max))
        ->type_name("N,...");
  };
  add("--sequence", arguments.layouts.sequences, 100'000'000,
      "config.json: tokens of a sample; each of several is measured");
  add("--tensor-parallel", arguments.layouts.tensor, 1024,
      "config.json: devices that share each layer; 1 if absent");
  add("--context-parallel", arguments.layouts.context, 65536,
      "config.json: devices that share the tokens of each sample; 1 if absent");
  command
      .add_option("--budget", arguments.budget,
                  "config.json: seconds for all kernels; a fourth of it walks two blocks in place")
      ->check(between_reals(1.0, 86'400.0))
      ->type_name("S")
      ->capture_default_str();
  command
      .add_option(
          "--dtype", arguments.dtype,
          "config.json: what numbers are multiplied in; fp32 on the cpu, else bf16 if absent")
      ->check(one_of({"fp32", "bf16"}));
  command
      .add_option(
          "--stack", arguments.stack,
          "config.json: the framework whose kernels are listed; plumbline if absent, and for "
          "another one only products are measured")
      ->check(one_of(software_stack_names()));
}

std::vector<std::string> kernel_calibration_options() {
  return {"--sequence", "--tensor-parallel", "--context-parallel",
          "--budget",   "--dtype",           "--stack"};
}

Result<bool> is_config_json(const std::string& path) {
  const auto root = read_yaml(path);
  if (!root) return root.problems();
  return is_bare_model(*root);
}

int calibrate_kernels(KernelCalibration arguments) {
  try {
    return Calibrating(std::move(arguments)).run();
  } catch (const std::runtime_error& error) {  // from a device
    return fail({failed_device(error)});
  }
}

}  // namespace plumbline
