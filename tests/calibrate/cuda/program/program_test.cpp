// Op graphs as programs for streams: the order, the waits, the memory; there is no device.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/program/program.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/engine/idle.h"
#include "tests/support/subject.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Subject subject_of(const std::string& rest) {
  return Subject(parse_scenario(text_source("program.yaml",
                                            "version: 1\nmodel:\n  uniform: {layers: 4, "
                                            "forward: 1 us, backward: 2 us, "
                                            "output: 1 KiB, parameters: 1 KiB}\n" +
                                                rest),
                                {}),
                 /*for_run=*/true);
}

std::string devices(int count, const std::string& schedule, const std::string& more = "") {
  return "cluster: {devices: " + std::to_string(count) + "}\nschedule: {" + schedule + "}\n" + more;
}

constexpr std::size_t kParameters = 100;  // bytes of each stage
const StageBytes kSizes{.parameters = kParameters,
                        .input = 8,
                        .output = 8,
                        .kept = 16,
                        .left = 24,
                        .checkpoints = 12,
                        .again = 4,
                        .recomputed_at_once = 8};

/// The layers of a stage have as many parameters each.
std::vector<StageBytes> sizes_of(const Subject& subject) {
  std::vector<StageBytes> sizes;
  for (const Stage& stage : subject.setup.partition.stages) {
    StageBytes& bytes = sizes.emplace_back(kSizes);
    for (std::size_t i = 0; i < stage.layers.size(); ++i)
      bytes.layers.push_back(kParameters * i / stage.layers.size());
  }
  return sizes;
}

/// Where the gradients are that a step adds to: those of its layers.
ByteRange gradients_of(const CudaStep& step, const StageBytes& bytes) {
  ByteRange range{0, kParameters};
  if (step.begin > 0) range.begin = bytes.layers[step.begin];
  if (step.end < bytes.layers.size()) range.end = bytes.layers[step.end];
  return range;
}

CudaProgramOrFailure program_of(const Subject& subject, const DeviceOrders& orders,
                                const CudaProgramRules& rules = {}) {
  return cuda_program(subject.plan(), sizes_of(subject), orders, rules);
}

/// A step's use of a part of a block, or of a stage's weights.
struct Use {
  std::uint32_t step = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool writes = false;

  bool collides(const Use& other) const {
    return (writes || other.writes) && begin < other.end && other.begin < end;
  }
};

/// Behind all blocks: the numbered weights of a stage.
std::uint32_t weights_of(std::uint32_t on, std::uint32_t number) {
  return 1'000'000 + 100 * on + number;
}

/// The reads and writes of a step, by block.
std::multimap<std::uint32_t, Use> uses_of(const CudaProgram& program, std::uint32_t number,
                                          const std::vector<StageBytes>& sizes) {
  const CudaStep& step = program.steps[number];
  std::multimap<std::uint32_t, Use> uses;
  const auto add = [&](const CudaPiece& piece, std::size_t bytes, bool writes) {
    const bool of_weights = piece.on != kNone32;
    REQUIRE(piece.at + bytes <= (of_weights ? kParameters : program.blocks[piece.block].bytes));
    const std::uint32_t key = of_weights ? weights_of(piece.on, piece.weights) : piece.block;
    uses.insert({key, {number, piece.at, piece.at + bytes, writes}});
  };
  for (const CudaPiece& member : step.members) add(member, step.bytes, false);
  const auto is_there = [](const CudaPiece& piece) {
    return piece.block != kNone32 || piece.on != kNone32;
  };
  if (is_there(step.from)) add(step.from, step.bytes, false);
  if (is_there(step.to)) add(step.to, step.bytes, true);
  if (step.kind <= CudaStep::Kind::update)
    add({kNone32, 0, step.on, step.weights}, kParameters, false);
  if (step.kind == CudaStep::Kind::update) {
    for (const ByteRange& range : program.stages[step.on].updated)
      add({kNone32, range.begin, step.on, step.made}, range.size(), true);
  }
  const bool runs_forward = step.kind == CudaStep::Kind::forward ||
                            step.kind == CudaStep::Kind::recompute || step.recomputes;
  const auto whole = [&](std::uint32_t block, bool writes) {
    if (block != kNone32) add({block, 0}, program.blocks[block].bytes, writes);
  };
  whole(step.input, false);
  whole(step.output, runs_forward);
  whole(step.kept, runs_forward);
  whole(step.checkpoints, runs_forward);
  whole(step.left, true);
  whole(step.output_gradient, false);
  whole(step.input_gradient, true);
  if (step.gradients != kNone32) {  // an update clears all of them
    const ByteRange range = gradients_of(step, sizes[program.stages[step.on].stage]);
    add({step.gradients, range.begin}, range.size(), true);
  }
  return uses;
}

