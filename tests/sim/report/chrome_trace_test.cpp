// The trace file is read back and held against the metrics.
//
// SPDX-License-Identifier: MIT
#include "sim/report/chrome_trace.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/engine/critical.h"
#include "sim/engine/idle.h"
#include "tests/support/examples.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using Json = nlohmann::json;
using test::predict_example;

/// Nanoseconds of a time in microseconds with three decimals.
std::int64_t ns(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

/// Checks every promise of the header on the trace of `p`.
void check_trace(const Outcome& p) {
  const Json trace = Json::parse(chrome_trace(p));
  std::map<std::pair<int, int>, std::map<std::int64_t, std::int64_t>>
      tracks;  // begin to end, by track
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, std::string>, std::int64_t> totals;  // of each device, by kind of slice
  std::map<int, std::int64_t> peaks, in_flight;
  std::int64_t arrows = 0;
  for (const Json& event : trace["traceEvents"]) {
    const std::string phase = event["ph"];
    const int pid = event["pid"];
    if (phase == "M" && event["name"] == "thread_name")
      names[{pid, event["tid"]}] = event["args"]["name"];
    if (phase == "f") ++arrows;
    if (phase == "C") {
      const Json& args = event["args"];
      if (event["name"] == "memory")
        peaks[pid] = std::max(peaks[pid], args["bytes"].get<std::int64_t>());
      if (event["name"] == "in flight")
        in_flight[pid] = std::max(in_flight[pid], args["micro-batches"].get<std::int64_t>());
    }
    if (phase != "X") continue;
    const std::int64_t begin = ns(event["ts"]);
    const std::int64_t length = ns(event["dur"]);
    if (length > 0) {
      CHECK(tracks[{pid, event["tid"]}].emplace(begin, begin + length).second);
    }
    const std::string name = event["name"];
    totals[{pid, event["tid"] == 0 ? "busy" : name}] += length;
  }
  for (const auto& [track, slices] : tracks) {
    CHECK(names.count(track) == 1);
    std::int64_t last = 0;
    for (const auto& [begin, end] : slices) {
      CHECK(begin >= last);
      last = end;
    }
    CHECK(last <= p.metrics.makespan.count());
  }
  for (std::size_t slot = 0; slot < p.memory.size(); ++slot) {
    const int pid = static_cast<int>(slot);
    DeviceMetrics device = p.metrics.devices[slot];
    CHECK(totals[{pid, "busy"}] == device.busy.count());
    for (int cause = 0; cause < 8; ++cause) {
      const auto which = static_cast<IdleCause>(cause);
      CHECK(totals[{pid, "idle " + std::string(name(which))}] ==
            device.idle_by_cause.of(which).count());
    }
    CHECK(peaks[pid] == p.memory[slot].peak.sum().count);
    CHECK(in_flight[pid] <= p.memory[slot].peak_in_flight);
  }
  CHECK(arrows > 0);
}

TEST_CASE("a trace read back holds the busy time, the idle time by cause and the peaks") {
  check_trace(predict_example("four-stages", {}));
  check_trace(predict_example(
      "four-stages",
      {"schedule.mini_batches=3", "overhead.per_iteration=1 ms", "model.uniform.update=10 us"}));
  check_trace(predict_example("worked-example", {}));
  check_trace(predict_example("blocking-transfers", {}));
  check_trace(predict_example("pipedream-async", {}));
  check_trace(predict_example("two-servers", {}));
  check_trace(predict_example("recompute", {}));
  check_trace(predict_example("shared-device", {}));
}

TEST_CASE("the critical path begins with the run, ends with it, and has no gap but latencies") {
  const Outcome p = predict_example("worked-example", {});
  const auto path = critical_path(p.trace);
  REQUIRE(!path.empty());
  CHECK(p.trace.spans[path.front()].begin == SimTime{});
  CHECK(p.trace.spans[path.back()].end.time_since_epoch() == p.metrics.makespan);
  for (std::size_t i = 1; i < path.size(); ++i) {
    CHECK(p.trace.spans[path[i]].begin <= p.trace.spans[path[i - 1]].end);
  }
}

TEST_CASE("a transfer that was measured in less than its link's latency is a slice all the same") {
  Outcome p = predict_example("slow-link", {});
  std::size_t transfers = 0;
  for (std::uint32_t node = 0; node < p.graph.size(); ++node) {
    if (!p.graph.holds_channel(node) || p.graph.cost(node).latency.count() == 0) continue;
    Span& span = p.trace.spans[node];
    span.end = span.begin + p.graph.cost(node).latency / 2;
    ++transfers;
  }
  REQUIRE(transfers > 0);
  const Json trace = Json::parse(chrome_trace(p));
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") CHECK(event["dur"].get<double>() >= 0);
}

TEST_CASE("what gzip packs unpacks to the same") {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i % 1013) + ",";
  const std::string packed = gzip(text);
  CHECK(packed.size() < text.size());
  std::string unpacked(text.size() + 1, ' ');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  unpacked.resize(stream.total_out);
  inflateEnd(&stream);
  CHECK(unpacked == text);
}

}  // namespace
}  // namespace plumbline
