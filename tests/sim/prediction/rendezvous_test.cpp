// Communication in the order of its cells, beside a small simulator that reads the rows themselves.
//
// SPDX-License-Identifier: MIT
#include "schedules/files/rendezvous.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/order/check.h"
#include "sim/prediction/predict_resolved.h"
#include "tests/support/builders.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/trials.h"

namespace plumbline::test {
namespace {

/// A cell of a row of text.
struct Cell {
  bool communicates = false;
  bool sends = false;
  char kind = 'F';
  std::uint32_t stage = 0;
  std::uint32_t micro_batch = 0;
};

using Rows = std::vector<std::vector<Cell>>;

std::string text_of(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      const std::string word = cell.communicates
                                   ? fmt::format("{}_{}", cell.sends ? "SEND" : "RECV", cell.kind)
                                   : std::string(1, cell.kind);
      text += fmt::format("{}{}{}{}", i == 0 ? "" : ",", cell.stage, word, cell.micro_batch);
    }
    text += '\n';
  }
  return text;
}

/// When the rows end, F 10 ms, B 20 ms and a transfer `c` ms; nothing where they hang. Blocking, a
/// device does one thing at a time; else it computes beside what it sends and receives.
std::optional<double> end_of(const Rows& rows, double c, bool blocking) {
  std::map<std::uint32_t, std::size_t> home;
  for (std::size_t d = 0; d < rows.size(); ++d) {
    for (const Cell& cell : rows[d]) home[cell.stage] = d;
  }
  std::vector<std::size_t> at(rows.size(), 0);
  std::vector<double> computes(rows.size(), 0);
  std::vector<double> talks(rows.size(), 0);
  std::map<std::tuple<char, std::uint32_t, std::uint32_t>, double> made;
  std::map<std::tuple<char, std::uint32_t, std::uint32_t>, double> received;  // by the op it feeds
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < rows.size(); ++d) {
      while (at[d] < rows[d].size()) {
        const Cell& cell = rows[d][at[d]];
        if (!cell.communicates) {
          const auto needs = received.find({cell.kind, cell.stage, cell.micro_batch});
          if (needs != received.end()) computes[d] = std::max(computes[d], needs->second);
          computes[d] += cell.kind == 'F' ? 10 : 20;
          made[{cell.kind, cell.stage, cell.micro_batch}] = computes[d];
        } else {
          const bool up = cell.sends == (cell.kind == 'F');
          const std::uint32_t peer = up ? cell.stage + 1 : cell.stage - 1;
          const std::size_t other = home.at(peer);
          if (at[other] == rows[other].size()) break;
          const Cell& its = rows[other][at[other]];
          if (!its.communicates || its.sends == cell.sends || its.kind != cell.kind ||
              its.stage != peer || its.micro_batch != cell.micro_batch)
            break;
          const Cell& from = cell.sends ? cell : its;
          const Cell& to = cell.sends ? its : cell;
          double begin = std::max(
              {talks[d], talks[other], made.at({from.kind, from.stage, from.micro_batch})});
          if (blocking) begin = std::max({begin, computes[d], computes[other]});
          const double end = begin + c;
          talks[d] = talks[other] = end;
          if (blocking) computes[d] = computes[other] = end;
          received[{to.kind, to.stage, to.micro_batch}] = end;
          ++at[other];
        }
        ++at[d];
        moved = true;
      }
    }
  }
  double end = 0;
  for (std::size_t d = 0; d < rows.size(); ++d) {
    if (at[d] < rows[d].size()) return std::nullopt;
    end = std::max({end, computes[d], talks[d]});
  }
  return end;
}

/// The lists of an order with SEND and RECV cells at places that the dice choose: behind what makes
/// the data, before what needs them, up to `reach` ops away.
Rows with_cells(const OpLists& lists, Dice& dice, std::int64_t reach) {
  std::map<std::uint32_t, std::size_t> home;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    for (const Op& op : lists[d]) home[op.stage.value] = d;
  }
  const std::uint32_t last = home.rbegin()->first;
  Rows rows;
  for (std::size_t d = 0; d < lists.size(); ++d) {
    std::vector<std::pair<double, Cell>> keyed;
    for (std::size_t i = 0; i < lists[d].size(); ++i) {
      const Op& op = lists[d][i];
      const std::uint32_t s = op.stage.value;
      const bool forward = op.kind == OpKind::forward;
      const char kind = forward ? 'F' : 'B';
      const auto place = static_cast<double>(i);
      const auto away = [&] {
        return 0.3 + static_cast<double>(dice.roll(0, reach)) +
               static_cast<double>(dice.roll(0, 100)) / 1000;
      };
      const bool from_other = forward ? s > 0 && home[s - 1] != d : s < last && home[s + 1] != d;
      const bool to_other = forward ? s < last && home[s + 1] != d : s > 0 && home[s - 1] != d;
      if (from_other)
        keyed.push_back({place - away(), {true, false, kind, s, op.micro_batch.value}});
      keyed.push_back({place, {false, false, kind, s, op.micro_batch.value}});
      if (to_other) keyed.push_back({place + away(), {true, true, kind, s, op.micro_batch.value}});
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    rows.emplace_back();
    for (const auto& entry : keyed) rows.back().push_back(entry.second);
  }
  return rows;
}

