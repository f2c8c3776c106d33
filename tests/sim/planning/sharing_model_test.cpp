// When shared gradients are reduced, when gathered weights are freed, how far gathers run ahead,
// and groups of copies that share: a slow model of its own.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/setup/training_setup.h"
#include "tests/support/builders.h"
#include "tests/support/predicted.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// A training whose copies share gradients or weights.
struct Training {
  struct Layer {
    std::int64_t forward, backward, update, kib;  ///< Microseconds; parameters.
  };
  std::vector<std::vector<Layer>> stages;
  std::string schedule;
  std::int64_t devices = 1, chunks = 1, copies = 2, micro_batches = 1, mini_batches = 1;
  std::int64_t output_kib = 0, latency_us = 0, mb_per_s = 1000, bucket_kib = 1;
  std::int64_t zero = 3, degree = 0, prefetch = 1;
  std::string reduce = "each-backward", reshard = "each-pass";

  std::string text() const {
    std::string layers;
    std::string sizes;
    int number = 0;
    for (const auto& stage : stages) {
      for (const Layer& layer : stage) {
        layers += fmt::format(
            "{}{{name: l{}, forward: {} us, backward: {} us, update: {} us, output: {} KiB, "
            "parameters: {} KiB}}",
            number == 0 ? "" : ", ", number, layer.forward, layer.backward, layer.update,
            output_kib, layer.kib);
        ++number;
      }
      sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", stage.size());
    }
    return fmt::format(
        "version: 1\nmodel: {{layers: [{}]}}\ncluster: {{devices: {}, memory: 1 GB, link: "
        "{{latency: {} us, bandwidth: {} MB/s}}}}\nplan: {{partition: [{}], data_parallel: {}}}\n"
        "schedule: {{name: {}{}, micro_batches: {}, mini_batches: {}, bucket: {} KiB}}\n"
        "training: {{zero_stage: {}, reduce: {}, reshard: {}, prefetch: {}{}}}\n",
        layers, devices * copies, latency_us, mb_per_s, sizes, copies, schedule,
        chunks == 1 ? "" : fmt::format(", chunks: {}", chunks), micro_batches, mini_batches,
        bucket_kib, zero, reduce, reshard, prefetch,
        degree == 0 ? "" : fmt::format(", shard_degree: {}", degree));
  }
};

/// The same training, walked through device by device. All copies do the same at the same time, so
/// there is one of them, and a ring is one hop of each device.
class SlowModel {
 public:
  SlowModel(const Training& training, const TrainingSetup& setup)
      : t_(training), lists_(setup.schedule.lists()) {
    for (std::uint32_t s = 0; s < t_.stages.size(); ++s)
      device_of_.push_back(setup.schedule.shape.stage_slots[s].front());
    for (const auto& stage : t_.stages) buckets_.push_back(buckets_of(stage));
  }

  std::int64_t run() {
    for (std::int64_t k = 0; k < t_.mini_batches; ++k) run_mini_batch();
    return gate_;
  }

  /// The most bytes of gathered weights that were whole at a time on a device.
  std::int64_t most_whole(std::size_t d) {
    std::vector<std::pair<std::int64_t, std::int64_t>>& changes = whole_[d];
    std::sort(changes.begin(), changes.end());  // of one instant, releases first
    std::int64_t held = 0, most = 0;
    for (const auto& [time, bytes] : changes) most = std::max(most, held += bytes);
    return most;
  }

 private:
  struct Bucket {
    std::int64_t forward = 0, backward = 0, bytes = 0;  ///< Nanoseconds.
  };
  struct Line {  ///< A link in one direction: one after the other.
    std::int64_t free = 0;
    std::int64_t send(std::int64_t ready, std::int64_t flow, std::int64_t latency) {
      free = std::max(free, ready) + flow;
      return free + latency;
    }
  };
  struct Waiting {
    std::uint32_t stage;
    std::size_t bucket;
    std::int64_t ready;
    bool is_last;
  };
  struct Device {
    std::size_t next = 0;
    std::int64_t time = 0;
    bool begun = false;
    std::vector<std::int64_t> parts;                             ///< The ends of all ops and parts.
    std::map<std::pair<std::uint32_t, std::size_t>, int> whole;  ///< Gathered weights.
    std::map<std::pair<std::uint32_t, std::size_t>, std::int64_t> freed;  ///< And when they went.
    std::vector<std::pair<std::uint32_t, std::size_t>> passing;
    std::vector<Waiting> made;
    std::vector<std::int64_t> scattered, reduced;
    Line up, down, ring, across;
  };

