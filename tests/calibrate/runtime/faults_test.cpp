// Runs with planted faults: each ends soon, and with the right diagnosis.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "base/bug.h"
#include "calibrate/runtime/runner.h"
#include "calibrate/runtime/synthetic.h"
#include "sim/engine/idle.h"
#include "sim/planning/predict.h"
#include "tests/support/rules.h"
#include "tests/support/subject.h"
#include "tests/support/text_source.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

constexpr std::uint64_t kRuns = trials(1'250);
constexpr std::uint64_t kHangs = 10;
/// A run shall end within a second; the machine that tests may be busy.
constexpr double kLongest_s = 2;
constexpr std::chrono::milliseconds kHang{1'500};

/// Writes small pipelines whose ops take some 20 to 100 us.
class Author {
 public:
  explicit Author(Dice& dice) : dice_(dice) {}

  std::string write() {
    static const std::vector<ScheduleRule> rules = window_rules();
    const ScheduleRule& rule =
        rules[static_cast<std::size_t>(dice_.roll(0, static_cast<std::int64_t>(rules.size()) - 1))];
    const std::int64_t stages = rule.whole_model ? 1 : dice_.roll(2, 5);
    const std::int64_t layers = rule.whole_model ? dice_.roll(1, 6) : stages + dice_.roll(0, 3);
    std::int64_t copies = rule.whole_model ? dice_.roll(2, 4) : 1;
    std::vector<std::int64_t> replicas(static_cast<std::size_t>(stages), 1);
    std::int64_t micro_batches = dice_.roll(1, 5);
    if (!rule.whole_model && chance(3)) {
      for (std::int64_t& r : replicas) r = dice_.roll(1, 2);
      if (!rule.asynchronous) micro_batches = 2 * dice_.roll(1, 2);
    }
    std::int64_t devices = 0;
    for (const std::int64_t r : replicas) devices += r;
    if (!rule.whole_model && !rule.asynchronous && devices < 5 && chance(3)) copies = 2;

    std::string text = fmt::format(
        "version: 1\nmodel:\n  uniform: {{layers: {}, forward: {}, backward: {}, update: {}, "
        "output: {} KiB, activation: 8 KiB, parameters: {} KiB}}\n",
        layers, time(20, 60), time(20, 100), time(0, 20), dice_.roll(0, 64), dice_.roll(1, 64));
    if (!rule.whole_model && chance(4)) {
      text += fmt::format("cluster:\n  levels: [{{size: 2, {}}}, {{size: {}, {}}}]\n", link(),
                          (devices * copies + 1) / 2, link());
    } else {
      text += fmt::format("cluster:\n  devices: {}\n  link: {{{}}}\n", devices * copies, link());
    }
    if (!rule.whole_model) {
      text += fmt::format("plan:\n  stages: {}\n  data_parallel: {}\n", stages, copies);
      if (devices > stages) text += fmt::format("  replicas: [{}]\n", fmt::join(replicas, ", "));
    }
    text += fmt::format("schedule:\n  name: {}\n  micro_batches: {}\n", rule.name, micro_batches);
    if (chance(3)) text += fmt::format("  mini_batches: {}\n", dice_.roll(2, 3));
    const bool blocks = chance(3);
    if (blocks) text += "  transfers: blocking\n";
    const bool recomputes = chance(3);
    const bool whole = recomputes && chance(2);
    if (recomputes) text += whole ? "  recompute: full\n" : "  recompute: layers\n";
    if (whole && !blocks && !rule.asynchronous && chance(2)) text += "  recompute_early: true\n";
    if (rule.whole_model || (!rule.asynchronous && chance(2)))
      text += fmt::format("  bucket: {} KiB\n", dice_.roll(1, 64));
    if (rule.asynchronous) {
      constexpr const char* weights[] = {"stash", "vertical-sync", "none"};
      text += fmt::format("  weights: {}\n", weights[dice_.roll(0, 2)]);
    }
    return text;
  }

 private:
  bool chance(std::int64_t one_in) { return dice_.roll(1, one_in) == 1; }
  std::string time(std::int64_t min, std::int64_t max) {
    return fmt::format("{} us", dice_.roll(min, max));
  }
  std::string link() {
    return fmt::format("latency: {}{}", chance(2) ? "0 us" : time(1, 20),
                       chance(3) ? "" : fmt::format(", bandwidth: {} GB/s", dice_.roll(1, 8)));
  }

  Dice& dice_;
};

Result<Scenario> scenario_of(const std::string& text) {
  return parse_scenario(text_source("faults.yaml", text), {});
}

/// The faults of the workers.
struct Fault {
  std::optional<std::uint32_t> throws_at;
  std::optional<std::uint32_t> hangs_at;
  std::optional<std::uint32_t> refuses_tensor;  ///< A transfer whose taking throws.
  std::optional<std::uint32_t> refuses_to_prepare;
  bool throws_a_number = false;
  bool is_a_bug = false;
};

class FaultyWorker : public Worker {
 public:
  FaultyWorker(std::unique_ptr<Worker> inner, const Fault& fault, std::uint32_t slot)
      : inner_(std::move(inner)), fault_(fault), slot_(slot) {}

  void prepare() override {
    if (fault_.refuses_to_prepare == slot_) throw std::runtime_error("no such device (planted)");
    inner_->prepare();
  }
  Work run(const Task& task, const std::atomic<bool>& stop) override {
    if (fault_.throws_at == task.node) {
      if (fault_.throws_a_number) throw 42;
      PLUMBLINE_CHECK(!fault_.is_a_bug, task.node);
      throw std::runtime_error("out of memory (planted)");
    }
    if (fault_.hangs_at == task.node) std::this_thread::sleep_for(kHang);
    return inner_->run(task, stop);
  }
  Duration min_time(std::uint32_t iteration, std::uint32_t node,
                    Duration predicted) const override {
    return inner_->min_time(iteration, node, predicted);
  }
  void take(std::uint32_t transfer) override {
    if (fault_.refuses_tensor == transfer) throw std::runtime_error("bad tensor (planted)");
  }

 private:
  std::unique_ptr<Worker> inner_;
  Fault fault_;
  std::uint32_t slot_;
};

class FaultyBackend : public Backend {
 public:
  explicit FaultyBackend(const Fault& fault) : fault_(fault) {}

  std::string_view name() const override { return "faulty"; }
  std::string device_text() const override { return "threads with a fault"; }
  bool has_own_overheads() const override { return inner_->has_own_overheads(); }
  std::vector<std::unique_ptr<Worker>> workers(const RunPlan& plan) override {
    auto workers = inner_->workers(plan);
    for (std::uint32_t slot = 0; slot < workers.size(); ++slot)
      workers[slot] = std::make_unique<FaultyWorker>(std::move(workers[slot]), fault_, slot);
    return workers;
  }

 private:
  std::unique_ptr<Backend> inner_ = synthetic_backend({});
  Fault fault_;
};

/// The expected outcome, found without threads and without time. Every device executes its order as
/// far as it can, and all sent tensors arrive, until nothing moves any more. No device's choice
/// depends on who comes first. So all real runs end in this one state, or fail on the way to it.
class Oracle {
 public:
  Oracle(const Subject& subject, const DeviceOrders& orders, const Fault& fault)
      : subject_(subject),
        graph_(subject.graph),
        orders_(orders),
        fault_(fault),
        known_(graph_.size(), false),
        ends_here_(graph_.size(), 0),
        done_(orders.size()),
        updates_(orders.size(), std::vector<std::uint32_t>(graph_.stage_slots.size(), 0)),
        at_(orders.size(), 0),
        stands_(orders.size()) {
    std::vector<std::uint32_t> last(graph_.resources(), graph_.size());
    before_.assign(graph_.size(), graph_.size());
    needs_.resize(graph_.size());
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      const Node& n = graph_.nodes[node];
      if (n.input != graph_.size()) needs_[node].push_back(n.input);
      if (n.resource < graph_.slots()) continue;
      before_[node] = last[n.resource];
      last[n.resource] = node;
    }
    for (const Join& join : graph_.joins)
      needs_[join.node].insert(needs_[join.node].end(), join.inputs.begin(), join.inputs.end());
    while (move_devices() || move_links()) {
    }
  }

  /// The ops at which a device must fail; the run ends with one of them.
  std::set<std::uint32_t> failures() const {
    std::set<std::uint32_t> nodes;
    for (const DeviceStand& stand : stands_) {
      if (stand.state == DeviceStand::State::failed) nodes.insert(stand.node);
    }
    return nodes;
  }
  std::string reason(std::uint32_t node) const { return reasons_.at(node); }
  bool all_done() const {
    return std::all_of(stands_.begin(), stands_.end(), [](const DeviceStand& stand) {
      return stand.state == DeviceStand::State::done;
    });
  }
  std::optional<std::uint32_t> first_never_run() const {
    const auto found = std::find(known_.begin(), known_.end(), false);
    if (found == known_.end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - known_.begin());
  }
  const std::vector<DeviceStand>& stands() const { return stands_; }

 private:
  std::optional<std::uint32_t> lacks(std::uint32_t node) const {
    for (const std::uint32_t need : needs_[node]) {
      if (!known_[need]) return need;
    }
    return std::nullopt;
  }

  bool move_links() {
    bool any = false;
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (known_[node] || is_compute(graph_.activities[node].kind) || lacks(node)) continue;
      const bool blocking = graph_.nodes[node].resource < graph_.slots();
      if (blocking && ends_here_[node] < 2) continue;
      if (before_[node] != graph_.size() && !known_[before_[node]]) continue;
      known_[node] = any = true;
    }
    return any;
  }

  bool move_devices() {
    bool any = false;
    for (std::uint32_t slot = 0; slot < orders_.size(); ++slot) {
      while (move(slot)) any = true;
    }
    return any;
  }

  bool move(std::uint32_t slot) {
    DeviceStand& stand = stands_[slot];
    if (stand.state == DeviceStand::State::failed) return false;
    if (at_[slot] == orders_[slot].size()) {
      stand = {};
      return false;
    }
    const std::uint32_t node = orders_[slot][at_[slot]];
    std::optional<std::uint32_t> lacking;
    if (is_compute(graph_.activities[node].kind)) {
      lacking = lacks(node);
    } else {
      if (stand.waits_for != node) ++ends_here_[node];
      if (!known_[node]) lacking = node;
    }
    if (lacking) {
      stand = {DeviceStand::State::waits, node, lacking};
      return false;
    }
    if (is_compute(graph_.activities[node].kind) && !execute(slot, node)) {
      stand = {DeviceStand::State::failed, node, std::nullopt};
      return false;
    }
    ++at_[slot];
    stand = {};
    return true;
  }

  bool execute(std::uint32_t slot, std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    const auto has = [&](ActivityKind kind) {
      return done_[slot].count({kind, activity.stage.value, activity.micro_batch.value}) > 0;
    };
    const bool is_backward = activity.kind == ActivityKind::backward ||
                             activity.kind == ActivityKind::backward_part ||
                             activity.kind == ActivityKind::backward_input;
    if (graph_.asynchronous() && (is_backward || activity.kind == ActivityKind::forward)) {
      const VersionUse& use =
          subject_.setup.weights[activity.stage.value].uses[activity.micro_batch.value];
      const std::uint32_t version = is_backward ? use.backward : use.forward;
      if (version > updates_[slot][activity.stage.value]) reasons_[node] = "needs version";
    }
    if (reasons_.count(node) == 0 && is_backward && !has(ActivityKind::forward))
      reasons_[node] = "runs before";
    if (reasons_.count(node) == 0 && fault_.throws_at == node) reasons_[node] = "planted";
    if (reasons_.count(node) > 0) return false;
    if (activity.kind == ActivityKind::update) ++updates_[slot][activity.stage.value];
    done_[slot].insert({activity.kind, activity.stage.value, activity.micro_batch.value});
    known_[node] = true;
    return true;
  }

  const Subject& subject_;
  const OpGraph& graph_;
  const DeviceOrders& orders_;
  Fault fault_;
  std::vector<std::vector<std::uint32_t>> needs_;
  std::vector<std::uint32_t> before_;  ///< On the same channel.
  std::vector<bool> known_;
  std::vector<std::uint32_t> ends_here_;  ///< For a blocking transfer, the devices that have come.
  std::vector<std::set<std::tuple<ActivityKind, std::uint32_t, std::uint32_t>>> done_;
  std::vector<std::vector<std::uint32_t>> updates_;  ///< By slot and stage.
  std::vector<std::size_t> at_;
  std::vector<DeviceStand> stands_;
  std::map<std::uint32_t, std::string> reasons_;
};

