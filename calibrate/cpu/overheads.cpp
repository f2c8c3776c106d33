// Empty pipelines; cores that update parameters.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cpu/overheads.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>

#include "base/bug.h"
#include "base/parallel.h"
#include "calibrate/cpu/buffer.h"
#include "calibrate/cpu/optimizer.h"
#include "calibrate/runtime/machine.h"
#include "calibrate/runtime/real_run.h"
#include "calibrate/runtime/synthetic.h"
#include "calibrate/runtime/thread_core.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kMicroBatches = 200;

/// The time of an op in a run of empty ops, one after the other, over `devices` devices.
double time_per_op_s(std::uint32_t devices) {
  const std::string text = fmt::format(
      "version: 1\nmodel: {{uniform: {{layers: {0}, forward: 0 ns, backward: 0 ns}}}}\n"
      "cluster: {{devices: {0}}}\nschedule: {{name: naive, micro_batches: {1}}}\n",
      devices, kMicroBatches);
  const auto scenario =
      parse_scenario(std::make_shared<const Source>(Source{"empty ops", text, ""}), {});
  PLUMBLINE_CHECK(scenario, devices);
  const auto backend = synthetic_backend({});
  RunOptions options;
  options.iterations = 20;
  const auto run = run_scenario(*scenario, *backend, options);
  PLUMBLINE_CHECK(run, devices);
  return run->time_s.median / (2.0 * kMicroBatches * devices);
}

constexpr int kRounds = 15;
/// The most parameters: far more than the caches hold.
constexpr std::size_t kMaxParameters = std::size_t{1} << 23;

/// A device that holds parameters. Two devices may hold the same ones.
class Member {
 public:
  Member(OptimizerKind kind, std::size_t parameters)
      : weights_(parameters),
        gradients_(parameters),
        fresh_(parameters),
        next_(parameters),
        other_work_(kOtherWork),
        optimizer_(kind, {0, parameters}, 1e-6),
        size_(parameters) {
    for (Buffer* buffer : {&weights_, &gradients_, &fresh_, &next_}) fill(*buffer, 0, size_, 0.0F);
    fill(other_work_, 0, kOtherWork, 0.0F);
  }

  const float* gradients() const { return gradients_.data(); }
  /// Writes gradients as backwards do, with other data in the caches too.
  void write_gradients() {
    add(other_work_, kOtherWork, 1.0F);
    add(gradients_, size_, 1e-3F);
  }
  /// Updates by the gradients of all members, layer by layer, as in a run. `elsewhere` = the old
  /// weights are kept.
  void update(const std::vector<const float*>& all, bool elsewhere = false) {
    constexpr std::size_t layer = 65536;
    optimizer_.step();
    for (std::size_t first = 0; first < size_; first += layer) {
      const std::size_t last = std::min(size_, first + layer);
      optimizer_.update({first, last}, all, weights_.data(), (elsewhere ? next_ : weights_).data());
      if (all.size() == 1) fill(gradients_, first, last, 0.0F);
    }
    if (all.size() > 1) fill(fresh_, 0, size_, 0.0F);
  }
  void take_next() { std::swap(weights_, next_); }
  /// Called when no other member reads the gradients any more.
  void take_fresh() { std::swap(gradients_, fresh_); }

 private:
  static constexpr std::size_t kOtherWork = std::size_t{1} << 24;

  static void fill(Buffer& buffer, std::size_t first, std::size_t last, float value) {
    std::fill(buffer.data() + first, buffer.data() + last, value);
  }

  static void add(Buffer& buffer, std::size_t size, float value) {
    float* const numbers = buffer.data();
    for (std::size_t i = 0; i < size; ++i) numbers[i] += value;
  }

  Buffer weights_;
  Buffer gradients_;
  Buffer fresh_;
  Buffer next_;  ///< The next version's weights.
  Buffer other_work_;
  Optimizer optimizer_;
  std::size_t size_;
};

/// The bandwidth at which `parameters` take the difference of the two medians.
std::optional<BytesPerSecond> rate_of(std::size_t parameters, std::vector<double> more_ns,
                                      std::vector<double> less_ns) {
  const double more =
      statistics_of(std::move(more_ns)).median - statistics_of(std::move(less_ns)).median;
  if (more <= 0) return std::nullopt;
  const double bytes = static_cast<double>(parameters) * sizeof(float);
  return BytesPerSecond{std::max<std::int64_t>(1, std::llround(bytes / more * 1e9))};
}

}  // namespace

std::optional<BytesPerSecond> measure_add_up(OptimizerKind optimizer, std::size_t parameters) {
  constexpr std::uint32_t members = 2;
  parameters = std::min(parameters, kMaxParameters);
  if (usable_cores() < members || parameters == 0) return std::nullopt;
  std::vector<Member> both;
  both.reserve(members);
  for (std::uint32_t i = 0; i < members; ++i) both.emplace_back(optimizer, parameters);
  std::barrier<> together(members);
  std::vector<double> alone_ns, added_ns;  // of the first member
  const auto update_together = [&](std::uint32_t self) {
    pin_to_core(self, members);
    const auto timed = [&](const std::vector<const float*>& all) {
      both[self].write_gradients();
      together.arrive_and_wait();
      const RealTime begin = now();
      both[self].update(all);
      const RealTime end = now();
      together.arrive_and_wait();
      return static_cast<double>(end - begin);
    };
    for (int round = 0; round < kRounds; ++round) {
      const double alone = timed({both[self].gradients()});
      const double added = timed({both[0].gradients(), both[1].gradients()});
      both[self].take_fresh();
      if (self > 0) continue;
      alone_ns.push_back(alone);
      added_ns.push_back(added);
    }
  };
  FirstException thrown;
  const auto leave = [&] {  // the other member continues alone
    thrown.keep_current();
    together.arrive_and_drop();
  };
  const auto work = [&](std::uint32_t self) {
    try {
      update_together(self);
    } catch (...) {
      leave();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(members);
  for (const std::uint32_t self : {1U, 0U}) {
    try {
      threads.emplace_back(work, self);
    } catch (...) {
      leave();
    }
  }
  for (std::thread& thread : threads) thread.join();
  thrown.rethrow();
  return rate_of(parameters, std::move(added_ns), std::move(alone_ns));
}

std::optional<BytesPerSecond> measure_stash(OptimizerKind optimizer, std::size_t parameters) {
  parameters = std::min(parameters, kMaxParameters);
  if (parameters == 0) return std::nullopt;
  Member one(optimizer, parameters);
  std::vector<double> in_place_ns, elsewhere_ns;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool elsewhere : {false, true}) {
      one.write_gradients();
      const RealTime begin = now();
      one.update({one.gradients()}, elsewhere);
      const RealTime end = now();
      (elsewhere ? elsewhere_ns : in_place_ns).push_back(static_cast<double>(end - begin));
    }
    one.take_next();
  }
  return rate_of(parameters, std::move(elsewhere_ns), std::move(in_place_ns));
}

Overheads measure_overheads() {
  const double alone = time_per_op_s(1);
  const double together = time_per_op_s(2);
  // Of two devices' ops, all but the two at the ends hand over.
  Overheads overheads;
  overheads.per_op = round_up(alone * 1e9);
  overheads.hand_over = round_up(std::max(0.0, 2 * (together - alone)) * 1e9);
  return overheads;
}

}  // namespace plumbline