  std::vector<Bucket> buckets_of(const std::vector<Training::Layer>& layers) const {
    std::vector<Bucket> buckets(1);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      if (buckets.back().bytes >= t_.bucket_kib * 1024) buckets.emplace_back();
      buckets.back().forward += layer->forward * 1000;
      buckets.back().backward += layer->backward * 1000;
      buckets.back().bytes += layer->kib * 1024;
    }
    return buckets;
  }

  std::int64_t flow(std::int64_t bytes) const {
    return transfer_time({bytes}, {t_.mb_per_s * 1'000'000}).count();
  }
  std::int64_t sharers() const { return t_.degree == 0 ? t_.copies : t_.degree; }
  /// Each of g members has the others' shares to send, or to get.
  std::int64_t half(std::int64_t bytes) const {
    return flow(bytes - (bytes + sharers() - 1) / sharers());
  }
  std::int64_t half_latency() const { return (sharers() - 1) * t_.latency_us * 1000; }

  std::int64_t gather(Device& device, std::int64_t bytes, std::int64_t ready) {
    return device.ring.send(ready, half(bytes), half_latency());
  }

  void free(Device& device, std::pair<std::uint32_t, std::size_t> one) {
    device.whole.erase(one);
    device.freed[one] = device.time;
    whole_[device_of_[one.first]].emplace_back(device.time, -buckets_[one.first][one.second].bytes);
  }

  void reduce(Device& device, const Waiting& one) {
    const std::int64_t bytes = buckets_[one.stage][one.bucket].bytes;
    std::int64_t end = device.ring.send(one.ready, half(bytes), half_latency());
    device.scattered.push_back(end);
    const std::int64_t groups = t_.copies / sharers();
    if (groups > 1 && (one.is_last || t_.reduce != "in-groups-each-backward")) {
      const std::int64_t share = (bytes + sharers() - 1) / sharers();
      const std::int64_t twice = 2 * (groups - 1);
      end = device.across.send(end, flow((twice * share + groups - 1) / groups),
                               twice * t_.latency_us * 1000);
    }
    device.reduced.push_back(end);
  }

  static void flush_made(SlowModel& model, Device& device) {
    for (const Waiting& one : device.made) model.reduce(device, one);
    device.made.clear();
  }

  bool is_first(const Op& op) const { return op.micro_batch.value == first_of(op, true); }
  bool is_last(const Op& op) const { return op.micro_batch.value == first_of(op, false); }
  /// The micro-batch of the first op of this stage and kind in its device's list, or of the last.
  std::uint32_t first_of(const Op& op, bool first) const {
    std::uint32_t found = 0;
    bool any = false;
    for (const Op& other : lists_[device_of_[op.stage.value]]) {
      if (other.stage.value != op.stage.value || other.kind != op.kind || (first && any)) continue;
      found = other.micro_batch.value;
      any = true;
    }
    return found;
  }

  void run_mini_batch() {
    std::vector<Device> before = std::move(devices_);
    devices_.assign(lists_.size(), {});
    for (std::size_t d = 0; d < before.size(); ++d) {
      devices_[d].up = before[d].up;
      devices_[d].down = before[d].down;
      devices_[d].ring = before[d].ring;
      devices_[d].across = before[d].across;
    }
    arrived_.clear();
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t d = 0; d < lists_.size(); ++d) {
        while (devices_[d].next < lists_[d].size() && step(d)) moved = true;
      }
    }
    end_mini_batch();
  }

  /// Runs the next op of a device; false: its input has not come.
  bool step(std::uint32_t d) {
    Device& device = devices_[d];
    const Op& op = lists_[d][device.next];
    const bool is_forward = op.kind == OpKind::forward;
    const std::uint32_t s = op.stage.value;
    std::int64_t input = device.begun ? 0 : gate_;
    const bool is_source = is_forward ? s == 0 : s + 1 == t_.stages.size();
    if (!is_source || !is_forward) {
      const auto found = arrived_.find({is_forward, s, op.micro_batch.value});
      if (found == arrived_.end()) return false;
      input = std::max(input, found->second);
    }
    device.begun = true;
    ++device.next;
    compute(device, op, input);
    send(d, op);
    return true;
  }

  void compute(Device& device, const Op& op, std::int64_t input) {
    const bool is_forward = op.kind == OpKind::forward;
    const std::uint32_t s = op.stage.value;
    const std::vector<Bucket>& buckets = buckets_[s];
    const bool each = t_.reduce.find("each-backward") != std::string::npos;
    const bool last = !is_forward && is_last(op);
    const bool reduces = !is_forward && (each || last);
    const bool frees =
        t_.zero == 3 && (t_.reshard == "each-pass" ||
                         t_.reshard == (is_forward ? "after-forward" : "after-backward"));
    const bool passes = t_.zero == 3 && t_.reshard != "after-mini-batch";
    const bool cut = passes || (t_.zero == 3 && is_forward && is_first(op)) || reduces;
    if (!cut) {
      std::int64_t all = 0;
      for (const Bucket& bucket : buckets) all += is_forward ? bucket.forward : bucket.backward;
      device.time = std::max(device.time, input) + all;
      device.parts.push_back(device.time);
      return;
    }
    std::vector<Waiting> late;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const std::size_t b = is_forward ? buckets.size() - 1 - i : i;
      std::int64_t begin = std::max(device.time, i == 0 ? input : 0);
      if (t_.zero == 3 && buckets[b].bytes > 0) {
        // What passes is freed when another bucket takes its place.
        std::erase_if(device.passing, [&](const auto& one) {
          if (one == std::pair(s, b)) return false;
          free(device, one);
          return true;
        });
        if (!device.whole.contains({s, b})) {
          const auto back = static_cast<std::size_t>(t_.prefetch) + 1;
          const std::size_t count = device.parts.size();
          std::int64_t ready = count < back ? gate_ : device.parts[count - back];
          if (const auto freed = device.freed.find({s, b}); freed != device.freed.end())
            ready = std::max(ready, freed->second);
          whole_[device_of_[s]].emplace_back(std::max(ready, device.ring.free), buckets[b].bytes);
          begin = std::max(begin, gather(device, buckets[b].bytes, ready));
          device.whole[{s, b}] = 1;
        }
        device.passing.clear();
        if (frees) device.passing.emplace_back(s, b);
      }
      flush_made(*this, device);
      const std::size_t ways = device.scattered.size();
      if (!is_forward && each && ways > 1) begin = std::max(begin, device.scattered[ways - 2]);
      device.time = begin + (is_forward ? buckets[b].forward : buckets[b].backward);
      device.parts.push_back(device.time);
      if (reduces && buckets[b].bytes > 0) {
        auto& list = t_.reduce == "behind-last-backward" ? late : device.made;
        list.push_back({s, b, device.time, last});
      }
    }
    for (Waiting& one : late) one.ready = device.time;
    device.made.insert(device.made.end(), late.begin(), late.end());
    if (is_forward) return;
    for (const auto& one : device.passing) free(device, one);
    device.passing.clear();
  }

  void send(std::uint32_t d, const Op& op) {
    const bool is_forward = op.kind == OpKind::forward;
    const std::uint32_t s = op.stage.value;
    const std::uint32_t m = op.micro_batch.value;
    const std::int64_t end = devices_[d].time;
    if (is_forward && s + 1 == t_.stages.size()) {
      arrived_[{false, s, m}] = end;
    } else if (is_forward || s > 0) {
      const std::uint32_t to = is_forward ? s + 1 : s - 1;
      std::int64_t there = end;
      if (device_of_[to] != d)
        there = line(d, device_of_[to]).send(end, flow(t_.output_kib * 1024), t_.latency_us * 1000);
      arrived_[{is_forward, to, m}] = there;
    }
  }

  Line& line(std::uint32_t from, std::uint32_t to) {
    // With two devices both directions of a stage's tensors end on the same one.
    return (from + 1) % lists_.size() == to ? devices_[from].up : devices_[from].down;
  }

  void end_mini_batch() {
    std::int64_t flush = 0;
    for (Device& device : devices_) {
      flush_made(*this, device);
      flush = std::max(flush, device.time);
      for (const std::int64_t end : device.reduced) flush = std::max(flush, end);
    }
    std::int64_t end = flush;
    std::vector<std::int64_t> times(devices_.size(), flush);
    std::vector<std::int64_t> updated;
    for (std::size_t s = 0; s < t_.stages.size(); ++s) {
      std::int64_t update = 0;
      for (const Training::Layer& layer : t_.stages[s]) update += layer.update * 1000;
      times[device_of_[s]] += (update + sharers() - 1) / sharers();
      updated.push_back(times[device_of_[s]]);
      end = std::max(end, updated.back());
    }
    for (std::size_t s = 0; s < t_.stages.size() && t_.zero == 2; ++s) {
      std::int64_t bytes = 0;
      for (const Bucket& bucket : buckets_[s]) bytes += bucket.bytes;
      if (bytes > 0) end = std::max(end, gather(devices_[device_of_[s]], bytes, updated[s]));
    }
    gate_ = end;
    for (std::size_t d = 0; d < devices_.size(); ++d) {  // weights that stayed are old now
      for (const auto& [one, whole] : devices_[d].whole)
        whole_[d].emplace_back(end, -buckets_[one.first][one.second].bytes);
    }
  }

  const Training& t_;
  OpLists lists_;
  std::vector<std::uint32_t> device_of_;
  std::vector<std::vector<Bucket>> buckets_;
  std::vector<Device> devices_;
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::int64_t> arrived_;
  std::int64_t gate_ = 0;
  /// By device: when bytes of gathered weights came and went.
  std::map<std::size_t, std::vector<std::pair<std::int64_t, std::int64_t>>> whole_;
};

