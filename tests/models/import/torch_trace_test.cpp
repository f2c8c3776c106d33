// Traces of PyTorch's profiler, made by hand in the layout of the real ones.
//
// SPDX-License-Identifier: MIT
#include "models/import/torch_trace.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// A trace, event by event. Times in microseconds.
class TraceText {
 public:
  TraceText& event(const std::string& category, const std::string& name, double start,
                   double length, int id = 0, int thread = 1) {
    events_ += fmt::format(
        "{}\n  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {},\n"
        "    \"ts\": {:.3f}, \"dur\": {:.3f},\n    \"args\": {{\n      {}\"deep\": [[1, {{\"ts\": "
        "5, "
        "\"External id\": 77}}], null, true]\n    }}\n  }}",
        events_.empty() ? "" : ",", category, name, thread, start, length,
        id > 0 ? fmt::format("\"External id\": {}, ", id) : "");
    return *this;
  }
  TraceText& cpu(const std::string& name, double start, double length, int id = 0, int thread = 1) {
    return event("user_annotation", name, start, length, id, thread);
  }
  TraceText& gpu(const std::string& name, double start, double length, int id = 0, int stream = 7) {
    return event("gpu_user_annotation", name, start, length, id, stream);
  }
  /// An event with a correlation id instead: a launch on the CPU, or what it started.
  TraceText& correlated(const std::string& category, const std::string& name, double start,
                        double length, int correlation, int thread,
                        const std::string& collective = "") {
    events_ += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": "
        "{:.3f}, \"dur\": {:.3f}, \"args\": {{\"correlation\": {}, \"device\": 0{}}}}}",
        events_.empty() ? "" : ",", category, name, thread, start, length, correlation,
        collective.empty() ? "" : fmt::format(", \"Collective name\": \"{}\"", collective));
    return *this;
  }
  TraceText& launch(double at, int correlation, int thread = 1) {
    return correlated("cuda_runtime", "cudaLaunchKernel", at, 5, correlation, thread);
  }
  TraceText& kernel(double start, double length, int correlation, const std::string& name = "gemm",
                    const std::string& collective = "") {
    return correlated("kernel", name, start, length, correlation, 7, collective);
  }
  TraceText& step(int number, double start, double length) {
    return cpu(fmt::format("ProfilerStep#{}", number), start, length);
  }
  /// Forward and backward of a layer on the CPU, one after the other.
  TraceText& layer(const std::string& name, double start, double forward, double backward) {
    cpu("layer:" + name + ":forward", start, forward);
    return cpu("layer:" + name + ":backward", start + forward, backward);
  }

  std::string text() const {
    return fmt::format(
        "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{{\"id\": 0, \"name\": \"x\"}}],\n"
        "  \"traceEvents\": [{}\n  ],\n  \"traceName\": \"t.json\"\n}}\n",
        events_);
  }

 private:
  std::string events_;
};

Result<TraceModel> parse(const std::string& text, const TraceOptions& options = {}) {
  std::istringstream stream(text);
  return parse_torch_trace(stream, test::text_source("runs/gpt.pt.trace.json", ""), options);
}

TraceModel read(const std::string& text, const TraceOptions& options = {}) {
  auto trace = parse(text, options);
  REQUIRE_MESSAGE(trace, (trace ? "" : to_text(trace.problems())));
  return *std::move(trace);
}

std::string faults(const std::string& text, const TraceOptions& options = {}) {
  const auto trace = parse(text, options);
  REQUIRE(!trace);
  return to_text(trace.problems());
}

