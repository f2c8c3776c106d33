// Paths: which level they cross and whose cards they use.
//
// SPDX-License-Identifier: MIT
#include "models/hardware/cluster.h"

#include <doctest/doctest.h>

namespace plumbline {
namespace {

TEST_CASE(
    "a path bears the link of the outermost level that it crosses, and the cards of its groups") {
  Cluster cluster;
  const Link inner{Duration{1}, BytesPerSecond{100}};
  const Link middle{Duration{2}, BytesPerSecond{10}};
  const Link outer{Duration{3}, std::nullopt};
  cluster.levels = {{"server", 2, inner}, {"rack", 3, middle}, {"room", 2, outer}};
  CHECK(cluster.device_count() == 12);
  const Path inside = cluster.path({0}, {1});
  CHECK(inside.link == inner);
  CHECK(!inside.out);
  const Path across = cluster.path({1}, {4});  // servers 0 and 2 of rack 0
  CHECK(across.link == middle);
  CHECK(across.out == Card{1, 0, true});
  CHECK(across.in == Card{1, 2, false});
  const Path far = cluster.path({11}, {0});  // racks 1 and 0
  CHECK(far.link == outer);
  CHECK(far.out == Card{2, 1, true});
  CHECK(far.in == Card{2, 0, false});
  cluster.levels[2].own_cards = true;  // of that level alone
  const Path alone = cluster.path({11}, {0});
  CHECK(alone.link == outer);
  CHECK(!alone.out);
  CHECK(!alone.in);
  CHECK(cluster.path({1}, {4}).out == Card{1, 0, true});
}

TEST_CASE("runs of devices have their own memory and links, and pairs theirs") {
  const Link slow{Duration{9}, BytesPerSecond{1}};
  const Link inner{Duration{1}, BytesPerSecond{100}};
  const Link special{Duration{2}, BytesPerSecond{7}};
  Cluster cluster = flat_cluster(5, slow, Bytes{50});
  CHECK(cluster.memory_of({4}) == Bytes{50});
  CHECK(cluster.least_memory() == Bytes{50});
  CHECK_FALSE(cluster.has_own_links());
  cluster.runs = {{"fast", 2, 0, Bytes{80}, inner}, {"slow", 3, 1, Bytes{40}, std::nullopt}};
  CHECK(cluster.run_of({1}) == 0);
  CHECK(cluster.run_of({2}) == 1);
  CHECK(cluster.memory_of({1}) == Bytes{80});
  CHECK(cluster.memory_of({4}) == Bytes{40});
  CHECK(cluster.least_memory() == Bytes{40});
  CHECK(cluster.has_own_links());
  CHECK(cluster.kind_of({4}) == 1);
  CHECK(cluster.path({0}, {1}).link == inner);
  CHECK(cluster.path({0}, {1}).own);
  CHECK_FALSE(cluster.path({1}, {2}).own);
  CHECK(cluster.path({1}, {2}).link == slow);
  CHECK(cluster.path({3}, {4}).link == slow);
  cluster.pair_links = {{{{0}, {1}, {2}}, {{0}, {1}, {2}}, special}, {{{3}}, {{0}, {4}}, inner}};
  CHECK(cluster.path({0}, {1}).link == special);
  CHECK(cluster.path({2}, {1}).link == special);
  CHECK(cluster.path({0}, {3}).link == inner);
  CHECK(cluster.path({3}, {0}).link == inner);
  CHECK(cluster.path({1}, {3}).link == slow);
  // The last entry that has a pair counts.
  cluster.pair_links.push_back({{{0}}, {{1}}, slow});
  CHECK(cluster.path({1}, {0}).link == slow);
  cluster.runs[1].memory.reset();
  CHECK_FALSE(cluster.least_memory());
}

TEST_CASE("a ring over cards of their own is as wide as the cards of its members in a group") {
  const Link within{Duration{1}, BytesPerSecond{450}};
  const Link card{Duration{5}, BytesPerSecond{50}};
  const Cluster cluster{{{"server", 8, within}, {"cluster", 4, card, true}}, std::nullopt};
  const auto hops = [&](const std::vector<DeviceId>& members) {
    std::vector<std::int64_t> bandwidths;
    for (const Path& hop : cluster.ring(members)) {
      CHECK(!hop.out);
      bandwidths.push_back(hop.link.bandwidth->count);
    }
    return bandwidths;
  };
  CHECK(hops({{0}, {1}}) == std::vector<std::int64_t>{450, 450});
  // One in each server: its own card. Two: both their cards.
  CHECK(hops({{0}, {8}, {16}}) == std::vector<std::int64_t>{50, 50, 50});
  CHECK(hops({{0}, {1}, {8}, {9}}) == std::vector<std::int64_t>{450, 100, 450, 100});
  // The smaller of the two groups counts.
  CHECK(hops({{0}, {1}, {2}, {8}}) == std::vector<std::int64_t>{450, 450, 50, 50});
  // Ten cards of 50 are wider than the links within, which are hops of the same ring.
  const Cluster wide{{{"server", 10, within}, {"cluster", 2, card, true}}, std::nullopt};
  std::vector<DeviceId> all;
  for (std::uint32_t device = 0; device < 20; ++device) all.push_back({device});
  CHECK(wide.ring(all)[8].link.bandwidth->count == 450);
  CHECK(wide.ring(all)[9].link.bandwidth->count == 500);
  CHECK(wide.ring(all)[9].link.latency == Duration{5});
  // A card that devices share is no wider for it.
  Cluster shared = cluster;
  shared.levels[1].own_cards = false;
  CHECK(shared.ring({{0}, {1}, {8}, {9}})[1].link.bandwidth->count == 50);
  CHECK(shared.ring({{0}, {1}, {8}, {9}})[1].out == Card{1, 0, true});
}

TEST_CASE("a table of measured times goes before the line, which counts beyond it alone") {
  const Link line{Duration{100}, BytesPerSecond{1'000'000'000}};  // a ns a byte
  CHECK(line.time_of({50}).latency == Duration{100});
  CHECK(line.time_of({50}).flow == Duration{50});
  Link link = line;
  link.table = {{{100}, Duration{150}}, {{200}, Duration{350}}, {{400}, Duration{450}}};
  const auto whole = [&](std::int64_t bytes) { return link.time_of({bytes}).whole().count(); };
  CHECK(whole(100) == 150);
  CHECK(whole(150) == 250);  // half way
  CHECK(whole(200) == 350);
  CHECK(whole(201) == 351);  // 350.5
  CHECK(whole(400) == 450);
  CHECK(whole(500) == 550);  // the line's slope from the last size on, and before the first
  CHECK(whole(40) == 90);
  link.latency = Duration{300};
  CHECK(link.time_of({400}).latency == Duration{300});  // what is longer is flow
  CHECK(link.time_of({400}).flow == Duration{150});
  CHECK(link.time_of({100}).latency == Duration{150});
  CHECK(link.time_of({100}).flow == Duration{0});
  link.bandwidth.reset();
  CHECK(whole(1000) == 450);
  CHECK(whole(0) == 150);
  link.bandwidth = BytesPerSecond{100'000'000};  // 10 ns a byte: never below 0
  CHECK(whole(0) == 0);
}

TEST_CASE("the times of a busy link give factors for 0, 1, ... other devices at work") {
  Link link{Duration{100}, BytesPerSecond{1'000'000'000}};
  link.table = {{{100}, Duration{200}}, {{300}, Duration{400}}};
  CHECK(link.factors_of({100}, Duration{}).empty());
  link.busy = {{2, {{{100}, Duration{400}}, {{300}, Duration{1000}}}}};
  CHECK(link.factors_of({100}, Duration{}) == std::vector<double>{1, 1.5, 2});
  CHECK(link.factors_of({200}, Duration{}) ==
        std::vector<double>{1, 1 + (700.0 / 300 - 1) / 2, 700.0 / 300});
  // What every transfer takes besides is in no table, and does not change.
  CHECK(link.factors_of({100}, Duration{200}) == std::vector<double>{1, 1.25, 1.5});
  // Between measured numbers of workers the time grows evenly.
  link.busy.push_back({4, {{{100}, Duration{800}}}});
  CHECK(link.factors_of({100}, Duration{}) == std::vector<double>{1, 1.5, 2, 3, 4});
  // Beyond the sizes of a busy table, the factor is that of the last one.
  link.busy = {{2, {{{100}, Duration{400}}, {{300}, Duration{1000}}}}};
  CHECK(link.factors_of({3000}, Duration{}) == link.factors_of({300}, Duration{}));
  CHECK(link.factors_of({1}, Duration{}) == link.factors_of({100}, Duration{}));
  // Nobody's work makes a transfer faster than at rest.
  link.busy = {{2, {{{100}, Duration{150}}}}};
  CHECK(link.factors_of({100}, Duration{}) == std::vector<double>{1, 1, 1});
  link.table.clear();
  link.latency = {};
  link.bandwidth.reset();
  CHECK(link.factors_of({0}, Duration{}) == std::vector<double>{1, 1, 1});  // nothing to stretch
}

}  // namespace
}  // namespace plumbline