struct Timed {
  std::variant<RunRecord, RunFailure> result;
  double took_s = 0;
};

Timed timed_run(const Subject& subject, const DeviceOrders& orders, const Fault& fault,
                std::chrono::milliseconds patience = RunOptions{}.patience) {
  FaultyBackend backend(fault);
  RunOptions options;
  options.warm_up = 0;
  options.iterations = options.max_iterations = 1;
  options.patience = patience;
  const RealTime begin = now();
  auto result = run(subject.plan(), backend, orders, options);
  return {std::move(result), static_cast<double>(now() - begin) / 1e9};
}

/// Whether both say the same of every device.
bool equal(const std::vector<DeviceStand>& a, const std::vector<DeviceStand>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const DeviceStand& x, const DeviceStand& y) {
                      return x.state == y.state && x.waits_for == y.waits_for &&
                             (x.state == DeviceStand::State::done || x.node == y.node);
                    });
}

std::string op(const OpGraph& graph, std::uint32_t node) { return to_text(graph.activities[node]); }

/// How often each end was met.
struct Tally {
  std::uint64_t records = 0, deadlocks = 0, failures = 0, incomplete = 0;
};

void check_failure(const Subject& subject, const Oracle& oracle, const RunFailure& failure) {
  CHECK(failure.kind == RunFailure::Kind::failed);
  const auto expected = oracle.failures();
  std::uint32_t failed = 0;
  for (std::uint32_t slot = 0; slot < failure.stands.size(); ++slot) {
    const DeviceStand& stand = failure.stands[slot];
    if (stand.state != DeviceStand::State::failed) continue;
    ++failed;
    CHECK(expected.count(stand.node) == 1);
    if (expected.count(stand.node) == 0) continue;
    const std::string begin =
        fmt::format("device {} failed at {}: ", subject.graph.devices[slot].value,
                    op(subject.graph, stand.node));
    CHECK(failure.message.substr(0, begin.size()) == begin);
    CHECK(failure.message.find(oracle.reason(stand.node)) != std::string::npos);
  }
  CHECK(failed == 1);
}

