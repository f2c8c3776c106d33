// One layer after the other: its passes, then its update.
//
// SPDX-License-Identifier: MIT
#include "models/profile/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "base/bug.h"
#include "base/quantity.h"
#include "models/hardware/cluster.h"
#include "models/hardware/device_presets.h"

namespace plumbline {
namespace {

/// The kinds of ops that no stack's kernels were measured of, in the layers that are estimated.
class UnmeasuredOps {
 public:
  void note(const LayerOps& ops) {
    for (const LayerOp& op : ops.ops) {
      scans_ = scans_ || std::holds_alternative<ScanOp>(op.shape);
      indices_ = indices_ || std::holds_alternative<IndexOp>(op.shape);
      const auto* attention = std::get_if<AttentionOp>(&op.shape);
      some_keys_ = some_keys_ || (attention && (attention->window > 0 || attention->stride > 1));
    }
  }

  /// Whether layers have mixers that no published run of those that are known had.
  bool has_mixers() const { return scans_ || indices_; }

  /// "; by the nearest kind: scans as products of their chunks"; "" where there are none.
  std::string words() const {
    std::vector<std::string_view> parts;
    if (scans_) parts.emplace_back("scans as products of their chunks");
    if (indices_) parts.emplace_back("the index as products");
    if (some_keys_) parts.emplace_back("attention to some keys as to all, for its pairs");
    return parts.empty() ? "" : fmt::format("; by the nearest kind: {}", fmt::join(parts, ", "));
  }

