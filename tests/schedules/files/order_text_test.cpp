// The printed forms of orders: all that say the same are read alike, and faults name their place.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/order_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "schedules/files/schedule_file.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using test::text_source;

Result<ScheduleFile> parse(const std::string& text) {
  return parse_schedule_file(text_source("order", text));
}

/// The lists as rows of words; of a sequence its ops.
std::string read(const std::string& text) {
  const auto file = parse(text);
  REQUIRE_MESSAGE(file, (file ? "" : to_text(file.problems())));
  std::string all = file->form == OrderForm::sequence    ? "sequence "
                    : file->form == OrderForm::host_loop ? "loop "
                                                         : "";
  const auto add = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops) all += to_text(op) + ' ';
    all.back() = '\n';
  };
  for (const auto& list : file->lists) add(list);
  if (file->is_sequence()) add(file->sequence);
  return all;
}

/// The first fault: its place and message.
std::string fault(const std::string& text) {
  const auto file = parse(text);
  if (file) return "";
  const Diagnostic& first = file.problems().front();
  return std::to_string(first.mark.line) + ':' + std::to_string(first.mark.column) + ' ' +
         first.message;
}

const std::string kRows = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n";

TEST_CASE("rows are read between commas, semicolons, tabs or blanks, with quotes and idle cells") {
  for (const char* text :
       {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0F0;0F1;0B0;0B1\n1F0;1B0;1F1;1B1\n",
        "0F0\t0F1\t0B0\t0B1\n1F0\t1B0\t1F1\t1B1\n", "0F0 0F1 0B0 0B1\n1F0  1B0 1F1 1B1 \n",
        "\"0F0\",\"0F1\",\"0B0\",\"0B1\"\n'1F0','1B0','1F1','1B1'\n",
        "0F0,0F1,None,0B0,0B1,\nNone,1F0,1B0,1F1,1B1,,\n",
        "0F0,0F1,nan,0B0,0B1\n\"\",1F0,1B0,.,1F1,1B1\n",
        "# written by hand\n0F0,0F1,0B0,0B1  # the first device\n\n\n1F0,1B0,1F1,1B1\n"}) {
    CAPTURE(text);
    CHECK(read(text) == kRows);
  }
}

TEST_CASE("rows may have labels, in any order") {
  for (const char* text : {"Rank 0: 0F0,0F1,0B0,0B1\nRank 1: 1F0,1B0,1F1,1B1\n",
                           "rank1: 1F0 1B0 1F1 1B1\nrank0: 0F0 0F1 0B0 0B1\n",
                           "1: 1F0, 1B0, 1F1, 1B1\n0: 0F0, 0F1, 0B0, 0B1\n",
                           "Rank 0,0F0,0F1,0B0,0B1\nRank 1,1F0,1B0,1F1,1B1\n",
                           "rank0 0F0 0F1 0B0 0B1\nrank1 1F0 1B0 1F1 1B1\n",
                           "Rank 1\t1F0\t1B0\t1F1\t1B1\nRank 0\t0F0\t0F1\t0B0\t0B1\n",
                           "step     |   0   1   2   3   4   5\n"
                           "device 0 | 0F0 0F1   . 0B0   . 0B1\n"
                           "device 1 |   . 1F0 1B0 1F1 1B1   .\n",
                           "device 0,1 | 0F0 0F1   . 0B0   . 0B1\n"
                           "device 2,3 |   . 1F0 1B0 1F1 1B1   .\n"}) {
    CAPTURE(text);
    CHECK(read(text) == kRows);
  }
  CHECK(parse("Rank 0: 0F0,0B0\nRank 1: 1F0,1B0\n")->notes.empty());
  CHECK(parse("Rank 2: 0F0,0B0\nRank 5: 1F0,1B0\n")->notes ==
        std::vector<std::string>{"rows: those of 2, 5, as devices 0 to 1"});
  CHECK(fault("Rank 0: 0F0,0B0\nRank 0: 1F0,1B0\n") == "2:1 rank 0 has two rows");
  CHECK(fault("Rank 0: 0F0,0B0\n1F0,1B0\n") == "2:1 this row has no rank, though others have");
}