void check_end(const Subject& subject, const DeviceOrders& orders, const Fault& fault,
               const std::variant<RunRecord, RunFailure>& result, Tally& tally) {
  const Oracle oracle(subject, orders, fault);
  const auto* failure = std::get_if<RunFailure>(&result);
  const std::string what = failure
                               ? failure->message + "\n" + to_text(subject.graph, failure->stands)
                               : std::string("a record");
  CAPTURE(what);
  if (!oracle.failures().empty()) {
    ++tally.failures;
    REQUIRE(failure);
    check_failure(subject, oracle, *failure);
  } else if (!oracle.all_done()) {
    ++tally.deadlocks;
    REQUIRE(failure);
    CHECK(failure->kind == RunFailure::Kind::deadlock);
    const std::string expected = to_text(subject.graph, oracle.stands());
    CAPTURE(expected);
    CHECK(equal(failure->stands, oracle.stands()));
  } else if (const auto missing = oracle.first_never_run()) {
    ++tally.incomplete;
    REQUIRE(failure);
    CHECK(failure->kind == RunFailure::Kind::incomplete);
    CHECK(failure->message ==
          fmt::format("all devices have ended, but {} was never run", op(subject.graph, *missing)));
  } else {
    ++tally.records;
    REQUIRE(!failure);
    CHECK(std::get<RunRecord>(result).iterations.size() == 1);
  }
}

