// The errors of the published runs that the model was held against, by the kind of run. They say
// how sure times from kernels are.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumbline {

struct KernelTraits;
struct LayerOps;
struct SoftwareStack;

/// The kinds of runs whose errors differ, the surest first. A layer's ops decide its kind; a run is
/// of the least sure kind of its layers.
enum class RunKind : std::uint8_t {
  dense,
  dense_fp8,
  long_shared,  ///< Devices share samples of kLongSequence tokens or more.
  experts,
};

/// The tokens from which the errors of shared samples (context parallelism, whatever the devices
/// exchange for it) are counted apart. On one device, the errors of long samples are those of short
/// ones: 1.7 % in the mean of 24 runs.
inline constexpr std::int64_t kLongSequence = 32768;

RunKind run_kind(const LayerOps& ops);

/// "dense", "dense fp8", "long shared", "experts".
std::string_view name(RunKind kind);

/// The runs that the errors rest on.
enum class ErrorBasis : std::uint8_t {
  same,      ///< Runs of this device with this stack.
  left_out,  ///< Runs of devices, stacks or both that the fit had not seen.
  sheet,     ///< Runs that were predicted as if only the data sheets of their devices were known.
};

/// Whether a device has the rates of its data sheet, or a scenario gives it others. Shares of
/// hidden collectives that replace those of the stack count as rates.
enum class DeviceRates : std::uint8_t { of_sheet, given };

/// The share of runs whose iteration time lies in the interval of PublishedErrors. Sentences say it
/// in tenths.
inline constexpr double kErrorCoverage = .9;

/// The errors of predicted iteration times: a share of kErrorCoverage of the measured times are
/// low x to high x the predicted ones.
struct PublishedErrors {
  double low = 1, high = 1;
  RunKind kind = RunKind::dense;
  ErrorBasis basis = ErrorBasis::same;
  std::int64_t runs = 0;  ///< The number of runs behind these numbers.
  /// The device and the stack of the predicted run: "h100-sxm with megatron-core". Rates that are
  /// not those of its preset follow the device.
  std::string setting{};
};

/// The errors for a run of this kind. A device or stack without runs has the errors of its basis,
/// and those of the kind where they are wider. A device with other rates counts as one without.
PublishedErrors published_errors(RunKind kind, const KernelTraits& device, DeviceRates rates,
                                 const SoftwareStack& stack);

/// "-9 to +16 %".
std::string range_text(const PublishedErrors& errors);
/// "9 of 10 published runs of dense models lay within -9 to +16 %".
std::string short_text(const PublishedErrors& errors);
/// One sentence: the interval, the runs behind it, the reason why it is no narrower.
std::string to_text(const PublishedErrors& errors);
/// The same for a list of estimates.
std::string estimate_of(const PublishedErrors& errors);

/// Pairs of published runs of one model on one device with one stack that differ in layout, size or
/// format, and are predicted to differ in speed by more than kTooClose. Most of an error is the
/// same in both runs of a pair.
struct PublishedPairs {
  std::int64_t pairs = 836;
  std::int64_t in_order = 813;  ///< The faster one was predicted to be the faster one.
};
inline constexpr PublishedPairs kPublishedPairs;
inline constexpr double kTooClose = .03;

/// One sentence on how sure the order of two predictions is.
std::string order_sentence();

}  // namespace plumbline
