// One bound for each pass over a layer.
//
// SPDX-License-Identifier: MIT
#include "models/profile/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/bug.h"
#include "base/quantity.h"
#include "models/hardware/cluster.h"

namespace plumbline {
namespace {

double ratio(std::int64_t amount, std::int64_t rate) {
  return static_cast<double>(amount) / static_cast<double>(rate);
}

/// What each of the devices sends around a step, in bytes: both halves of a ring over the
/// gradients, or one over them and one over the weights.
double group_traffic(const Layer& layer, const OptimizerBytes& optimizer,
                     const DeviceGroup& group) {
  const bool shares_steps = layer.stepped_elsewhere.count > 0;
  return (optimizer.gradients + (shares_steps ? 1 : optimizer.gradients)) *
         static_cast<double>(share_volume(layer.replicated, group.replicas()).count);
}

/// Of each device's part of such a ring, in bytes/s. Between servers a ring goes over as many cards
/// as it has members in each, and no faster than within. Requires: the bandwidths that it needs.
double ring_bandwidth(const DeviceGroup& group, const DeviceRoofline& device) {
  const auto link = [&] { return static_cast<double>(device.link_bandwidth->count); };
  if (!group.spans_servers()) return link();
  const std::int64_t cards = group.cards();
  const double network =
      static_cast<double>(cards) * static_cast<double>(device.network_bandwidth->count);
  return cards > 1 && device.link_bandwidth ? std::min(network, link()) : network;
}

/// A pass in seconds: what it computes or moves in memory, and what it sends besides.
struct PassParts {
  double own_s = 0;
  double sent_s = 0;
  double free_s = 0;  ///< Of own_s, what hides nothing.

  /// Nothing where that is longer than kLargestQuantity.
  std::optional<Duration> time() const {
    const double time_ns = (own_s + sent_s) * 1e9;
    if (time_ns > static_cast<double>(kLargestQuantity)) return std::nullopt;
    return round_up(time_ns);
  }
  double share(double part_s) const { return part_s > 0 ? part_s / (own_s + sent_s) : 0; }
  double sent_share() const { return share(sent_s); }