/// For each step, all steps that have ended when it begins, by streams and waits alone.
std::vector<std::vector<bool>> known_before(const CudaProgram& program) {
  std::vector<std::vector<bool>> known(program.steps.size());
  std::map<std::uint32_t, std::uint32_t> last;
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const CudaStep& step = program.steps[i];
    known[i].assign(program.steps.size(), false);
    const auto learn = [&](std::uint32_t from) {
      for (std::uint32_t j = 0; j < program.steps.size(); ++j)
        known[i][j] = known[i][j] || known[from][j];
      known[i][from] = true;
    };
    const auto found = last.find(step.stream);
    if (found != last.end()) learn(found->second);
    for (const std::uint32_t before : step.waits) learn(before);
    last[step.stream] = i;
  }
  return known;
}

const std::vector<std::string>& plans() {
  static const std::vector<std::string> all = {
      devices(4, "name: 1f1b, micro_batches: 6"),
      devices(4, "name: gpipe, micro_batches: 5"),
      devices(4, "name: gpipe, micro_batches: 5, recompute: full, recompute_early: true"),
      devices(4,
              "name: 1f1b, micro_batches: 3, bucket: 1 KiB, recompute: full, "
              "recompute_early: true",
              "plan: {stages: 2, data_parallel: 2}\n"),
      devices(4, "name: eager-1f1b, micro_batches: 6, mini_batches: 2"),
      devices(2, "name: gpipe, micro_batches: 3, transfers: blocking"),
      devices(4, "name: 1f1b, micro_batches: 4, transfers: blocking"),
      devices(3, "name: 1f1b, micro_batches: 6, mini_batches: 2",
              "plan: {stages: 2, replicas: [2, 1]}\n"),
      devices(4, "name: 1f1b, micro_batches: 4", "plan: {stages: 2, data_parallel: 2}\n"),
      devices(3, "name: data-parallel, micro_batches: 2"),
      devices(4, "name: pipedream, micro_batches: 4, mini_batches: 2"),
      devices(3, "name: pipedream, micro_batches: 4, weights: two",
              "plan: {stages: 2, replicas: [2, 1]}\n"),
      devices(4, "name: 1f1b, micro_batches: 4, mini_batches: 2",
              "plan: {stages: 2, data_parallel: 2}\ntraining: {zero_stage: 1}\n"),
      devices(4, "name: gpipe, micro_batches: 3, transfers: blocking",
              "plan: {stages: 2, replicas: [3, 1]}\ntraining: {zero_stage: 1}\n"),
      devices(3, "name: data-parallel, micro_batches: 2, bucket: 1 KiB",
              "training: {zero_stage: 1}\n"),
      devices(4, "name: 1f1b, micro_batches: 3, bucket: 1 KiB",
              "plan: {stages: 2, data_parallel: 2}\n"),
      devices(4, "name: zb-h1, micro_batches: 4, bucket: 1 KiB",
              "plan: {stages: 2, data_parallel: 2}\ntraining: {zero_stage: 1}\n"),
      devices(4, "name: chimera, micro_batches: 4", "training: {zero_stage: 1}\n")};
  return all;
}

