// The table of errors. Every number comes from the 322 published runs of
// docs/results/published-runs.md.
//
// Errors of known devices and stacks are those of runs that the fit had not seen: the 11 constants
// that no measured table gives were fitted to half of the 16 families, and the other half was
// predicted; 200 random halves. Two families, the only ones with some constant, were halved by
// rows. `low` and `high` leave out a twentieth of the errors each, and are no narrower than the
// same of the final fit. Kinds with fewer than 20 runs have the worst error of all, either way.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/published_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "models/kernels/kernel_traits.h"
#include "models/kernels/software_stack.h"
#include "models/ops/layer_op.h"

namespace plumbline {
namespace {

struct KindErrors {
  std::string_view name, models;
  double low, high;
  std::int64_t runs;
};

/// The errors of each RunKind, in its order.
constexpr std::array kKinds = {
    KindErrors{"dense", "dense models", .91, 1.16, 260},
    KindErrors{"dense fp8", "dense models in fp8", .87, 1.12, 47},
    KindErrors{"long shared", "samples of 32768 tokens or more that devices share", .86, 1.16, 6},
    KindErrors{"experts", "models with experts", .74, 1.35, 9}};

/// The widest errors of three fits, which left out each device, each stack, and each pair of them.
constexpr KindErrors kLeftOut = {"", "", .88, 1.26, 322};

/// The errors of all runs, predicted with the numbers of their devices' data sheets alone. A100,
/// H100, and B200 with GB200 count as much as each other.
constexpr KindErrors kSheet = {"", "", .81, 1.33, 322};

/// The devices and stacks of the runs.
struct Setting {
  std::string_view device, stack;
};
constexpr std::array kSettings = {
    Setting{"a100-sxm-40gb", "eager-2023"},    Setting{"a100-sxm-80gb", "eager-2023"},
    Setting{"a100-sxm-80gb", "megatron-2022"}, Setting{"h100-sxm", "eager-2023"},
    Setting{"h100-sxm", "megatron-core"},      Setting{"h100-sxm", "torch-compile"},
    Setting{"b200-sxm", "megatron-core"},      Setting{"gb200", "megatron-core"}};

ErrorBasis basis_of(const KernelTraits& device, DeviceRates rates, const SoftwareStack& stack) {
  if (!device.caveat.empty()) return ErrorBasis::sheet;
  if (rates == DeviceRates::given) return ErrorBasis::left_out;
  const bool has_runs =
      std::any_of(kSettings.begin(), kSettings.end(), [&](const Setting& setting) {
        return setting.device == device.device && setting.stack == stack.name;
      });
  return has_runs ? ErrorBasis::same : ErrorBasis::left_out;
}

RunKind kind_of(const LinearOp& op) {
  if (op.experts > 0) return RunKind::experts;
  return op.format == NumberFormat::fp8 ? RunKind::dense_fp8 : RunKind::dense;
}

bool is_long(const LayerOp& op) {
  const auto* attention = std::get_if<AttentionOp>(&op.shape);
  return attention && attention->keys >= kLongSequence;
}

/// Whether devices that share samples exchange keys, or tokens for heads.
bool is_of_shared_samples(const LayerOp& op) {
  const auto* exchange = std::get_if<ExchangeOp>(&op.shape);
  return exchange && exchange->devices > 1 &&
         (exchange->kind == ExchangeKind::gather_keys ||
          exchange->kind == ExchangeKind::exchange_heads);
}

/// "9 of 10".
std::string coverage_text() { return fmt::format("{:g} of 10", 10 * kErrorCoverage); }

}  // namespace

std::string_view name(RunKind kind) { return kKinds[static_cast<std::size_t>(kind)].name; }

RunKind run_kind(const LayerOps& ops) {
  const bool shares_long_samples =
      std::any_of(ops.ops.begin(), ops.ops.end(), is_long) &&
      std::any_of(ops.ops.begin(), ops.ops.end(), is_of_shared_samples);
  RunKind kind = shares_long_samples ? RunKind::long_shared : RunKind::dense;
  for (const LayerOp& op : ops.ops) {
    if (const auto* linear = std::get_if<LinearOp>(&op.shape))
      kind = std::max(kind, kind_of(*linear));
  }
  return kind;
}

PublishedErrors published_errors(RunKind kind, const KernelTraits& device, DeviceRates rates,
                                 const SoftwareStack& stack) {
  const KindErrors& own = kKinds[static_cast<std::size_t>(kind)];
  const ErrorBasis basis = basis_of(device, rates, stack);
  if (basis == ErrorBasis::same) return {own.low, own.high, kind, basis, own.runs};
  const KindErrors& others = basis == ErrorBasis::left_out ? kLeftOut : kSheet;
  return {std::min(own.low, others.low), std::max(own.high, others.high), kind, basis, others.runs};
}

std::string range_text(const PublishedErrors& errors) {
  return fmt::format("{:+.0f} to {:+.0f} %", 100 * (errors.low - 1), 100 * (errors.high - 1));
}

std::string short_text(const PublishedErrors& errors) {
  const auto whose = [&]() -> std::string {
    switch (errors.basis) {
      case ErrorBasis::same:
        return fmt::format("of {}", kKinds[static_cast<std::size_t>(errors.kind)].models);
      case ErrorBasis::left_out:
        return "of devices or stacks left out of the fit";
      case ErrorBasis::sheet:
        return "predicted from data sheets";
    }
    return "";
  };
  return fmt::format("{} published runs {} lay within {}", coverage_text(), whose(),
                     range_text(errors));
}

std::string to_text(const PublishedErrors& errors) {
  const auto why = [&]() -> std::string_view {
    switch (errors.basis) {
      case ErrorBasis::same:
        return "";
      case ErrorBasis::left_out:
        return "no published run of this device with this stack was compared; ";
      case ErrorBasis::sheet:
        return "the device's own kernels were not measured; ";
    }
    return "";
  };
  return fmt::format("{}{} of their prediction ({} runs{})", why(), short_text(errors), errors.runs,
                     errors.basis == ErrorBasis::sheet ? "" : ", none seen by the fit");
}

std::string estimate_of(const PublishedErrors& errors) {
  return "how sure the iteration time is: " + to_text(errors);
}

std::string order_sentence() {
  const PublishedPairs& pairs = kPublishedPairs;
  return fmt::format(
      "of {} pairs of published runs of one model that were predicted to be more than {:.0f} % "
      "apart, {:.0f} % are in the right order",
      pairs.pairs, 100 * kTooClose,
      100 * static_cast<double>(pairs.in_order) / static_cast<double>(pairs.pairs));
}

}  // namespace plumbline
