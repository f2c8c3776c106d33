// Decides the values that depend on several sections, one after the other.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/quantity.h"
#include "models/profile/estimate.h"
#include "models/profile/optimizer_kind.h"
#include "sim/scenario/kernel_setting.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/sequence_order.h"
#include "sim/scenario/stage_number.h"
#include "sim/scenario/written_scenario.h"

namespace plumbline {
namespace {

/// The link of a cluster that takes what was measured; with `beside_work` also while other devices
/// compute.
Link as_measured(const MeasuredLink& link, bool beside_work) {
  Link taken{link.latency, link.bandwidth, link.table};
  const auto sort = [](TransferTable& table) {
    std::stable_sort(table.begin(), table.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  };
  sort(taken.table);
  if (beside_work) taken.busy = link.busy;
  for (BusyTransfers& busy : taken.busy) sort(busy.table);
  return taken;
}

class ScenarioResolver {
 public:
  explicit ScenarioResolver(WrittenScenario written) : written_(std::move(written)) {}

  /// Runs a list of passes. Each pass needs the decisions of those before it, so the first pass
  /// with problems is the last.
  Result<Scenario> resolve() {
    using Pass = void (ScenarioResolver::*)();
    constexpr Pass passes[] = {
        &ScenarioResolver::resolve_cluster,        // devices from GPUs, and their links
        &ScenarioResolver::resolve_rates,          // tokens, price and power
        &ScenarioResolver::resolve_sequence,       // the devices of a file's sequence
        &ScenarioResolver::check_open_partition,   // it needs an order that is open, too
        &ScenarioResolver::resolve_copies,         // the number of pipelines
        &ScenarioResolver::resolve_sharing,        // the copies that share with each other
        &ScenarioResolver::resolve_batches,        // micro-batches per mini-batch
        &ScenarioResolver::resolve_lengths,        // the length of each micro-batch
        &ScenarioResolver::resolve_optimizer,      // the optimizer's memory
        &ScenarioResolver::derive_layers,          // from a config.json, at this micro-batch size
        &ScenarioResolver::raise_stages,           // if a schedule needs more stages
        &ScenarioResolver::resolve_group,          // the sharing in a device's group
        &ScenarioResolver::resolve_recomputation,  // if layers define it themselves
        &ScenarioResolver::estimate,               // times from FLOPs and bytes
        &ScenarioResolver::check_batches,          // against the profile
        &ScenarioResolver::take_length,            // of micro-batches, in the model's times
        &ScenarioResolver::offload,                // activations in the hosts' memory
        &ScenarioResolver::apply_measured,         // links and overheads of the profile
    };
    for (const Pass pass : passes) {
      (this->*pass)();
      if (!problems_.empty()) return std::move(problems_);
    }
    return std::move(scenario_);
  }

 private:
  void error(const Mark& mark, std::string message, std::string help = "") {
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  /// Decides the number of devices if GPUs are given, and their links.
  void resolve_cluster() {
    DeviceGroup group = scenario_.model->profile.group;
    if (written_.transformer) group.devices = written_.transformer->group();
    if (auto refused = resolve_gpus(written_.cluster, group)) return problems_.push_back(*refused);
    if (auto refused = check_pair_links(written_.cluster)) return problems_.push_back(*refused);
    if (auto note = assumed_network_note(written_.cluster))
      scenario_.notes.push_back(*std::move(note));
    scenario_.cluster = written_.cluster.cluster;
    scenario_.cluster_given = written_.cluster.given;
    scenario_.neighbours_slow = written_.cluster.neighbours_slow;
  }

  /// Decides the tokens of a training, and says what a price or a power lacks.
  void resolve_rates() {
    CostRates& rates = scenario_.rates = written_.cluster.rates;
    rates.goodput = written_.goodput;
    const auto sequence =
        written_.transformer ? std::optional(written_.transformer->options.sequence) : std::nullopt;
    if (auto refused = resolve_tokens(written_.tokens, sequence, rates))
      return problems_.push_back(*std::move(refused));
    if (!rates.tokens && (rates.price || rates.power)) {
      scenario_.notes.push_back(
          fmt::format("{} stands without training.tokens: what the training costs is not known",
                      rates.price ? "cluster.price" : "cluster.power"));
    }
  }

  /// Decides the devices of a sequence's stages.
  void resolve_sequence() {
    if (auto refused = place_sequence(scenario_)) problems_.push_back(*std::move(refused));
  }

  /// Resolves the parts of layers that a device's group holds more than once.
  void resolve_group() {
    const Model& model = *scenario_.model;
    const DeviceGroup group = model.profile.group;
    bool is_timed = false;
    for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
      const Layer& layer = model.graph.layer({i});
      if (layer.replicated == Bytes{}) continue;
      is_timed = is_timed || model.profile.measurements.front().layers[i].timed;
      if (group.given) continue;
      return error(scenario_.model_mark,
                   fmt::format("layer '{}' has {} of replicated parameters, but the model has no "
                               "group of devices",
                               clipped(layer.name), to_text(layer.replicated)),
                   "group: {devices: 8} in the profile, or in model beside layers written there");
    }
    if (is_timed && group.replicas() > 1) {
      scenario_.notes.emplace_back(
          "layers with times have replicated parameters: their group adds up the gradients within "
          "the update that they give, if any");
    }
    if (scenario_.sharing.state != Sharded::nothing)
      scenario_.model.edit().graph.share_steps(group.replicas());
    if (group_comes_first(group)) share_reductions(group);
  }

  /// Whether a group adds up gradients before the copies of a stage do. If only the optimizer is
  /// shared, both orders send the same amount. The copies' rings need not wait for the flush, so
  /// they come first if the group's rings are no wider.
  bool group_comes_first(const DeviceGroup& group) const {
    return scenario_.sharing.state != Sharded::optimizer || !group.spans_servers() ||
           group.cards() > 1;
  }

  /// Lets copies add up only the share that their group leaves to each device. This holds for
  /// layers whose updates are known to include the group's sending; other updates may include
  /// anything.
  void share_reductions(const DeviceGroup& group) {
    Model& model = scenario_.model.edit();
    const std::vector<LayerCosts>& costs = model.profile.measurements.front().layers;
    for (std::uint32_t i = 0; i < model.graph.size(); ++i) {
      if (!costs[i].timed && !costs[i].update_given)
        model.graph.share_reduction({i}, group.replicas());
    }
  }

  void resolve_recomputation() {
    if (auto refused = plumbline::resolve_recomputation(scenario_))
      problems_.push_back(*std::move(refused));
  }

  /// Estimates the times of layers that give FLOPs and bytes instead.
  void estimate() {
    const Profile& profile = scenario_.model->profile;
    if (!needs_estimate(profile)) {
      if (!written_.cluster.device) return;
      scenario_.notes.emplace_back(
          "the model gives its times: none is estimated for cluster.device");
      // Without a number format, the peak to compare the times with is unknown.
      if (!profile.dtype && !written_.cluster.device->peak) return;
      if (const auto roofline = roofline_of(*written_.cluster.device, profile.dtype))
        scenario_.peak = peak_of_mix(profile, *roofline);
      return;
    }
    if (!written_.cluster.device) {
      return error(scenario_.model_mark,
                   "the model gives FLOPs instead of times, and there is no cluster.device to "
                   "estimate times for",
                   "such as cluster: {device: h100-sxm} (plumbline list presets)");
    }
    const auto roofline = roofline_of(*written_.cluster.device, profile.dtype);
    if (!keep(roofline, problems_)) return;
    scenario_.peak = peak_of_mix(profile, *roofline);
    Estimate estimate{.device = *roofline,
                      .kernels = kernel_setting(scenario_, *written_.cluster.device, *roofline),
                      .optimizer = {scenario_.optimizer_state, scenario_.gradient_width}};
    scenario_.estimated_for = *roofline;
    if (estimate.kernels) {
      scenario_.kernels = std::make_shared<const KernelModel>(estimate.kernels->model);
      wait_between_ops(estimate.kernels->model.stack());
    }
    Model& model = scenario_.model.edit();
    if (auto problem = estimate_times(model, estimate, written_.cluster.device->mark))
      return problems_.push_back(*std::move(problem));
    if (written_.transformer && !(written_.optimizer.state && written_.optimizer.gradients))
      model.profile.estimated += "; Adam is assumed (training.optimizer_state, training.gradients)";
  }

  /// Moves a share of the activations to the hosts' memory.
  void offload() {
    if (auto refused = offload_activations(scenario_, written_.cluster))
      problems_.push_back(*std::move(refused));
  }

  /// Adds the time that a stack waits between the ops of a pipeline, unless the file has its own.
  void wait_between_ops(const SoftwareStack& stack) {
    if (written_.per_op_given || written_.measured_overhead) return;
    const Duration gap = plumbline::wait_between_ops(scenario_, stack);
    if (gap.count() == 0) return;
    scenario_.overheads.per_op = gap;
    scenario_.notes.push_back(
        fmt::format("{} waits {} between the ops of a pipeline (overhead.per_op)", stack.name,
                    to_text(scenario_.overheads.per_op)));
  }

  /// Decides the number of copies of the pipeline.
  void resolve_copies() {
    const Plan& plan = scenario_.plan;
    scenario_.copies = plan.data_parallel.value;
    if (plan.fills_cluster) fill_cluster();
    if (scenario_.schedule.whole_model()) {
      resolve_whole_model();
    } else if (scenario_.schedule.asynchronous() && scenario_.copies > 1) {
      error(plan.data_parallel.mark,
            fmt::format("plan.data_parallel is {}, but the schedule '{}' has no flush",
                        scenario_.copies, scenario_.schedule.rule->name),
            "it replicates single stages: plan.replicas");
    }
  }

  /// Replaces `data_parallel: fill` by the number of copies.
  void fill_cluster() {
    Plan& plan = scenario_.plan;
    if (scenario_.schedule.whole_model()) return;  // it fills the cluster anyway
    if (!scenario_.cluster_given) {
      return error(plan.data_parallel.mark,
                   "plan.data_parallel is 'fill', but the number of devices is not given",
                   "cluster.devices, or cluster.gpus");
    }
    const auto copies = copies_that_fill(scenario_);
    if (!keep(copies, problems_)) return;
    plan.data_parallel.value = *copies;
    scenario_.copies = *copies;
  }

  /// Decides how many copies share where those of a server do.
  void resolve_sharing() {
    Sharing& sharing = scenario_.sharing;
    if (scenario_.shares_in_servers) {
      const auto server = static_cast<std::int64_t>(scenario_.cluster.levels.front().size);
      const bool is_one = scenario_.cluster.levels.size() == 1 || scenario_.copies <= server;
      if (!is_one && scenario_.copies % server != 0) {
        return error(scenario_.degree_mark,
                     fmt::format("training.shard_degree is server, but {} copies do not fill "
                                 "servers of {} devices",
                                 scenario_.copies, server),
                     "a number that divides the copies");
      }
      sharing.degree = is_one ? 0 : static_cast<std::uint32_t>(server);
    }
    if (sharing.degree != 1) return;
    scenario_.notes.push_back(fmt::format(
        "training.shard_degree is 1: each copy holds everything, and training.zero_stage {} is as "
        "0",
        static_cast<int>(sharing.state)));
    sharing = {};
  }

  /// Decides the number of micro-batches, or their size, if a mini-batch is split into them.
  void resolve_batches() {
    if (!written_.mini_batch_size) return;
    const bool by_count = !written_.micro_batch_size;
    const std::int64_t parts = scenario_.copies * (by_count ? scenario_.schedule.micro_batches
                                                            : written_.micro_batch_size->value);
    if (const std::int64_t rest = written_.mini_batch_size->value % parts; rest != 0)
      return report_rest(parts, rest, by_count);
    const std::int64_t quotient = written_.mini_batch_size->value / parts;
    if (by_count) {
      written_.micro_batch_size = {quotient, written_.mini_batch_size->mark};
      return;
    }
    if (quotient > kMaxMicroBatches) {
      return error(written_.mini_batch_size->mark,
                   fmt::format("training.mini_batch_size is {}, in {} micro-batches of {}: more "
                               "than {}",
                               written_.mini_batch_size->value, quotient,
                               written_.micro_batch_size->value, kMaxMicroBatches));
    }
    scenario_.schedule.micro_batches = static_cast<std::uint32_t>(quotient);
    scenario_.schedule.micro_batches_mark = written_.mini_batch_size->mark;
    scenario_.schedule.updates.accumulated = scenario_.schedule.micro_batches;
  }

  /// Reports a mini-batch that cannot be divided into `parts` micro-batches, or copies of
  /// micro-batches.
  void report_rest(std::int64_t parts, std::int64_t rest, bool by_count) {
    const std::int64_t size = written_.mini_batch_size->value;
    std::string what = by_count ? fmt::format("{} micro-batches on each of {} copies",
                                              scenario_.schedule.micro_batches, scenario_.copies)
                                : fmt::format("micro-batches of {} on each of {} copies",
                                              written_.micro_batch_size->value, scenario_.copies);
    error(written_.mini_batch_size->mark,
          by_count
              ? fmt::format("training.mini_batch_size is {}, which {} parts do not divide: {} "
                            "is left",
                            size, parts, rest)
              : fmt::format("training.mini_batch_size is {}, which {} do not divide: {} is "
                            "left",
                            size,
                            scenario_.copies > 1 ? what
                                                 : fmt::format("micro-batches of {}",
                                                               written_.micro_batch_size->value),
                            rest),
          fmt::format("{}{}{}", size > rest ? fmt::format("{} or ", size - rest) : "",
                      size - rest + parts, by_count && scenario_.copies > 1 ? ": " + what : ""));
  }

  /// Decides the lengths of micro-batches. All that holds for a stage as a whole, and not for one
  /// micro-batch, is of the mean length, or of one near it.
  void resolve_lengths() {
    if (!written_.lengths) return;
    const ScheduleChoice& schedule = scenario_.schedule;
    const Mark& mark = written_.lengths->mark;
    if (schedule.slices.count > 1) {
      return error(mark, "training.micro_batch_lengths stands beside schedule.slices",
                   "leave one of them out");
    }
    if (schedule.overlaps_pairs) {
      return error(mark, "training.micro_batch_lengths is given, and schedule.pairs is overlapped",
                   "schedule.pairs: apart");
    }
    const auto sequence =
        written_.transformer       ? std::optional(written_.transformer->options.sequence)
        : written_.tokens.sequence ? std::optional(written_.tokens.sequence->value)
                                   : std::nullopt;
    auto decided =
        decide_lengths(*written_.lengths, sequence, schedule.micro_batches, scenario_.copies);
    if (!keep(decided, problems_)) return;
    const double length =
        written_.only_length.value_or(written_.transformer ? decided->usual() : decided->mean());
    if (written_.transformer) {
      written_.transformer->options.sequence = std::max<std::int64_t>(1, std::llround(length));
    } else {
      length_factor_ = length / decided->of;
    }
    if (sequence)
      scenario_.rates.per_sample = std::max<std::int64_t>(1, std::llround(decided->mean()));
    if (written_.only_length) return;
    scenario_.notes.push_back(note_on(*decided, written_.transformer.has_value()));
    // One length is that of the model's times now. Only a network that is executed keeps its own.
    const bool runs_other = scenario_.network && length_factor_ != 1;
    if (decided->lengths.size() == 1 && !runs_other) return;
    scenario_.lengths = std::make_shared<const MicroBatchLengths>(*std::move(decided));
  }

  void take_length() {
    if (length_factor_ != 1) scale_length(scenario_.model.edit().profile, length_factor_);
  }

  /// Sets the optimizer's memory of a model that is known by its shape, unless the file gives it.
  void resolve_optimizer() {
    if (!written_.transformer) return;
    const NumberFormat weights = written_.transformer->options.dtype;
    const OptimizerBytes adam = usual_adam(weights);
    if (!written_.optimizer.state) scenario_.optimizer_state = adam.state;
    if (!written_.optimizer.gradients) scenario_.gradient_width = adam.gradients;
    if (auto note = assumed_optimizer(written_.optimizer, weights))
      scenario_.notes.push_back(*std::move(note));
  }

  /// Derives the layers of a model that is known by its shape, for this micro-batch on these
  /// servers.
  void derive_layers() {
    auto* const transformer = written_.transformer ? &*written_.transformer : nullptr;
    if (auto refused = choose_modules(scenario_.schedule.recompute, transformer, scenario_.notes))
      return problems_.push_back(*std::move(refused));
    if (!written_.transformer) return;
    if (!written_.micro_batch_size)
      written_.micro_batch_size = {written_.transformer->options.group_batches(),
                                   written_.transformer->mark};
    auto model = derive_model(*written_.transformer, written_.micro_batch_size->value,
                              written_.cluster.per_server(), written_.micro_batch_size->mark,
                              scenario_.notes, written_.derived);
    if (keep(model, problems_)) scenario_.model = *std::move(model);
    scenario_.transformer = written_.transformer->options;
    scenario_.config = written_.transformer->file;
    for (std::string& note : omissions(written_.cluster, scenario_.model->profile.group))
      scenario_.notes.push_back(std::move(note));
  }

  /// Resolves `data-parallel`: one stage, with a copy on every device.
  void resolve_whole_model() {
    const Plan& plan = scenario_.plan;
    const auto refuse = [&](const Mark& mark, std::string_view key) {
      error(mark, fmt::format("{} does not go with the schedule 'data-parallel'", key),
            "it runs the whole model, as one stage, on every device");
    };
    if (plan.stages && plan.stages->value > 1) refuse(plan.stages->mark, "plan.stages above 1");
    if (plan.written_stages().value_or(1) > 1) {
      refuse(plan.partition_mark, "plan.partition with several stages");
    }
    if (plan.is_planned()) refuse(plan.partition_mark, "plan.partition: pipedream");
    if (plan.replicas && (plan.replicas->value.size() > 1 || plan.replicas->value.front() > 1))
      refuse(plan.replicas->mark, "plan.replicas above 1");
    if (plan.data_parallel.value > 1) refuse(plan.data_parallel.mark, "plan.data_parallel above 1");
    if (plan.devices) refuse(plan.devices->mark, "plan.devices");
    if (!scenario_.cluster_given) {
      error(scenario_.schedule.name_mark,
            "the schedule 'data-parallel' uses every device, but cluster.devices is not given");
    }
    scenario_.copies = scenario_.cluster.device_count();
  }

  void check_open_partition() {
    if (!scenario_.plan.goes_with_order() || scenario_.schedule.wish) return;
    error(scenario_.plan.partition_mark,
          "plan.partition: auto is chosen together with an order, but the order is given",
          "schedule.name: auto; or partition: balanced, or pipedream");
  }

  /// Decides the batch that the model's times cover, and the micro-batch size.
  void check_batches() {
    std::optional<std::int64_t> batch =
        written_.batch ? std::optional(written_.batch->value) : std::nullopt;
    if (batch && !scenario_.model->profile.measurements.front().batch)
      scenario_.model.edit().profile.measurements.front().batch = batch;
    if (scenario_.model->name.empty()) scenario_.model.edit().name = scenario_.name;
    const Profile& profile = scenario_.model->profile;
    const std::vector<Measurement>& held = profile.measurements;
    if (batch && !profile.holds(*batch)) {
      std::vector<std::string> sizes;
      sizes.reserve(held.size());
      for (const Measurement& m : held) sizes.push_back(std::to_string(*m.batch));
      return error(written_.batch->mark,
                   fmt::format("model.batch is {}, but the profile is for {}", *batch,
                               fmt::join(sizes, ", ")),
                   "leave model.batch out and set training.micro_batch_size");
    } else if (!batch && held.front().batch) {
      batch = held.front().batch;
      if (held.size() > 1 && !written_.micro_batch_size) {
        scenario_.notes.push_back(
            fmt::format("the profile holds {} batch sizes; the smallest, {}, is the micro-batch",
                        held.size(), *batch));
      }
    }
    if (!written_.micro_batch_size && !batch)
      scenario_.notes.emplace_back(
          "neither model.batch nor training.micro_batch_size is given: a micro-batch counts as one "
          "sample");
    if (written_.micro_batch_size && !batch) {
      scenario_.notes.push_back(
          fmt::format("model.batch is not given: the layers' times are taken to be those of a "
                      "micro-batch of {}, whatever its size",
                      written_.micro_batch_size->value));
    }
    scenario_.micro_batch_size =
        written_.micro_batch_size ? written_.micro_batch_size->value : batch.value_or(1);
    const bool has_outputs = std::any_of(held[0].layers.begin(), held[0].layers.end(),
                                         [](const LayerCosts& l) { return l.output.count > 0; });
    const bool has_activations =
        std::any_of(held[0].layers.begin(), held[0].layers.end(),
                    [](const LayerCosts& l) { return l.activation.count > 0; });
    if (has_outputs && !has_activations) {
      scenario_.notes.emplace_back(
          "the layers give no activation sizes, so the memory shown holds no activations");
    }
    note_closure();
    note_optimizer();
  }

  /// Adds a note if layers that were also timed as one piece do not add up to its time.
  void note_closure() {
    const Profile& profile = scenario_.model->profile;
    double worst = 0;
    for (const Block& block : profile.blocks) {
      double sum = 0;
      for (const LayerId layer : block.layers) {
        const LayerCosts& costs = profile.measurements.front().layers[layer.value];
        sum += seconds(costs.forward.mean) + seconds(costs.backward.mean);
      }
      const double whole = seconds(block.forward) + seconds(block.backward);
      if (sum > 0 && std::abs(whole / sum - 1) > std::abs(worst)) worst = whole / sum - 1;
    }
    if (std::abs(worst) <= 0.01) return;
    scenario_.notes.push_back(fmt::format(
        "layers that the profile also times as one piece take {:.1f} % {} there than they add up "
        "to; predictions add them up",
        100 * std::abs(worst), worst > 0 ? "longer" : "less"));
  }

  /// Adds a note if the profile's updates were measured with another optimizer than a run will use.
  void note_optimizer() {
    const auto& provenance = scenario_.model->profile.provenance;
    const auto measured = provenance.find("optimizer");
    const std::string_view wanted = name(optimizer_for(scenario_.optimizer_state));
    if (measured == provenance.end() || measured->second == wanted) return;
    scenario_.notes.push_back(fmt::format(
        "the profile's updates were measured with {}; a run with training.optimizer_state {} makes "
        "those of {}, which plumbline calibrate --optimizer {} measures",
        clipped(measured->second), scenario_.optimizer_state, wanted, wanted));
  }

  /// Takes the values of `link: measured` and `overhead: measured` from the profile.
  void apply_measured() {
    const Profile& profile = scenario_.model->profile;
    if (written_.cluster.measured_link) {
      if (profile.links.empty())
        return error(*written_.cluster.measured_link,
                     "cluster.link is 'measured', but the model holds no measured links",
                     "only a profile with links does");
      const MeasuredLink& link = link_for(profile.links, /*blocking=*/false);
      const MeasuredLink& sending = link_for(profile.links, scenario_.schedule.blocking);
      scenario_.cluster.levels.front().link = as_measured(link, scenario_.neighbours_slow);
      if (sending.kind != link.kind) {
        scenario_.blocking_link = as_measured(sending, scenario_.neighbours_slow);
      }
      scenario_.link_measured = true;
      if (profile.links.size() > 1) {
        scenario_.notes.push_back(fmt::format(
            "the profile holds {} links; '{}' is taken{}", profile.links.size(), sending.kind,
            sending.kind == link.kind ? "" : fmt::format(", and '{}' for all-reduces", link.kind)));
      }
    }
    if (written_.measured_overhead) {
      if (!profile.overheads)
        return error(*written_.measured_overhead,
                     "overhead is 'measured', but the model holds no measured overheads",
                     "only a profile with overheads does");
      scenario_.overheads = *profile.overheads;
    }
  }

  /// Raises plan.stages if a schedule with chunks needs more stages.
  void raise_stages() {
    if (auto refused = resolve_stage_number(scenario_)) problems_.push_back(*std::move(refused));
  }

  WrittenScenario written_;
  double length_factor_ = 1;  ///< The length of micro-batches over that of the model.
  Scenario& scenario_ = written_.scenario;
  Diagnostics problems_;
};

}  // namespace

Result<Scenario> resolve_sections(WrittenScenario written) {
  return ScenarioResolver(std::move(written)).resolve();
}

}  // namespace plumbline