/// A random op of a device.
std::uint32_t any_op(const Subject& subject, Dice& dice) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t node = 0; node < subject.graph.size(); ++node) {
    if (is_compute(subject.graph.activities[node].kind)) ops.push_back(node);
  }
  return ops[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(ops.size()) - 1))];
}

/// The order of a device that has any ops: a replica may have had no micro-batch.
std::vector<std::uint32_t>& any_order(DeviceOrders& orders, Dice& dice) {
  while (true) {
    auto& order = orders[static_cast<std::size_t>(
        dice.roll(0, static_cast<std::int64_t>(orders.size()) - 1))];
    if (!order.empty()) return order;
  }
}

std::string plant_missing(const Subject& subject, DeviceOrders& orders, Dice& dice) {
  auto& order = any_order(orders, dice);
  const auto at = dice.roll(0, static_cast<std::int64_t>(order.size()) - 1);
  std::string text = "missing " + op(subject.graph, order[static_cast<std::size_t>(at)]);
  order.erase(order.begin() + at);
  return text;
}

std::string plant_swap(const Subject& subject, DeviceOrders& orders, Dice& dice) {
  auto& order = any_order(orders, dice);
  if (order.size() < 2) return "nothing to swap";
  const auto at =
      static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(order.size()) - 2));
  std::swap(order[at], order[at + 1]);
  return fmt::format("swapped: now {}, {}", op(subject.graph, order[at]),
                     op(subject.graph, order[at + 1]));
}