TEST_CASE("Python's lists are rows: one a line, nested, in a map, over several lines") {
  for (const char* text :
       {"[0F0, 0F1, 0B0, 0B1]\n[None, 1F0, 1B0, 1F1, 1B1]\n",
        "Rank 0: [0F0, 0F1, 0B0, 0B1]\nRank 1: [None, 1F0, 1B0, 1F1, 1B1]\n",
        "[rank1]: [None, 1F0, 1B0, 1F1, 1B1]\n[rank0]: [0F0, 0F1, 0B0, 0B1]\n",  // of torchrun
        "[['0F0', '0F1', '0B0', '0B1'], [None, '1F0', '1B0', '1F1', '1B1']]\n",
        "{0: [0F0, 0F1, 0B0, 0B1], 1: [None, 1F0, 1B0, 1F1, 1B1]}\n",
        "{1: [None, 1F0, 1B0, 1F1, 1B1], 0: [0F0, 0F1, 0B0, 0B1]}\n",
        "{'0': [\"0F0\", \"0F1\", \"0B0\", \"0B1\"], '1': [null, \"1F0\", \"1B0\", \"1F1\", "
        "\"1B1\"]}",
        "{0: [0F0,\n     0F1,\n     0B0, 0B1],\n 1: [None,\n     1F0, 1B0,\n     1F1, 1B1]}\n",
        "pipeline_order = {\n  0: [0F0, 0F1, 0B0, 0B1],\n  1: [1F0, 1B0, 1F1, 1B1],\n}\n",
        "defaultdict(<class 'list'>, {0: [0F0, 0F1, 0B0, 0B1], 1: [1F0, 1B0, 1F1, 1B1]})\n"}) {
    CAPTURE(text);
    CHECK(read(text) == kRows);
  }
  CHECK(parse("[0F0, 0F1, (0F2;0B0)OVERLAP_F_B, 0B1, 0B2]\n")->pairs ==
        PairStarts{{false, false, true, false, false, false}});
  CHECK(fault("[0F0, 0F1, [0B0]]\n") == "1:12 a list stands among the ops of a row");
  CHECK(fault("0F0, [0B0]\n") == "1:1 '0F0' stands outside of the lists");
  CHECK(fault("[0F0,\n 0B0\n") == "1:1 the list that begins here does not end");
  CHECK(fault("[0F0, 0B0]]\n") == "1:11 ']' ends a list that did not begin");
  CHECK(fault("[0F0, 0B0]\n[1F0,\n 1B0, 1X0]\n") ==
        "3:7 row 2, cell 3: '1X0' names 'X', which is no op");
  CHECK(fault("{0: [0F0, 0B0], 1: []}\n") == "1:1 row 2 has no op");
}

const std::string kGrid =
    "        Rank 0 Rank 1\n"
    "Step 0: 0F0          \n"
    "Step 1: 0F1    1F0   \n"
    "Step 2:        1B0   \n"
    "Step 3: 0B0    1F1   \n"
    "Step 4:        1B1   \n"
    "Step 5: 0B1          \n";

TEST_CASE("PyTorch's grid of steps is read by its columns") {
  CHECK(read(kGrid) == kRows);
  std::string marked = kGrid;  // as PyTorch marks the step at which its check fails
  marked.insert(marked.find("Step 3"), "");
  marked.replace(marked.find("1B0   \n"), 7, "1B0    <-- ERROR HERE\n");
  CHECK(read(marked) == kRows);
  CHECK(read("Rank 0 Rank 1\nStep 0: 0F0 1F0\nStep 1: 0B0 1B0\n") == "0F0 0B0\n1F0 1B0\n");
  CHECK(
      read("\tRank 0\tRank 1\nStep 0:\t0F0\t\nStep 1:\t\t1F0\nStep 2:\t\t1B0\nStep 3:\t0B0\t\n") ==
      "0F0 0B0\n1F0 1B0\n");
  CHECK(fault("        Rank 0 Rank 1\nStep 0: 0F0\nStep 1:   1F0\n") ==
        "3:11 step 1: '1F0' does not stand below the head of a rank");
  CHECK(fault("Step 0: 0F0\n") == "1:1 no line of heads, such as 'Rank 0 Rank 1', stands above");
  CHECK(fault("        Rank 0 Rank 1\nStep 0: 0F0\nStep 1: 0X0\n") ==
        "3:9 rank 0, step 1: '0X0' names 'X', which is no op");
  CHECK(fault("        Rank 0 Rank 1\nStep 0: 0F0\nStep 1: 0B0\n") == "1:1 rank 1 has no op");
}

