// Times and bytes of each layer, at one or more batch sizes, and the origin of the numbers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/number_format.h"
#include "base/units.h"
#include "models/hardware/cluster.h"
#include "models/kernels/published_errors.h"
#include "models/ops/layer_op.h"
#include "models/profile/layer_graph.h"
#include "models/profile/layer_work.h"

namespace plumbline {

/// A measured time. The mean enters predictions; the other values give its spread.
struct MeasuredTime {
  Duration mean{};
  std::optional<Duration> median, q1, q3;
  std::optional<std::int64_t> samples;
};

/// Samples as a profile holds them, rounded to the ns. The mean leaves out the lowest and highest
/// tenth. Requires: at least one sample, in ns, none below 0.
MeasuredTime measured_time(const std::vector<double>& samples);

/// A backward in two parts that may run separately: I for the gradient of the input, W for the
/// gradients of the weights.
struct SplitBackward {
  MeasuredTime input;
  MeasuredTime weight;
};

/// The part of a layer's activation that costs little to recompute.
struct Selective {
  Bytes activation;              ///< A part of the layer's activation.
  MeasuredTime forward;          ///< To recompute it; 0 until estimate_times derives it.
  std::optional<PassWork> work;  ///< The work of `forward`, where no time is given.
};

/// The part of a layer's forward that its backward recomputes, where the schedule recomputes.
enum class Recomputed {
  all,        ///< The whole forward.
  selective,  ///< The part in LayerCosts::selective; nothing if that is absent.
  nothing,    ///< All activations are kept.
};

/// Sending to other devices of the group, as a share of the time of each pass, from 0 to 1.
struct SentShares {
  double forward = 0;
  double backward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double again = 0;  ///< Selective recomputation.
  double update = 0;
};

/// Computing that hides nothing, as a share of the time of two passes, from 0 to 1.
struct FreeShares {
  double forward = 0;
  double backward = 0;  ///< For the full backward.
};

/// The costs of one layer for one micro-batch of the measurement's batch size. Invariants: a layer
/// without given times has `work`; only such a layer has selective->work. Its forward and backward
/// are 0 until estimate_times has derived them. selective->activation <= activation.
struct LayerCosts {
  MeasuredTime forward;
  MeasuredTime backward;  ///< The full backward; I + W where only the parts are known.
  std::optional<SplitBackward> split;
  MeasuredTime update;        ///< The optimizer's step; independent of the batch.
  bool update_given = false;  ///< Even if 0; then no estimate replaces it.
  Bytes output;      ///< Size of the tensor that other layers consume; its gradient is as large.
  Bytes activation;  ///< Kept from F until B: with its own output, without its input.
  Bytes temporary;   ///< Held while its backward runs, beside all that is kept.
  Bytes temporary_of_weights;  ///< The part of that which does not grow with the batch.
  std::optional<LayerWork> work;
  /// The ops of `work`, in the profile's dtype; null = not known.
  std::shared_ptr<const LayerOps> ops;
  bool timed = true;  ///< Whether forward and backward were given; they win over `work`.
  std::optional<Selective> selective;
  SentShares sent;  ///< For times from estimate_times; else 0.
  FreeShares free;  ///< For times from estimate_times; else 0.
  /// The part of the forward that recomputing all of it leaves out; for times from estimate_times.
  Duration skipped{};
  Recomputed recomputation = Recomputed::all;  ///< Decided by the schedule and the layer's place.

  /// The time that recomputation adds to a backward.
  MeasuredTime again() const {
    if (recomputation == Recomputed::all) {
      MeasuredTime again = forward;
      again.mean -= skipped;
      return again;
    }
    return recomputation == Recomputed::selective && selective ? selective->forward
                                                               : MeasuredTime{};
  }
  /// The time of the update that is sending within the group.
  Duration update_in_group() const {
    return Duration{std::llround(sent.update * static_cast<double>(update.mean.count()))};
  }
  /// The part of the activation that `selective` recomputes; 0 for the others.
  Bytes selected() const {
    return recomputation == Recomputed::selective && selective ? selective->activation : Bytes{};
  }
};

/// Gives a layer its ops, and the temporary bytes that follow from them.
void set_ops(LayerCosts& costs, std::shared_ptr<const LayerOps> ops);

/// Divides the costs for one of `slices` equal parts of a micro-batch's sequence: all but the
/// update; times to the nearest nanosecond, bytes rounded up.
void cut_into_slices(std::vector<LayerCosts>& layers, std::uint32_t slices);

/// Divides all times of the layers, to the nearest nanosecond: those of a device that is `speed`
/// times as fast. What was the sum of I and W still is. Requires: speed > 0.
void speed_up(std::vector<LayerCosts>& layers, double speed);

/// The costs of all layers, in the order of the LayerGraph, at one batch size.
struct Measurement {
  std::optional<std::int64_t> batch;  ///< Samples in one forward; nothing = unknown.
  std::vector<LayerCosts> layers;
};

/// Layers that were timed together, to check the sum of their layer times.
struct Block {
  std::vector<LayerId> layers;
  Duration forward{};
  Duration backward{};
};

/// Time outside of layers.
struct Overheads {
  Duration per_op{};         ///< Added to each F, B, I, W, U, or part of one.
  Duration hand_over{};      ///< Added to the latency of each transfer.
  Duration per_iteration{};  ///< Once per mini-batch, after the flush.
  /// The rate at which an update adds up the gradients of each other device of its stage; absent:
  /// no time.
  std::optional<BytesPerSecond> add_up{};
  /// The rate at which an update writes new weights to another place, because the old ones are
  /// kept, beyond its time in place; absent: no time.
  std::optional<BytesPerSecond> stash{};
};

/// A measured link between two devices.
struct MeasuredLink {
  std::string kind;
  Duration latency{};
  std::optional<BytesPerSecond> bandwidth;
  TransferTable table;
  /// The same while others compute, by ascending number of them; empty if that was not measured.
  std::vector<BusyTransfers> busy{};
};

/// "blocking copy": the name of a link of this kind whose transfers hold the streams of both ends,
/// as `.to()` does.
std::string blocking_link(const std::string& kind);

/// The first link of the wanted kind, blocking or not; the first of all if there is none. Requires:
/// at least one link.
const MeasuredLink& link_for(const std::vector<MeasuredLink>& links, bool blocking);

/// Factors of the time of each kind of layer.
using KindFactors = std::map<std::string, std::vector<double>>;

/// Devices that share the layers. The scenario's device is one of them and stands for all.
/// Invariant: tensor_parallel divides devices.
struct DeviceGroup {
  bool given = false;  ///< Given, even if for one device.
  std::int64_t devices = 1;
  std::int64_t tensor_parallel = 1;  ///< The number of them that divide each layer's matrices.
  std::optional<std::int64_t> devices_per_server;  ///< Nothing: all are in one.
  /// The FLOPs of all devices in the forwards of one batch of the first measurement, each product
  /// counted once; absent: the sum over the layers, on each device.
  std::optional<Flops> forward;

