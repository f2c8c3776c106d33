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
#include "schedules/files/schedule_file.h"
#include "schedules/generators/generators.h"
#include "schedules/order/weight_versions.h"
#include "schedules/stages/sharding.h"
#include "sim/scenario/noise.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/recomputation.h"
#include "sim/scenario/slices.h"

namespace plumbline {

struct ModelSection;
struct YamlNode;

/// The schedule section.
struct ScheduleChoice {
  const ScheduleRule* rule = nullptr;  ///< Nothing where a file gives the order.
  std::optional<ScheduleFile> file;
  Mark name_mark;  ///< Of the name or of the file.
  std::uint32_t micro_batches = 1;
  std::uint32_t mini_batches = 1;
  Mark micro_batches_mark;
  std::uint32_t chunks = 1;  ///< Stages of each device, where the rule has chunks.
  std::uint32_t group = 0;   ///< Micro-batches that go round them together; 0 = by the rule.
  Mark group_mark;
  SliceChoice slices;
  bool blocking = false;
  /// Each device communicates in the order of its SEND and RECV cells, which the file has.
  bool in_order = false;
  bool overlaps_pairs = false;  ///< Neighbours F and B run at the same time.
  Mark pairs_mark;
  RecomputeChoice recompute;
  UpdateRule updates;           ///< Of an asynchronous schedule.
  std::optional<Bytes> bucket;  ///< As given.

  /// The rule where devices have several stages, or backwards two parts; else null.
  const ChunkRule* chunk_rule() const { return rule && rule->chunks ? &*rule->chunks : nullptr; }
  bool asynchronous() const { return rule && rule->asynchronous; }
  bool whole_model() const { return rule && rule->whole_model; }
};

/// Everything that one prediction needs. Invariant: the model has layers and no cycle.
struct Scenario {
  std::string name;
  std::shared_ptr<const Source> source;
  SharedValue<Model> model;
  std::optional<TransformerOptions> transformer;  ///< What layers of a config.json follow from.
  std::shared_ptr<const Network> network;         ///< What is really executed, where it is known.
  Mark model_mark;
  Cluster cluster;
  bool cluster_given = true;  ///< Whether the number of devices was; if not, the plan decides it.
  Mark cluster_mark;
  bool link_measured = false;           ///< The link is what the profile holds: what devices have.
  std::optional<Link> blocking_link{};  ///< Of transfers that block, where that is another one.
  bool neighbours_slow = true;  ///< By the profile's factors; if not, each device is as if alone.
  Plan plan;
  Mark plan_mark;
  ScheduleChoice schedule;
  std::int64_t micro_batch_size = 1;
  std::int64_t copies = 1;  ///< Of the pipeline: data_parallel, or all devices with data-parallel.
  std::optional<FlopsPerSecond> peak;  ///< Of a device, in the model's number format.
  std::optional<double> efficiency;    ///< The share of its peaks that estimated times count on.
  double optimizer_state = 0;
  double gradient_width = 1;  ///< Bytes of gradients for each byte of parameters.
  Mark gradient_mark;
  Sharded sharded = Sharded::nothing;  ///< training.zero_stage.
  Mark sharded_mark;
  bool gather_ahead = false;  ///< Weights of a sharded optimizer are gathered beside the next
                              ///< forwards.
  Mark gather_mark;
  Overheads overheads;
  std::optional<NoiseSection> noise;  ///< Where runs with noise are sampled.
  std::vector<std::string> notes;     ///< What reading had to say that is no error.

  /// The least bytes of gradients that are reduced as one piece, beside the backward that makes
  /// them; nothing: all of a stage, behind it. Where nothing is given, with data-parallel and
  /// sharded gradients that of PyTorch's DistributedDataParallel.
  std::optional<Bytes> min_bucket() const {
    const bool always = schedule.whole_model() || sharded >= Sharded::gradients;
    if (schedule.asynchronous() || (!schedule.bucket && !always)) return std::nullopt;
    return schedule.bucket.value_or(Bytes{25 << 20});
  }
};

/// Reads a scenario and the files it names, with `key=value` overrides put into its tree first.
/// Paths in the file are relative to it, those in overrides to the current folder.
/// Errors: all that is wrong in the scenario at once; then all that is wrong in the files it names.
Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// The same for a text that is at hand; the files that it names are read.
Result<Scenario> parse_scenario(const std::shared_ptr<const Source>& source,
                                const std::vector<std::string>& overrides);

/// The same for a tree, in which the overrides stand then.
Result<Scenario> read_overridden(YamlNode& root, const std::vector<std::string>& overrides);

/// The same for a tree without overrides. `model` is what its model section reads as, where that is
/// known: the section is not looked at then.
Result<Scenario> read_scenario_tree(const YamlNode& root, const ModelSection* model = nullptr);

}  // namespace plumbline
