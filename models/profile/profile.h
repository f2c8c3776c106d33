// What each layer costs in time and memory, at one or more batch sizes, and where the numbers come
// from.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/number_format.h"
#include "base/units.h"
#include "models/profile/layer_graph.h"
#include "models/profile/layer_work.h"

namespace plumbline {

/// A measured time: the mean enters predictions, the rest tells its spread.
struct MeasuredTime {
  Duration mean{};
  std::optional<Duration> median, q1, q3;
  std::optional<std::int64_t> samples;
};

/// Samples as a profile holds them, rounded to the ns: the mean is that without the lowest and
/// highest tenth. Requires: at least one sample, in ns, none below 0.
MeasuredTime measured_time(const std::vector<double>& samples);

/// The backward given as two parts that may run apart: I for the input's gradient, W for the
/// weights'.
struct SplitBackward {
  MeasuredTime input;
  MeasuredTime weight;
};

/// What of a layer's activation costs little to make again for its backward.
struct Selective {
  Bytes activation;              ///< Of the layer's.
  MeasuredTime forward;          ///< To make it again; 0 until estimate_times has derived it from
  std::optional<PassWork> work;  ///< this, where it is not given.
};

/// What of a layer's forward runs again for its backward, where the schedule recomputes.
enum class Recomputed {
  all,        ///< The whole forward.
  selective,  ///< What LayerCosts::selective says; nothing where it is silent.
  nothing,    ///< All activations are kept.
};

/// What of each pass is sending to others of the device's group: shares of its time, from 0 to 1.
struct SentShares {
  double forward = 0;
  double backward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double update = 0;
};

/// What of two passes is computing that hides nothing: shares of their times, from 0 to 1.
struct FreeShares {
  double forward = 0;
  double backward = 0;  ///< Of the full backward.
};

/// What one layer costs for one micro-batch of the measurement's batch size.
/// Invariants: a layer that is not timed has work, as nothing else has that of `selective`; its
/// forward and backward are 0 until estimate_times has derived them; selective.activation <=
/// activation.
struct LayerCosts {
  MeasuredTime forward;
  MeasuredTime backward;  ///< The full backward; I + W where only the parts are known.
  std::optional<SplitBackward> split;
  MeasuredTime update;        ///< The optimizer's step; does not depend on the batch.
  bool update_given = false;  ///< Be it 0: no estimate takes its place then.
  Bytes output;      ///< Of the tensor that other layers consume; its gradient is as large.
  Bytes activation;  ///< Kept from F until B: its own output included, its input excluded.
  std::optional<LayerWork> work;
  bool timed = true;  ///< Whether forward and backward were given; if so, they win over `work`.
  std::optional<Selective> selective;
  SentShares sent;  ///< Of times that estimate_times derived; else 0.
  FreeShares free;  ///< The same.
  Recomputed recomputation =
      Recomputed::all;  ///< By the schedule and the layer's place in its stage.