bool holds(const std::vector<std::string>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TraceOptions skipping(std::int64_t steps) {
  TraceOptions options;
  options.skip = steps;
  return options;
}

const LayerCosts& costs(const TraceModel& trace, std::size_t layer) {
  return trace.model.profile.measurements.front().layers[layer];
}

TEST_CASE("ranges become statistics over the steps that are not skipped") {
  TraceText trace;
  trace.step(3, 0, 1000).layer("b", 500, 90, 90).layer("a", 0, 90, 90);
  for (int i = 0; i < 4; ++i) {
    const double at = 1000 * (i + 1);
    trace.step(4 + i, at, 1000);
    trace.layer("a", at, 10 + i, 20 + i).layer("b", at + 500, 1.001, 2);
    trace.cpu("layer:b:update", at + 900, 5);
  }
  const TraceModel read_back = read(trace.text());
  const Model& model = read_back.model;
  CHECK(model.name == "gpt");
  REQUIRE(model.graph.size() == 2);
  CHECK(model.graph.layer({0}).name == "a");  // as they run, not as they are written
  CHECK(model.graph.layer({1}).name == "b");
  CHECK(model.graph.edges() == std::vector<LayerEdge>{{{0}, {1}}});
  CHECK(costs(read_back, 0).forward.samples == 4);
  CHECK(costs(read_back, 0).forward.mean == nanoseconds(11'500));
  CHECK(costs(read_back, 0).forward.median == nanoseconds(11'500));
  CHECK(costs(read_back, 0).forward.q1 == nanoseconds(10'750));
  CHECK(costs(read_back, 0).forward.q3 == nanoseconds(12'250));
  CHECK(costs(read_back, 0).backward.mean == nanoseconds(21'500));
  CHECK(costs(read_back, 1).forward.mean == nanoseconds(1'001));
  CHECK(costs(read_back, 1).update.mean == microseconds(5));
  CHECK(!costs(read_back, 0).update.samples);
  CHECK(model.profile.provenance.at("clock") == "cpu");
  CHECK(model.profile.provenance.at("steps") == "4");
  CHECK(!model.profile.measurements.front().batch);
  CHECK(read_back.notes.empty());
  CHECK(costs(read(trace.text(), skipping(4)), 0).forward.mean == microseconds(13));
  CHECK(costs(read(trace.text(), skipping(0)), 0).forward.samples == 5);
}

TEST_CASE("the mean leaves out the lowest and the highest tenth of the runs") {
  TraceText trace;
  for (int i = 0; i < 10; ++i) {
    trace.step(i, 1e4 * i, 1e4).layer("a", 1e4 * i, i == 9 ? 9000 : 10, 20);
  }
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(costs(read_back, 0).forward.mean == microseconds(10));
  CHECK(costs(read_back, 0).forward.samples == 10);
}

TEST_CASE("ranges on the GPU win; their step is that in which the CPU launched them") {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    const double at = 100 * i;
    trace.step(i, at, 100);
    trace.cpu("layer:a:forward", at, 1, 10 * i + 1).cpu("layer:a:backward", at + 50, 1, 10 * i + 2);
    // The GPU is behind: all of its work lies after the last step.
    trace.gpu("layer:a:forward", 1000 + 100 * i, 30 + i, 10 * i + 1);
    trace.gpu("layer:a:backward", 1050 + 100 * i, 40, 10 * i + 2);
    trace.event("kernel", "gemm", 1000 + 100 * i, 30, 0, 7);
  }
  const TraceModel read_back = read(trace.text());
  CHECK(costs(read_back, 0).forward.samples == 2);
  CHECK(costs(read_back, 0).forward.mean == nanoseconds(31'500));
  CHECK(costs(read_back, 0).backward.mean == microseconds(40));
  CHECK(read_back.model.profile.provenance.at("clock") == "gpu");
  CHECK(read_back.notes.size() == 1);
  CHECK(holds(read_back.notes, "times are the GPU's"));
}

TEST_CASE("the ranges of one run on several streams are one, from the first to the last") {
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 1, 5).cpu("layer:a:backward", 10, 1, 6);
  trace.gpu("layer:a:forward", 130, 20, 5, 8).gpu("layer:a:forward", 100, 10, 5, 7);
  trace.gpu("layer:a:backward", 200, 20, 6);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(costs(read_back, 0).forward.samples == 1);
  CHECK(costs(read_back, 0).forward.mean == microseconds(50));
  CHECK(costs(read_back, 0).backward.mean == microseconds(20));
}

TEST_CASE("a pass without a range on the GPU is the CPU's, and that is said") {
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 1, 5).cpu("layer:a:backward", 10, 3, 6);
  trace.gpu("layer:a:forward", 100, 20, 5);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(costs(read_back, 0).backward.mean == microseconds(3));
  CHECK(read_back.model.profile.provenance.at("clock") == "gpu and cpu");
  CHECK(holds(read_back.notes, "warning: 1 pass has no range on the GPU"));
  CHECK(holds(read_back.notes, "layer:a:backward"));
}

TEST_CASE("times of the CPU beside work of a GPU are doubted") {
  TraceText trace;
  trace.layer("a", 0, 1, 2).event("kernel", "gemm", 0, 50).event("gpu_memcpy", "copy", 60, 1);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(holds(read_back.notes, "warning: the trace has 2 events of GPU work"));
  CHECK(read_back.model.profile.provenance.at("clock") == "cpu");
}

TEST_CASE("without steps the first runs are left out, with several runs a step each is one") {
  TraceText trace;
  trace.layer("a", 0, 90, 90).layer("a", 200, 1, 2).layer("a", 300, 3, 4);
  const TraceModel read_back = read(trace.text());
  CHECK(costs(read_back, 0).forward.samples == 2);
  CHECK(costs(read_back, 0).forward.mean == microseconds(2));
  CHECK(holds(read_back.notes, "the trace has no steps"));
  CHECK(!read_back.model.profile.provenance.contains("steps"));
  CHECK(faults(trace.text(), skipping(3)).find("the layer 'a' has neither forward nor backward") !=
        std::string::npos);

  TraceText steps;
  for (int i = 0; i < 3; ++i) {
    steps.step(i, 1000 * i, 1000).layer("a", 1000 * i, 5, 5).layer("a", 1000 * i + 500, 7, 7);
  }
  steps.layer("a", 5000, 100, 100);
  const TraceModel of_steps = read(steps.text());
  CHECK(costs(of_steps, 0).forward.samples == 4);
  CHECK(costs(of_steps, 0).forward.mean == microseconds(6));
  CHECK(holds(of_steps.notes, "every pass ran 2 times a step"));
  CHECK(holds(of_steps.notes, "2 ranges outside of all steps are left out"));
}

TEST_CASE("a forward within a backward is part of it; other ranges may not nest") {
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 10, 1).cpu("layer:a:backward", 20, 30, 2);
  trace.cpu("layer:a:forward", 22, 12, 3);
  trace.gpu("layer:a:forward", 100, 11, 1).gpu("layer:a:forward", 120, 13, 3);
  trace.gpu("layer:a:backward", 120, 31, 2);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(costs(read_back, 0).forward.samples == 1);
  CHECK(costs(read_back, 0).forward.mean == microseconds(11));
  CHECK(holds(read_back.notes, "1 forward within a backward is part of it"));

  TraceText nested;
  nested.layer("block", 0, 10, 10).cpu("layer:block.linear:forward", 2, 3);
  const std::string wrong = faults(nested.text(), skipping(0));
  CHECK(wrong.find("'layer:block.linear:forward' lies within 'layer:block:forward'") !=
        std::string::npos);
  // On another thread it is beside, and neighbours may touch.
  TraceText beside;
  beside.layer("a", 0, 10, 10).layer("b", 20, 10, 10).cpu("layer:c:forward", 2, 3, 0, 2);
  beside.cpu("layer:c:backward", 5, 3, 0, 2);
  CHECK(read(beside.text(), skipping(0)).model.graph.size() == 3);
}

TEST_CASE("templates say how ranges are named, and the more exact one wins") {
  TraceOptions options = skipping(0);
  CHECK(!options.names.set(RangePass::forward, "{layer}"));
  CHECK(!options.names.set(RangePass::backward, "{layer}.bwd"));
  CHECK(options.names.meaning("fc.bwd")->pass == RangePass::backward);
  CHECK(options.names.meaning("fc.bwd")->layer == "fc");
  CHECK(options.names.meaning(".bwd")->pass == RangePass::forward);
  CHECK(!options.names.meaning(""));
  CHECK(options.names.text(RangePass::backward) == "{layer}.bwd");
  TraceText trace;
  trace.cpu("fc", 0, 5).cpu("fc.bwd", 10, 6);
  const TraceModel read_back = read(trace.text(), options);
  CHECK(read_back.model.graph.layer({0}).name == "fc");
  CHECK(costs(read_back, 0).backward.mean == microseconds(6));
  for (const char* wrong : {"", "{layer}{layer}", "{Layer}", "{name}(F)"}) {
    CAPTURE(wrong);
    CHECK(options.names.set(RangePass::forward, wrong).has_value());
  }
}

TEST_CASE("a list of events without the object around it is a trace, too") {
  const std::string text =
      R"([{"ph":"X","cat":"user_annotation","name":"layer:a:forward","ts":0,"dur":3,"tid":"main"},
          {"ph":"X","cat":"user_annotation","name":"layer:a:backward","ts":5,"dur":4,"tid":"main"}])";
  CHECK(costs(read(text, skipping(0)), 0).forward.mean == microseconds(3));
}

TEST_CASE("only events of the list count, and of their arguments only the id") {
  const std::string text =
      R"({"other": [{"ph": "X", "cat": "user_annotation", "name": "layer:x:forward", "ts": 0, "dur": 9}],
    "traceEvents": [
      {"ph": "X", "cat": "user_annotation", "name": "layer:a:forward", "ts": 0, "dur": 3, "args": {"External id": 4}, "sf": [5, 5]},
      {"ph": "X", "cat": "user_annotation", "name": "layer:a:backward", "ts": 9, "dur": 3},
      {"ph": "X", "cat": "gpu_user_annotation", "name": "layer:a:forward", "ts": 50, "dur": 7, "args": {"External id": 4, "name": "x", "dur": 1}},
      {"ph": "X", "cat": "gpu_user_annotation", "name": "layer:a:forward", "ts": 70, "dur": 7, "args": {"External id": 4}},
      {"ph": "i", "cat": "user_annotation", "name": "layer:y:forward", "ts": 0, "dur": 3}, [{"ph": "X"}], 3],
    "more": [{"ph": "X", "cat": "user_annotation", "name": "layer:z:forward", "ts": 0, "dur": 9}]})";
  const TraceModel trace = read(text, skipping(0));
  CHECK(trace.model.graph.size() == 1);
  CHECK(costs(trace, 0).forward.samples == 1);
  CHECK(costs(trace, 0).forward.mean == microseconds(27));
  // The id is that of the range on the CPU: without it, the GPU's start would lie outside of the
  // step.
  const std::string stepped =
      text.substr(0, text.find("[\n") + 1) +
      R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 40},)" +
      text.substr(text.find("[\n") + 1);
  CHECK(costs(read(stepped, skipping(0)), 0).forward.mean == microseconds(27));
}

TEST_CASE("what is no trace is told as such, with the byte where the text ends") {
  CHECK(faults("").find("is empty, where a trace is wanted") != std::string::npos);
  const std::string whole = TraceText().step(0, 0, 9).layer("a", 0, 1, 2).text();
  for (std::size_t length = 1; length + 2 < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(faults(whole.substr(0, length), skipping(0))
              .find(fmt::format("ends in the middle of its JSON, after byte {}", length)) !=
          std::string::npos);
  }
  CHECK(faults("{}").find("is JSON, and no trace") != std::string::npos);
  CHECK(faults("{\"traceEvents\": 3}").find("is JSON, and no trace") != std::string::npos);
  CHECK(faults("3").find("is JSON, and no trace") != std::string::npos);
  CHECK(faults("{\"traceEvents\": [}").find("byte 18 is no JSON") != std::string::npos);
  CHECK(faults("{\"traceEvents\": [{\"ts\": 1e999}]}").find("is out of range") !=
        std::string::npos);
  CHECK(faults("version: 1").find("byte 1 is no JSON, in 'v'") != std::string::npos);
}

TEST_CASE("a trace without ranges of layers says what there is instead") {
  CHECK(faults(TraceText().text()).find("no range of a layer is among the 0 events") !=
        std::string::npos);
  TraceText trace;
  trace.event("cpu_op", "aten::mm", 0, 1).event("cpu_op", "aten::mm", 2, 1);
  trace.event("kernel", "gemm", 3, 1).step(0, 0, 9);
  CHECK(faults(trace.text())
            .find("among the 4 events; the most frequent events are 'aten::mm' (2), 'gemm' (1)") !=
        std::string::npos);
  trace.cpu("forward pass", 0, 5);
  CHECK(faults(trace.text()).find("the most frequent named ranges are 'forward pass' (1)") !=
        std::string::npos);
}

TEST_CASE("a layer without one of its passes is refused, every one of them") {
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 1).cpu("layer:b:backward", 5, 1).layer("c", 10, 1, 1);
  const std::string wrong = faults(trace.text(), skipping(0));
  CHECK(wrong.find("the layer 'a' has a forward and no backward") != std::string::npos);
  CHECK(wrong.find("it is a range 'layer:a:backward'") != std::string::npos);
  CHECK(wrong.find("the layer 'b' has a backward and no forward") != std::string::npos);
  CHECK(wrong.find("'c'") == std::string::npos);
  TraceText one;
  one.step(0, 0, 100).layer("a", 0, 1, 1);
  CHECK(faults(one.text()).find("there is 1 step, and the first 1 is left out") !=
        std::string::npos);
  TraceText backwards;
  backwards.layer("a", 0, -1, 1);
  CHECK(faults(backwards.text()).find("a range 'layer:a:forward' has no length") !=
        std::string::npos);
}

/// The mean times of one layer's passes, in us.
double forward_us(const TraceModel& trace, std::size_t layer = 0) {
  return static_cast<double>(costs(trace, layer).forward.mean.count()) / 1e3;
}
double backward_us(const TraceModel& trace, std::size_t layer = 0) {
  return static_cast<double>(costs(trace, layer).backward.mean.count()) / 1e3;
}

TEST_CASE("kernels belong to the range that launched them, wherever they run in time") {
  TraceText trace;
  trace.layer("a", 0, 10, 10).layer("b", 20, 10, 10);
  // The GPU is behind. Two kernels of a's forward with a gap, one graph of two in its backward.
  trace.launch(1, 1).launch(9, 2).launch(15, 3).launch(21, 4);
  trace.correlated("cuda_driver", "cuLaunchKernel", 35, 2, 5, 1);
  trace.kernel(1000, 100, 1).kernel(1150, 50, 2);
  trace.kernel(1200, 70, 3).kernel(1270, 30, 3);
  trace.kernel(1300, 40, 4);
  trace.correlated("gpu_memset", "Memset", 1340, 5, 5, 7).kernel(9000, 5, 99);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back, 0) == 200);
  CHECK(backward_us(read_back, 0) == 100);
  CHECK(forward_us(read_back, 1) == 40);
  CHECK(backward_us(read_back, 1) == 5);
  CHECK(read_back.model.profile.provenance.at("clock") == "gpu");
  CHECK(holds(read_back.notes, "times are the GPU's"));
  CHECK(!holds(read_back.notes, "torch.cuda.synchronize"));
  CHECK(holds(read_back.notes, "1 kernel is in no range: the trace does not hold the call"));
  CHECK(holds(read_back.notes, "kernels run in 86 % of these times"));  // 295 of 345 us
}

TEST_CASE("how much of the times kernels fill is told where it is little") {
  TraceText trace;
  trace.layer("a", 0, 10, 10).launch(1, 1).launch(2, 2).launch(11, 3);
  trace.kernel(100, 10, 1).kernel(180, 20, 2).kernel(300, 100, 3);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back) == 100);
  CHECK(holds(read_back.notes, "warning: kernels run in 65 % of these times"));
}

