// Costs at a batch size: measured, interpolated or scaled.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bug.h"
#include "base/statistics.h"

namespace plumbline {
namespace {

__extension__ using Wide = __int128;

/// The value at `size` on the line through (batch_a, a) and (batch_b, b), rounded to the nearest
/// whole number, never negative. With batch_a = 0 and a = 0 this scales b linearly.
struct Line {
  std::int64_t batch_a;
  std::int64_t batch_b;
  std::int64_t size;

  std::int64_t at(std::int64_t a, std::int64_t b) const {
    const Wide span = batch_b - batch_a;
    const Wide top =
        static_cast<Wide>(a) * (batch_b - size) + static_cast<Wide>(b) * (size - batch_a);
    constexpr Wide max =
        std::numeric_limits<std::int64_t>::max() / 4;  // refused when stages are summed
    return static_cast<std::int64_t>(std::clamp<Wide>((top + span / 2) / span, 0, max));
  }
  MeasuredTime at(const MeasuredTime& a, const MeasuredTime& b) const {
    return {.mean = Duration(at(a.mean.count(), b.mean.count())),
            .median = {},
            .q1 = {},
            .q3 = {},
            .samples = {}};
  }
  Bytes at(Bytes a, Bytes b) const { return {at(a.count, b.count)}; }
};

/// Requires: both have `selective`, or neither.
LayerCosts between(const LayerCosts& a, const LayerCosts& b, const Line& line) {
  LayerCosts costs = b;
  costs.forward = line.at(a.forward, b.forward);
  costs.skipped =
      line.at(MeasuredTime{a.skipped, {}, {}, {}, {}}, MeasuredTime{b.skipped, {}, {}, {}, {}})
          .mean;
  costs.backward = line.at(a.backward, b.backward);
  costs.split.reset();
  if (a.split && b.split) {
    costs.split = {line.at(a.split->input, b.split->input),
                   line.at(a.split->weight, b.split->weight)};
  }
  costs.output = line.at(a.output, b.output);
  costs.activation = line.at(a.activation, b.activation);
  costs.temporary = line.at(a.temporary, b.temporary);
  if (b.selective) {
    costs.selective->activation = line.at(a.selective->activation, b.selective->activation);
    costs.selective->forward = line.at(a.selective->forward, b.selective->forward);
  }
  return costs;
}

/// A layer on an empty batch: costs nothing, and has the parts that `like` has.
LayerCosts nothing_like(const LayerCosts& like) {
  LayerCosts zero;
  if (like.selective) zero.selective = Selective{};
  if (like.split) zero.split = SplitBackward{};
  zero.temporary = like.temporary_of_weights;
  return zero;
}

}  // namespace

MeasuredTime measured_time(const std::vector<double>& samples) {
  const auto rounded = [](double ns) { return Duration{std::llround(ns)}; };
  const Statistics statistics = statistics_of(samples);
  PLUMBLINE_CHECK(statistics.min >= 0, statistics.min);
  MeasuredTime time;
  time.mean = rounded(statistics.mean);
  time.median = rounded(statistics.median);
  time.q1 = rounded(statistics.q1);
  time.q3 = rounded(statistics.q3);
  time.samples = static_cast<std::int64_t>(statistics.samples);
  return time;
}

bool Profile::holds(std::int64_t batch) const {
  return std::any_of(measurements.begin(), measurements.end(),
                     [&](const Measurement& m) { return m.batch == batch; });
}

SizedCosts costs_at(const Profile& profile, std::int64_t size) {
  PLUMBLINE_CHECK(!profile.measurements.empty() && size > 0, profile.measurements.size(), size);
  const std::vector<Measurement>& held = profile.measurements;
  if (!held.front().batch) return {held.front().layers, profile.estimated};
  const auto above =
      std::lower_bound(held.begin(), held.end(), size,
                       [](const Measurement& m, std::int64_t s) { return *m.batch < s; });
  if (above != held.end() && *above->batch == size) return {above->layers, profile.estimated};

  SizedCosts costs;
  if (above != held.begin() && above != held.end()) {
    const Measurement& below = *(above - 1);
    const Line line{*below.batch, *above->batch, size};
    for (std::size_t i = 0; i < above->layers.size(); ++i) {
      costs.layers.push_back(between(below.layers[i], above->layers[i], line));
    }
    costs.estimated = fmt::format(
        "layer costs: interpolated to micro-batches of {} between batches of {} and "
        "{}",
        size, *below.batch, *above->batch);
  } else {
    const Measurement& nearest = above == held.end() ? held.back() : held.front();
    const Line line{0, *nearest.batch, size};
    for (const LayerCosts& layer : nearest.layers) {
      costs.layers.push_back(between(nothing_like(layer), layer, line));
    }
    costs.estimated =
        fmt::format("layer costs: scaled linearly to micro-batches of {} from a batch of {}", size,
                    *nearest.batch);
  }
  if (!profile.estimated.empty()) costs.estimated = profile.estimated + "; " + costs.estimated;
  return costs;
}

void set_ops(LayerCosts& costs, std::shared_ptr<const LayerOps> ops) {
  const TemporaryBytes temporary = ops ? temporary_bytes(*ops) : TemporaryBytes{};
  costs.temporary = {temporary.all};
  costs.temporary_of_weights = {temporary.of_weights};
  costs.ops = std::move(ops);
}

void cut_into_slices(std::vector<LayerCosts>& layers, std::uint32_t slices) {
  PLUMBLINE_CHECK(slices >= 1, slices);
  const std::int64_t count = slices;
  const auto part = [&](MeasuredTime& time) {
    time = {Duration{(time.mean.count() + count / 2) / count}, {}, {}, {}, {}};
  };
  const auto part_of_bytes = [&](Bytes& bytes) { bytes = {(bytes.count + count - 1) / count}; };
  for (LayerCosts& layer : layers) {
    part(layer.forward);
    part(layer.backward);
    layer.skipped = Duration{layer.skipped.count() / count};
    if (layer.split) {
      part(layer.split->input);
      part(layer.split->weight);
    }
    part_of_bytes(layer.output);
    part_of_bytes(layer.activation);
    Bytes of_tokens = layer.temporary - layer.temporary_of_weights;
    part_of_bytes(of_tokens);
    layer.temporary = layer.temporary_of_weights + of_tokens;
    if (!layer.selective) continue;
    part_of_bytes(layer.selective->activation);
    part(layer.selective->forward);
  }
}

namespace {

/// Changes all parts of a time.
template <class Change>
void change_all(MeasuredTime& time, const Change& change) {
  change(time.mean);
  for (std::optional<Duration>* const part : {&time.q1, &time.median, &time.q3}) {
    if (*part) change(**part);
  }
}

/// Changes each of a layer's times that grows with the micro-batch. What was the sum of I and W
/// still is.
template <class Change>
void change_passes(LayerCosts& layer, const Change& change) {
  const bool is_sum =
      layer.split && layer.backward.mean == layer.split->input.mean + layer.split->weight.mean;
  change_all(layer.forward, change);
  change_all(layer.backward, change);
  change(layer.skipped);
  if (layer.split) {
    change_all(layer.split->input, change);
    change_all(layer.split->weight, change);
  }
  if (is_sum) layer.backward.mean = layer.split->input.mean + layer.split->weight.mean;
  if (layer.selective) change_all(layer.selective->forward, change);
}

}  // namespace

void speed_up(std::vector<LayerCosts>& layers, double speed) {
  PLUMBLINE_CHECK(speed > 0, speed);
  if (speed == 1) return;
  const auto faster = [&](Duration& time) {
    time = Duration{std::llround(static_cast<double>(time.count()) / speed)};
  };
  for (LayerCosts& layer : layers) {
    change_passes(layer, faster);
    change_all(layer.update, faster);
  }
}

void scale_length(Profile& profile, double factor) {
  PLUMBLINE_CHECK(factor > 0, factor);
  constexpr double limit = 4e18;
  const auto scaled = [&](std::int64_t count) {
    return std::min(limit, factor * static_cast<double>(count));
  };
  const auto longer = [&](Duration& time) { time = Duration{std::llround(scaled(time.count()))}; };
  const auto more = [&](Bytes& bytes) {
    bytes = {static_cast<std::int64_t>(std::ceil(scaled(bytes.count)))};
  };
  const auto more_flops = [&](Flops& flops) { flops.count = std::llround(scaled(flops.count)); };
  if (profile.group.forward) more_flops(*profile.group.forward);
  for (Measurement& measurement : profile.measurements) {
    for (LayerCosts& layer : measurement.layers) {
      change_passes(layer, longer);
      more(layer.output);
      more(layer.activation);
      Bytes of_tokens = layer.temporary - layer.temporary_of_weights;
      more(of_tokens);
      layer.temporary = layer.temporary_of_weights + of_tokens;
      if (layer.work) more_flops(layer.work->forward.flops);
      if (layer.selective) more(layer.selective->activation);
    }
  }
}

namespace {

constexpr std::string_view kBlocking = "blocking";

}  // namespace

std::string blocking_link(const std::string& kind) { return std::string(kBlocking) + " " + kind; }

const MeasuredLink& link_for(const std::vector<MeasuredLink>& links, bool blocking) {
  PLUMBLINE_CHECK(!links.empty(), blocking);
  const auto found = std::find_if(links.begin(), links.end(), [&](const MeasuredLink& link) {
    return link.kind.starts_with(kBlocking) == blocking;
  });
  return found != links.end() ? *found : links.front();
}

}  // namespace plumbline