  friend PassParts operator+(const PassParts& a, const PassParts& b) {
    return {a.own_s + b.own_s, a.sent_s + b.sent_s, a.free_s + b.free_s};
  }
};

/// Of a step. Requires: as ring_bandwidth where something is replicated.
PassParts update_parts(const Layer& layer, const OptimizerBytes& optimizer,
                       const DeviceGroup& group, const DeviceRoofline& device) {
  PassParts parts;
  parts.own_s = optimizer.moved() * ratio(layer.stepped().count, device.memory_bandwidth.count) /
                device.efficiency;
  if (layer.replicated.count > 0)
    parts.sent_s = group_traffic(layer, optimizer, group) / ring_bandwidth(group, device);
  return parts;
}

/// Requires: as for pass_time.
PassParts pass_parts(const PassWork& work, const DeviceRoofline& device) {
  PLUMBLINE_CHECK(device.link_bandwidth || work.link_traffic.count == 0, work.link_traffic.count);
  PLUMBLINE_CHECK(device.network_bandwidth || work.network_traffic.count == 0,
                  work.network_traffic.count);
  PLUMBLINE_CHECK(device.fp8_peak || work.fp8_flops.count == 0, work.fp8_flops.count);
  PassParts parts;
  double computing_s = ratio(work.flops.count - work.fp8_flops.count, device.peak.count);
  if (device.fp8_peak) computing_s += ratio(work.fp8_flops.count, device.fp8_peak->count);
  parts.own_s =
      std::max(computing_s, ratio(work.memory_traffic.count, device.memory_bandwidth.count)) /
      device.efficiency;
  const auto sent_s = [](Bytes traffic, const std::optional<BytesPerSecond>& bandwidth) {
    return bandwidth ? ratio(traffic.count, bandwidth->count) : 0;
  };
  const double link_s = sent_s(work.link_traffic, device.link_bandwidth);
  const double network_s = sent_s(work.network_traffic, device.network_bandwidth);
  const double hideable_s = link_s * device.link_overlap + network_s * device.network_overlap;
  const double hidden_s = std::min(hideable_s, parts.own_s);
  parts.sent_s = link_s + network_s - hidden_s;
  parts.free_s = parts.own_s - hidden_s;
  return parts;
}

template <class Quantity>
bool has(const LayerWork& work, Quantity PassWork::*what) {
  return (work.forward.*what).count > 0 || (work.backward_input.*what).count > 0 ||
         (work.backward_weight.*what).count > 0;
}

bool has_fp8(const LayerCosts& costs) {
  return has(*costs.work, &PassWork::fp8_flops) ||
         (costs.selective && costs.selective->work && costs.selective->work->fp8_flops.count > 0);
}

/// What a layer needs that the device has not: a link or a network for what goes over these, a peak
/// for what is multiplied in fp8.
std::optional<Diagnostic> lacking(const LayerCosts& costs, const Layer& layer,
                                  const DeviceGroup& group, const DeviceRoofline& device,
                                  const Mark& mark) {
  const bool reduces = layer.replicated.count > 0 && !costs.update_given;
  const auto lacks = [&](std::string_view what, std::string_view way, std::string help) {
    return input_error(
        mark,
        fmt::format("layer '{}' has {}, but the device has no {}", clipped(layer.name), what, way),
        std::move(help));
  };
  const bool on_link = has(*costs.work, &PassWork::link_traffic);
  if (!device.link_bandwidth && (on_link || (reduces && !group.spans_servers()))) {
    return lacks(on_link ? "link_traffic" : "replicated parameters", "link",
                 "give the bandwidth to its neighbours, one way: device: {link: 450 GB/s}");
  }
  const bool on_network = has(*costs.work, &PassWork::network_traffic);
  if (!device.network_bandwidth && (on_network || (reduces && group.spans_servers()))) {
    return lacks(on_network ? "network_traffic" : "parameters replicated in several servers",
                 "network",
                 "give the bandwidth of its network card, one way: device: {network: 50 GB/s}");
  }
  if (!device.fp8_peak && has_fp8(costs)) {
    return lacks("products in fp8", "peak for them",
                 "give it, or a device that has one (plumbline list presets): device: {fp8_peak: "
                 "1979 TFLOP/s}");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Duration> pass_time(const PassWork& work, const DeviceRoofline& device) {
  return pass_parts(work, device).time();
}

FlopsPerSecond peak_of_mix(const Profile& profile, const DeviceRoofline& device) {
  double all = 0;
  double in_fp8 = 0;
  for (const LayerCosts& layer : profile.measurements.front().layers) {
    if (!layer.work) continue;
    all += static_cast<double>(layer.work->forward.flops.count);
    in_fp8 += static_cast<double>(layer.work->forward.fp8_flops.count);
  }
  if (in_fp8 == 0 || !device.fp8_peak) return device.peak;
  const double time_s = (all - in_fp8) / static_cast<double>(device.peak.count) +
                        in_fp8 / static_cast<double>(device.fp8_peak->count);
  return {std::llround(all / time_s)};
}

bool needs_estimate(const Profile& profile) {
  return std::any_of(profile.measurements.begin(), profile.measurements.end(),
                     [](const Measurement& m) {
                       return std::any_of(m.layers.begin(), m.layers.end(),
                                          [](const LayerCosts& layer) { return !layer.timed; });
                     });
}

OptimizerBytes usual_adam(NumberFormat weights) {
  constexpr double fp32 = 4;
  const auto width = static_cast<double>(bytes_of(weights));
  return {(width < fp32 ? 3 : 2) * fp32 / width, fp32 / width};
}

std::optional<Diagnostic> estimate_times(Model& model, const DeviceRoofline& device,
                                         const OptimizerBytes& optimizer, const Mark& mark) {
  std::size_t estimated = 0;
  std::size_t all = 0;
  bool has_updates = false;
  bool reduces = false;  // over the group
  bool in_fp8 = false;
  const DeviceGroup& group = model.profile.group;
  for (Measurement& measurement : model.profile.measurements) {
    for (std::size_t i = 0; i < measurement.layers.size(); ++i) {
      LayerCosts& costs = measurement.layers[i];
      ++all;
      if (costs.timed) continue;
      PLUMBLINE_CHECK(costs.work, "a layer has neither times nor work", i);
      ++estimated;
      in_fp8 = in_fp8 || has_fp8(costs);
      const Layer& layer = model.graph.layer({static_cast<std::uint32_t>(i)});
      const std::string& name = layer.name;
      if (auto problem = lacking(costs, layer, group, device, mark)) return problem;
      const PassParts forward_parts = pass_parts(costs.work->forward, device);
      const PassParts input_parts = pass_parts(costs.work->backward_input, device);
      const PassParts weight_parts = pass_parts(costs.work->backward_weight, device);
      const PassParts step =
          costs.update_given ? PassParts{} : update_parts(layer, optimizer, group, device);
      const auto forward = forward_parts.time();
      const auto input = input_parts.time();
      const auto weight = weight_parts.time();
      const auto update =
          costs.update_given ? std::optional<Duration>{costs.update.mean} : step.time();
      const auto again = costs.selective && costs.selective->work
                             ? pass_time(*costs.selective->work, device)
                             : std::optional<Duration>{Duration::zero()};
      if (!forward || !input || !weight || !update || !again) {
        return input_error(mark, fmt::format("layer '{}' takes longer than the 10^15 ns that are "
                                             "accepted on this device",
                                             clipped(name)));
      }
      costs.forward = {};
      costs.backward = {};
      costs.forward.mean = *forward;
      costs.split = SplitBackward{};
      costs.split->input.mean = *input;
      costs.split->weight.mean = *weight;
      costs.backward.mean = *input + *weight;
      const PassParts backward_parts = input_parts + weight_parts;
      costs.free = {.forward = forward_parts.share(forward_parts.free_s),
                    .backward = backward_parts.share(backward_parts.free_s)};
      costs.sent = {.forward = forward_parts.sent_share(),
                    .backward = backward_parts.sent_share(),
                    .backward_input = input_parts.sent_share(),
                    .backward_weight = weight_parts.sent_share(),
                    .update = step.sent_share()};
      if (costs.selective && costs.selective->work) costs.selective->forward.mean = *again;
      if (!costs.update_given && update->count() > 0) {
        costs.update.mean = *update;
        has_updates = true;
        reduces = reduces || layer.replicated.count > 0;
      }
    }
  }
  if (estimated == 0) return std::nullopt;
  model.profile.estimated = fmt::format(
      "layer times{}: from FLOPs and bytes, by a roofline of {}: {:g} % of {}{} and of {}{}{}",
      estimated < all ? fmt::format(" of {} of {} layers", estimated, all) : "", device.name,
      100 * device.efficiency, to_text(device.peak),
      in_fp8 ? fmt::format(", {} in fp8,", to_text(*device.fp8_peak)) : "",
      to_text(device.memory_bandwidth), has_updates ? "; updates from the bytes they move" : "",
      reduces ? " and those that their group adds up" : "");
  return std::nullopt;
}

}  // namespace plumbline