  /// The number of devices that hold the same replicated tensors.
  std::int64_t replicas() const { return devices / tensor_parallel; }
  bool spans_servers() const { return devices_per_server && *devices_per_server < devices; }
  /// The number of those in one server, each with its own network card. Requires: spans_servers().
  std::int64_t cards() const {
    return std::max<std::int64_t>(*devices_per_server / tensor_parallel, 1);
  }

  friend bool operator==(const DeviceGroup&, const DeviceGroup&) = default;
};

/// Not a kind of layer, but the updates of all layers. Behind a flush devices update at the same
/// time. They then share their memory in another way than during each other's passes.
inline constexpr std::string_view kUpdatesAtOnce = "update";

/// The origin of times that were estimated kernel by kernel with a table of measured kernels:
/// shares of the time of all passes, which add up to 1.
struct KernelShares {
  std::string file;    ///< The table, as the scenario names it.
  std::string device;  ///< The device that was measured.
  double measured = 0;
  double interpolated = 0;
  double modelled = 0;
};

/// Measured or assumed costs. Invariants: at least one measurement, sorted by batch, each as long
/// as the graph; a batch is unknown only if there is one measurement. It knows no stages and no
/// schedule.
struct Profile {
  std::map<std::string, std::string> provenance;
  /// The algorithms of the measured library, by the computation; a run uses the same.
  std::map<std::string, std::string> algorithms;
  std::vector<Measurement> measurements;
  std::vector<Block> blocks;
  std::optional<Overheads> overheads;
  std::vector<MeasuredLink> links;
  /// Factors with 0, 1, ... neighbours at work; for kUpdatesAtOnce, with so many that update too.
  KindFactors slowdown;
  /// Factors of F and B with 1, 2, ... micro-batches in flight on the device; the last holds for
  /// all larger numbers.
  KindFactors in_flight;
  std::optional<NumberFormat> dtype;  ///< The number format of the layers' work.
  DeviceGroup group;
  std::string estimated;  ///< The derivation of times that were not given; "" = all were given.
  std::optional<KernelShares> kernel_shares;  ///< Their sources; set with a table of kernels.
  /// The errors of published runs with such times; nothing unless kernels gave all layers theirs.
  std::optional<PublishedErrors> errors{};

  /// Whether there is a measurement at this batch size.
  bool holds(std::int64_t batch) const;
};

/// A model: its layers and their costs.
struct Model {
  std::string name;
  LayerGraph graph;
  Profile profile;
  std::vector<std::string> notes{};  ///< Parts of its file that are not counted, and assumptions.
};

/// The costs at one micro-batch size.
struct SizedCosts {
  std::vector<LayerCosts> layers;
  std::string estimated;  ///< The derivation of the numbers; "" = as in the profile.
};

/// The costs of `profile` for micro-batches of `size` samples: as measured if that size is there,
/// interpolated between the two nearest measured sizes, else scaled linearly from the nearest. A
/// profile of unknown batch is never scaled. Updates and parameters do not depend on the size.
/// Requires: no layer waits for an estimate.
SizedCosts costs_at(const Profile& profile, std::int64_t size);

/// Makes all layers those of micro-batches that are `factor` times as long: times, what layers keep
/// and hand on, and their FLOPs grow in proportion; updates do not. What was the sum of I and W
/// still is. At most 4 x 10^18 ns or bytes, near the limit of 64 bits: checks of sums refuse that.
/// Requires: factor > 0.
void scale_length(Profile& profile, double factor);

}  // namespace plumbline
