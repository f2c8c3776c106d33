// Sorting passes by kind and layer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/pass_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bug.h"

namespace plumbline {

StageSamples::StageSamples(std::size_t layers, const StopLimits& limits)
    : layers_(layers), limits_(limits), rules_{StopRule(limits), StopRule(limits)} {
  for (OfKind& kind : kinds_) kind.of_layer.resize(layers);
}

void StageSamples::add(const PassTimes& times, Duration elapsed) {
  StopRule* const rule = times.pass == Pass::forward    ? &rules_[0]
                         : times.pass == Pass::backward ? &rules_[1]
                                                        : nullptr;
  ++passes_;
  if (times.layers.empty()) {
    ++dropped_;
    if (rule) rule->drop(elapsed);
    return;
  }
  OfKind& kind = kinds_[static_cast<std::size_t>(times.pass)];
  if (times.layers.size() == 1 && layers_ > 1) {
    kind.piece.push_back(static_cast<double>(times.layers.front()));
    return;
  }
  PLUMBLINE_CHECK(times.layers.size() == layers_, times.layers.size(), layers_);
  std::int64_t whole = 0;
  for (std::size_t i = 0; i < layers_; ++i) {
    whole += times.layers[i];
    kind.of_layer[i].push_back(static_cast<double>(times.layers[i]));
  }
  kind.whole.push_back(static_cast<double>(whole));
  if (rule) rule->add(static_cast<double>(whole), elapsed);
}

void StageSamples::pool(const StageSamples& other) {
  PLUMBLINE_CHECK(layers_ == other.layers_, layers_, other.layers_);
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    for (std::size_t i = 0; i < layers_; ++i)
      append(kinds_[k].of_layer[i], other.kinds_[k].of_layer[i]);
    append(kinds_[k].whole, other.kinds_[k].whole);
    append(kinds_[k].piece, other.kinds_[k].piece);
  }
  passes_ += other.passes_;
  dropped_ += other.dropped_;
}

std::optional<std::string> StageSamples::missing() const {
  const bool has_all = std::all_of(kAllPasses.begin(), kAllPasses.end(),
                                   [&](Pass pass) { return !whole(pass).empty(); });
  if (has_all) return std::nullopt;
  return fmt::format("{} of {} passes were clean, and of one kind none", passes_ - dropped_,
                     passes_);
}

double StageSamples::noise() const {
  return std::max(relative_half_width(whole(Pass::forward)).value_or(1),
                  relative_half_width(whole(Pass::backward)).value_or(1));
}

double StageSamples::drift() const {
  double worst = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const std::vector<double>& all = whole(pass);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    const auto change = plumbline::drift({all.begin(), middle}, {middle, all.end()});
    worst = std::max(worst, std::abs(change.value_or(0)));
  }
  return worst;
}

std::vector<StageSamples> pooled(const std::vector<StageSamples>& by_device, std::uint32_t copies) {
  std::vector<StageSamples> stages;
  for (std::size_t device = 0; device < by_device.size(); ++device) {
    if (device % copies == 0) {
      stages.push_back(by_device[device]);
    } else {
      stages.back().pool(by_device[device]);
    }
  }
  return stages;
}

bool any_missing(const std::vector<StageSamples>& stages) {
  return std::any_of(stages.begin(), stages.end(),
                     [](const StageSamples& stage) { return stage.missing().has_value(); });
}

bool BatchSamples::is_done() const {
  return std::all_of(stages.begin(), stages.end(),
                     [](const StageSamples& stage) { return stage.is_done(); });
}

std::int64_t BatchSamples::passes() const {
  std::int64_t all = 0;
  for (const StageSamples& stage : stages) all += stage.passes();
  return all;
}

std::int64_t BatchSamples::dropped() const {
  std::int64_t all = 0;
  for (const StageSamples& stage : stages) all += stage.dropped();
  return all;
}

std::optional<std::string> BatchSamples::missing() const {
  for (const StageSamples& stage : stages) {
    if (auto what = stage.missing()) return what;
  }
  return std::nullopt;
}

double BatchSamples::noise() const {
  double worst = 0;
  for (const StageSamples& stage : stages) worst = std::max(worst, stage.noise());
  return worst;
}

double BatchSamples::drift() const {
  double worst = 0;
  for (const StageSamples& stage : stages) worst = std::max(worst, stage.drift());
  return worst;
}

}  // namespace plumbline