/// The prediction for a file of these rows; a transfer takes 4 ms.
Result<Outcome> predicted(const std::string& csv, const std::string& schedule) {
  const TemporaryFolder folder;
  std::uint32_t stages = 0;
  const auto file = parse_schedule_file(text_source("order.csv", csv));
  if (!file) return file.problems();
  stages = file->stages;
  const auto scenario = parse_scenario(
      text_source("rendezvous.yaml",
                  fmt::format("version: 1\nmodel: {{uniform: {{layers: {}, forward: 10 ms, "
                              "backward: 20 ms, output: 40 MB}}}}\n"
                              "cluster: {{devices: {}, link: {{bandwidth: 10 GB/s}}}}\n"
                              "schedule: {{file: {}{}}}\n",
                              stages, file->lists.size(), folder.file("order.csv", csv), schedule)),
      {});
  if (!scenario) return scenario.problems();
  return predict_resolved(*scenario, Evaluation::events);
}

TEST_CASE(
    "in the order of its cells communication ends, or hangs, as a simulator of the rows says") {
  int hangs = 0;
  int ends = 0;
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 60 : 600); ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const auto p = static_cast<std::uint32_t>(dice.roll(2, 4));
    const auto m = static_cast<std::uint32_t>(dice.roll(1, 5));
    OpLists lists;
    switch (dice.roll(0, 2)) {
      case 0: {
        auto pipeline = equal_pipeline(p, Duration{1}, Duration{2});
        pipeline.schedule = dice.roll(0, 1) == 0 ? "1f1b" : "gpipe";
        pipeline.micro_batches = m;
        lists = schedule_of(pipeline).lists();
        break;
      }
      case 1:
        lists = interleaved_1f1b({p, 2, m});
        break;
      default:
        lists = looped_breadth_first({p, 2, m});
    }
    const Rows rows = with_cells(lists, dice, dice.roll(0, 2));
    const std::string csv = text_of(rows);
    CAPTURE(csv);
    for (const bool blocking : {false, true}) {
      CAPTURE(blocking);
      const auto expected = end_of(rows, 4, blocking);
      const auto outcome =
          predicted(csv, blocking ? ", transfers: blocking" : ", communication: in-order");
      if (!expected) {
        ++hangs;
        REQUIRE(!outcome);
        CHECK(outcome.problems().front().fault == Fault::infeasible);
        CHECK(outcome.problems().front().message.starts_with("the communication hangs: device "));
      } else {
        ++ends;
        REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
        CHECK(outcome->iteration_time_s * 1e3 == close_to(*expected));
        // The longest path through the same graph is as long.
        CHECK(makespan(outcome->graph, longest_path(outcome->graph)) ==
              makespan(outcome->graph, outcome->trace));
      }
    }
  }
  CHECK(hangs > (kSanitized ? 5 : 100));
  CHECK(ends > (kSanitized ? 5 : 100));
}

const std::string kHang =
    "0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2B0,2SEND_B0,2RECV_F1,2F1,2B1,2SEND_B1,0RECV_B0,0B0,"
    "0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n";

TEST_CASE("a hang names each device's cell, what it waits for, and its place in the file") {
  for (const char* schedule : {", transfers: blocking", ", communication: in-order"}) {
    CAPTURE(schedule);
    const auto outcome = predicted(kHang, schedule);
    REQUIRE(!outcome);
    const Diagnostic& hang = outcome.problems().front();
    CHECK(hang.message ==
          "the communication hangs: device 0 is at 0SEND_F1, which waits for 1RECV_F1 of device 1, "
          "which is at 1SEND_F0");
    CHECK(hang.detail ==
          "  device 0: 0SEND_F1 waits for 1RECV_F1 of device 1, which is at 1SEND_F0\n"
          "  device 1: 1SEND_F0 waits for 2RECV_F0 of device 0, which is at 0SEND_F1\n");
    CHECK(hang.mark.line == 1);
    CHECK(hang.mark.column == 18);
    CHECK(hang.fault == Fault::infeasible);
  }
}

/// The first note that begins so, "" where none does.
std::string note_of(const Outcome& outcome, std::string_view beginning) {
  for (const std::string& note : outcome.setup.notes) {
    if (note.starts_with(beginning)) return note;
  }
  return "";
}

TEST_CASE("without the order of its cells the same file ends, and says what it would do in order") {
  for (const char* schedule : {"", ", transfers: blocking, communication: free"}) {
    CAPTURE(schedule);
    const auto outcome = predicted(kHang, schedule);
    REQUIRE(outcome);
    CHECK(note_of(*outcome, "SEND and RECV cells") ==
          "SEND and RECV cells: 16, checked, but each transfer begins when its data is there "
          "(schedule.communication: in-order keeps their order)");
    CHECK(note_of(*outcome, "in the order") ==
          "in the order of the SEND and RECV cells the communication hangs: device 0 is at "
          "0SEND_F1, which waits for 1RECV_F1 of device 1, which is at 1SEND_F0");
  }
}

TEST_CASE("an order of communication needs cells that give it") {
  const auto refused = predicted("0F0,0B0\n1F0,1B0\n", ", communication: in-order");
  REQUIRE(!refused);
  CHECK(refused.problems().front().message ==
        "schedule.communication is in-order, but schedule.file has no SEND and RECV cells");
  CHECK(predicted("0F0,0B0\n1F0,1B0\n", ", communication: free"));
}

TEST_CASE("pairs that overlap send in the order of the cells, too") {
  const std::string csv =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,(0F2;0B0)OVERLAP_F_B,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,1SEND_B2\n";
  const auto outcome = predicted(csv, ", communication: in-order, pairs: overlapped");
  REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
  CHECK(outcome->graph.pairs.size() == 1);
  // 1B0 ends at 44 and is there at 48, as 0SEND_F1 is through at 24; the pair takes 30, since
  // nothing is hidden, and 0F2 is there at 82. 1F1 and 1B1 end at 74; 1F2 and 1B2 at 112.
  // 0B2 follows at 116.
  CHECK(outcome->iteration_time_s * 1e3 == close_to(136));
}

}  // namespace
}  // namespace plumbline::test