/// With and without recomputation; by copies and by communicators.
struct Way {
  Recompute recompute;
  bool communicators;
};
constexpr Way kWays[] = {{Recompute::none, false},   {Recompute::full, false},
                         {Recompute::layers, false}, {Recompute::none, true},
                         {Recompute::full, true},    {Recompute::layers, true}};

/// A sharded optimizer has no communicators.
bool is_run(const Subject& subject, const Way& way) {
  if (subject.setup.rules.recompute_early && way.recompute != Recompute::full) return false;
  return !way.communicators || subject.setup.rules.sharing.state == Sharded::nothing;
}

TEST_CASE("a program does every op once, behind all that the graph says it waits for") {
  for (const std::string& rest : plans()) {
    for (const Way& way : kWays) {
      CAPTURE(rest);
      CAPTURE(way.communicators);
      const Subject subject = subject_of(rest);
      if (!is_run(subject, way)) continue;
      const OpGraph& graph = subject.graph;
      const auto made =
          program_of(subject, nodes_by_slot(graph),
                     {way.recompute, subject.scenario.schedule.updates, way.communicators});
      REQUIRE(made.program);
      const CudaProgram& program = *made.program;
      CHECK(std::is_sorted(program.order.begin(), program.order.end()));
      CHECK(program.order.size() == graph.size());
      const auto known = known_before(program);
      for (std::uint32_t node = 0; node < graph.size(); ++node) {
        CAPTURE(to_text(graph.activities[node]));
        const ActivityKind kind = graph.activities[node].kind;
        const bool is_step = is_transfer(kind) || is_compute(kind);
        if (is_step) REQUIRE(program.step_of[node] != kNone32);
        const std::uint32_t after = graph.nodes[node].input;
        if (!is_step || after == graph.size() || program.step_of[after] == kNone32) continue;
        CHECK(known[program.step_of[node]][program.step_of[after]]);
      }
    }
  }
}

TEST_CASE("a bucket's reduction waits for the part that makes it, and for no later one") {
  for (const std::string schedule : {"gpipe", "zb-h1"}) {
    CAPTURE(schedule);
    const Subject subject =
        subject_of(devices(2, "name: " + schedule + ", micro_batches: 2, bucket: 1 KiB",
                           "plan: {stages: 1, data_parallel: 2}\n"));
    const auto made = program_of(subject, nodes_by_slot(subject.graph));
    REQUIRE(made.program);
    const CudaProgram& program = *made.program;
    const auto known = known_before(program);
    int sums = 0;
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const CudaStep& sum = program.steps[i];
      if (sum.kind != CudaStep::Kind::add_up) continue;
      ++sums;
      const std::size_t layer = sum.to.at * 4 / kParameters;  // a quarter each, and a bucket
      for (std::uint32_t k = 0; k < program.steps.size(); ++k) {
        const CudaStep& pass = program.steps[k];
        const bool makes =
            pass.kind == CudaStep::Kind::backward || pass.kind == CudaStep::Kind::backward_weight;
        if (!makes || pass.micro_batch != 1 || pass.slot != sum.slot) continue;
        CAPTURE(layer);
        CAPTURE(pass.begin);
        CHECK(std::min<std::size_t>(pass.end, 4) == pass.begin + 1);
        CHECK(known[i][k] == (pass.begin >= layer));
      }
    }
    CHECK(sums == 2 * 4);
  }
}

