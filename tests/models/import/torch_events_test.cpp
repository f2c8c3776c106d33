// Traces read event by event: exact times, what a trace says of itself, and what is no trace.
//
// SPDX-License-Identifier: MIT
#include "models/import/torch_events.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <sstream>

#include "tests/support/text_source.h"

namespace plumbline {
namespace {

/// All events of a text, and its header.
struct ReadEvents {
  TorchTraceHeader header;
  std::vector<TorchEvent> events;
  std::vector<std::size_t> numbers;
};

Result<ReadEvents> try_events(const std::string& text) {
  ReadEvents all;
  std::istringstream stream(text);
  const auto header = read_torch_events(stream, test::text_source("rank0.json", ""),
                                        [&](const TorchEvent& event, std::size_t number) {
                                          all.events.push_back(event);
                                          all.numbers.push_back(number);
                                          return std::optional<Diagnostic>();
                                        });
  if (!header) return header.problems();
  all.header = *header;
  return all;
}

ReadEvents events_of(const std::string& text) {
  auto all = try_events(text);
  REQUIRE_MESSAGE(all, (all ? "" : to_text(all.problems())));
  return *std::move(all);
}

std::string event_faults(const std::string& text) {
  const auto all = try_events(text);
  REQUIRE_FALSE(all);
  return to_text(all.problems());
}

constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

/// The nanoseconds of a JSON number that stands where a time does, or kNoTime.
std::int64_t start_ns(const std::string& number) {
  const ReadEvents all =
      events_of(fmt::format(R"({{"traceEvents": [{{"ph": "X", "ts": {}, "dur": 1}}]}})", number));
  REQUIRE(all.events.size() == 1);
  CHECK(all.events.front().length_ns == 1000);
  return all.events.front().start_ns.value_or(kNoTime);
}

TEST_CASE("a third decimal of microseconds since 1970 is an exact nanosecond") {
  CHECK(start_ns("1700000000013545.618") == 1'700'000'000'013'545'618);
  CHECK(start_ns("1700000000013545.619") == 1'700'000'000'013'545'619);
  CHECK(start_ns("1700000000013545.6") == 1'700'000'000'013'545'600);
  CHECK(start_ns("0.001") == 1);
  CHECK(start_ns("12.05") == 12'050);
}

TEST_CASE("whole microseconds and times before the origin are exact") {
  CHECK(start_ns("1700000000013545") == 1'700'000'000'013'545'000);
  CHECK(start_ns("0") == 0);
  CHECK(start_ns("-7") == -7'000);
  CHECK(start_ns("-1700000000013545.618") == -1'700'000'000'013'545'618);
  CHECK(start_ns("-0.25") == -250);
}

TEST_CASE("a fourth decimal is rounded to the nearest nanosecond") {
  CHECK(start_ns("1.2344") == 1'234);
  CHECK(start_ns("1.2345") == 1'235);
  CHECK(start_ns("1.23449999") == 1'234);
  CHECK(start_ns("0.9996") == 1'000);
  CHECK(start_ns("-1.2345") == -1'235);
}

TEST_CASE("an exponent counts, however many decimals stand before it") {
  CHECK(start_ns("1e3") == 1'000'000);
  CHECK(start_ns("1.5e3") == 1'500'000);
  CHECK(start_ns("-2.5E-1") == -250);
  CHECK(start_ns("1.2345e3") == 1'234'500);
  CHECK(start_ns("1.70000001e+09") == 1'700'000'010'000);
  CHECK(start_ns("1.2345e-05") == 0);
}

TEST_CASE("a time that 64 bits of nanoseconds do not hold is none") {
  CHECK(start_ns("9300000000000000.5") == kNoTime);
  CHECK(start_ns("-9300000000000000.5") == kNoTime);
  CHECK(start_ns("9300000000000000") == kNoTime);
  CHECK(start_ns("9223372036854775807") == kNoTime);
  CHECK(start_ns("18446744073709551615") == kNoTime);   // the most of an unsigned number
  CHECK(start_ns("184467440737095516150") == kNoTime);  // more than that
  CHECK(start_ns("123456789012345678901234.5") == kNoTime);
  CHECK(start_ns("1e300") == kNoTime);
}

TEST_CASE("an event has its texts, its numbers and its arguments") {
  const ReadEvents all = events_of(R"({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv", "pid": 3, "tid": 7, "ts": 1,
     "dur": 2, "args": {"External id": 5, "correlation": 11, "device": 3, "Src Rank": 1,
     "Dst Rank": 2, "In msg nelems": 4096, "Collective name": "send", "dtype": "BFloat16",
     "stack": [{"correlation": 99, "ts": 98}]}},
    {"ph": "M", "name": "process_name", "pid": "Spans", "tid": "x", "args": {"name": "python"}}
  ]})");
  REQUIRE(all.events.size() == 2);
  CHECK(all.numbers == std::vector<std::size_t>{1, 2});
  CHECK(all.header.events == 2);
  const TorchEvent& kernel = all.events[0];
  CHECK(kernel.is_span());
  CHECK(kernel.is_gpu_work());
  CHECK_FALSE(kernel.is_launch());
  CHECK(kernel.name == "ncclDevKernel_SendRecv");
  CHECK(kernel.process == 3);
  CHECK(kernel.thread == 7);
  CHECK(kernel.start_ns == 1000);
  CHECK(kernel.length_ns == 2000);
  CHECK(kernel.external_id == 5);
  CHECK(kernel.correlation == 11);
  CHECK(kernel.device == 3);
  CHECK(kernel.from_rank == 1);
  CHECK(kernel.to_rank == 2);
  CHECK(kernel.elements == 4096);
  CHECK(kernel.collective == "send");
  CHECK(kernel.dtype == "BFloat16");
  // Nothing of the event before is left over.
  const TorchEvent& meta = all.events[1];
  CHECK_FALSE(meta.is_span());
  CHECK(meta.category.empty());
  CHECK(meta.collective.empty());
  CHECK_FALSE(meta.start_ns);
  CHECK_FALSE(meta.correlation);
  CHECK(meta.process == static_cast<std::int64_t>(std::hash<std::string>{}("Spans")));
  CHECK(meta.thread != meta.process);
}

TEST_CASE("numbers of arguments may stand in quotes") {
  const ReadEvents all = events_of(
      R"([{"ph": "X", "cat": "cuda_runtime", "args": {"correlation": "12", "device": "x"}}])");
  REQUIRE(all.events.size() == 1);
  CHECK(all.events.front().is_launch());
  CHECK(all.events.front().correlation == 12);
  CHECK_FALSE(all.events.front().device);
}

TEST_CASE("calls of runtimes and drivers are launches, also those of PyTorch 1.x") {
  for (const char* category : {"cuda_runtime", "cuda_driver", "privateuse1_runtime", "Runtime"}) {
    TorchEvent event;
    event.category = category;
    CHECK_MESSAGE(event.is_launch(), category);
  }
  for (const char* category : {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memset"}) {
    TorchEvent event;
    event.category = category;
    CHECK_MESSAGE(event.is_gpu_work(), category);
    CHECK_FALSE(event.is_launch());
  }
}

TEST_CASE("the header is read wherever it stands, also behind the events") {
  const ReadEvents all = events_of(
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
          "traceEvents": [{"ph": "X", "ts": 1, "args": {"rank": 9}}],
          "traceName": "t", "baseTimeNanoseconds": 1700000000000000123})");
  CHECK(all.header.rank == 3);
  CHECK(all.header.world_size == 8);
  CHECK(all.header.base_ns == 1'700'000'000'000'000'123);
  const ReadEvents behind =
      events_of(R"({"traceEvents": [], "distributedInfo": {"rank": 0, "world_size": 1}})");
  CHECK(behind.header.rank == 0);
  CHECK(behind.header.base_ns == 0);
  CHECK(behind.header.events == 0);
}

TEST_CASE("a list of events without an object around it is a trace") {
  const ReadEvents all = events_of(R"([{"name": "a", "ts": 1}, {"name": "b", "ts": 2}])");
  REQUIRE(all.events.size() == 2);
  CHECK(all.events[1].name == "b");
  CHECK_FALSE(all.header.rank);
  CHECK(events_of("[]").events.empty());
}

TEST_CASE("lists beside the events hold none") {
  const ReadEvents all = events_of(
      R"({"deviceProperties": [{"name": "no", "ts": 1}], "traceEvents": [{"name": "a"}],
          "more": {"traceEvents": [{"name": "no"}]}, "last": [{"name": "no"}]})");
  REQUIRE(all.events.size() == 1);
  CHECK(all.events.front().name == "a");
}

TEST_CASE("what is empty, cut off, or no trace is told so") {
  CHECK(event_faults("") == "rank0.json: error: is empty, where a trace is wanted\n");
  const std::string cut = event_faults(R"({"traceEvents": [{"ph": "X", "ts)");
  CHECK_MESSAGE(cut.find("ends in the middle of its JSON, after byte 32") != std::string::npos,
                cut);
  CHECK(cut.find("the file is cut off; export the trace again") != std::string::npos);
  CHECK(event_faults(R"({"traceEvents": [{"ph": "X"},)").find("ends in the middle") !=
        std::string::npos);
  for (const char* text : {R"({"schemaVersion": 1})", "5", R"({"traceEvents": {"a": 1}})"}) {
    const std::string none = event_faults(text);
    CHECK_MESSAGE(
        none.find("is JSON, and no trace: it has no list traceEvents") != std::string::npos, none);
  }
  const std::string other = event_faults("<html>");
  CHECK_MESSAGE(other.find("byte 1 is no JSON, in '<'") != std::string::npos, other);
  CHECK(event_faults(R"({"traceEvents": [{"ts": 1e999}]})").find("is out of range") !=
        std::string::npos);
}

TEST_CASE("what takes the events may end the reading") {
  std::istringstream stream(R"([{"name": "a"}, {"name": "b"}, {"name": "c"}, no JSON)");
  std::vector<std::string> taken;
  const auto header = read_torch_events(
      stream, test::text_source("rank0.json", ""),
      [&](const TorchEvent& event, std::size_t number) -> std::optional<Diagnostic> {
        taken.push_back(event.name);
        if (number < 2) return std::nullopt;
        return input_error({}, "two are enough");
      });
  REQUIRE_FALSE(header);
  CHECK(header.problems().size() == 1);
  CHECK(header.problems().front().message == "two are enough");
  CHECK(taken == std::vector<std::string>{"a", "b"});
}

}  // namespace
}  // namespace plumbline