TEST_CASE("every run with a planted fault ends within a second with the right diagnosis" *
          doctest::test_suite("measures")) {
  Tally tally;
  double slowest_s = 0;
  std::string slowest;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    Dice dice(seed);
    const std::string text = Author(dice).write();
    CAPTURE(text);
    CAPTURE(seed);
    const Subject subject(scenario_of(text), /*for_run=*/false);
    DeviceOrders orders = nodes_by_slot(subject.graph);
    Fault fault;
    std::string planted;
    const std::int64_t kind = seed % 5 == 0 ? 0 : dice.roll(1, 4);  // every fifth has no fault
    if (kind == 1) planted = plant_missing(subject, orders, dice);
    if (kind == 2 || kind == 4) planted = plant_swap(subject, orders, dice);
    if (kind == 3 || kind == 4) {
      fault.throws_at = any_op(subject, dice);
      planted += " throws at " + op(subject.graph, *fault.throws_at);
    }
    CAPTURE(planted);
    const Timed timed = timed_run(subject, orders, fault);
    check_end(subject, orders, fault, timed.result, tally);
    CHECK(timed.took_s < kLongest_s);
    if (timed.took_s > slowest_s) {
      slowest_s = timed.took_s;
      slowest = planted;
    }
  }
  MESSAGE(fmt::format("{} records, {} deadlocks, {} failures, {} incomplete; slowest {:.3f} s ({})",
                      tally.records, tally.deadlocks, tally.failures, tally.incomplete, slowest_s,
                      slowest));
  // The generator reaches what it is for.
  CHECK(tally.records * 10 > kRuns);
  CHECK(tally.deadlocks * 10 > kRuns);
  CHECK(tally.failures * 10 > kRuns);
  CHECK(tally.incomplete > 0);
}

