// A scenario as the user wrote it: model, cluster, plan, schedule, training, overhead; read and
// checked.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.h"
#include "base/shared_value.h"
#include "models/hardware/cluster.h"
#include "models/import/transformer_layers.h"
#include "models/network/network.h"
#include "models/profile/profile.h"
#include "models/profile/roofline.h"
#include "schedules/files/schedule_file.h"
#include "schedules/generators/generators.h"
#include "schedules/order/weight_versions.h"
#include "schedules/stages/sharding.h"
#include "sim/scenario/cost_rates.h"
#include "sim/scenario/micro_batch_lengths.h"
#include "sim/scenario/noise.h"
#include "sim/scenario/order_wish.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/recomputation.h"
#include "sim/scenario/slices.h"

namespace plumbline {

class KernelModel;
class DerivedModels;
struct ModelSection;
struct OpenedScenario;
struct YamlNode;

/// The schedule section.
struct ScheduleChoice {
  const ScheduleRule* rule = nullptr;  ///< Null if a file gives the order.
  std::optional<ScheduleFile> file;
  Mark name_mark;  ///< The place of the name or of the file.
  std::uint32_t micro_batches = 1;
  std::uint32_t mini_batches = 1;
  Mark micro_batches_mark;
  std::uint32_t chunks = 1;  ///< Stages per device, if the rule has chunks.
  std::uint32_t group =
      0;  ///< Micro-batches that pass through the chunks together; 0 = by the rule.
  Mark group_mark;
  SliceChoice slices;
  std::optional<OrderWish> wish;  ///< Set if the order is to be found for the costs.
  bool blocking = false;
  /// Each device communicates in the order of its SEND and RECV cells in the file.
  bool in_order = false;
  bool overlaps_pairs = false;  ///< Neighbours F and B run at the same time.
  Mark pairs_mark;
  RecomputeChoice recompute;
  std::optional<Marked<double>> offload;  ///< The share of activations that hosts hold.
  UpdateRule updates;                     ///< For asynchronous schedules only.
  std::optional<Bytes> bucket;            ///< The size as given.

  /// The rule, if devices have several stages or backwards have two parts; else null.
  const ChunkRule* chunk_rule() const { return rule && rule->chunks ? &*rule->chunks : nullptr; }
  /// Whether the order is to be found and has not been found yet.
  bool is_open() const { return wish && !wish->found; }
  bool asynchronous() const { return rule && rule->asynchronous; }
  bool whole_model() const { return rule && rule->whole_model; }
};

/// What differs on one run of devices, where not all are alike: see Cluster::runs.
struct UnlikeDevices {
  SharedValue<Model> model;            ///< With the times of these devices.
  double speed = 1;                    ///< How many times as fast they are as those times say.
  std::optional<FlopsPerSecond> peak;  ///< As Scenario::peak.
};

/// All input of one prediction. Invariant: the model has layers and no cycle.
struct Scenario {
  std::string name;
  std::shared_ptr<const Source> source;
  SharedValue<Model> model;
  std::optional<TransformerOptions>
      transformer;     ///< The options from which a config.json's layers follow.
  std::string config;  ///< The path of that config.json; "" = the model is given otherwise.
  std::shared_ptr<const Network> network;  ///< The network that is executed; null = unknown.
  Mark model_mark;
  Cluster cluster;
  bool cluster_given =
      true;  ///< Whether the number of devices was given; if not, the plan decides it.
  Mark cluster_mark;
  std::vector<UnlikeDevices> unlike{};  ///< One for each run of the cluster; empty = all are alike.
  bool link_measured = false;  ///< The link comes from the profile and connects the devices.
  std::optional<Link> blocking_link{};  ///< The link of blocking transfers, if it differs.
  bool neighbours_slow = true;  ///< Neighbours slow each other by the profile's factors; if false,
                                ///< each device runs as if alone.
  Plan plan;
  Mark plan_mark;
  ScheduleChoice schedule;
  std::int64_t micro_batch_size = 1;
  /// Micro-batches that are not all of one length; null: all are.
  std::shared_ptr<const MicroBatchLengths> lengths{};
  std::int64_t copies =
      1;  ///< Copies of the pipeline: data_parallel, or all devices with data-parallel.
  std::optional<FlopsPerSecond> peak;           ///< The device's peak in the model's number format.
  std::optional<DeviceRoofline> estimated_for;  ///< The device that times are estimated for.
  std::shared_ptr<const KernelModel> kernels;   ///< Its kernels; null = its roofline gives them.
  CostRates rates;                              ///< What a throughput means in days and money.
  double optimizer_state = 0;
  double gradient_width = 1;  ///< Bytes of gradients per byte of parameters.
  Mark gradient_mark;
  Sharing sharing{};  ///< training.zero_stage, and the keys that say how.
  Mark sharded_mark;
  bool shares_in_servers = false;  ///< training.shard_degree: server.
  std::optional<Mark> reshard_mark;
  Mark degree_mark;
  bool gather_ahead = false;  ///< Weights of a sharded optimizer are gathered beside the next
                              ///< forwards.
  Mark gather_mark;
  bool flushes =
      true;  ///< All devices end a mini-batch before any begins the next: training.flush.
  Mark flush_mark;
  Overheads overheads;
  std::optional<NoiseSection> noise;  ///< Set if runs with noise are sampled.
  std::vector<std::string> notes;     ///< Remarks of reading that are no errors.

  /// The key that says that passes gather weights.
  const Mark& passes_mark() const { return reshard_mark ? *reshard_mark : sharded_mark; }

  /// The least bytes of gradients that are reduced as one piece, beside the backward that makes
  /// them. Nothing: all gradients of a stage are reduced after its backward. If no size is given,
  /// data-parallel and sharded gradients use the size of PyTorch's DistributedDataParallel.
  std::optional<Bytes> min_bucket() const {
    const bool always = schedule.whole_model() || sharing.state >= Sharded::gradients;
    if (schedule.asynchronous() || (!schedule.bucket && !always)) return std::nullopt;
    return schedule.bucket.value_or(Bytes{25 << 20});
  }
};

/// Reads a scenario and the files it names; `key=value` overrides are put into its tree first. A
/// config.json is a scenario, too (sim/scenario/bare_model.h), and a note says what was assumed.
/// Paths in the file are relative to it; paths in overrides are relative to the current folder.
/// Errors: all errors of the scenario at once; then all errors of the files it names.
Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text in memory; the files that it names are read.
Result<Scenario> parse_scenario(const std::shared_ptr<const Source>& source,
                                const std::vector<std::string>& overrides);

/// The same for a tree. The overrides are written into it.
Result<Scenario> read_overridden(YamlNode& root, const std::vector<std::string>& overrides);

/// The same for a scenario that was opened.
Result<Scenario> read_opened(OpenedScenario& opened, const std::vector<std::string>& overrides);

/// The same for a tree without overrides. `model`, if given, is the result of reading its model
/// section; the section itself is then ignored. `derived`, if given, remembers the layers that a
/// config.json leads to.
Result<Scenario> read_scenario_tree(const YamlNode& root, const ModelSection* model = nullptr,
                                    DerivedModels* derived = nullptr);

/// Puts notes in front of those of the scenario, whatever its placement will be.
void put_notes_first(const std::vector<std::string>& notes, Scenario& scenario);

}  // namespace plumbline