TEST_CASE("a stage that runs no layer again holds all, another what it makes again") {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    CAPTURE(schedule);
    Subject subject =
        subject_of(devices(2, std::string("name: ") + schedule + ", micro_batches: 4"));
    subject.setup.recomputed = {1, 0};
    const auto made = program_of(subject, nodes_by_slot(subject.graph),
                                 {Recompute::layers, subject.scenario.schedule.updates, false});
    REQUIRE(made.program);
    std::size_t passes = 0;
    for (const CudaStep& step : made.program->steps) {
      if (step.kept == kNone32) continue;
      ++passes;
      const bool again = made.program->stages[step.on].stage == 0;
      const bool in_turn =
          step.kind == CudaStep::Kind::forward || step.kind == CudaStep::Kind::backward;
      const std::size_t bytes = !again    ? kSizes.kept
                                : in_turn ? kSizes.again
                                          : kSizes.recomputed_at_once;
      CHECK(made.program->blocks[step.kept].bytes >= bytes);
      CHECK((step.checkpoints != kNone32) == again);
      CHECK((step.kept_in != KeptIn::kept) == again);
      const bool begins =
          step.kind == CudaStep::Kind::backward || step.kind == CudaStep::Kind::backward_input;
      CHECK(step.recomputes == (again && begins));
    }
    CHECK(passes >= 16);
  }
}

TEST_CASE("whoever uses a block knows that all before it have ended with it") {
  for (const std::string& rest : plans()) {
    for (const Way& way : kWays) {
      CAPTURE(rest);
      CAPTURE(way.communicators);
      const Subject subject = subject_of(rest);
      if (!is_run(subject, way)) continue;
      const auto made =
          program_of(subject, nodes_by_slot(subject.graph),
                     {way.recompute, subject.scenario.schedule.updates, way.communicators});
      REQUIRE(made.program);
      const CudaProgram& program = *made.program;
      const auto known = known_before(program);
      std::map<std::uint32_t, std::vector<Use>> users;
      for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
        for (const auto& [block, use] : uses_of(program, i, sizes_of(subject))) {
          for (const Use& before : users[block]) {
            if (before.step != i && use.collides(before)) CHECK(known[i][before.step]);
          }
          users[block].push_back(use);
        }
      }
    }
  }
}

TEST_CASE("in an all-reduce each member sends what it would send in a ring") {
  for (const int members : {2, 3, 5}) {
    CAPTURE(members);
    const Subject subject = subject_of(devices(members, "name: data-parallel, micro_batches: 2"));
    const std::vector<StageBytes> sizes(1, {1000, 8, 8, 16, 24});
    const auto made = cuda_program(subject.plan(), sizes, nodes_by_slot(subject.graph), {});
    REQUIRE(made.program);
    const CudaProgram& program = *made.program;
    std::vector<std::size_t> sent(static_cast<std::size_t>(members));
    std::size_t added = 0;
    for (const CudaStep& step : program.steps) {
      if (step.kind == CudaStep::Kind::copy) sent[step.slot] += step.bytes;
      if (step.kind != CudaStep::Kind::add_up) continue;
      added += step.bytes;
      CHECK(step.members.size() == static_cast<std::size_t>(members));
      CHECK(step.members[step.slot].block == step.to.block);  // its own stand in its place
      CHECK(step.members[step.slot].at == step.to.at);
    }
    CHECK(added == 1000);
    const double ring = 2.0 * (members - 1) / members * 1000;
    for (const std::size_t bytes : sent)
      CHECK(std::abs(static_cast<double>(bytes) - ring) <= 16.0 * 2 * members);
    std::size_t held = 0;  // besides its own gradients, not more than once these
    for (const CudaProgram::Block& block : program.blocks)
      held += block.slot == 0 && block.bytes != 1000 && block.bytes != 16 ? block.bytes : 0;
    CHECK(held <= 1000);
  }
}

