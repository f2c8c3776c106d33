// The trace of one rank as PyTorch's profiler writes it, event by event.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>

#include "calibrate/recording/rank_recording.h"
#include "tests/support/text_source.h"

namespace plumbline::test {

/// A trace, event by event. Times are whole microseconds; the training thread is 1, autograd's 2.
class RankTrace {
 public:
  RankTrace& event(const std::string& category, const std::string& name, std::int64_t start,
                   std::int64_t length, std::int64_t thread, const std::string& arguments = "") {
    events_ += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": "
        "{}.000, \"dur\": {}.000, \"args\": {{{}}}}}",
        events_.empty() ? "" : ",\n", category, name, thread, start, length, arguments);
    return *this;
  }
  RankTrace& range(const std::string& name, std::int64_t start, std::int64_t length,
                   std::int64_t thread = 1) {
    return event("user_annotation", name, start, length, thread);
  }
  RankTrace& launch(std::int64_t at, int correlation, std::int64_t thread = 1) {
    return event("cuda_runtime", "cudaLaunchKernel", at, 1, thread,
                 fmt::format("\"correlation\": {}", correlation));
  }
  RankTrace& kernel(std::int64_t start, std::int64_t length, int correlation, int device = 0,
                    const std::string& name = "gemm", const std::string& arguments = "") {
    return event(
        "kernel", name, start, length, 7,
        fmt::format("\"correlation\": {}, \"device\": {}{}", correlation, device, arguments));
  }
  /// A kernel that sends to a rank, or receives from it.
  RankTrace& send(std::int64_t start, std::int64_t length, int correlation, int to) {
    return kernel(start, length, correlation, 0, "ncclDevKernel_SendRecv(ncclDevComm*)",
                  fmt::format(", \"Collective name\": \"send\", \"dtype\": \"BFloat16\", \"In msg "
                              "nelems\": 1000, \"Dst Rank\": {}, \"Src Rank\": 0",
                              to));
  }
  RankTrace& receive(std::int64_t start, std::int64_t length, int correlation, int from) {
    return kernel(start, length, correlation, 0, "ncclDevKernel_SendRecv(ncclDevComm*)",
                  fmt::format(", \"Collective name\": \"recv\", \"dtype\": \"Float\", \"In msg "
                              "nelems\": 500, \"Src Rank\": {}, \"Dst Rank\": 0",
                              from));
  }
  RankTrace& all_reduce(std::int64_t start, std::int64_t length, int correlation) {
    return kernel(start, length, correlation, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                  ", \"Collective name\": \"allreduce\"");
  }
  /// A launch by a thread, and the kernel that it starts.
  RankTrace& launched(std::int64_t at, std::int64_t start, std::int64_t length,
                      std::int64_t thread = 1, int device = 0) {
    ++launches_;
    return launch(at, launches_, thread).kernel(start, length, launches_, device);
  }
  /// A function that autograd evaluates.
  RankTrace& autograd(std::int64_t start, std::int64_t length, std::int64_t thread = 2) {
    return call("autograd::engine::evaluate_function: MmBackward0", start, length, thread);
  }
  RankTrace& call(const std::string& name, std::int64_t start, std::int64_t length,
                  std::int64_t thread = 1) {
    return event("cpu_op", name, start, length, thread);
  }
  RankTrace& step(int number, std::int64_t start, std::int64_t length) {
    return range(fmt::format("ProfilerStep#{}", number), start, length);
  }
  /// What the trace says of itself: `"distributedInfo": {...}, `.
  RankTrace& says(const std::string& header) {
    header_ += header;
    return *this;
  }

  std::string text() const { return fmt::format("{{{}\"traceEvents\": [{}]}}", header_, events_); }

 private:
  std::string header_, events_;
  int launches_ = 1000;
};

inline Result<RankRecording> try_recording(const std::string& text, const OpNames& names = {},
                                           const std::string& file = "trace.json") {
  std::istringstream stream(text);
  return parse_recording(stream, text_source(file, ""), names);
}

inline RankRecording recording_of(const std::string& text, const OpNames& names = {},
                                  const std::string& file = "trace.json") {
  auto recording = try_recording(text, names, file);
  REQUIRE_MESSAGE(recording, (recording ? "" : to_text(recording.problems())));
  return *std::move(recording);
}

inline RankRecording recording_of(const RankTrace& trace) { return recording_of(trace.text()); }

/// "10..20", in microseconds.
inline std::string span_text(const RecordedSpan& span) {
  const auto text = [](SimTime at) {
    return fmt::format("{}", static_cast<double>(at.time_since_epoch().count()) / 1e3);
  };
  return text(span.begin) + ".." + text(span.end);
}

/// "0F3 10..20, 0B3 30..50": the ops of a recording, in microseconds; "?" for what is unknown.
inline std::string ops_text(const RankRecording& recording) {
  const auto number = [](const std::optional<std::uint32_t>& value) {
    return value ? std::to_string(*value) : std::string("?");
  };
  std::string all;
  for (const RecordedOp& op : recording.ops) {
    all += fmt::format("{}{}{}{} {}", all.empty() ? "" : ", ", number(op.op.stage),
                       letter(op.op.kind), number(op.op.micro_batch), span_text(op.work));
  }
  return all;
}

}  // namespace plumbline::test