TEST_CASE("what one host launches is a sequence, of stages or of the whole model") {
  CHECK(read("0F0 1F0 1B0 0B0\n") == "sequence 0F0 1F0 1B0 0B0\n");
  CHECK(read("0F0 1F0\n1B0 0B0\n") == "sequence 0F0 1F0 1B0 0B0\n");
  CHECK(read("# plan.devices: [[0], [1]]\n0F0 1F0 1B0 0B0\n") == "sequence 0F0 1F0 1B0 0B0\n");
  for (const char* text : {"F0 F1 B0 B1\n", "F0, F1, B0, B1\n", "['F0', 'F1', 'B0', 'B1']\n",
                           "F0\nF1\nB0\nB1\n", "F0 F1\nB0 B1\n", "F0 -> F1 -> B0 -> B1\n"}) {
    CAPTURE(text);
    CHECK(read(text) == "loop 0F0 0F1 0B0 0B1\n");
  }
  CHECK(read("F0 BW0\n") == "loop 0F0 0B0\n");
  CHECK(fault("F0 F1 1B0 B1\n") ==
        "1:7 op 3: '1B0' names a stage, though the first op of the file names none");
  CHECK(fault("0F0 0SEND_F0 1RECV_F0 1F0 1B0 0B0\n") ==
        "1:5 op 2: a SEND or RECV stands in a sequence of one host");
  CHECK(fault("0F0 2F0 2B0 0B0\n") == "1:5 op 2: the stages run up to 2, but stage 1 has no op");
}

TEST_CASE("rows without stages are stages") {
  CHECK(read("F0 F1 B0 B1\nF0 B0 F1 B1\n") == kRows);
  CHECK(read("Rank 0: F0 F1 B0 B1\nRank 1: F0 B0 F1 B1\n") == kRows);
  CHECK(read("[F0, F1, B0, B1]\n[F0, B0, F1, B1]\n") == kRows);
}

TEST_CASE("a loop over the whole model becomes the ops of all its stages") {
  ScheduleFile file = *parse("F0 F1 B0 B1\n");
  StageRows rows(3);
  for (std::uint32_t s = 0; s < 3; ++s) rows.of(s) = {s};
  CHECK(!place_sequence(file, rows));
  CHECK(file.stages == 3);
  std::string all;
  for (const Op& op : file.sequence) all += to_text(op) + ' ';
  CHECK(all == "0F0 1F0 2F0 0F1 1F1 2F1 2B0 1B0 0B0 2B1 1B1 0B1 ");
  CHECK(file.lists[1].size() == 4);
  CHECK(mark_of(file, 1, 2).column == 7);  // B0
}

TEST_CASE("runs of micro-batches, as DualPipe numbers its two directions, are numbered in turn") {
  const auto file = parse(
      "0F0,0F1,1F2,1F3,1B2,1B3,0B0,0B1\n"
      "1F0,1F1,0F2,0F3,1B0,1B1,0B2,0B3\n");
  REQUIRE(file);
  CHECK(file->notes ==
        std::vector<std::string>{
            "micro-batches: each row of a stage has a run of 2, as DualPipe numbers its two "
            "directions; here they are numbered in turn, 0 as 0, 2 as 1, and so on"});
  CHECK(read("0F0,0F1,1F2,1F3,1B2,1B3,0B0,0B1\n1F0,1F1,0F2,0F3,1B0,1B1,0B2,0B3\n") ==
        "0F0 0F2 1F1 1F3 1B1 1B3 0B0 0B2\n1F0 1F2 0F1 0F3 1B0 1B2 0B1 0B3\n");
  // With communication, in which the run has the same numbers.
  CHECK(parse("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,1RECV_F2,1F2,1B2,1SEND_B2,"
              "1RECV_F3,1F3,1B3,1SEND_B3\n"
              "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,0F2,0SEND_F2,0F3,0SEND_F3,"
              "0RECV_B2,0B2,0RECV_B3,0B3\n")
            ->micro_batches == 4);
}

TEST_CASE("a text in UTF-16 says what it is") {
  CHECK(fault(std::string("\xFF\xFE"
                          "0\0F\0",
                          6)) == "1:1 is written in UTF-16");
}

}  // namespace
}  // namespace plumbline
