// The samples of a calibration: passes through the layers of a stage, each layer timed.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "calibrate/measure/sampling.h"

namespace plumbline {

/// The kinds of passes through a stage. An update comes among other passes, or all devices update
/// at once, as after a flush. A turn is F and B back to back, as in a run; it is timed on devices
/// where timing a pass costs time.
enum class Pass : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  update,
  update_at_once,
  turn
};
/// The kinds that every calibration needs.
inline constexpr std::array<Pass, 5> kAllPasses = {
    Pass::forward, Pass::backward, Pass::backward_input, Pass::backward_weight, Pass::update};
inline constexpr std::array<Pass, 7> kPassKinds = {
    Pass::forward,        Pass::backward, Pass::backward_input, Pass::backward_weight, Pass::update,
    Pass::update_at_once, Pass::turn};

constexpr bool is_update(Pass pass) { return pass == Pass::update || pass == Pass::update_at_once; }

/// F, B, I, W, U, A, T.
constexpr char letter(Pass pass) { return "FBIWUAT"[static_cast<std::size_t>(pass)]; }

/// One pass. Its layers' times add up to it, or it has one time because it was timed as one piece.
/// A turn always is one piece: the mean of a row of turns, without the cost of launches.
struct PassTimes {
  Pass pass = Pass::forward;
  std::vector<std::int64_t> layers;  ///< ns, in the order of the layers; empty = it was dropped.

  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// The samples of the passes through one stage, in the order in which they are added. It decides
/// whether more are wanted. It reads no clock.
class StageSamples {
 public:
  /// `layers` is the stage's number of layers; `limits` hold for F and for B.
  StageSamples(std::size_t layers, const StopLimits& limits);

  /// `elapsed` is the measuring time so far. Requires: as many times as layers, one, or none.
  void add(const PassTimes& times, Duration elapsed);
  /// Appends the passes of another device with as many layers, for averages. Noise and drift then
  /// treat all as one row. The answer of is_done() does not change.
  void pool(const StageSamples& other);

  std::size_t layers() const { return layers_; }
  /// Whether one more pass of this kind is counted.
  bool takes(Pass pass) const {
    return std::max(of(pass).whole.size(), of(pass).piece.size()) < limits_.max_samples;
  }
  /// Whether more passes are not worth their time: both rules have stopped.
  bool is_done() const { return rules_[0].stopped() && rules_[1].stopped(); }

  /// Times of clean passes in ns, of one layer or of the whole stage.
  const std::vector<double>& of_layer(Pass pass, std::size_t layer) const {
    return of(pass).of_layer[layer];
  }
  const std::vector<double>& whole(Pass pass) const { return of(pass).whole; }
  /// Times in ns of clean passes that were timed as one piece. Empty where the layers' sum is the
  /// same.
  const std::vector<double>& piece(Pass pass) const { return of(pass).piece; }
  /// piece(), or whole() where that is empty.
  const std::vector<double>& piece_or_whole(Pass pass) const {
    return piece(pass).empty() ? whole(pass) : piece(pass);
  }

  std::int64_t passes() const { return passes_; }  ///< Dropped ones included.
  std::int64_t dropped() const { return dropped_; }
  /// The reason why these samples are too few, if so: a kind of pass without a clean one.
  std::optional<std::string> missing() const;
  /// The larger relative half-width of the 95 % interval of F and B; 1 where there is none.
  double noise() const;
  /// The larger relative change of F and B from the first half to the second, without its sign.
  double drift() const;

 private:
  struct OfKind {
    std::vector<std::vector<double>> of_layer;
    std::vector<double> whole;
    std::vector<double> piece;
  };

  const OfKind& of(Pass pass) const { return kinds_[static_cast<std::size_t>(pass)]; }

  std::size_t layers_;
  StopLimits limits_;
  std::array<OfKind, kPassKinds.size()> kinds_;
  std::array<StopRule, 2> rules_;  ///< One for F, one for B.
  std::int64_t passes_ = 0;
  std::int64_t dropped_ = 0;
};

/// The samples by stage, for averages. Each pools `copies` devices in a row, which hold the same
/// stage.
std::vector<StageSamples> pooled(const std::vector<StageSamples>& by_device, std::uint32_t copies);

/// Whether one of them has no clean pass of some kind.
bool any_missing(const std::vector<StageSamples>& stages);

/// All that was measured with micro-batches of one size.
struct BatchSamples {
  std::int64_t batch = 1;
  Duration measured{};               ///< The time for which passes were counted.
  std::vector<StageSamples> stages;  ///< By device, while all of them work.
  /// By number of other devices at work, then by device.
  std::map<std::uint32_t, std::vector<StageSamples>> beside;
  /// By device, with one micro-batch in flight; empty where that is not measured.
  std::vector<StageSamples> alone_in_flight;

  bool is_done() const;
  std::int64_t passes() const;
  std::int64_t dropped() const;
  /// What is missing, for the first stage that misses something.
  std::optional<std::string> missing() const;
  double noise() const;  ///< The largest of all stages; drift() too.
  double drift() const;
};

}  // namespace plumbline
