// What is kept of one rank's trace: kernels joined to the ranges that launched them, calls on a
// CPU, transfers, collectives, steps.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/rank_recording.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "tests/calibrate/recording/rank_trace.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

using std::chrono::microseconds;

SimTime us(std::int64_t at) { return SimTime{microseconds(at)}; }

std::string recording_faults(const std::string& text, const OpNames& names = {}) {
  const auto recording = try_recording(text, names);
  REQUIRE_FALSE(recording);
  return to_text(recording.problems());
}

TEST_CASE("an op is as long as the kernels that were launched in its range") {
  const RankRecording recording =
      recording_of(RankTrace()
                       .range("PP:0F0", 10, 20)
                       .launched(11, 100, 30)
                       .launched(15, 140, 10)  // between them the GPU did nothing
                       .launched(29, 145, 25)  // at the same time, on another stream
                       .launched(30, 500, 5)   // the range has ended
                       .range("PP:0B0", 40, 20)
                       .launched(41, 200, 60));
  CHECK(ops_text(recording) == "0F0 100..170, 0B0 200..260");
  REQUIRE(recording.ops.size() == 2);
  CHECK(recording.ops[0].busy == microseconds(60));
  CHECK(recording.ops[0].issued == us(10));
  CHECK(recording.ops[1].busy == microseconds(60));
  CHECK(recording.clock == OpClock::kernels);
  CHECK(recording.notes.empty());
  CHECK_FALSE(recording.guessed);
}

TEST_CASE("what autograd's thread launches belongs to the backward that another thread has open") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 10)
                                                   .range("PP:0B0", 20, 30)
                                                   .launched(21, 200, 5)
                                                   .autograd(25, 20)
                                                   .launched(30, 210, 40, 2)
                                                   .launched(60, 300, 40, 2)  // none is open then
                                                   .launched(30, 400, 40, 3)  // not autograd's
  );
  CHECK(ops_text(recording) == "0F0 100..110, 0B0 200..250");
  CHECK(recording.ops[1].busy == microseconds(45));
}

TEST_CASE("a range of autograd's own thread comes before one of another thread") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0B0", 20, 30)
                                                   .autograd(25, 20)
                                                   .range("PP:1B0", 26, 10, 2)
                                                   .launched(30, 200, 40, 2)
                                                   .launched(40, 300, 40, 2));
  CHECK(ops_text(recording) == "0B0 300..340, 1B0 200..240");
}

TEST_CASE("a send or a receive is no work of an op, and knows its other rank and its bytes") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:1F0", 0, 10)
                                                   .launch(1, 1)
                                                   .receive(50, 45, 1, 0)
                                                   .launched(2, 100, 10)
                                                   .launch(3, 2)
                                                   .send(110, 20, 2, 3));
  CHECK(ops_text(recording) == "1F0 100..110");
  REQUIRE(recording.transfers.size() == 2);
  const RecordedTransfer& received = recording.transfers[0];
  CHECK_FALSE(received.sends);
  CHECK(received.peer == 0);
  CHECK(span_text(received.span) == "50..95");
  CHECK(received.bytes.count == 2000);  // 500 floats
  CHECK_FALSE(received.op);
  const RecordedTransfer& sent = recording.transfers[1];
  CHECK(sent.sends);
  CHECK(sent.peer == 3);
  CHECK(sent.bytes.count == 2000);  // 1000 numbers of 16 bits
  CHECK(recording.collectives.empty());
}

TEST_CASE("ranges around sends and receives say which op they are for") {
  const std::string unnamed = "ncclDevKernel_SendRecv(ncclDevComm*)";
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 10)
                                                   .range("PP:0SEND_F0", 10, 5)
                                                   .launch(11, 1)
                                                   .kernel(110, 20, 1, 0, unnamed)
                                                   .range("PP:0RECV_B0", 20, 5)
                                                   .launch(21, 2)
                                                   .kernel(130, 70, 2, 0, unnamed)
                                                   .launch(40, 3)  // in no range: nobody knows
                                                   .kernel(300, 10, 3, 0, unnamed));
  CHECK(ops_text(recording) == "0F0 100..110");
  REQUIRE(recording.transfers.size() == 2);
  CHECK(recording.transfers[0].sends);
  REQUIRE(recording.transfers[0].op);
  CHECK(recording.transfers[0].op->kind == OpKind::forward);
  CHECK(recording.transfers[0].op->micro_batch == 0);
  CHECK_FALSE(recording.transfers[0].peer);
  CHECK_FALSE(recording.transfers[1].sends);
  REQUIRE(recording.transfers[1].op);
  CHECK(recording.transfers[1].op->kind == OpKind::backward);
  CHECK(span_text(recording.transfers[1].span) == "130..200");
}