  /// What a backward takes besides where the schedule makes activations again.
  MeasuredTime again() const {
    if (recomputation == Recomputed::all) return forward;
    return recomputation == Recomputed::selective && selective ? selective->forward
                                                               : MeasuredTime{};
  }
  /// What of the update is sending within the group.
  Duration update_in_group() const {
    return Duration{std::llround(sent.update * static_cast<double>(update.mean.count()))};
  }
  /// The part of the activation that `selective` makes again; 0 for the others.
  Bytes selected() const {
    return recomputation == Recomputed::selective && selective ? selective->activation : Bytes{};
  }
};

/// Costs of one of `slices` equal parts of a micro-batch's sequence: all but the update divided,
/// times to the nearest nanosecond, bytes rounded up.
void cut_into_slices(std::vector<LayerCosts>& layers, std::uint32_t slices);

/// The costs of all layers, in the order of the LayerGraph, at one batch size.
struct Measurement {
  std::optional<std::int64_t> batch;  ///< Samples in one forward; nothing = unknown.
  std::vector<LayerCosts> layers;
};

/// Layers that were timed as one piece: the closure of a sum of layer times.
struct Block {
  std::vector<LayerId> layers;
  Duration forward{};
  Duration backward{};
};

/// Time that belongs to no layer.
struct Overheads {
  Duration per_op{};         ///< Added to each F, B, I, W, U, or part of one.
  Duration hand_over{};      ///< Added to the latency of each transfer.
  Duration per_iteration{};  ///< Once per mini-batch, after the flush.
  /// How fast an update adds up the gradients of each other device of its stage; absent: at once.
  std::optional<BytesPerSecond> add_up{};
  /// How fast an update writes weights elsewhere than the old ones, which are kept, beyond the time
  /// in place; absent: at once.
  std::optional<BytesPerSecond> stash{};
};

/// A measured link between two devices.
struct MeasuredLink {
  std::string kind;
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;
  std::vector<std::pair<Bytes, Duration>> table;
};

/// "blocking copy": how a link of this kind is called where its transfers hold the streams of both
/// ends, as `.to()` does.
std::string blocking_link(const std::string& kind);

/// The first link of the kind that is asked for, blocking or not; the first of all where there is
/// none. Requires: there is one.
const MeasuredLink& link_for(const std::vector<MeasuredLink>& links, bool blocking);

/// By kind of layer: factors of its time.
using KindFactors = std::map<std::string, std::vector<double>>;

/// Devices that share the layers: the scenario's device is one of them, and stands for all.
/// Invariant: tensor_parallel divides devices.
struct DeviceGroup {
  bool given = false;  ///< Be it of one device.
  std::int64_t devices = 1;
  std::int64_t tensor_parallel = 1;  ///< Of them, those that divide each layer's matrices.
  std::optional<std::int64_t> devices_per_server;  ///< Nothing: all are in one.
  /// What all of them compute of the model in the forwards of one batch of the first measurement,
  /// each product once; absent: the sum over the layers, on each of them.
  std::optional<Flops> forward;

  /// Devices that hold the same of what is replicated.
  std::int64_t replicas() const { return devices / tensor_parallel; }
  bool spans_servers() const { return devices_per_server && *devices_per_server < devices; }
  /// Of those that hold the same, how many share a server, each with a network card of its own.
  /// Requires: spans_servers().
  std::int64_t cards() const {
    return std::max<std::int64_t>(*devices_per_server / tensor_parallel, 1);
  }

  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

/// Not a kind of layer, but the updates of all: behind a flush devices update at the same time, and
/// share their memory as they do not among each other's passes.
inline constexpr std::string_view kUpdatesAtOnce = "update";

/// Measured or assumed costs. Invariants: at least one measurement, sorted by batch, each as long
/// as the graph; a batch is unknown only where there is one measurement. It knows no stages and no
/// schedule.
struct Profile {
  std::map<std::string, std::string> provenance;
  /// That a library was measured with, by what it computed: a run takes the same.
  std::map<std::string, std::string> algorithms;
  std::vector<Measurement> measurements;
  std::vector<Block> blocks;
  std::optional<Overheads> overheads;
  std::vector<MeasuredLink> links;
  /// With 0, 1, ... neighbours at work; of kUpdatesAtOnce, while so many update as well.
  KindFactors slowdown;
  /// Of F and B with 1, 2, ... micro-batches in flight on the device; the last holds for all more.
  KindFactors in_flight;
  std::optional<NumberFormat> dtype;  ///< That the layers' work is done in.
  DeviceGroup group;
  std::string estimated;  ///< How times were derived that nobody gave; "" = none were.

  /// Whether a measurement at this batch size is held.
  bool holds(std::int64_t batch) const;
};

/// A model: what it consists of and what that costs.
struct Model {
  std::string name;
  LayerGraph graph;
  Profile profile;
  std::vector<std::string> notes{};  ///< What of its file is not counted, or was assumed.
};

/// The costs at one micro-batch size.
struct SizedCosts {
  std::vector<LayerCosts> layers;
  std::string estimated;  ///< How the numbers were derived; "" = they are as the profile has them.
};

/// The costs of `profile` for micro-batches of `size` samples: as measured where that size is held,
/// interpolated between the two nearest measured sizes, else scaled linearly from the nearest. A
/// profile of unknown batch is never scaled. Updates and parameters do not depend on the size.
/// Requires: no layer waits for an estimate.
SizedCosts costs_at(const Profile& profile, std::int64_t size);

}  // namespace plumbline