TEST_CASE("of a sharded optimizer each member sums, updates and sends its share, at the end") {
  for (const int members : {2, 3, 5}) {
    CAPTURE(members);
    constexpr int kLarge = 100'000;  // bytes
    const Subject subject =
        subject_of(devices(members, "name: data-parallel, micro_batches: 2, bucket: 1 KiB",
                           "training: {zero_stage: 1}\n"));
    const std::vector<StageBytes> sizes(1, {kLarge, 8, 8, 16, 24});
    const auto made = cuda_program(subject.plan(), sizes, nodes_by_slot(subject.graph), {});
    REQUIRE(made.program);
    const CudaProgram& program = *made.program;
    std::vector<std::size_t> scattered(static_cast<std::size_t>(members));
    std::vector<std::size_t> gathered(static_cast<std::size_t>(members));
    std::vector<int> owners(kLarge);
    std::size_t added = 0;
    std::vector<std::uint32_t> sends;
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const CudaStep& step = program.steps[i];
      if (step.kind == CudaStep::Kind::add_up) added += step.bytes;
      if (step.kind != CudaStep::Kind::copy) continue;
      (step.to.on == kNone32 ? scattered : gathered)[step.slot] += step.bytes;
      if (step.to.on == kNone32) continue;
      sends.push_back(i);
      CHECK(step.to.at == step.from.at);
      CHECK(program.stages[step.from.on].slot == step.slot);
      CHECK(program.stages[step.to.on].slot != step.slot);
    }
    CHECK(added == kLarge);
    for (const StageOnSlot& stage : program.stages) {
      for (const ByteRange& range : stage.updated) {
        for (std::size_t byte = range.begin; byte < range.end; ++byte) ++owners[byte];
      }
    }
    CHECK(std::count(owners.begin(), owners.end(), 1) == kLarge);
    const double half = 1.0 * (members - 1) / members * double{kLarge};
    for (const auto* sent : {&scattered, &gathered}) {
      for (const std::size_t bytes : *sent)
        CHECK(static_cast<double>(bytes) == doctest::Approx(half).epsilon(0.01));
    }
    // The iteration is over when all weights are there.
    const auto known = known_before(program);
    std::vector<bool> awaited(program.steps.size());
    for (const auto& of_slot : program.awaited) {
      for (const std::uint32_t step : of_slot) {
        CHECK(program.steps[step].signals);
        awaited[step] = true;
        for (std::uint32_t i = 0; i < program.steps.size(); ++i)
          awaited[i] = awaited[i] || known[step][i];
      }
    }
    for (const std::uint32_t send : sends) CHECK(awaited[send]);
  }
}

TEST_CASE("communicators move what copies do, their ranks together and in as much memory") {
  for (const std::string& rest : plans()) {
    CAPTURE(rest);
    const Subject subject = subject_of(rest);
    if (!is_run(subject, {.recompute = Recompute::none, .communicators = true})) continue;
    const UpdateRule& updates = subject.scenario.schedule.updates;
    const auto copies =
        program_of(subject, nodes_by_slot(subject.graph), {Recompute::none, updates, false});
    const auto made =
        program_of(subject, nodes_by_slot(subject.graph), {Recompute::none, updates, true});
    REQUIRE(made.program);
    const CudaProgram& program = *made.program;
    std::size_t transfers = 0;
    for (std::uint32_t i = 0; i < program.steps.size(); i += program.steps[i].together) {
      const CudaStep& first = program.steps[i];
      CHECK(first.kind != CudaStep::Kind::copy);
      CHECK(first.kind != CudaStep::Kind::add_up);
      if (!is_moving(first.kind)) {
        CHECK(first.together == 1);
        continue;
      }
      const auto& ranks = program.communicators[first.communicator];
      REQUIRE(first.together == ranks.size());
      const bool is_transfer = first.kind == CudaStep::Kind::send;
      transfers += is_transfer ? 1 : 0;
      for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        const CudaStep& step = program.steps[i + rank];
        CHECK(step.slot == ranks[rank]);
        CHECK(program.streams[step.stream].slot == step.slot);
        CHECK(step.communicator == first.communicator);
        CHECK(step.node == (is_transfer ? first.node : step.node));
        CHECK(step.bytes == first.bytes);
        const CudaPiece& piece = step.kind == CudaStep::Kind::send ? step.from : step.to;
        CHECK(program.blocks[piece.block].slot == step.slot);
        if (is_transfer) {
          CHECK(step.kind == (rank == 0 ? CudaStep::Kind::send : CudaStep::Kind::receive));
          CHECK(step.sends == !subject.graph.blocking);
        }
      }
    }
    std::size_t expected = 0;
    for (const Activity& activity : subject.graph.activities)
      expected += is_transfer(activity.kind) ? 1 : 0;
    CHECK(transfers == expected);
    const std::vector<StageBytes> sizes = sizes_of(subject);
    for (std::uint32_t slot = 0; slot < subject.graph.slots(); ++slot)
      CHECK(program.bytes_of(slot, sizes) <= copies.program->bytes_of(slot, sizes));
  }
}