TEST_CASE("a backward holds what autograd's threads launch while it waits") {
  TraceText trace;
  for (int i = 0; i < 3; ++i) {
    const double at = 10'000 * i;
    const int id = 100 * i;
    trace.step(i, at, 9000)
        .cpu("layer:m:forward", at, 1000)
        .cpu("layer:m:backward", at + 2000, 4000);
    trace.launch(at + 10, id + 1).kernel(at + 20, 900, id + 1);
    trace.launch(at + 2010, id + 2).kernel(at + 2020, 6, id + 2);
    // As Kineto makes it: of the launches of the range's own thread.
    trace.gpu("layer:m:forward", at + 20, 900.002).gpu("layer:m:backward", at + 2020, 6);
    for (int k = 0; k < 30; ++k)
      trace.launch(at + 2100 + 100 * k, id + 3 + k, 2).kernel(at + 2126 + 100 * k, 99, id + 3 + k);
    // After the backward, on the same thread of autograd: of no range.
    trace.launch(at + 6500, id + 90, 2).kernel(at + 6600, 1000, id + 90);
  }
  const TraceModel read_back = read(trace.text());
  CHECK(forward_us(read_back) == doctest::Approx(900).epsilon(1e-5));
  CHECK(backward_us(read_back) == 3105);  // 2020 to 2126 + 2900 + 99
  CHECK(holds(read_back.notes,
              "warning: the range of 1 pass on the GPU is not what the kernels "
              "launched within it take, which count: layer:m:backward (6 us by "
              "range, 3.105 ms by kernels)"));
}