TEST_CASE("an op that hangs is named, and the run ends without it" *
          doctest::test_suite("measures")) {
  // The threads that hang need these after the run, so they are never given back: run() asks for
  // that. The pointer is kept, so that no leak is seen.
  static auto& subjects = *new std::vector<std::unique_ptr<Subject>>;
  double slowest_s = 0;
  for (std::uint64_t seed = 1; seed <= kHangs; ++seed) {
    Dice dice(seed + 10'000);
    const std::string text = Author(dice).write();
    CAPTURE(text);
    subjects.push_back(std::make_unique<Subject>(scenario_of(text), /*for_run=*/false));
    const Subject& subject = *subjects.back();
    Fault fault;
    fault.hangs_at = any_op(subject, dice);
    const Timed timed =
        timed_run(subject, nodes_by_slot(subject.graph), fault, std::chrono::milliseconds(100));
    const auto* failure = std::get_if<RunFailure>(&timed.result);
    REQUIRE(failure);
    CAPTURE(failure->message);
    CHECK(failure->kind == RunFailure::Kind::hung);
    const std::uint32_t slot = subject.graph.nodes[*fault.hangs_at].resource;
    CHECK(failure->stands[slot].state == DeviceStand::State::runs);
    CHECK(failure->stands[slot].node == *fault.hangs_at);
    const std::string begin =
        fmt::format("device {} hangs: {} has run for ", subject.graph.devices[slot].value,
                    op(subject.graph, *fault.hangs_at));
    CHECK(failure->message.substr(0, begin.size()) == begin);
    CHECK(timed.took_s < kLongest_s);
    slowest_s = std::max(slowest_s, timed.took_s);
  }
  MESSAGE(fmt::format("slowest {:.3f} s", slowest_s));
  std::this_thread::sleep_for(kHang);
}

const char* const kThreeStages =
    "version: 1\nmodel:\n  uniform: {layers: 3, forward: 50 us, backward: 50 us, output: 1 KiB}\n"
    "cluster:\n  devices: 3\n  link: {latency: 5 us}\nplan: {stages: 3}\n"
    "schedule: {name: 1f1b, micro_batches: 3}\n";

TEST_CASE("a tensor that cannot be taken is a failure of the op that needs it" *
          doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  for (std::uint32_t node = 0; node < subject.graph.size(); ++node) {
    if (!is_transfer(subject.graph.activities[node].kind)) continue;
    Fault fault;
    fault.refuses_tensor = node;
    const Timed timed = timed_run(subject, nodes_by_slot(subject.graph), fault);
    const auto* failure = std::get_if<RunFailure>(&timed.result);
    REQUIRE(failure);
    const std::uint32_t slot = subject.graph.receiver(node);
    const std::string fed = op(subject.graph, node).substr(5);  // behind "recv "
    CHECK(failure->message ==
          fmt::format("device {} failed at {}: bad tensor (planted)", slot, fed));
    CHECK(failure->stands[slot].state == DeviceStand::State::failed);
  }
}

TEST_CASE("a device that cannot be prepared is a failure without an op" *
          doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  Fault fault;
  fault.refuses_to_prepare = 1;
  const Timed timed = timed_run(subject, nodes_by_slot(subject.graph), fault);
  const auto* failure = std::get_if<RunFailure>(&timed.result);
  REQUIRE(failure);
  CHECK(failure->kind == RunFailure::Kind::failed);
  CHECK(failure->message == "device 1 failed: no such device (planted)");
}

TEST_CASE("an exception that is no std::exception ends the run too" *
          doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  Fault fault;
  fault.throws_at = nodes_by_slot(subject.graph)[1].front();
  fault.throws_a_number = true;
  const Timed timed = timed_run(subject, nodes_by_slot(subject.graph), fault);
  const auto* failure = std::get_if<RunFailure>(&timed.result);
  REQUIRE(failure);
  CHECK(failure->message == "device 1 failed at 1F0: an exception of an unknown type");
}

TEST_CASE("a bug on the thread of a device is no failure of the run, and reaches the caller" *
          doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  Fault fault;
  fault.throws_at = nodes_by_slot(subject.graph)[1].front();
  fault.is_a_bug = true;
  CHECK_THROWS_AS(timed_run(subject, nodes_by_slot(subject.graph), fault), Bug);
}

TEST_CASE("what the teller of progress throws reaches the caller, and no thread is left" *
          doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  RunOptions options;
  options.progress = [](std::uint32_t, std::uint32_t) { throw std::runtime_error("no terminal"); };
  CHECK_THROWS_WITH_AS(
      run(subject.plan(), *synthetic_backend({}), nodes_by_slot(subject.graph), options),
      "no terminal", std::runtime_error);
}

TEST_CASE("a deadlock is told device by device" * doctest::test_suite("measures")) {
  const Subject subject(scenario_of(kThreeStages), /*for_run=*/false);
  DeviceOrders orders = nodes_by_slot(subject.graph);
  orders[2].erase(orders[2].begin());  // 2F0
  const Timed timed = timed_run(subject, orders, {});
  const auto* failure = std::get_if<RunFailure>(&timed.result);
  REQUIRE(failure);
  CHECK(failure->message == "device 2 failed at 2B0: 2B0 runs before 2F0 has ended on its device");

  orders = nodes_by_slot(subject.graph);
  orders[1].erase(orders[1].begin());  // 1F0
  const Timed again = timed_run(subject, orders, {});
  failure = std::get_if<RunFailure>(&again.result);
  REQUIRE(failure);
  CHECK(failure->message == "deadlock: every device waits for another, and nothing is under way");
  CHECK(to_text(subject.graph, failure->stands) ==
        "  device 0: 0B0 waits for recv 0B0\n"
        "  device 1: 1B0 waits for recv 1B0\n"
        "  device 2: 2F0 waits for recv 2F0\n");
}

}  // namespace
}  // namespace plumbline::test
