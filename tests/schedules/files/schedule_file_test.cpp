// Schedules in PyTorch's CSV: what is read, what is told, and that no bytes bring it down.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/schedule_file.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "schedules/files/torch_csv.h"
#include "schedules/order/check.h"
#include "tests/support/rules.h"
#include "tests/support/stages.h"

namespace plumbline {
namespace {

using test::text_source;

Result<ScheduleFile> parse(const std::string& text) {
  return parse_schedule_file(text_source("s.csv", text));
}

/// The faults of a text, "" where it has none.
std::string faults(const std::string& text) {
  const auto file = parse(text);
  return file ? "" : to_text(file.problems());
}

/// The faults, only their messages, one a line.
std::string messages(const std::string& text) {
  std::string all;
  const auto file = parse(text);
  if (file) return all;
  for (const Diagnostic& problem : file.problems()) all += problem.message + '\n';
  return all;
}

ScheduleFile read(const std::string& text) {
  auto file = parse(text);
  REQUIRE_MESSAGE(file, (file ? "" : to_text(file.problems())));
  return *std::move(file);
}

/// The lists as rows of words.
std::string lists_text(const ScheduleFile& file) {
  std::string text;
  for (const auto& list : file.lists) {
    for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : " ") + to_text(list[i]);
    text += '\n';
  }
  return text;
}

/// `0 1 1+0`: the rows of each stage.
std::string rows_text(const ScheduleFile& file) {
  std::string text;
  for (std::uint32_t s = 0; s < file.stages; ++s) {
    text += s == 0 ? "" : " ";
    for (std::uint32_t r = 0; r < file.rows.replicas(s); ++r)
      text += (r == 0 ? "" : "+") + std::to_string(file.rows.of(s)[r]);
  }
  return text;
}

/// The fault of check.h in a file, "" where the schedule runs.
std::string check_faults(const ScheduleFile& file) {
  PipelineShape shape;
  for (std::uint32_t s = 0; s < file.stages; ++s) {
    shape.positions.push_back({s, 1});
    shape.stage_slots.push_back(file.rows.of(s));
  }
  shape.slots = static_cast<std::uint32_t>(file.lists.size());
  shape.micro_batches = file.micro_batches;
  const auto checked = checked_schedule("file", false, shape, file.lists, {file.source});
  return checked ? "" : to_text(checked.problems());
}

const std::string kGrammarHelp =
    "  help: a cell reads <stage><op><micro-batch>, such as 2F0; the ops are F, B, I, W (or B, BW, "
    "W), SEND_F, RECV_F, SEND_B, RECV_B, and without a micro-batch UNSHARD, RESHARD, REDUCE_GRAD\n";

/// 1F1B with two micro-batches on two devices, its communication spelt out.
const std::string kLoweredFirst =
    "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0RESHARD,0REDUCE_GRAD\n";
const std::string kLoweredSecond =
    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RESHARD,1REDUCE_GRAD\n";

/// `text` with its one `old` made `with`.
std::string replaced(std::string text, const std::string& old, const std::string& with) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(old, at + 1) == std::string::npos);
  return text.replace(at, old.size(), with);
}