TEST_CASE("ranges on the GPU count where they agree with the kernels within 1 %") {
  for (const double range : {990.0, 1000.0, 1009.0, 1011.0, 989.0}) {
    CAPTURE(range);
    TraceText trace;
    trace.cpu("layer:a:forward", 0, 10, 1).cpu("layer:a:backward", 10, 10, 2);
    trace.launch(1, 1).kernel(100, 1000, 1).launch(11, 2).kernel(2000, 1000, 2);
    trace.gpu("layer:a:forward", 100, range, 1).gpu("layer:a:backward", 2000, 1000, 2);
    const TraceModel read_back = read(trace.text(), skipping(0));
    const bool agree = std::abs(range - 1000) <= 10;
    CHECK(forward_us(read_back) == (agree ? range : 1000));
    CHECK(holds(read_back.notes, "layer:a:forward") == !agree);
  }
}

TEST_CASE(
    "what a thread launches beside the ranges of others is of none, unless it is autograd's") {
  TraceText trace;
  trace.layer("a", 0, 100, 100)
      .launch(10, 1)
      .kernel(1000, 10, 1)
      .launch(110, 2)
      .kernel(2000, 20, 2);
  // Thread 9 loads data all the time; thread 2 works within backwards alone.
  trace.launch(50, 3, 9).correlated("gpu_memcpy", "Memcpy HtoD", 1100, 500, 3, 20);
  trace.launch(150, 4, 9).correlated("gpu_memcpy", "Memcpy HtoD", 2100, 500, 4, 20);
  trace.launch(160, 5, 2).kernel(2020, 30, 5).launch(400, 6, 2).kernel(3000, 30, 6);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back) == 10);
  CHECK(backward_us(read_back) == 50);
  CHECK(holds(read_back.notes,
              "2 kernels and copies are left out: threads launched them that are "
              "not autograd's"));
  // Where the trace says which threads are autograd's, no other is.
  trace.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 120, 5, 0, 3);
  CHECK(backward_us(read(trace.text(), skipping(0))) == 20);

  TraceText two;
  two.layer("a", 0, 100, 100);
  two.cpu("layer:b:forward", 0, 100, 0, 2).cpu("layer:b:backward", 100, 100, 0, 2);
  for (const int at : {10, 110}) {
    two.launch(at, at)
        .kernel(at + 1000, 10, at)
        .launch(at + 1, at + 1, 2)
        .kernel(at + 1020, 10, at + 1);
  }
  two.launch(112, 112, 9).kernel(1152, 10, 112);
  CHECK(
      holds(read(two.text(), skipping(0)).notes,
            "warning: 1 kernel is left out: autograd launched it while several backwards waited"));
}