 private:
  bool scans_ = false;
  bool indices_ = false;
  bool some_keys_ = false;
};

/// The bytes that each of the devices sends around a step: both halves of a ring over the
/// gradients, or one over them and one over the weights.
double group_traffic(const Layer& layer, const OptimizerBytes& optimizer,
                     const DeviceGroup& group) {
  const bool shares_steps = layer.stepped_elsewhere.count > 0;
  return (optimizer.gradients + (shares_steps ? 1 : optimizer.gradients)) *
         static_cast<double>(share_volume(layer.replicated, group.replicas()).count);
}

/// The bandwidth of each device's part of such a ring, in bytes/s. Between servers a ring goes over
/// as many cards as it has members in each, and no faster than within. Requires: the bandwidths
/// that it needs.
double ring_bandwidth(const DeviceGroup& group, const DeviceRoofline& device) {
  const auto link = [&] { return static_cast<double>(device.link_bandwidth->count); };
  if (!group.spans_servers()) return link();
  const std::int64_t cards = group.cards();
  const double network =
      static_cast<double>(cards) * static_cast<double>(device.network_bandwidth->count);
  return cards > 1 && device.link_bandwidth ? std::min(network, link()) : network;
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

/// "94 %"; "none", and "under 1 %" and "over 99 %" of what would be 0 and 100 % and is not.
std::string percent(double share) {
  if (share == 0) return "none";
  if (share < .005) return "under 1 %";
  return share < 1 && share >= .995 ? "over 99 %" : fmt::format("{:.0f} %", 100 * share);
}

/// ", closure 1.07", or the factors by class where they differ; "" where all are 1.
std::string closure_words(const KernelModel& kernels) {
  const double products = kernels.closure(KernelClass::gemm);
  const double attention = kernels.closure(KernelClass::sdpa);
  const double memory = kernels.closure(KernelClass::memory);
  if (products == 1 && attention == 1 && memory == 1) return "";
  if (products == attention && products == memory) return fmt::format(", closure {:.3g}", products);
  std::vector<std::string> factors;
  const auto add = [&](std::string_view name, double factor) {
    if (factor != 1) factors.push_back(fmt::format("{:.3g} of {}", factor, name));
  };
  add("products", products);
  add("attention", attention);
  add("memory-bound ones", memory);
  return fmt::format(", closure {}", fmt::join(factors, ", "));
}

/// The estimate of one model.
class Estimator {
 public:
  Estimator(Model& model, const Estimate& estimate, const Mark& mark)
      : model_(model), estimate_(estimate), mark_(mark) {}

  std::optional<Diagnostic> run() {
    for (Measurement& measurement : model_.profile.measurements) {
      for (std::size_t i = 0; i < measurement.layers.size(); ++i) {
        ++all_;
        if (measurement.layers[i].timed) continue;
        PLUMBLINE_CHECK(measurement.layers[i].work, "a layer has neither times nor work", i);
        const Layer& layer = model_.graph.layer({static_cast<std::uint32_t>(i)});
        if (auto problem = lacking(measurement.layers[i], layer)) return problem;
        if (auto problem = estimate(measurement.layers[i], layer)) return problem;
      }
      if (!model_.profile.kernel_shares) model_.profile.kernel_shares = shares();
    }
    if (estimated_ > 0) model_.profile.estimated = words();
    if (is_as_published() && !unmeasured_.has_mixers()) model_.profile.errors = errors();
    return std::nullopt;
  }

 private:
  const DeviceRoofline& device() const { return estimate_.device; }

  /// The lack of what a layer needs and the device has not: a link or a network for what goes over
  /// these, a peak for what is multiplied in fp8.
  std::optional<Diagnostic> lacking(const LayerCosts& costs, const Layer& layer) const {
    const DeviceGroup& group = model_.profile.group;
    const bool reduces = layer.replicated.count > 0 && !costs.update_given;
    const auto lacks = [&](std::string_view what, std::string_view way, std::string help) {
      return input_error(mark_,
                         fmt::format("layer '{}' has {}, but the device has no {}",
                                     clipped(layer.name), what, way),
                         std::move(help));
    };
    const bool on_link = has(*costs.work, &PassWork::link_traffic);
    if (!device().link_bandwidth && (on_link || (reduces && !group.spans_servers()))) {
      return lacks(on_link ? "link_traffic" : "replicated parameters", "link",
                   "give the bandwidth to its neighbours, one way: device: {link: 450 GB/s}");
    }
    const bool on_network = has(*costs.work, &PassWork::network_traffic);
    if (!device().network_bandwidth && (on_network || (reduces && group.spans_servers()))) {
      return lacks(on_network ? "network_traffic" : "parameters replicated in several servers",
                   "network",
                   "give the bandwidth of its network card, one way: device: {network: 50 GB/s}");
    }
    if (!device().fp8_peak && has_fp8(costs)) {
      return lacks("products in fp8", "peak for them",
                   "give it, or a device that has one (plumbline list presets): device: {fp8_peak: "
                   "1979 TFLOP/s}");
    }
    return std::nullopt;
  }

  bool by_kernels(const LayerCosts& costs) const { return estimate_.kernels && costs.ops; }

  LayerParts parts_of(const LayerCosts& costs, const Layer& layer) {
    if (by_kernels(costs)) {
      const KernelParts& found = kernel_parts_of(costs, layer);
      kernels_ += found.kernels;
      return found;
    }
    LayerParts parts;
    parts.forward = roofline_parts(costs.work->forward, device());
    parts.input = roofline_parts(costs.work->backward_input, device());
    parts.weights = roofline_parts(costs.work->backward_weight, device());
    if (costs.selective && costs.selective->work)
      parts.again = roofline_parts(*costs.selective->work, device());
    return parts;
  }

  /// Layers with the same ops and as many parameters take the same time.
  const KernelParts& kernel_parts_of(const LayerCosts& costs, const Layer& layer) {
    const auto key = std::pair{costs.ops.get(), layer.parameters.count};
    const auto found = parts_.find(key);
    if (found != parts_.end()) return found->second;
    return parts_.emplace(key, kernel_parts(*costs.ops, layer.parameters, *estimate_.kernels))
        .first->second;
  }

  /// The time in which a group scatters the gradients of a layer, and gathers the weights that its
  /// members have stepped, or else the sums.
  double ring_seconds(const Layer& layer, const DeviceGroup& group) const {
    const KernelRing ring{group.replicas(),
                          group.spans_servers() ? group.cards() : group.replicas()};
    const auto bytes = static_cast<double>(layer.replicated.count);
    const double gradients = estimate_.optimizer.gradients;
    const bool shares_steps = layer.stepped_elsewhere.count > 0;
    const KernelModel& kernels = estimate_.kernels->model;
    return kernels.ring_seconds(gradients * bytes, ring) +
           kernels.ring_seconds((shares_steps ? 1 : gradients) * bytes, ring);
  }

  /// The parts of an update. Requires: as ring_bandwidth where something is replicated.
  PassParts update_parts(const LayerCosts& costs, const Layer& layer) const {
    const auto bandwidth = static_cast<double>(device().memory_bandwidth.count);
    const double bytes = estimate_.optimizer.moved() * static_cast<double>(layer.stepped().count);
    PassParts parts;
    if (by_kernels(costs)) {
      const KernelModel& kernels = estimate_.kernels->model;
      parts.own_s = bytes * kernels.stack().update_passes /
                    (bandwidth * kernels.device().traits.update_share) *
                    wait_for_slowest(kernels.stack(), estimate_.kernels->devices);
    } else {
      parts.own_s = bytes / bandwidth / device().efficiency;
    }
    const DeviceGroup& group = model_.profile.group;
    if (layer.replicated.count == 0) return parts;
    parts.sent_s = by_kernels(costs) ? ring_seconds(layer, group)
                                     : group_traffic(layer, estimate_.optimizer, group) /
                                           ring_bandwidth(group, device());
    return parts;
  }

  std::optional<Diagnostic> estimate(LayerCosts& costs, const Layer& layer) {
    const LayerParts parts = parts_of(costs, layer);
    const PassParts step = costs.update_given ? PassParts{} : update_parts(costs, layer);
    const auto forward = parts.forward.time();
    const auto input = parts.input.time();
    const auto weights = parts.weights.time();
    const auto again = parts.again.time();
    const auto update =
        costs.update_given ? std::optional<Duration>{costs.update.mean} : step.time();
    if (!forward || !input || !weights || !update || !again) {
      return input_error(mark_, fmt::format("layer '{}' takes longer than the 10^15 ns that are "
                                            "accepted on this device",
                                            clipped(layer.name)));
    }
    costs.forward = {};
    costs.backward = {};
    costs.forward.mean = *forward;
    costs.split = SplitBackward{};
    costs.split->input.mean = *input;
    costs.split->weight.mean = *weights;
    costs.backward.mean = *input + *weights;
    const PassParts backward = parts.input + parts.weights;
    costs.free = {.forward = parts.forward.share(parts.forward.free_s),
                  .backward = backward.share(backward.free_s)};
    costs.sent = {.forward = parts.forward.sent_share(),
                  .backward = backward.sent_share(),
                  .backward_input = parts.input.sent_share(),
                  .backward_weight = parts.weights.sent_share(),
                  .again = parts.again.sent_share(),
                  .update = step.sent_share()};
    if (costs.selective && costs.selective->work) costs.selective->forward.mean = *again;
    costs.skipped = Duration{std::llround(parts.skipped_s * 1e9)};
    if (!costs.update_given && update->count() > 0) {
      costs.update.mean = *update;
      has_updates_ = true;
      reduces_ = reduces_ || layer.replicated.count > 0;
    }
    ++estimated_;
    if (by_kernels(costs)) {
      ++by_kernels_;
      kind_ = std::max(kind_, run_kind(*costs.ops));
      unmeasured_.note(*costs.ops);
    }
    in_fp8_ = in_fp8_ || has_fp8(costs);
    return std::nullopt;
  }

  /// Whether the stack overlaps the collectives of tensor parallelism, where it can.
  std::string_view overlap_words() const {
    const KernelSetting& setting = *estimate_.kernels;
    if (model_.profile.group.tensor_parallel == 1 || setting.overlap.link) return "";
    if (setting.model.stack().hides_tensor == 0) return "";
    return setting.overlap.on ? ", tensor parallelism overlapped"
                              : ", tensor parallelism not overlapped (schedule.bucket)";
  }

  /// The shares of measured and other times up to now; nothing without a table or such times.
  std::optional<KernelShares> shares() const {
    if (by_kernels_ == 0 || !estimate_.kernels->model.measured()) return std::nullopt;
    const double sum = kernels_.sum() > 0 ? kernels_.sum() : 1;
    return KernelShares{.file = estimate_.kernels->file,
                        .device = estimate_.kernels->model.measured()->table().device,
                        .measured = kernels_.measured_s / sum,
                        .interpolated = kernels_.interpolated_s / sum,
                        .modelled = kernels_.modelled_s / sum};
  }

  /// Whether a table replaces the stack's times of launches.
  bool has_measured_launches() const {
    const MeasuredKernels* measured = estimate_.kernels->model.measured();
    return measured && measured->table().launch;
  }

  /// "94 % by measured kernels of FILE (DEVICE), 4 % interpolated, 2 % modelled, closure 1.07";
  /// "kernel by kernel, none of them in FILE (DEVICE)"; either with ", launches as the table says".
  std::string words_of(const KernelShares& shares) const {
    const std::string table = fmt::format("{} ({})", clipped(shares.file), clipped(shares.device));
    const std::string_view launches = has_measured_launches() ? ", launches as the table says" : "";
    if (shares.measured + shares.interpolated == 0)
      return fmt::format("kernel by kernel, none of them in {}{}", table, launches);
    std::string text = fmt::format("{} by measured kernels of {}", percent(shares.measured), table);
    if (shares.interpolated > 0)
      text += fmt::format(", {} interpolated", percent(shares.interpolated));
    if (shares.modelled > 0) text += fmt::format(", {} modelled", percent(shares.modelled));
    return fmt::format("{}{}{}", text, closure_words(estimate_.kernels->model), launches);
  }

  /// Whether published runs say how sure such times are.
  bool is_as_published() const {
    const auto& shares = model_.profile.kernel_shares;
    return by_kernels_ > 0 && by_kernels_ == all_ && model_.profile.dtype != NumberFormat::fp32 &&
           (!shares || shares->modelled >= kMostlyModelled) && !has_measured_launches();
  }

  /// Null for a device that is given by numbers.
  const DevicePreset* preset() const {
    return find_device_preset(estimate_.kernels->model.device().traits.device);
  }

  NumberFormat format() const { return model_.profile.dtype.value_or(NumberFormat::bf16); }

  /// Networks differ among the published runs of one device, so another network changes nothing.
  DeviceRates rates() const {
    const DevicePreset* own = preset();
    if (!own) return DeviceRates::given;
    const bool has_own_peaks = device().peak == own->peak(format()) &&
                               (!in_fp8_ || device().fp8_peak == own->peak(NumberFormat::fp8));
    const bool has_own_links =
        !device().link_bandwidth || *device().link_bandwidth == own->link_bandwidth;
    const KernelOverlap& overlap = estimate_.kernels->overlap;
    const bool hides_as_stack = !overlap.link && !overlap.network;
    return has_own_peaks && has_own_links && hides_as_stack &&
                   device().memory_bandwidth == own->memory_bandwidth
               ? DeviceRates::of_sheet
               : DeviceRates::given;
  }

  /// PublishedErrors::setting.
  std::string setting_text() const {
    const DevicePreset* own = preset();
    const KernelSetting& kernels = *estimate_.kernels;
    std::vector<std::string> parts = {own ? std::string(own->name) : device().name};
    const auto add = [&](std::string_view key, const auto& rate, const auto& usual) {
      if (rate && (!own || rate != usual(*own)))
        parts.push_back(fmt::format("{} {}", key, to_text(*rate)));
    };
    const auto add_share = [&](std::string_view key, const std::optional<double>& share) {
      if (share) parts.push_back(fmt::format("{} {:g}", key, *share));
    };
    add("peak", std::optional(device().peak),
        [&](const DevicePreset& one) { return one.peak(format()); });
    if (in_fp8_)
      add("fp8_peak", device().fp8_peak,
          [](const DevicePreset& one) { return one.peak(NumberFormat::fp8); });
    add("memory_bandwidth", std::optional(device().memory_bandwidth),
        [](const DevicePreset& one) { return one.memory_bandwidth; });
    add("link", device().link_bandwidth,
        [](const DevicePreset& one) { return one.link_bandwidth; });
    add("network", device().network_bandwidth,
        [](const DevicePreset&) { return std::optional<BytesPerSecond>(); });
    add_share("link_overlap", kernels.overlap.link);
    add_share("network_overlap", kernels.overlap.network);
    return fmt::format("{} with {}", fmt::join(parts, ", "), kernels.model.stack().name);
  }

  PublishedErrors errors() const {
    const KernelModel& kernels = estimate_.kernels->model;
    PublishedErrors found =
        published_errors(kind_, kernels.device().traits, rates(), kernels.stack());
    found.setting = setting_text();
    return found;
  }

  std::string words() const {
    const std::string some =
        estimated_ < all_ ? fmt::format(" of {} of {} layers", estimated_, all_) : "";
    const std::string updates =
        fmt::format("{}{}", has_updates_ ? "; updates from the bytes they move" : "",
                    reduces_ ? " and those that their group adds up" : "");
    if (by_kernels_ > 0) {
      const KernelModel& kernels = estimate_.kernels->model;
      const std::string_view caveat = kernels.device().traits.caveat;
      const auto& shares = model_.profile.kernel_shares;
      return fmt::format("layer times{}: {}, for {} with {}{}{}{}{}", some,
                         shares ? words_of(*shares) : "kernel by kernel", device().name,
                         kernels.stack().name, std::string(overlap_words()) + unmeasured_.words(),
                         caveat.empty() ? "" : "; ", caveat, updates);
    }
    return fmt::format(
        "layer times{}: from FLOPs and bytes, by a roofline of {}: {:g} % of {}{} and of {}{}",
        some, device().name, 100 * device().efficiency, to_text(device().peak),
        in_fp8_ ? fmt::format(", {} in fp8,", to_text(*device().fp8_peak)) : "",
        to_text(device().memory_bandwidth), updates);
  }

  Model& model_;
  const Estimate& estimate_;
  const Mark& mark_;
  std::map<std::pair<const LayerOps*, std::int64_t>, KernelParts> parts_;
  KernelSums kernels_;
  std::size_t estimated_ = 0;
  std::size_t by_kernels_ = 0;
  UnmeasuredOps unmeasured_;
  RunKind kind_ = RunKind::dense;  ///< The least sure kind of these.
  std::size_t all_ = 0;
  bool has_updates_ = false;
  bool reduces_ = false;  ///< Over the group.
  bool in_fp8_ = false;
};

}  // namespace

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

std::optional<Diagnostic> estimate_times(Model& model, const Estimate& estimate, const Mark& mark) {
  return Estimator(model, estimate, mark).run();
}

std::optional<PublishedErrors> errors_at(const Profile& profile, std::int64_t size,
                                         std::uint32_t slices) {
  const bool is_of_any_size = !profile.measurements.front().batch;
  const bool is_as_estimated = slices == 1 && (is_of_any_size || profile.holds(size));
  return is_as_estimated ? profile.errors : std::nullopt;
}

}  // namespace plumbline