TEST_CASE("layer by layer each micro-batch in flight holds inputs, and one what a layer keeps") {
  const Subject subject = subject_of(devices(4, "name: gpipe, micro_batches: 5"));
  const auto made =
      program_of(subject, nodes_by_slot(subject.graph), {Recompute::layers, {}, false});
  REQUIRE(made.program);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    const auto blocks = [&](std::size_t bytes) {
      return std::count_if(made.program->blocks.begin(), made.program->blocks.end(),
                           [&](const auto& b) { return b.slot == slot && b.bytes == bytes; });
    };
    CHECK(blocks(kSizes.checkpoints) == 5);
    CHECK(blocks(kSizes.again) == 1);
    CHECK(blocks(kSizes.kept) == 0);
  }
}

TEST_CASE("one device waits for nothing, and holds as many blocks as are in flight") {
  const Subject alone = subject_of(devices(1, "name: gpipe, micro_batches: 3"));
  const auto made = program_of(alone, nodes_by_slot(alone.graph));
  REQUIRE(made.program);
  for (const CudaStep& step : made.program->steps) CHECK(step.waits.empty());
  CHECK(made.program->blocks.size() == 3 + 1);  // what F keeps of three, and gradients
  // 1F1B on the first of four devices holds four micro-batches, however many there are.
  const Subject pipeline = subject_of(devices(4, "name: 1f1b, micro_batches: 12"));
  const auto four = program_of(pipeline, nodes_by_slot(pipeline.graph));
  REQUIRE(four.program);
  std::size_t kept = 0;
  for (const CudaProgram::Block& block : four.program->blocks)
    kept += block.slot == 0 && block.bytes == 16 ? 1 : 0;
  CHECK(kept == 4);
}

TEST_CASE("orders that wait for each other are a deadlock, told with every device") {
  const Subject subject = subject_of(devices(2, "name: gpipe, micro_batches: 2"));
  DeviceOrders orders = nodes_by_slot(subject.graph);
  // The first device wants its backward before its second forward; the second one is asked for both
  // forwards first.
  auto& first = orders[0];
  const auto is = [&](ActivityKind kind, std::uint32_t m) {
    return [&, kind, m](std::uint32_t node) {
      const Activity& activity = subject.graph.activities[node];
      return activity.kind == kind && activity.micro_batch.value == m;
    };
  };
  std::iter_swap(std::find_if(first.begin(), first.end(), is(ActivityKind::forward, 1)),
                 std::find_if(first.begin(), first.end(), is(ActivityKind::backward, 1)));
  const auto made = program_of(subject, orders);
  REQUIRE_FALSE(made.program);
  CHECK(made.failure.kind == RunFailure::Kind::deadlock);
  CHECK(to_text(subject.graph, made.failure.stands) ==
        "  device 0: 0B1 waits for recv 0B1\n  device 1: 1F1 waits for recv 1F1\n");
}

TEST_CASE("an op whose operands are not there ends the run before it begins") {
  const Subject subject = subject_of(devices(1, "name: gpipe, micro_batches: 2"));
  DeviceOrders orders = nodes_by_slot(subject.graph);
  std::reverse(orders[0].begin(), orders[0].begin() + 4);  // both backwards first
  const auto made = program_of(subject, orders);
  REQUIRE_FALSE(made.program);
  CHECK(made.failure.kind == RunFailure::Kind::failed);
  CHECK(made.failure.message.find("runs before 0F") != std::string::npos);
  CHECK(made.failure.stands.front().state == DeviceStand::State::failed);
}

}  // namespace
}  // namespace plumbline::test