TEST_CASE("old traces, whose categories have capitals, and ids that are texts, are read") {
  const std::string text =
      R"([{"ph":"X","cat":"user_annotation","name":"layer:a:forward","ts":0,"dur":3,"tid":1},
          {"ph":"X","cat":"user_annotation","name":"layer:a:backward","ts":5,"dur":4,"tid":1},
          {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","ts":1,"dur":1,"tid":1,"args":{"correlation":7}},
          {"ph":"X","cat":"Runtime","name":"cudaMemcpyAsync","ts":6,"dur":1,"tid":1,"args":{"correlation":"8"}},
          {"ph":"X","cat":"Kernel","name":"gemm","ts":50,"dur":30,"tid":7,"args":{"correlation":7}},
          {"ph":"X","cat":"Memcpy","name":"copy","ts":90,"dur":40,"tid":7,"args":{"correlation":"8"}}])";
  const TraceModel trace = read(text, skipping(0));
  CHECK(forward_us(trace) == 30);
  CHECK(backward_us(trace) == 40);
}

TEST_CASE("a thread on which autograd evaluates functions launches for backwards only") {
  TraceText trace;
  trace.layer("a", 0, 100, 100);
  trace.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 120, 5, 0, 2);
  trace.launch(10, 1).kernel(1000, 10, 1).launch(50, 2, 2).kernel(1100, 500, 2);
  trace.launch(121, 3, 2).kernel(2000, 30, 3);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back) == 10);
  CHECK(backward_us(read_back) == 30);
}