TEST_CASE("a collective within an op is its work; one outside of all ops stands by itself") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 10)
                                                   .launch(2, 1)
                                                   .all_reduce(110, 30, 1)
                                                   .range("PP:0REDUCE_GRAD", 20, 10)
                                                   .launch(21, 2)
                                                   .all_reduce(300, 50, 2)
                                                   .launch(40, 3)
                                                   .all_reduce(200, 50, 3));
  CHECK(ops_text(recording) == "0F0 100..140");
  CHECK(recording.ops[0].busy == microseconds(40));
  REQUIRE(recording.collectives.size() == 2);
  CHECK(span_text(recording.collectives[0]) == "200..250");
  CHECK(span_text(recording.collectives[1]) == "300..350");
  CHECK(recording.transfers.empty());
}

TEST_CASE("a forward within a backward is its recomputation and no op of its own") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 10)
                                                   .range("PP:0B0", 20, 30)
                                                   .range("PP:0F0", 21, 5)
                                                   .launched(22, 200, 10)
                                                   .launched(30, 220, 20)
                                                   .range("PP:0F1", 50, 5)  // directly behind it
                                                   .launched(51, 300, 10)
                                                   .range("PP:0F2", 20, 30, 3));  // another thread
  CHECK(ops_text(recording) == "0F0 100..110, 0B0 200..240, 0F2 20..50, 0F1 300..310");
}

TEST_CASE("work behind many ranges that ended within an op is still the op's") {
  RankTrace trace;
  trace.range("PP:0B0", 0, 100).launched(1, 1000, 10);
  for (int i = 0; i < 9; ++i) trace.range(fmt::format("PP:0SEND_B{}", i), 10 + 2 * i, 1);
  trace.launched(90, 1100, 10);
  CHECK(ops_text(recording_of(trace)) == "0B0 1000..1110");
}

TEST_CASE("of several devices of one rank, the one that computes longest does the op") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 20, 1, 0)
                                                   .launched(2, 130, 5, 1, 1)  // a copy over there
                                                   .range("PP:1F0", 10, 10)
                                                   .launched(11, 125, 5, 1, 0)
                                                   .launched(12, 140, 20, 1, 1)
                                                   .range("Optimizer.step#SGD.step", 30, 5)
                                                   .launched(31, 300, 20, 1, 1));
  CHECK(ops_text(recording) == "0F0 100..120, 1F0 140..160");
  CHECK(recording.ops[0].device == 0);
  CHECK(recording.ops[1].device == 1);
  REQUIRE(recording.updates.size() == 1);
  CHECK(recording.updates[0].device == 1);
  CHECK(span_text(recording.updates[0].work) == "300..320");
  CHECK(recording.updates[0].issued == us(30));
}

TEST_CASE("kernels without a launch belong to no op, and an op without work keeps its range") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .launched(1, 100, 10)
                                                   .kernel(105, 50, 77)
                                                   .range("PP:0B0", 20, 10));
  CHECK(ops_text(recording) == "0F0 100..110, 0B0 20..30");
  REQUIRE(recording.notes.size() == 2);
  CHECK(recording.notes[0] ==
        "trace.json: 1 of 2 ops launched nothing; their ranges on the CPU count");
  CHECK(recording.notes[1] ==
        "trace.json: 1 of 2 kernels have no launch in the trace and belong to no op");
}

TEST_CASE("on a CPU, the wait for the input at the begin of a range is not work") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:1F0", 0, 100)
                                                   .call("c10d::recv_", 1, 40)
                                                   .call("aten::empty", 2, 1)
                                                   .call("record_param_comms", 3, 1)
                                                   .call("aten::linear", 50, 20)
                                                   .call("aten::mm", 55, 10)
                                                   .call("aten::relu", 80, 10)
                                                   .call("gloo:send", 91, 5)
                                                   .call("aten::view", 97, 1));
  CHECK(ops_text(recording) == "1F0 50..90");
  CHECK(recording.ops[0].busy == microseconds(30));
  CHECK(recording.clock == OpClock::work);
  CHECK(recording.transfers.empty());  // no range names them
}

