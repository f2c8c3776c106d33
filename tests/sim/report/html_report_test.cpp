// The HTML report: its columns are read back, its texts are safe, its words are right.
//
// SPDX-License-Identifier: MIT
#include "sim/report/html_report.h"

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "sim/engine/idle.h"
#include "sim/report/report_columns.h"
#include "sim/report/report_facts.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using test::predict_example;

/// Reads the columns as report_columns.h describes them.
class ColumnReader {
 public:
  explicit ColumnReader(const std::string& bytes) : bytes_(bytes) {}

  std::uint64_t next() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      REQUIRE(at_ < bytes_.size());
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t next_signed() {
    const std::uint64_t value = next();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

struct Item {
  std::uint64_t kind = 0;
  std::int64_t stage = 0, micro_batch = 0, cost = 0, begin = 0, end = 0, released_by = -1;
};

struct Columns {
  std::vector<std::vector<Item>> lanes;
  std::int64_t first_item_of(std::size_t lane) const {
    std::int64_t items = 0;
    for (std::size_t i = 0; i < lane; ++i) items += static_cast<std::int64_t>(lanes[i].size());
    return items;
  }
};

Columns read_items(ColumnReader& reader, const ColumnLayout& layout) {
  Columns columns;
  for (const std::uint32_t items : layout.slot_items) columns.lanes.emplace_back(items);
  for (const std::uint32_t items : layout.channel_items) columns.lanes.emplace_back(items);
  columns.lanes.emplace_back(layout.moment_items);
  for (auto& lane : columns.lanes) {
    for (Item& item : lane) item.kind = reader.next();
  }
  using Member = std::int64_t Item::*;
  const auto differences = [&](Member member) {
    for (auto& lane : columns.lanes) {
      std::int64_t last = 0;
      for (Item& item : lane) item.*member = last += reader.next_signed();
    }
  };
  const auto differences_in_kind = [&](Member member) {
    for (auto& lane : columns.lanes) {
      std::array<std::int64_t, kActivityKinds> last{};
      for (Item& item : lane) item.*member = last.at(item.kind) += reader.next_signed();
    }
  };
  differences(&Item::stage);
  differences_in_kind(&Item::micro_batch);
  differences(&Item::cost);
  for (auto& lane : columns.lanes) {
    for (Item& item : lane) item.begin = reader.next_signed();
  }
  differences_in_kind(&Item::end);
  for (auto& lane : columns.lanes) {
    std::int64_t last = 0;
    for (Item& item : lane) {
      item.begin += last;
      item.end += item.begin;
      last = item.end;
    }
  }
  std::int64_t number = 0;
  for (auto& lane : columns.lanes) {
    std::array<std::int64_t, kActivityKinds> last{};
    last.fill(-1);
    for (Item& item : lane) {
      const std::uint64_t code = reader.next();
      if (code == 1) item.released_by = number - 1;
      if (code >= 2) {
        const std::uint64_t zigzag = code - 2;
        const std::int64_t offset =
            static_cast<std::int64_t>(zigzag >> 1) ^ -static_cast<std::int64_t>(zigzag & 1);
        std::int64_t& reference = last.at(item.kind);
        reference = (reference < 0 ? number : reference) + offset;
        item.released_by = reference;
      }
      ++number;
    }
  }
  return columns;
}

/// Reads the columns of `p` back and holds every number against the run itself.
void check_columns(const Outcome& p) {
  std::string bytes;
  const ColumnLayout layout = append_columns(p, 1, bytes);
  ColumnReader reader(bytes);
  const Columns columns = read_items(reader, layout);
  CHECK(layout.makespan == p.metrics.makespan.count());
  const auto nodes = nodes_by_slot(p.graph);
  std::vector<std::uint32_t> node_of;
  for (const auto& list : nodes) node_of.insert(node_of.end(), list.begin(), list.end());
  for (std::uint32_t c = 0; c < p.graph.channels.size(); ++c) {
    for (std::uint32_t node = 0; node < p.graph.size(); ++node) {
      if (p.graph.holds_channel(node) && p.graph.nodes[node].resource == p.graph.slots() + c)
        node_of.push_back(node);
    }
  }
  for (std::uint32_t node = 0; node < p.graph.size(); ++node) {
    if (p.graph.nodes[node].resource >= p.graph.slots() + p.graph.channels.size())
      node_of.push_back(node);
  }
  std::size_t number = 0;
  for (std::size_t lane = 0; lane < columns.lanes.size(); ++lane) {
    std::int64_t busy = 0;
    for (const Item& item : columns.lanes[lane]) {
      const std::uint32_t node = node_of[number++];
      CAPTURE(node);
      const Activity& activity = p.graph.activities[node];
      const Span& span = p.trace.spans[node];
      REQUIRE(item.kind == static_cast<std::uint64_t>(activity.kind));
      REQUIRE(item.stage == activity.stage.value);
      REQUIRE(item.micro_batch == activity.micro_batch.value);
      REQUIRE(item.cost == p.graph.nodes[node].cost);
      REQUIRE(item.begin == span.begin.time_since_epoch().count());
      REQUIRE(item.end == span.end.time_since_epoch().count());
      REQUIRE((item.released_by < 0) == (span.released_by == kNobody));
      if (item.released_by >= 0)
        REQUIRE(node_of[static_cast<std::size_t>(item.released_by)] == span.released_by);
      busy += item.end - item.begin;
    }
    if (lane < p.graph.slots()) {
      CHECK(layout.slot_busy[lane] == busy);
      CHECK(p.metrics.devices[lane].busy.count() == busy);
    }
  }
  CHECK(number == node_of.size());
  for (std::uint32_t slot = 0; slot < p.graph.slots(); ++slot) {
    const auto gaps = idle_gaps(p.graph, p.trace, nodes[slot], SimTime(p.metrics.makespan));
    REQUIRE(layout.slot_gaps[slot] == gaps.size());
    std::vector<std::int64_t> before(gaps.size());
    for (std::int64_t& gap : before) gap = static_cast<std::int64_t>(reader.next());
    std::int64_t cursor = 0;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      CHECK(cursor + before[i] == gaps[i].begin.time_since_epoch().count());
      cursor += before[i] + static_cast<std::int64_t>(reader.next());
      CHECK(cursor == gaps[i].end.time_since_epoch().count());
    }
    for (const IdleGap& gap : gaps) CHECK(reader.next() == static_cast<std::uint64_t>(gap.cause));
  }
  for (std::uint32_t slot = 0; slot < p.graph.slots(); ++slot) {
    const std::uint32_t points = layout.memory_points[slot];
    std::int64_t at = 0, bytes_held = 0, activations = 0, max = 0;
    std::vector<std::int64_t> held;
    bool has_peak = false;
    for (std::uint32_t i = 0; i < points; ++i) at += static_cast<std::int64_t>(reader.next());
    CHECK(at <= layout.makespan);
    for (std::uint32_t i = 0; i < points; ++i) {
      bytes_held += reader.next_signed();
      held.push_back(bytes_held);
      max = std::max(max, bytes_held);
    }
    const MemoryParts& peak = p.memory[slot].peak;
    const std::int64_t fixed = (peak.sum() - peak.activations - peak.buffers).count;
    for (std::uint32_t i = 0; i < points; ++i) {
      activations += reader.next_signed();
      CHECK(activations >= 0);
      CHECK(activations + fixed <= held[i]);
      has_peak = has_peak || (held[i] == max && activations == peak.activations.count);
    }
    CHECK(max == peak.sum().count);
    CHECK(has_peak);
  }
  CHECK(reader.at_end());
}

std::string page_of(const std::string& example, const std::vector<std::string>& overrides) {
  const auto scenario = read_scenario("examples/" + example + ".yaml", overrides);
  REQUIRE(scenario);
  const auto prediction = predict(*scenario);
  REQUIRE(prediction);
  return html_report(*scenario->source, {{*prediction, "predicted"}},
                     {"plumbline simulate", "0", overrides, {}, {}});
}

/// The part of the page between `<script ... id="facts">` and its end.
nlohmann::json facts_of(const std::string& page) {
  const std::string_view open = "id=\"facts\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("the columns of a report give every span, gap and peak back exactly") {
  for (const char* example :
       {"four-stages", "zero-bubble", "blocking-transfers", "two-servers", "data-parallel",
        "replicas", "interleaved", "shared-device", "pipedream-async", "recompute", "branching"}) {
    CAPTURE(example);
    check_columns(predict_example(example, {}));
  }
  check_columns(predict_example("four-stages", {"schedule.micro_batches=200"}));
  check_columns(predict_example("four-stages", {"schedule.mini_batches=3"}));
}

TEST_CASE("a memory curve with many steps keeps its peak in fewer points") {
  const Outcome p = predict_example("four-stages", {"schedule.micro_batches=1500"});
  std::string bytes;
  const ColumnLayout layout = append_columns(p, 1, bytes);
  CHECK(layout.memory_sampled[0]);
  for (const std::uint32_t points : layout.memory_points) CHECK(points <= 2048);
  check_columns(p);
}

TEST_CASE("ticks are nanoseconds until JavaScript's whole numbers end") {
  CHECK(tick_for(Duration{0}) == 1);
  CHECK(tick_for(Duration{(std::int64_t{1} << 53) - 1}) == 1);
  CHECK(tick_for(Duration{std::int64_t{1} << 53}) == 1000);
  CHECK(tick_for(Duration{4'000'000'000'000'000'000}) == 1000);
}

TEST_CASE("texts in a script element are safe there and the same when read") {
  const std::string hostile =
      "</script><!-- & \" \\ \n \x01 \x7f \xe2\x80\xa8\xe2\x80\xa9 \xc3\xa4 ]]>";
  const std::string json = script_text(hostile);
  for (const char* part : {"<", ">", "&", "\n", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    CHECK(json.find(part) == std::string::npos);
  CHECK(nlohmann::json::parse(json) == hostile);
  CHECK(nlohmann::json::parse(script_text("a\xff\xc3")) == "a\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(script_json("{\"a<b\":\"\xe2\x80\xa8\"}") == "{\"a\\u003cb\":\"\\u2028\"}");
}

TEST_CASE("a hostile name ends no element of the page") {
  const std::string tame = page_of("four-stages", {});
  const std::string page =
      page_of("four-stages", {R"(name="</script><script>/*SCRIPT*/ <!--DATA--> <!-- /*STYLE*/")"});
  CHECK(count(page, "<script") == count(tame, "<script"));
  CHECK(count(page, "</script") == count(tame, "</script"));
  CHECK(count(page, "<!--") == count(tame, "<!--"));
  CHECK(facts_of(page)["name"] == "</script><script>/*SCRIPT*/ <!--DATA--> <!-- /*STYLE*/");
}

TEST_CASE("a stage tells what a micro-batch keeps of it, what is made again, and its gradients") {
  // Two layers a stage: activations of 12 MiB each, outputs of 4 MiB, parameters of 16 MiB.
  const auto stage = [](const std::string& recompute) {
    const std::string page =
        page_of("four-stages", {"schedule.recompute=" + recompute, "training.gradients=2"});
    return facts_of(page)["runs"][0]["stages"][1];
  };
  const auto mib = [](int count) { return std::int64_t{count} << 20; };
  CHECK(stage("none")["gradient_bytes"] == mib(64));
  CHECK(stage("none")["kept_bytes"] == mib(24));
  CHECK(stage("none")["again_bytes"] == 0);
  CHECK(stage("full")["kept_bytes"] == 0);
  CHECK(stage("full")["again_bytes"] == mib(24));
  CHECK(stage("layers")["kept_bytes"] == mib(4));
  CHECK(stage("layers")["again_bytes"] == mib(12));
  const auto split = facts_of(page_of(
      "four-stages", {"schedule.name=zb-h1", "schedule.recompute=layers"}))["runs"][0]["stages"][1];
  CHECK(split["kept_bytes"] == mib(4));
  CHECK(split["again_bytes"] == mib(20));
}

TEST_CASE("a page holds the scenario, the command and the numbers of the JSON, and loads nothing") {
  const std::string page = page_of("four-stages", {"schedule.micro_batches=4"});
  const auto facts = facts_of(page);
  CHECK(facts["overrides"] == nlohmann::json::array({"schedule.micro_batches=4"}));
  CHECK(facts["command"] == "plumbline simulate");
  CHECK(facts["scenario"]["path"] == "examples/four-stages.yaml");
  CHECK(facts["scenario"]["text"].get<std::string>().find("name: four equal stages") !=
        std::string::npos);
  CHECK(facts["runs"][0]["summary"]["makespan_s"] == 0.021);
  CHECK(facts["runs"][0]["stages"][3]["layers"] == nlohmann::json::array({"layer_6", "layer_7"}));
  CHECK(facts["runs"][0]["headline"] ==
        "1f1b: 4 stages on 4 devices, 4 micro-batches of 32 samples");
  CHECK(facts["runs"][0]["formula_words"] ==
        "By the formula for equal stages on free links, (p-1)/(m+p-1) with p = 4 and m = 4, the "
        "bubble fraction is 42.86 %; the simulation says the same.");
  CHECK(page.find(" src=") == std::string::npos);
  CHECK(page.find("@import") == std::string::npos);
  CHECK(page.find("\nimport ") == std::string::npos);
  CHECK(page.find("\nexport ") == std::string::npos);
  CHECK(page == page_of("four-stages", {"schedule.micro_batches=4"}));
}

}  // namespace plumbline