TEST_CASE("recomputation on a thread of autograd is part of the backward that waits for it") {
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 10, 1).cpu("layer:a:backward", 20, 50, 2);
  trace.cpu("layer:a:forward", 22, 12, 3, 2);
  trace.launch(1, 1).kernel(100, 11, 1);
  trace.launch(23, 2, 2).kernel(200, 12, 2).launch(40, 3, 2).kernel(212, 20, 3);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(costs(read_back, 0).forward.samples == 1);
  CHECK(forward_us(read_back) == 11);
  CHECK(backward_us(read_back) == 32);
  CHECK(holds(read_back.notes, "1 forward within a backward is part of it"));
  // A backward of a layer within that of another on the main thread would count twice.
  trace.cpu("layer:b:forward", 12, 3).cpu("layer:b:backward", 36, 10, 0, 2);
  CHECK(read(trace.text(), skipping(0)).model.graph.size() ==
        2);  // a thread beside, for all we know
  trace.event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 37, 5, 0, 2);
  CHECK(
      faults(trace.text(), skipping(0)).find("'layer:b:backward' lies within 'layer:a:backward'") !=
      std::string::npos);
}

TEST_CASE("a pass whose kernels could not be joined keeps the CPU's time, and is doubted") {
  TraceText trace;
  trace.layer("a", 0, 10, 10).kernel(100, 3000, 1);  // no call has this id
  trace.launch(12, 2).kernel(4000, 40, 2);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back) == 10);
  CHECK(backward_us(read_back) == 40);
  CHECK(holds(read_back.notes, "warning: 1 pass has no range on the GPU"));
  CHECK(!holds(read_back.notes, "launches nothing"));
}