TEST_CASE("on a CPU, ranges around sends and receives are the transfers") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:1RECV_F0", 0, 30)
                                                   .call("c10d::recv_", 1, 2)
                                                   .range("PP:1F0", 30, 20)
                                                   .call("aten::mm", 32, 10)
                                                   .range("PP:1SEND_B0", 60, 5));
  CHECK(ops_text(recording) == "1F0 32..42");
  REQUIRE(recording.transfers.size() == 2);
  CHECK_FALSE(recording.transfers[0].sends);
  CHECK(span_text(recording.transfers[0].span) == "0..30");
  CHECK_FALSE(recording.transfers[0].is_whole);  // it may only have been posted
  CHECK(recording.transfers[1].sends);
  REQUIRE(recording.transfers[1].op);
  CHECK(recording.transfers[1].op->kind == OpKind::backward);
}

TEST_CASE("receives of gloo end when their data is there, but name neither op nor rank") {
  // They are ranges of gloo's own thread, or calls.
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("gloo:recv", 1, 28, 5)
                                                   .range("PP:1F0", 30, 20)
                                                   .call("aten::mm", 32, 10)
                                                   .range("gloo:send", 50, 3, 5)
                                                   .call("gloo:recv", 60, 10, 5));
  CHECK(ops_text(recording) == "1F0 32..42");
  REQUIRE(recording.transfers.size() == 2);
  for (const RecordedTransfer& transfer : recording.transfers) {
    CHECK_FALSE(transfer.sends);
    CHECK(transfer.is_whole);
    CHECK_FALSE(transfer.op);
    CHECK_FALSE(transfer.peer);
  }
  CHECK(span_text(recording.transfers[0].span) == "1..29");
  CHECK(span_text(recording.transfers[1].span) == "60..70");
  REQUIRE(recording.sends.size() == 1);
  CHECK(span_text(recording.sends[0]) == "50..53");
}

TEST_CASE("a rank that sends or receives has peers, however it tells") {
  const auto op = [] { return RankTrace().range("PP:0F0", 0, 10); };
  CHECK_FALSE(recording_of(op()).has_peers);
  CHECK_FALSE(recording_of(op().call("c10d::allreduce_", 20, 5)).has_peers);
  CHECK(recording_of(op().call("c10d::send", 20, 5)).has_peers);
  CHECK(recording_of(op().range("gloo:recv", 20, 5)).has_peers);
  CHECK(recording_of(op().range("PP:0SEND_F0", 20, 5)).has_peers);
  CHECK(recording_of(op().launch(20, 1).send(30, 5, 1, 1)).has_peers);
  CHECK_FALSE(recording_of(op().launch(20, 1).all_reduce(30, 5, 1)).has_peers);
}

TEST_CASE("on a CPU, collectives outside of ops ascend by their begin") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F0", 0, 10)
                                                   .call("aten::mm", 1, 9)
                                                   .call("c10d::allreduce_", 5, 2)  // within the op
                                                   .range("PP:0REDUCE_GRAD", 20, 10)
                                                   .call("c10d::allreduce_", 40, 10));
  CHECK(ops_text(recording) == "0F0 1..10");
  REQUIRE(recording.collectives.size() == 2);
  CHECK(span_text(recording.collectives[0]) == "20..30");
  CHECK(span_text(recording.collectives[1]) == "40..50");
}

TEST_CASE("traces with ranges alone keep the ranges") {
  const RankRecording recording = recording_of(
      RankTrace().range("PP:0F0", 0, 10).range("PP:0B0", 20, 30).range("PP:0REDUCE_GRAD", 50, 5));
  CHECK(ops_text(recording) == "0F0 0..10, 0B0 20..50");
  CHECK(recording.clock == OpClock::ranges);
  CHECK(recording.ops[1].busy == microseconds(30));
  CHECK(recording.collectives.size() == 1);
  CHECK(recording.notes.empty());
}

TEST_CASE("the lists of PyTorch 1.x have no categories: names tell ranges from calls") {
  const auto old = [](const char* name, int start, int length) {
    return fmt::format(
        "{{\"name\": \"{}\", \"ph\": \"X\", \"ts\": {}, \"dur\": {}, \"tid\": 1, \"pid\": \"CPU "
        "functions\", \"args\": {{}}}}",
        name, start, length);
  };
  const RankRecording recording =
      recording_of("[" + old("PP:0F0", 0, 50) + "," + old("aten::mm", 10, 20) + "," +
                   old("Backward 0", 60, 40) + "," + old("aten::mm", 70, 5) + "]");
  CHECK(ops_text(recording) == "0F0 10..30, ?B0 70..75");
  CHECK(recording.clock == OpClock::work);
  CHECK(recording.events == 4);
}

