// Each change is a few overrides of the scenario.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/ways_to_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/planning/planning.h"
#include "sim/planning/predict.h"

namespace plumbline {
namespace {

std::int64_t peak_of(const Outcome& outcome) {
  std::int64_t peak = 0;
  for (const DeviceMemory& memory : outcome.memory) peak = std::max(peak, memory.peak.sum().count);
  return peak;
}

/// The overrides of the changes that a scenario leaves room for. No prediction yet.
class ChangeList {
 public:
  explicit ChangeList(const Scenario& scenario, const Outcome& now)
      : scenario_(scenario), now_(now) {}

  std::vector<WayToFit> all() && {
    add_recomputation();
    add_sharding();
    add_smaller_micro_batches();
    add_more_stages();
    add_sharing();
    add("copy half of the activations to the hosts' memory", {"schedule.offload=0.5"});
    return std::move(changes_);
  }

 private:
  void add(std::string what, std::vector<std::string> overrides) {
    changes_.push_back({std::move(what), std::move(overrides), 0, 0, {}, {}});
  }

  void add_recomputation() {
    const Recompute kind = scenario_.schedule.recompute.kind;
    const std::string fit = "schedule.recompute_layers=fit";
    if (kind == Recompute::none) {
      add("recompute what costs little, in as few layers as fit",
          {"schedule.recompute=selective", fit});
      add("recompute what costs little, in all layers",
          {"schedule.recompute=selective", "schedule.recompute_layers=all"});
    }
    if (kind == Recompute::none || kind == Recompute::selective) {
      add("recompute as few whole layers as fit",
          {"schedule.recompute_modules=null", "schedule.recompute=layers", fit});
      add("recompute all layers", {"schedule.recompute_modules=null", "schedule.recompute=layers",
                                   "schedule.recompute_layers=all"});
    }
  }

  void add_sharding() {
    constexpr const char* names[] = {"", "share the optimizer state between copies (ZeRO 1)",
                                     "share gradients between copies, too (ZeRO 2)",
                                     "share weights between copies, too (ZeRO 3, FSDP)"};
    for (auto stage = static_cast<std::size_t>(scenario_.sharing.state) + 1; stage <= 3; ++stage) {
      std::vector<std::string> overrides = {fmt::format("training.zero_stage={}", stage)};
      if (stage == 3 && scenario_.gather_ahead)
        overrides.emplace_back("training.gather=behind-update");
      add(names[stage], std::move(overrides));
    }
    const Sharing& sharing = scenario_.sharing;
    if (sharing.state == Sharded::weights && !sharing.holds_share_of_weights())
      add("free gathered weights behind each pass", {"training.reshard=each-pass"});
    if (sharing.state >= Sharded::gradients && sharing.reduces_once())
      add("reduce gradients in each backward", {"training.reduce=each-backward"});
    if (sharing.degree > 0 && sharing.degree < scenario_.copies)
      add("share between all copies, not in groups", {"training.shard_degree=null"});
  }

  /// Half the samples in a micro-batch, and twice as many of them.
  void add_smaller_micro_batches() {
    const std::int64_t size = scenario_.micro_batch_size;
    const std::int64_t least =
        scenario_.transformer ? scenario_.transformer->group_batches() : std::int64_t{1};
    if (size % 2 != 0 || size / 2 < least) return;
    const std::string half = fmt::format("training.micro_batch_size={}", size / 2);
    const std::string what = fmt::format("micro-batches of {} instead of {}", size / 2, size);
    // One of the two holds, as the scenario gives the mini-batch or the number of micro-batches.
    add(what, {half});
    add(what,
        {half, fmt::format("schedule.micro_batches={}", 2 * scenario_.schedule.micro_batches)});
  }

  void add_more_stages() {
    const std::size_t stages = now_.setup.partition.stages.size();
    add(fmt::format("{} stages instead of {}", 2 * stages, stages),
        {fmt::format("plan.stages={}", 2 * stages), "plan.data_parallel=fill"});
  }

