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

/// The kinds of passes through a stage. An update stands among the passes of others, or all devices
/// update at once, as behind a flush. A turn is F and B as they follow each other in a run, with
/// nothing between them: on devices where to take the time of a pass takes time.
enum class Pass : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  update,
  update_at_once,
  turn
};
/// Those without which there is no calibration.
inline constexpr std::array<Pass, 5> kAllPasses = {
    Pass::forward, Pass::backward, Pass::backward_input, Pass::backward_weight, Pass::update};
inline constexpr std::array<Pass, 7> kPassKinds = {
    Pass::forward,        Pass::backward, Pass::backward_input, Pass::backward_weight, Pass::update,
    Pass::update_at_once, Pass::turn};

constexpr bool is_update(Pass pass) { return pass == Pass::update || pass == Pass::update_at_once; }

/// F, B, I, W, U, A, T.
constexpr char letter(Pass pass) { return "FBIWUAT"[static_cast<std::size_t>(pass)]; }

/// One pass. Its layers' times add up to it; or it was timed as one piece, which makes one time, as
/// a turn always is: the mean of a row of them, without what launches take.
struct PassTimes {
  Pass pass = Pass::forward;
  std::vector<std::int64_t> layers;  ///< ns, in the order of the layers; empty = it was dropped.

  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// What the passes through one stage say, in the order in which they are added, and whether more
/// of them are wanted. It reads no clock.
class StageSamples {
 public:
  /// `layers` of the stage; `limits` hold for F and for B.
  StageSamples(std::size_t layers, const StopLimits& limits);

  /// `elapsed` is the time measured for so far. Requires: as many times as layers, one, or none.
  void add(const PassTimes& times, Duration elapsed);
  /// Puts the passes of another device with as many layers behind these: for averages. Noise and
  /// drift then take them for one row, whether more are wanted is what these said.
  void pool(const StageSamples& other);

  std::size_t layers() const { return layers_; }
  /// Whether one more pass of this kind is counted.
  bool takes(Pass pass) const {
    return std::max(of(pass).whole.size(), of(pass).piece.size()) < limits_.max_samples;
  }
  /// Whether more passes are not worth their time: both rules have stopped.
  bool is_done() const { return rules_[0].stopped() && rules_[1].stopped(); }

  /// ns of clean passes, of one layer or of the whole stage.
  const std::vector<double>& of_layer(Pass pass, std::size_t layer) const {
    return of(pass).of_layer[layer];
  }
  const std::vector<double>& whole(Pass pass) const { return of(pass).whole; }
  /// ns of clean passes that were timed as one piece; empty where the layers' sum is that, too.
  const std::vector<double>& piece(Pass pass) const { return of(pass).piece; }
  /// Those, or else the whole.
  const std::vector<double>& piece_or_whole(Pass pass) const {
    return piece(pass).empty() ? whole(pass) : piece(pass);
  }

  std::int64_t passes() const { return passes_; }  ///< Dropped ones included.
  std::int64_t dropped() const { return dropped_; }
  /// Why these samples are too few, if so: there is a kind of pass without a clean one.
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
  std::array<StopRule, 2> rules_;  ///< Of F and of B.
  std::int64_t passes_ = 0;
  std::int64_t dropped_ = 0;
};

/// By stage, of what each `copies` devices in a row say of one: the passes of all, for averages.
std::vector<StageSamples> pooled(const std::vector<StageSamples>& by_device, std::uint32_t copies);

/// Whether one of them has no clean pass of some kind.
bool any_missing(const std::vector<StageSamples>& stages);

/// All that was measured with micro-batches of one size.
struct BatchSamples {
  std::int64_t batch = 1;
  Duration measured{};               ///< The time for which passes were counted.
  std::vector<StageSamples> stages;  ///< By device, while all of them work.
  /// By device, while only so many others work.
  std::map<std::uint32_t, std::vector<StageSamples>> beside;
  /// By device, with one micro-batch in flight; empty where that is not measured.
  std::vector<StageSamples> alone_in_flight;

  bool is_done() const;
  std::int64_t passes() const;
  std::int64_t dropped() const;
  /// Of the first stage that misses something.
  std::optional<std::string> missing() const;
  double noise() const;  ///< Of the worst stage, as the next.
  double drift() const;
};

}  // namespace plumbline