TEST_CASE("events of PyTorch 1.x with Kineto are known by their older categories") {
  const RankRecording recording =
      recording_of(RankTrace()
                       .range("PP:0F0", 0, 50)
                       .event("Runtime", "cudaLaunchKernel", 10, 1, 1, "\"correlation\": 5")
                       .event("Kernel", "gemm", 100, 20, 7, "\"correlation\": 5, \"device\": 0"));
  CHECK(ops_text(recording) == "0F0 100..120");
}

TEST_CASE("the rank is what the trace says, else the number behind rank in the file's name") {
  const std::string text = RankTrace().range("PP:0F0", 0, 10).text();
  const auto rank_of = [&](const std::string& file) {
    const RankRecording recording = recording_of(text, {}, file);
    return recording.rank_known ? recording.rank : -1;
  };
  CHECK(rank_of("rank3.json") == 3);
  CHECK(rank_of("runs/rank7/trace_rank-12.json.gz") == 12);
  CHECK(rank_of("Rank_05.pt.trace.json") == 5);
  CHECK(rank_of("of_rank1_to_rank2.json") == 2);
  CHECK(rank_of("rank.4.json") == 4);
  CHECK(rank_of("rank3/trace.json") == -1);  // the folder's name
  CHECK(rank_of("ranks.json") == -1);
  CHECK(rank_of("trace3.json") == -1);
  const RankRecording told =
      recording_of(RankTrace()
                       .says("\"distributedInfo\": {\"rank\": 6, \"world_size\": 8}, ")
                       .range("PP:0F0", 0, 10)
                       .text(),
                   {}, "rank3.json");
  CHECK(told.rank_known);
  CHECK(told.rank == 6);
  CHECK(told.file == "rank3.json");
}

TEST_CASE("all times count from baseTimeNanoseconds") {
  const std::int64_t base = 1'700'000'000'000'000'000;
  const RankRecording recording =
      recording_of(RankTrace()
                       .says(fmt::format("\"baseTimeNanoseconds\": {}, ", base))
                       .step(4, 0, 1000)
                       .range("PP:0F0", 1, 10)
                       .launched(2, 100, 10)
                       .launch(3, 1)
                       .send(120, 10, 1, 1)
                       .launch(4, 2)
                       .range("Optimizer.step#SGD.step", 30, 5)
                       .launched(31, 300, 20)
                       .launch(50, 3)
                       .all_reduce(200, 10, 3));
  const SimTime origin{Duration{base}};
  CHECK(recording.ops.at(0).work.begin == origin + microseconds(100));
  CHECK(recording.ops.at(0).work.end == origin + microseconds(110));
  CHECK(recording.ops.at(0).issued == origin + microseconds(1));
  CHECK(recording.transfers.at(0).span.begin == origin + microseconds(120));
  CHECK(recording.collectives.at(0).end == origin + microseconds(210));
  CHECK(recording.updates.at(0).work.begin == origin + microseconds(300));
  CHECK(recording.updates.at(0).issued == origin + microseconds(30));
  REQUIRE(recording.steps.size() == 1);
  CHECK(recording.steps[0].number == 4);
  CHECK(recording.steps[0].span.end == origin + microseconds(1000));
}

TEST_CASE("an overlapped pair is one entry with both of its ops") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:(0F3;1B2)OVERLAP_F_B", 0, 20)
                                                   .launched(1, 100, 10)
                                                   .autograd(5, 10)
                                                   .launched(6, 110, 20, 2));
  REQUIRE(recording.ops.size() == 1);
  CHECK(ops_text(recording) == "0F3 100..130");
  REQUIRE(recording.ops[0].partner);
  CHECK(recording.ops[0].partner->kind == OpKind::backward);
  CHECK(recording.ops[0].partner->stage == 1);
  CHECK(recording.ops[0].partner->micro_batch == 2);
}

TEST_CASE("own names of ranges are used in a trace") {
  OpNames names;
  REQUIRE_FALSE(names.add(OpKind::forward, "my forward of {micro_batch}"));
  REQUIRE_FALSE(names.add_update("my step"));
  const RankRecording recording = recording_of(
      RankTrace().range("my forward of 2", 0, 10).range("my step", 20, 10).text(), names);
  CHECK(ops_text(recording) == "?F2 0..10");
  REQUIRE(recording.updates.size() == 1);
  CHECK(span_text(recording.updates[0].work) == "20..30");
  CHECK(recording.fitting == std::set<int>{0, 1});
}