/// The most weights that are whole on a device beside its share, as the prediction counts them.
std::int64_t counted_whole(const Outcome& outcome, std::uint32_t slot) {
  const TrainingSetup& setup = outcome.setup;
  const MemoryRules rules = memory_rules(setup);
  std::int64_t shares = 0;
  const auto stages = outcome.graph.stages_by_slot();
  for (const std::uint32_t s : stages[slot]) {
    const std::int64_t sharers = rules.sharing.sharers(outcome.graph.members(s));
    shares += (setup.costs.stages[s].gathered.count + sharers - 1) / sharers;
  }
  return outcome.memory[slot].peak.weights.count - shares;
}

Training random_training(Dice& dice) {
  constexpr std::array schedules = {"1f1b", "gpipe", "naive", "interleaved-1f1b", "looped-bfs"};
  constexpr std::array reductions = {"each-backward", "in-groups-each-backward",
                                     "with-last-backward", "behind-last-backward"};
  constexpr std::array reshards = {"each-pass", "after-forward", "after-backward",
                                   "after-mini-batch"};
  const auto one_of = [&](const auto& words) {
    return words[static_cast<std::size_t>(dice.roll(0, std::ssize(words) - 1))];
  };
  Training t;
  t.schedule = one_of(schedules);
  t.devices = dice.roll(1, 3);
  const bool has_chunks = t.schedule == "interleaved-1f1b" || t.schedule == "looped-bfs";
  if (has_chunks) {
    t.devices = std::max<std::int64_t>(t.devices, 2);
    t.chunks = dice.roll(2, 3);
  }
  t.micro_batches = t.devices * dice.roll(1, 3);
  t.mini_batches = dice.roll(1, 2);
  t.degree = std::array{0, 0, 2, 3}[static_cast<std::size_t>(dice.roll(0, 3))];
  t.copies = t.degree == 0 ? dice.roll(2, 5) : t.degree * dice.roll(1, 3);
  for (std::int64_t s = 0; s < t.devices * t.chunks; ++s) {
    auto& stage = t.stages.emplace_back();
    for (std::int64_t i = dice.roll(1, 4); i > 0; --i)
      stage.push_back({dice.roll(1, 900), dice.roll(1, 900), dice.roll(0, 40),
                       dice.roll(0, 3) == 0 ? 0 : dice.roll(1, 9000)});
  }
  t.output_kib = dice.roll(0, 90);
  t.latency_us = dice.roll(0, 9);
  t.mb_per_s = dice.roll(500, 90'000);
  t.bucket_kib = dice.roll(1, 9000);
  t.zero = dice.roll(0, 3) == 0 ? 2 : 3;
  t.prefetch = t.zero == 3 ? dice.roll(0, 3) : 1;
  t.reduce = one_of(reductions);
  if (t.zero == 3) t.reshard = one_of(reshards);
  return t;
}

TEST_CASE(
    "a slow model agrees to the nanosecond: reductions, weights that stay, groups of copies") {
  Dice dice(49);
  std::map<std::string, int> seen;
  int devices = 0, exact = 0;
  for (std::uint64_t trial = 0; trial < trials(1000); ++trial) {
    const Training t = random_training(dice);
    CAPTURE(t.text());
    const Outcome one = predicted(t.text());
    const Outcome all = predicted(t.text(), Evaluation::events);
    CHECK(all.trace == longest_path(all.graph));
    CHECK(all.metrics.makespan == one.metrics.makespan);
    CHECK(all.memory[0].peak.sum() == one.memory[0].peak.sum());
    SlowModel slow(t, one.setup);
    CHECK(slow.run() == one.metrics.makespan.count());
    // Of both answers the order of the passes is the same, and no run holds more than is counted.
    const MemoryRules rules = memory_rules(one.setup);
    CHECK(holders_of(one.setup).neighbours == holders_of(all.graph, rules).neighbours);
    CHECK(holders_of(one.setup).backwards == holders_of(all.graph, rules).backwards);
    for (std::uint32_t d = 0; t.zero == 3 && d < one.graph.slots(); ++d) {
      const std::int64_t most = slow.most_whole(d), counted = counted_whole(one, d);
      CHECK(most <= counted);
      ++devices;
      exact += most == counted ? 1 : 0;
    }
    ++seen[t.reduce];
    ++seen[t.reshard];
    ++seen[t.degree == 0 ? "all" : "groups"];
  }
  CHECK(seen.size() == 10);
  CHECK(exact > devices * 8 / 10);
}

}  // namespace
}  // namespace plumbline::test