TEST_CASE("a file of compute gives stages, micro-batches and lists") {
  const ScheduleFile file = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(file.name == "s");
  CHECK(file.stages == 2);
  CHECK(file.micro_batches == 2);
  CHECK(rows_text(file) == "0 1");
  CHECK(lists_text(file) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK(file.notes.empty());
  CHECK(check_faults(file) == "");
}

TEST_CASE("idle cells, spaces, CRLF, blank lines at the end and leading zeros change nothing") {
  const std::string plain = lists_text(read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"));
  for (const char* text :
       {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1", "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n",
        "0F0,0F1,,,0B0,,0B1\n,1F0,1B0,1F1,1B1,,\n\n",
        "\xEF\xBB\xBF"
        "0F0,0F1,0B0,0B1\n\n1F0,1B0,1F1,1B1\n",
        " 0F0 , 0F1,0B0 ,\t0B1\n 1F0,1B0,1F1,1B1 \n",
        "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n\r\n \n", "0F0,0F01,00B0,0B1\n1F0,1B0,1F1,1B1\n"}) {
    CAPTURE(text);
    CHECK(lists_text(read(text)) == plain);
  }
}

TEST_CASE("what torch_csv writes is read back the same, for every rule and shape") {
  for (const ScheduleRule& rule : test::window_rules()) {
    if (rule.name == "data-parallel") continue;  // its replicas have no place in this format
    for (std::uint32_t p = 1; p <= 5; ++p) {
      for (std::uint32_t m : {1U, 2U, 3U, 8U, 13U}) {
        CAPTURE(rule.name);
        CAPTURE(p);
        CAPTURE(m);
        auto pipeline = test::equal_stages(p, Duration{1}, Duration{2});
        pipeline.schedule = rule.name;
        pipeline.micro_batches = m;
        const Schedule schedule = test::schedule_of(pipeline);
        const ScheduleFile file = read(torch_csv(schedule));
        CHECK(file.lists == schedule.lists());
        CHECK(file.stages == p);
        CHECK(file.micro_batches == m);
        CHECK(check_faults(file) == "");
      }
    }
  }
}

TEST_CASE("the stages of a device may be any: looped, in a V, in a row") {
  const ScheduleFile looped = read(
      "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
      "1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  CHECK(looped.stages == 4);
  CHECK(rows_text(looped) == "0 1 0 1");
  CHECK(check_faults(looped) == "");
  const ScheduleFile v = read("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  CHECK(rows_text(v) == "0 1 1 0");
  CHECK(check_faults(v) == "");
  CHECK(check_faults(read("0F0,1F0,1B0,0B0\n2F0,2B0\n")) == "");
}

TEST_CASE("ZB-H1 with I and W keeps its letters") {
  const ScheduleFile file = read(
      "0F0,0F1,0I0,0F2,0I1,0W0,0I2,0W1,0W2\n"
      "1F0,1I0,1W0,1F1,1I1,1W1,1F2,1I2,1W2\n");
  CHECK(lists_text(file) ==
        "0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2\n"
        "1F0 1I0 1W0 1F1 1I1 1W1 1F2 1I2 1W2\n");
  CHECK(file.notes.empty());
  CHECK(check_faults(file) == "");
}

TEST_CASE("the old letters are told by a BW, or by a W without an I") {
  const std::vector<std::string> note = {
      "letters: PyTorch's old ones, B for the backward for the input (I here), W for the weights, "
      "BW for both (B here)"};
  const ScheduleFile both = read("0F0,0F1,0BW0,0BW1\n1F0,1B0,1W0,1F1,1B1,1W1\n");
  CHECK(lists_text(both) == "0F0 0F1 0B0 0B1\n1F0 1I0 1W0 1F1 1I1 1W1\n");
  CHECK(both.notes == note);
  CHECK(check_faults(both) == "");
  const ScheduleFile split = read("0F0,0B0,0W0\n1F0,1B0,1W0\n");
  CHECK(lists_text(split) == "0F0 0I0 0W0\n1F0 1I0 1W0\n");
  CHECK(split.notes == note);
  const ScheduleFile whole = read("0F0,0BW0\n");
  CHECK(lists_text(whole) == "0F0 0B0\n");
  CHECK(whole.notes == note);
  CHECK(faults("0F0,0BW0\n1F0,1I0,1W0\n") ==
        "s.csv:2:5: error: row 2, cell 2: 1I0 stands in one file with BW\n"
        "    2 | 1F0,1I0,1W0\n"
        "      |     ^~~\n"
        "  help: PyTorch's old letters are B, W and BW for both; its present ones I, W and B for "
        "both\n");
}

TEST_CASE("an overlapped pair is taken apart into its ops in order") {
  const ScheduleFile file =
      read("0F0,1F0,0F1,(1F1;1B0)OVERLAP_F_B,0B0, ( 0F2 ; 1B1 )OVERLAP_F_B,0B1,1F2,1B2,0B2\n");
  CHECK(lists_text(file) == "0F0 1F0 0F1 1F1 1B0 0B0 0F2 1B1 0B1 1F2 1B2 0B2\n");
  CHECK(file.notes ==
        std::vector<std::string>{"overlapped pairs: 2, whose ops run one after the other, unless "
                                 "schedule.pairs is overlapped"});
  CHECK(file.pairs == PairStarts{{false, false, false, true, false, false, true, false, false,
                                  false, false, false}});
  CHECK(check_faults(file) == "");
  const std::string help = "  help: an overlapped pair reads (2F3;5B1)OVERLAP_F_B\n";
  CHECK(faults("0F0,(0F1;0B0)OVERLAP\n") ==
        "s.csv:1:5: error: row 1, cell 2: '(0F1;0B0)OVERLAP' is no pair of ops\n"
        "    1 | 0F0,(0F1;0B0)OVERLAP\n"
        "      |     ^~~~~~~~~~~~~~~~\n" +
            help);
  CHECK(messages("(0F1;0B0\n") == "row 1, cell 1: '(0F1;0B0' is no pair of ops\n");
  CHECK(messages("(0F1)OVERLAP_F_B,(0F1;0B0;0W0)OVERLAP_F_B\n") ==
        "row 1, cell 1: '(0F1)OVERLAP_F_B' does not join two ops with one ';'\n"
        "row 1, cell 2: '(0F1;0B0;0W0)OVERLAP_F_B' does not join two ops with one ';'\n");
  CHECK(faults("(0F1;0SEND_F1)OVERLAP_F_B\n") ==
        "s.csv:1:6: error: row 1, cell 1: '0SEND_F1' is no op of compute, which an overlapped pair "
        "is made of\n"
        "    1 | (0F1;0SEND_F1)OVERLAP_F_B\n"
        "      |      ^~~~~~~~\n");
  CHECK(messages("(;)OVERLAP_F_B\n") ==
        "row 1, cell 1: '' begins with no stage\nrow 1, cell 1: '' begins with no stage\n");
}

TEST_CASE("a cell outside the grammar is told with row, cell and place") {
  CHECK(faults("0F0,0B0\n1F0,,1B0x\n") ==
        "s.csv:2:6: error: row 2, cell 3: '1B0x' has 'x' behind its end\n"
        "    2 | 1F0,,1B0x\n"
        "      |      ^~~~\n"
        "  help: PyTorch passes over this without a word; the cell must end there\n");
  CHECK(faults("0F0,F0\n") ==
        "s.csv:1:5: error: row 1, cell 2: 'F0' begins with no stage\n"
        "    1 | 0F0,F0\n"
        "      |     ^~\n" +
            kGrammarHelp);
  CHECK(messages("0,0X1,0f0,0F,0SEND_F,0UNSHARD3,0F-1,0F1.5,\"0F0,0OVERLAP_F_B,0 F0\n") ==
        "row 1, cell 1: '0' names no op behind its stage\n"
        "row 1, cell 2: '0X1' names 'X', which is no op\n"
        "row 1, cell 3: '0f0' names 'f', which is no op\n"
        "row 1, cell 4: '0F' names no micro-batch\n"
        "row 1, cell 5: '0SEND_F' names no micro-batch\n"
        "row 1, cell 6: '0UNSHARD3' names a micro-batch, but UNSHARD takes none\n"
        "row 1, cell 7: '0F-1' has '-1' behind its end\n"
        "row 1, cell 8: '0F1.5' has '.5' behind its end\n"
        "row 1, cell 9: '\"0F0' begins with no stage\n"
        "row 1, cell 10: '0OVERLAP_F_B' names 'OVERLAP_F_B', which is no op\n"
        "row 1, cell 11: '0 F0' names no op behind its stage\n");
  CHECK(messages("0F0\xFF\x01,0B0\n") == "row 1, cell 1: '0F0\?\?' has '\?\?' behind its end\n");
}

TEST_CASE("numbers beyond the bounds are told, and cost no memory") {
  CHECK(messages("10000F0\n") == "row 1, cell 1: '10000F0' names a stage above 9999\n");
  CHECK(messages("0F10000000\n") ==
        "row 1, cell 1: '0F10000000' names a micro-batch above 9999999\n");
  CHECK(messages("99999999999999999999F0,0F99999999999999999999\n") ==
        "row 1, cell 1: '99999999999999999999F0' names a stage above 9999\n"
        "row 1, cell 2: '0F99999999999999999999' names a micro-batch above 9999999\n");
  CHECK(faults("0F0,0B0,0F9999999\n1F0,1B0\n") ==
        "s.csv:1:9: error: row 1, cell 3: with micro-batches up to 9999999 on every stage the "
        "schedule would need 40000000 ops, but the file has 5\n"
        "    1 | 0F0,0B0,0F9999999\n"
        "      |         ^~~~~~~~~\n");
  // Where the picture is small, what is missing is left to the check of the schedule.
  const ScheduleFile small = read("0F0,0B0,0F7\n");
  CHECK(small.micro_batches == 8);
  CHECK(check_faults(small).find("0F1 is missing\n") != std::string::npos);
  std::string rows;
  for (int i = 0; i <= 10'000; ++i) rows += std::to_string(i % 10'000) + "F0,\n";
  CHECK(messages(rows) == "this is one row more than the 10000 that are read\n");
  std::string idle = "0F0,0B0\n";
  for (int i = 0; i < 10'000; ++i) idle += ".,\n";
  CHECK(messages(idle) == "has 10001 rows, more than 10000\n");
}

TEST_CASE("a file, and each row of it, has an op") {
  for (const char* text : {"", "\n", " \r\n\r\n", "# no op\n"}) {
    CHECK(faults(text) == "s.csv: error: has no row\n" + kGrammarHelp);
  }
  CHECK(faults("0F0,0B0\n\n1F0,1B0\n,,\n") ==
        "s.csv:4:1: error: row 3 has no op\n"
        "    4 | ,,\n"
        "      | ^~\n"
        "  help: each row is a device, and each device runs ops\n");
  CHECK(messages("0F0,0B0\n0UNSHARD\n") == "row 2 has no op\n");
}

TEST_CASE("a stage in several rows has replicas, micro-batch m in that of m mod r") {
  const ScheduleFile file = read(
      "0F0,1F1,1B1,0B0\n"
      "1F0,1B0,0F1,0B1\n");
  CHECK(rows_text(file) == "0+1 1+0");
  CHECK(check_faults(file) == "");
  CHECK(rows_text(read("0F0,0F2,0B0,0B2\n0F1,0F3,0B1,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n")) ==
        "0+1 2");
  // Three of four and one are no way to share them.
  CHECK(messages("0F0,0F1,0F2,0B0,0B1,0B2\n0F3,0B3\n") ==
        "row 2, cell 1: stage 0 is in row 1, with 6 of its 8 ops\n");
  CHECK(messages("0F0,0B0,0F2,0B2\n0F1,0B1\n") ==
        "row 2, cell 1: stage 0 is in row 1, with 4 of its 6 ops\n");
  CHECK(messages("0F0,0B0\n0F1,0B0,0B1\n") ==
        "row 1, cell 1: stage 0 is in row 2, with 3 of its 5 ops\n");
  CHECK(messages("0F0,0F1,1F1,0B0,0B1\n1F0,0F2,1B0,1B1,1F2,1B2,0B2\n") ==
        "row 1, cell 3: stage 1 is in row 2, with 5 of its 6 ops\n"
        "row 2, cell 2: stage 0 is in row 1, with 4 of its 6 ops\n");
  // Tensors from stage 0 to stage 1 would be sent for every second micro-batch.
  CHECK(messages("0F0,1F0,1B0,0B0\n1F1,1B1\n0F1,0B1\n") ==
        "row 1, cell 2: micro-batch 0 of stages 0 and 1 is in one row, others are not\n");
  CHECK(rows_text(read("0F0,1F0,1B0,0B0\n0F1,1F1,1B1,0B1\n")) == "0+1 0+1");
}

TEST_CASE("communication leads to the replica with the micro-batch") {
  const std::string down = "0F0,0SEND_F0,1RECV_F1,1F1,1B1,1SEND_B1,0RECV_B0,0B0";
  const std::string up = "0F1,0SEND_F1,1RECV_F0,1F0,1B0,1SEND_B0,0RECV_B1,0B1";
  const std::string reductions = ",0REDUCE_GRAD,1REDUCE_GRAD\n";
  CHECK(rows_text(read(down + reductions + up + reductions)) == "0+1 1+0");
  CHECK(messages(down + ",0REDUCE_GRAD\n" + up + reductions) ==
        "row 1, cell 5: stage 1 has no REDUCE_GRAD, though other stages have\n");
  CHECK(messages(down + reductions + up + ",0REDUCE_GRAD,0REDUCE_GRAD\n") ==
        "row 2, cell 10: 0REDUCE_GRAD stands here a second time\n"
        "row 2, cell 5: stage 1 has no REDUCE_GRAD, though other stages have\n");
  CHECK(messages(down + "\n" + replaced(up, "1RECV_F0", "1RECV_F1") + "\n") ==
        "row 1, cell 2: 0SEND_F0 has no 1RECV_F0 in row 2\n"
        "row 2, cell 3: 1RECV_F1 names a micro-batch of another row: that of stage 1 is in row "
        "1\n");
}

TEST_CASE("a stage that is no replica stands in one row, and none is left out") {
  CHECK(faults("0F0,1F0,0B0\n1B0,1F0\n") ==
        "s.csv:1:5: error: row 1, cell 2: stage 1 is in row 2, with 2 of its 3 ops\n"
        "    1 | 0F0,1F0,0B0\n"
        "      |     ^~~\n"
        "  help: 2 rows of a stage are its replicas if 2 divides the number of micro-batches, 1, "
        "and those with the same remainder, or a run of them, stand in one row\n");
  CHECK(faults("0F0,0B0\n2F0,2B0\n") ==
        "s.csv:2:1: error: row 2, cell 1: the stages run up to 2, but stage 1 has no op\n"
        "    2 | 2F0,2B0\n"
        "      | ^~~\n");
  CHECK(messages("0F0,0B0\n99F0\n") ==
        "row 2, cell 1: the stages run up to 99, but stage 1 (and 97 more) has no op\n");
  CHECK(messages("0F0,2F0\n2F0,0F0\n0F0\n") ==
        "row 2, cell 1: stage 2 is in row 1, with 1 of its 2 ops\n"
        "row 2, cell 2: stage 0 is in row 1, with 1 of its 3 ops\n"
        "row 3, cell 1: stage 0 is in row 1, with 1 of its 3 ops\n"
        "row 1, cell 2: the stages run up to 2, but stage 1 has no op\n");
}

TEST_CASE("communication that fits is kept, and cells that are not used are counted in a note") {
  const ScheduleFile file = read(kLoweredFirst + kLoweredSecond);
  CHECK(lists_text(file) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK(file.notes ==
        std::vector<std::string>{
            "cells that are not used: 6 (2 UNSHARD, 2 RESHARD, 2 REDUCE_GRAD); training.zero_stage "
            "and plan.data_parallel say what is gathered and reduced"});
  std::string cells;
  for (const auto& row : file.communication) {
    for (const CommunicationCell& cell : row)
      cells += std::to_string(cell.before) + ':' + to_text(cell) + ' ';
    cells += '\n';
  }
  CHECK(cells ==
        "1:0SEND_F0 2:0SEND_F1 2:0RECV_B0 3:0RECV_B1 \n"
        "0:1RECV_F0 2:1SEND_B0 2:1RECV_F1 4:1SEND_B1 \n");
  CHECK(check_faults(file) == "");
  // Only the reductions, as PyTorch's GPipe has them; only UNSHARD; old letters.
  CHECK(read("0F0,0B0,0REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n").notes.size() == 1);
  CHECK(read("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0\n1F0,1B0\n").notes.size() == 1);
  CHECK(read("0F0,0B0\n1F0,1B0\n").communication.empty());
  CHECK(lists_text(read("0F0,0SEND_F0,0RECV_B0,0BW0\n1RECV_F0,1F0,1B0,1SEND_B0,1W0\n")) ==
        "0F0 0B0\n1F0 1I0 1W0\n");
  // Between the stages of one device nothing is sent.
  CHECK(read("0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
             "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n")
            .stages == 4);
}

TEST_CASE("a SEND and a RECV stand in pairs") {
  const std::string first = kLoweredFirst;
  const std::string second = kLoweredSecond;
  CHECK(faults(first + replaced(second, "1RECV_F1,", "")) ==
        "s.csv:1:27: error: row 1, cell 5: 0SEND_F1 has no 1RECV_F1 in row 2\n"
        "    1 | " +
            first + "      |                           ^~~~~~~~\n");
  CHECK(messages(replaced(first, "0SEND_F0,", "") + second) ==
        "row 2, cell 2: 1RECV_F0 has no 0SEND_F0 in row 1\n");
  CHECK(messages(replaced(first, "0RECV_B1,", "") + second) ==
        "row 2, cell 9: 1SEND_B1 has no 0RECV_B1 in row 1\n");
  CHECK(messages(first + replaced(second, "1SEND_B0,", "")) ==
        "row 1, cell 6: 0RECV_B0 has no 1SEND_B0 in row 2\n");
  CHECK(messages(replaced(first, "0SEND_F1,", "") + replaced(second, "1RECV_F1,", "")) ==
        "row 2, cell 6: 1F1 needs the data of 0F1 in row 1, but 0SEND_F1 and 1RECV_F1 are "
        "missing\n");
  CHECK(messages(replaced(first, "0RECV_B0,", "") + replaced(second, "1SEND_B0,", "")) ==
        "row 1, cell 6: 0B0 needs the data of 1B0 in row 2, but 1SEND_B0 and 0RECV_B0 are "
        "missing\n");
  CHECK(messages("0F0,0SEND_F0,0BW0\n1RECV_F0,1F0,1B0,1W0\n") ==
        "row 1, cell 3: 0BW0 needs the data of 1B0 in row 2, but 1SEND_B0 and 0RECV_B0 are "
        "missing\n");
}

TEST_CASE("communication stands once, in the row of its stage, and leads to another row") {
  const std::string first = kLoweredFirst;
  const std::string second = kLoweredSecond;
  CHECK(messages(replaced(first, "0SEND_F1", "0SEND_F1,0SEND_F1") + second) ==
        "row 1, cell 6: 0SEND_F1 stands here a second time\n");
  CHECK(messages(replaced(first, "0REDUCE_GRAD", "1REDUCE_GRAD") +
                 replaced(second, "1REDUCE_GRAD", "7RESHARD")) ==
        "row 1, cell 11: 1REDUCE_GRAD names a stage of another row: stage 1 is in row 2\n"
        "row 2, cell 11: 7RESHARD names a stage that has no op\n"
        "row 1, cell 9: stage 0 has no REDUCE_GRAD, though other stages have\n"
        "row 2, cell 8: stage 1 has no REDUCE_GRAD, though other stages have\n");
  CHECK(messages(replaced(first, "0UNSHARD", "0SEND_B0") +
                 replaced(second, "1UNSHARD", "1SEND_F0")) ==
        "row 1, cell 1: 0SEND_B0 has no stage to send to: 0 is the first stage\n"
        "row 2, cell 1: 1SEND_F0 has no stage to send to: 1 is the last stage\n");
  CHECK(messages(replaced(first, "0UNSHARD", "0RECV_F0") +
                 replaced(second, "1UNSHARD", "1RECV_B0")) ==
        "row 1, cell 1: 0RECV_F0 has no stage to receive from: 0 is the first stage\n"
        "row 2, cell 1: 1RECV_B0 has no stage to receive from: 1 is the last stage\n");
  CHECK(messages("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n") ==
        "row 1, cell 2: 0SEND_F0 has nothing to send to: stage 1 is in this row too\n"
        "row 1, cell 3: 1RECV_F0 has nothing to receive from: stage 0 is in this row too\n");
}

TEST_CASE("a SEND stands behind the op that makes its data, a RECV before the one that needs it") {
  const std::string first = kLoweredFirst;
  const std::string second = kLoweredSecond;
  CHECK(messages(replaced(first, "0F1,0SEND_F1", "0SEND_F1,0F1") + second) ==
        "row 1, cell 4: 0SEND_F1 stands before 0F1, which makes its data\n");
  CHECK(messages(replaced(first, "0RECV_B0,0B0", "0B0,0RECV_B0") + second) ==
        "row 1, cell 7: 0RECV_B0 stands behind 0B0, which needs its data\n");
  CHECK(messages(first + replaced(second, "1RECV_F1,1F1", "1F1,1RECV_F1")) ==
        "row 2, cell 7: 1RECV_F1 stands behind 1F1, which needs its data\n");
  CHECK(messages(first + replaced(second, "1B0,1SEND_B0", "1SEND_B0,1B0")) ==
        "row 2, cell 4: 1SEND_B0 stands before 1B0, which makes its data\n");
  CHECK(messages(first + replaced(second, "1F1,", "")) ==
        "row 2, cell 6: 1RECV_F1 stands without 1F1, which needs its data\n");
  CHECK(messages("0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n") ==
        "row 2, cell 3: 1SEND_B0 stands before 1I0, which makes its data\n");
}

TEST_CASE("REDUCE_GRAD stands once for each stage, behind its last B and W") {
  CHECK(messages("0F0,0B0,0REDUCE_GRAD,0F1,0B1\n") ==
        "row 1, cell 3: 0REDUCE_GRAD stands before 0B1, which adds to the gradients\n");
  CHECK(messages("0F0,0I0,0REDUCE_GRAD,0W0\n") ==
        "row 1, cell 3: 0REDUCE_GRAD stands before 0W0, which adds to the gradients\n");
  CHECK(messages("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n") ==
        "row 1, cell 4: 0REDUCE_GRAD stands here a second time\n");
  CHECK(messages("0F0,0B0,0REDUCE_GRAD\n1F0,1B0\n") ==
        "row 2, cell 2: stage 1 has no REDUCE_GRAD, though other stages have\n");
  CHECK(messages("0REDUCE_GRAD,0F0\n") == "");
}

TEST_CASE("at most twenty faults are told") {
  std::string many = "0F0";
  for (int i = 0; i < 50; ++i) many += ",0X0";
  CHECK(parse(many).problems().size() == 20);
  many = "0F0";
  for (int i = 0; i < 50; ++i) many += ",0SEND_F" + std::to_string(i);
  CHECK(parse(many + "\n1F0\n").problems().size() == 20);
  many = "0F0";
  for (int i = 0; i < 50; ++i) many += ",(0X0;0X0)OVERLAP_F_B,x";
  CHECK(parse(many).problems().size() == 20);
  many = "0F0,\n";
  for (int i = 0; i < 50; ++i) many += "0F0,\n";
  CHECK(parse(many).problems().size() == 20);
}

TEST_CASE("the last rank of PyTorch's exported 1F1B is told as what it is") {
  CHECK(faults("0F0,0F1,0B0,0B1\n1F1,1B0,1F2,1B1\n") ==
        "s.csv:2:5: error: B0 before F0 on stage 1; micro-batch 2 is out of range (0 to 1)\n"
        "    2 | 1F1,1B0,1F2,1B1\n"
        "      |     ^~~\n"
        "  device 0   | 0F0 0F1 0B0 0B1\n"
        "  device 1   | 1F1 1B0 1F2 1B1\n"
        "                   ^^^\n"
        "  help: PyTorch's Schedule1F1B exports its last rank so, though its runtime runs F0 to "
        "F1: take 1 from the micro-batch of every F of row 2, which then reads "
        "1F0,1B0,1F1,1B1\n");
  CHECK(faults("0F0,0F1,0F2,0F3,,0B0,0F4,0B1,0B2,0B3,0B4,0REDUCE_GRAD\n"
               "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1B3,1B4,1REDUCE_GRAD\n"
               "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2B4,2REDUCE_GRAD\n"
               ",,,3F1,3B0,3F2,3B1,3F3,3B2,3F4,3B3,3F5,3B4,3REDUCE_GRAD\n") ==
        "s.csv:4:8: error: B0 before F0 on stage 3; micro-batch 5 is out of range (0 to 4)\n"
        "    4 | ,,,3F1,3B0,3F2,3B1,3F3,3B2,3F4,3B3,3F5,3B4,3REDUCE_GRAD\n"
        "      |        ^~~\n"
        "  device 0   | 0F0 0F1 0F2 0F3 0B0 0F4 0B1 0B2 0B3 0B4\n"
        "  device 1   | 1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1B3 1B4\n"
        "  device 2   | 2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2B4\n"
        "  device 3   | 3F1 3B0 3F2 3B1 3F3 3B2 3F4 3B3 3F5 3B4\n"
        "                   ^^^\n"
        "  help: PyTorch's Schedule1F1B exports its last rank so, though its runtime runs F0 to "
        "F4: take 1 from the micro-batch of every F of row 4, which then reads "
        "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,...\n");
  CHECK(messages("0F1,0B0\n") ==
        "B0 before F0 on stage 0; micro-batch 1 is out of range (0 to 0)\n");
  // Another fault that only looks like it is left to the check of the schedule.
  CHECK(check_faults(read("0F0,0F1,0F2,0B0,0B1,0B2\n1F1,1B0,1F2,1B1\n")).find("1F0 is missing\n") !=
        std::string::npos);
}

TEST_CASE("the place of an op is found again") {
  const ScheduleFile file = read(
      "0UNSHARD,0F0,, 0F1 ,(0F2;0BW0)OVERLAP_F_B\r\n"
      "1F0,1BW0\n");
  const auto place = [&](std::uint32_t device, std::size_t position) {
    const Mark mark = mark_of(file, device, position);
    return std::to_string(mark.line) + ':' + std::to_string(mark.column) + '+' +
           std::to_string(mark.length);
  };
  CHECK(place(0, 0) == "1:10+3");
  CHECK(place(0, 1) == "1:16+3");
  CHECK(place(0, 2) == "1:22+3");
  CHECK(place(0, 3) == "1:26+4");
  CHECK(place(0, 4) == "1:42+1");
  CHECK(place(1, 1) == "2:5+4");
  CHECK(place(1, 9) == "2:9+1");
}

TEST_CASE("random bytes and broken files neither crash nor hang") {
  const std::string letters = "0123456789FBIWSENDRCV_();,\n\r \tOVLAPUHG\xFFx";
  const std::vector<std::string> words = {"F",      "B",           "I", "W", "BW", "SEND_F",
                                          "RECV_F", "REDUCE_GRAD", ",", ",", ",",  "\n"};
  const std::string whole = kLoweredFirst + kLoweredSecond;
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    CAPTURE(seed);
    test::Dice dice(seed);
    std::string text;
    if (seed % 3 == 0) {  // letters of the format, and any
      for (auto n = dice.roll(0, 60); n > 0; --n) {
        text += dice.roll(0, 9) == 0 ? static_cast<char>(dice.roll(0, 255))
                                     : letters[static_cast<std::size_t>(dice.roll(
                                           0, static_cast<std::int64_t>(letters.size()) - 1))];
      }
    } else if (seed % 3 == 1) {  // cells of small numbers
      for (auto n = dice.roll(1, 12); n > 0; --n) {
        text += std::to_string(dice.roll(0, 1)) + words[static_cast<std::size_t>(dice.roll(0, 7))] +
                std::to_string(dice.roll(0, 1)) + words[static_cast<std::size_t>(dice.roll(8, 11))];
      }
    } else {  // a good file with a few bytes changed, moved or cut off
      text = whole;
      for (auto n = dice.roll(1, 3); n > 0; --n) {
        const auto at =
            static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(text.size()) - 1));
        text[at] = letters[static_cast<std::size_t>(
            dice.roll(0, static_cast<std::int64_t>(letters.size()) - 1))];
      }
      if (dice.roll(0, 3) == 0) text.resize(static_cast<std::size_t>(dice.roll(0, 100)));
    }
    auto file = parse(text);
    if (!file) {
      CHECK(!to_text(file.problems()).empty());
      CHECK(file.problems().size() <= kMaxCsvProblems);
      continue;
    }
    ++accepted;
    if (file->is_sequence()) {
      StageRows rows(std::max(file->stages, 1U));
      for (std::uint32_t s = 0; s < rows.stages(); ++s) rows.of(s) = {s};
      CHECK(!place_sequence(*file, rows));
    }
    CHECK(file->rows.stages() == file->stages);
    for (std::uint32_t device = 0; device < file->lists.size(); ++device) {
      CHECK(!file->lists[device].empty());
      for (const Op& op : file->lists[device]) {
        CHECK(file->rows.row(op.stage.value, op.micro_batch.value) == device);
        CHECK(op.micro_batch.value < file->micro_batches);
      }
    }
    check_faults(*file);
  }
  CHECK(accepted > 100);
}

TEST_CASE("a file that is not there is a fault of the file") {
  const auto file = read_schedule_file("/nowhere/s.csv");
  REQUIRE(!file);
  CHECK(file.problems()[0].fault == Fault::file);
}

}  // namespace
}  // namespace plumbline