TEST_CASE("sends and receives of NCCL are no part of a layer's time; other collectives are") {
  const std::string sends = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
  const auto with = [&](const std::string& collective) {
    TraceText trace;
    trace.layer("a", 0, 10, 10).launch(1, 1).launch(2, 2).launch(3, 3).launch(12, 4);
    trace.kernel(100, 900, 1, sends, collective).kernel(1000, 20, 2);
    trace.kernel(1020, 5, 3, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "allreduce");
    trace.kernel(2000, 40, 4);
    return read(trace.text(), skipping(0));
  };
  for (const char* pair : {"send", "recv", "coalesced"}) {
    CAPTURE(pair);
    CHECK(forward_us(with(pair)) == 25);
    CHECK(holds(with(pair).notes, "1 kernel of NCCL is left out"));
  }
  CHECK(forward_us(with("all_to_allv")) == 925);
  CHECK(holds(with("all_to_allv").notes, "2 kernels of NCCL's collectives count: "));
  CHECK(forward_us(with("")) == 925);  // as older traces are
  CHECK(holds(with("").notes,
              "warning: 1 kernel of NCCL may be an all-to-all of the layers, or sends"));
}

TEST_CASE("a pass that launches nothing takes no time of the GPU, which is told") {
  TraceText trace;
  trace.layer("view", 0, 10, 10).layer("mm", 20, 10, 10);
  trace.launch(21, 1).kernel(100, 7, 1).launch(31, 2).kernel(200, 8, 2);
  const TraceModel read_back = read(trace.text(), skipping(0));
  CHECK(forward_us(read_back, 0) == 0);
  CHECK(forward_us(read_back, 1) == 7);
  CHECK(read_back.model.profile.provenance.at("clock") == "gpu");
  CHECK(holds(read_back.notes,
              "2 passes launch nothing on the GPU, so their times are 0: "
              "layer:view:forward, layer:view:backward"));
}

TEST_CASE("a template without {layer} is the range of a whole stage") {
  TraceOptions options = skipping(0);
  CHECK(!options.names.set(RangePass::forward, "fwd step"));
  CHECK(options.names.misfits().size() == 1);  // no backward is named
  CHECK(!options.names.set(RangePass::backward, "bwd step"));
  CHECK(options.names.misfits().empty());
  CHECK(!options.names.meaning("fwd step 2"));
  CHECK(options.names.meaning("fwd step")->layer == "stage");
  TraceText trace;
  trace.cpu("fwd step", 0, 5).cpu("bwd step", 10, 6).cpu("fwd step 2", 20, 6);
  TraceModel stage = read(trace.text(), options);
  CHECK(stage.model.graph.layer({0}).name == "stage");
  CHECK(forward_us(stage) == 5);

  stage.notes = {"warning: doubtful"};
  const auto chained = chain_traces({stage, stage, stage}, {"r0.json", "r1.json", "r2.json"});
  REQUIRE(chained);
  CHECK(chained->model.graph.size() == 3);
  CHECK(chained->model.graph.layer({2}).name == "stage2");
  CHECK(chained->model.graph.edges().size() == 2);
  CHECK(chained->model.profile.measurements.front().layers.size() == 3);
  CHECK(chained->model.profile.provenance.at("clock") == "cpu");
  CHECK(holds(chained->notes, "warning: r1.json: doubtful"));
  const TraceModel layers = read(TraceText().layer("a", 0, 1, 2).text(), skipping(0));
  const auto same = chain_traces({layers, layers}, {"r0.json", "r1.json"});
  REQUIRE(!same);
  CHECK(to_text(same.problems()).find("r1.json has a layer 'a', as r0.json has") !=
        std::string::npos);
}

TEST_CASE("templates that do not fit together are told") {
  const auto misfit = [](const std::vector<std::pair<RangePass, std::string>>& set) {
    RangeNames names;
    for (const auto& [pass, text] : set) REQUIRE(!names.set(pass, text));
    return to_text(names.misfits());
  };
  CHECK(misfit({}).empty());
  CHECK(misfit({{RangePass::forward, "{layer}"}, {RangePass::backward, "{layer}"}})
            .find("--forward and --backward are both '{layer}'") != std::string::npos);
  CHECK(misfit({{RangePass::backward, "step"}})
            .find("--forward is 'layer:{layer}:forward' and --backward is 'step': one of them") !=
        std::string::npos);
  CHECK(misfit({{RangePass::forward, "f"}, {RangePass::backward_input, "i"}})
            .find("no backward is named beside it") != std::string::npos);
  CHECK(misfit({{RangePass::forward, "f"},
                {RangePass::backward_input, "i"},
                {RangePass::backward_weight, "w"}})
            .empty());
}