TEST_CASE("own templates that no range fits, and ranges that fit none, are told") {
  OpNames names;
  REQUIRE_FALSE(names.add(OpKind::forward, "my forward of {micro_batch}"));
  REQUIRE_FALSE(names.add(OpKind::backward, "my backward"));
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("my forward of 2", 0, 10)
                                                   .range("my Backward", 10, 10)
                                                   .range("PP:0B2", 20, 10)
                                                   .text(),
                                               names);
  CHECK(recording.fitting == std::set<int>{0});
  CHECK(recording.other_ranges == "the trace has the ranges 'my Backward' (1 times)");
}

TEST_CASE("steps and ops ascend by their begin, however they are written") {
  const RankRecording recording = recording_of(RankTrace()
                                                   .range("PP:0F1", 110, 10)
                                                   .step(8, 100, 100)
                                                   .range("PP:0F0", 10, 10)
                                                   .step(7, 0, 100));
  CHECK(ops_text(recording) == "0F0 10..20, 0F1 110..120");
  REQUIRE(recording.steps.size() == 2);
  CHECK(recording.steps[0].number == 7);
  CHECK(recording.steps[1].number == 8);
}

TEST_CASE("a trace without ops names the ranges that it has, the most frequent first") {
  const std::string text = RankTrace()
                               .range("loss", 0, 10)
                               .range("forward", 10, 10)
                               .range("forward", 30, 10)
                               .range("ProfilerStep#1", 0, 100)
                               .text();
  const std::string told = recording_faults(text);
  CHECK_MESSAGE(
      told.find("trace.json: error: nothing tells of a forward or a backward; the trace has the "
                "ranges 'forward' (2 times), 'loss' (1 times)") != std::string::npos,
      told);
  CHECK(told.find("--forward and --backward name others") != std::string::npos);
  CHECK(recording_faults("[]").find("the trace has no named ranges") != std::string::npos);
  CHECK(recording_faults("{").find("ends in the middle of its JSON") != std::string::npos);
}

TEST_CASE("a known range without a length that makes sense is an error") {
  const std::string told = recording_faults(RankTrace().range("PP:0F0", 10, -5).text());
  CHECK_MESSAGE(told.find("the range 'PP:0F0' has no length that makes sense") != std::string::npos,
                told);
  CHECK(told.find("it is event 1 of the trace") != std::string::npos);
  const std::string without =
      R"([{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 1}])";
  CHECK(recording_faults(without).find("has no length") != std::string::npos);
  const std::string timeless =
      R"([{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": "x", "dur": 1}])";
  CHECK(recording_faults(timeless).find("the range 'PP:0F0' has no time that makes sense") !=
        std::string::npos);
  // What is no op may lack it.
  CHECK(recording_of(RankTrace().range("loss", 10, -5).range("PP:0F0", 0, 1)).ops.size() == 1);
}

TEST_CASE("a trace is read from a file, plain or compressed") {
  const TemporaryFolder folder;
  const std::string text = RankTrace().range("PP:0F0", 0, 10).text();
  const auto plain = read_recording(folder.file("rank1.json", text), {});
  REQUIRE(plain);
  CHECK(plain->rank == 1);
  CHECK(plain->file == folder["rank1.json"]);
  const std::string packed = folder["rank2.json.gz"];
  gzFile file = gzopen(packed.c_str(), "wb");
  REQUIRE(file);
  CHECK(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) > 0);
  REQUIRE(gzclose(file) == Z_OK);
  const auto compressed = read_recording(packed, {});
  REQUIRE(compressed);
  CHECK(compressed->rank == 2);
  CHECK(ops_text(*compressed) == ops_text(*plain));
  const auto missing = read_recording(folder["none.json"], {});
  REQUIRE_FALSE(missing);
  CHECK(missing.problems().front().fault == Fault::file);
  CHECK(missing.problems().front().mark.source->name == folder["none.json"]);
  // A cut file is told as such, not as bad JSON.
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 9);
  const auto cut = read_recording(packed, {});
  REQUIRE_FALSE(cut);
  CHECK(cut.problems().front().fault == Fault::file);
}

}  // namespace
}  // namespace plumbline::test