  void add_sharing() {
    if (!scenario_.transformer) return;
    const TransformerOptions& options = *scenario_.transformer;
    const auto more = [&](std::string_view what, const char* key, std::int64_t now,
                          std::vector<std::string> besides) {
      besides.push_back(fmt::format("{}={}", key, 2 * now));
      besides.emplace_back("plan.data_parallel=fill");
      add(fmt::format("{} over {} GPUs instead of {}", what, 2 * now, now), std::move(besides));
    };
    more("tensor parallelism", "model.tensor_parallel", options.tensor_parallel,
         {"model.sequence_parallel=true"});
    more("context parallelism", "model.context_parallel", options.context_parallel, {});
  }

  const Scenario& scenario_;
  const Outcome& now_;
  std::vector<WayToFit> changes_;
};

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

/// Predicts a change; whether it can run, trains as many samples, and takes less memory.
bool is_way(WayToFit& way, const std::string& path, const std::vector<std::string>& overrides,
            const Outcome& now) {
  // Of a key that both set, the change counts.
  std::vector<std::string> all;
  for (const std::string& text : overrides) {
    const bool is_changed =
        std::any_of(way.overrides.begin(), way.overrides.end(),
                    [&](const std::string& own) { return key_of(own) == key_of(text); });
    if (!is_changed) all.push_back(text);
  }
  all.insert(all.end(), way.overrides.begin(), way.overrides.end());
  auto scenario = read_scenario(path, all);
  if (!scenario) return false;
  const auto resolved = resolve_plan(*std::move(scenario));
  if (!resolved) return false;
  const auto outcome = predict(*resolved, Evaluation::fastest);
  if (!outcome || outcome->samples_per_iteration() != now.samples_per_iteration()) return false;
  way.peak_memory_bytes = peak_of(*outcome);
  way.iteration_time_s = outcome->iteration_time_s;
  way.throughput_samples_per_s = outcome->throughput_samples_per_s;
  way.fits = outcome->fits();
  return way.peak_memory_bytes < peak_of(now);
}

bool is_better(const WayToFit& a, const WayToFit& b) {
  const bool fits_a = a.fits.value_or(true), fits_b = b.fits.value_or(true);
  if (fits_a != fits_b) return fits_a;
  if (fits_a && a.iteration_time_s != b.iteration_time_s)
    return a.iteration_time_s < b.iteration_time_s;
  return a.peak_memory_bytes < b.peak_memory_bytes;
}

/// Whether the two set no key in common.
bool are_apart(const WayToFit& a, const WayToFit& b) {
  return std::none_of(a.overrides.begin(), a.overrides.end(), [&](const std::string& one) {
    return std::any_of(b.overrides.begin(), b.overrides.end(), [&](const std::string& other) {
      return key_of(one) == key_of(other) && one != other;
    });
  });
}

}  // namespace

std::vector<WayToFit> ways_to_fit(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const Scenario& scenario, const Outcome& now) {
  std::vector<WayToFit> ways;
  for (WayToFit& change : ChangeList(scenario, now).all()) {
    const bool is_known = std::any_of(
        ways.begin(), ways.end(), [&](const WayToFit& other) { return other.what == change.what; });
    if (!is_known && is_way(change, path, overrides, now)) ways.push_back(std::move(change));
  }
  const bool any_fits = std::any_of(ways.begin(), ways.end(),
                                    [](const WayToFit& way) { return way.fits.value_or(true); });
  const std::size_t singles = ways.size();
  for (std::size_t i = 0; i < singles && !any_fits; ++i) {
    for (std::size_t j = i + 1; j < singles; ++j) {
      if (!are_apart(ways[i], ways[j])) continue;
      WayToFit both{ways[i].what + "; " + ways[j].what, ways[i].overrides, 0, 0, {}, {}};
      for (const std::string& text : ways[j].overrides) {
        if (std::find(both.overrides.begin(), both.overrides.end(), text) == both.overrides.end())
          both.overrides.push_back(text);
      }
      if (is_way(both, path, overrides, now) && both.fits.value_or(true))
        ways.push_back(std::move(both));
    }
  }
  std::stable_sort(ways.begin(), ways.end(), is_better);
  return ways;
}

}  // namespace plumbline