TEST_CASE("the backward may be given in two parts, and then both are needed") {
  TraceOptions options = skipping(0);
  CHECK(!options.names.set(RangePass::backward_input, "{layer}.I"));
  CHECK(!options.names.set(RangePass::backward_weight, "{layer}.W"));
  TraceText trace;
  trace.cpu("layer:a:forward", 0, 5).cpu("a.I", 10, 6).cpu("a.W", 20, 7);
  const TraceModel split = read(trace.text(), options);
  REQUIRE(costs(split, 0).split);
  CHECK(costs(split, 0).split->input.mean == microseconds(6));
  CHECK(costs(split, 0).split->weight.mean == microseconds(7));
  CHECK(costs(split, 0).backward.mean == microseconds(13));
  trace.cpu("layer:a:backward", 30, 12);  // of those micro-batches that are not split
  CHECK(costs(read(trace.text(), options), 0).backward.mean == microseconds(12));
  TraceText half;
  half.cpu("layer:a:forward", 0, 5).cpu("a.I", 10, 6);
  CHECK(faults(half.text(), options)
            .find("the layer 'a' has a backward_input and no "
                  "backward_weight") != std::string::npos);
}

TEST_CASE("sizes come from a table beside the trace") {
  TraceModel trace = read(TraceText().layer("a", 0, 1, 2).layer("b", 9, 1, 2).text(), skipping(0));
  const auto table = [](const std::string& rows) {
    const auto read_rows = parse_csv_layers(
        test::text_source("s.csv", "layer,kind,output,activation,parameters\n" + rows),
        CsvTimes::optional);
    REQUIRE_MESSAGE(read_rows, (read_rows ? "" : to_text(read_rows.problems())));
    return *read_rows;
  };
  CHECK(add_sizes(table("b,linear,1 B,2 B,3 B\n"), trace).empty());
  CHECK(trace.model.graph.layer({1}).kind == "linear");
  CHECK(trace.model.graph.layer({1}).parameters == Bytes{3});
  CHECK(trace.model.graph.edges().size() == 1);
  CHECK(costs(trace, 1).output == Bytes{1});
  CHECK(costs(trace, 1).activation == Bytes{2});
  CHECK(costs(trace, 1).forward.mean == microseconds(1));
  CHECK(holds(trace.notes, "1 layer is not in the table of sizes, and has sizes of 0: a"));
  const Diagnostics wrong = add_sizes(table("bb,,1 B,,\n"), trace);
  REQUIRE(wrong.size() == 1);
  CHECK(to_text(wrong).find("s.csv:2:1: error: the trace has no layer 'bb'") != std::string::npos);
}

/// A file that is gone at the end of the test.
struct ScratchFile {
  explicit ScratchFile(const std::string& bytes) : path(folder.file("trace.gz", bytes)) {}

  test::TemporaryFolder folder;
  std::string path;
};

TEST_CASE("a file may be compressed, and one that is cut off is said to be") {
  const std::string text = TraceText().layer("a", 0, 1, 2).text();
  const ScratchFile plain(text);
  CHECK(read_torch_trace(plain.path, skipping(0)));
  std::string bytes;
  {
    const ScratchFile written("");
    gzFile file = gzopen(written.path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    std::ostringstream whole;
    whole << std::ifstream(written.path, std::ios::binary).rdbuf();
    bytes = whole.str();
  }
  const ScratchFile compressed(bytes);
  const auto trace = read_torch_trace(compressed.path, skipping(0));
  REQUIRE_MESSAGE(trace, (trace ? "" : to_text(trace.problems())));
  CHECK(costs(*trace, 0).forward.mean == microseconds(1));
  const auto fault = [](const std::string& path) {
    const auto wrong = read_torch_trace(path, skipping(0));
    REQUIRE(!wrong);
    CHECK(wrong.problems().front().fault == Fault::file);
    return wrong.problems().front().message;
  };
  for (const std::size_t missing : {std::size_t{1}, std::size_t{8}, bytes.size() / 2}) {
    CAPTURE(missing);
    const ScratchFile cut(bytes.substr(0, bytes.size() - missing));
    CHECK(fault(cut.path) == "is cut off: its compressed data ends early");
  }
  std::string damaged = bytes;
  damaged[bytes.size() / 2] = static_cast<char>(~damaged[bytes.size() / 2]);
  CHECK(fault(ScratchFile(damaged).path).starts_with("cannot be decompressed: "));
  CHECK(fault("/nonexistent/trace.json") == "cannot be read: No such file or directory");
  CHECK(fault("/") == "is a directory, not a file");
}

}  // namespace
}  // namespace plumbline
