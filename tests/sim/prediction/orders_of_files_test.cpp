// Orders in files of any form, as a scenario takes them.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/prediction/predict_resolved.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

Result<Outcome> predicted(const std::string& rest) {
  const auto scenario =
      parse_scenario(text_source("orders.yaml",
                                 "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, "
                                 "backward_input: 1 ms, backward_weight: 1 ms, output: 2 MB}}\n" +
                                     rest),
                     {});
  if (!scenario) return scenario.problems();
  return predict_resolved(*scenario);
}

/// With `order` as the schedule's file.
Result<Outcome> of_file(const std::string& order, const std::string& rest = "",
                        const std::string& more = "") {
  const TemporaryFolder folder;
  return predicted(rest + "schedule: {file: " + folder.file("order.txt", order) + more + "}\n");
}

const std::string kFour = "cluster: {devices: 4, link: {bandwidth: 10 GB/s, latency: 20 us}}\n";

/// `# plan.devices: ...` of a partition, as `plumbline schedule` writes it.
std::string devices_of(const Outcome& outcome) {
  std::string text;
  for (const Stage& stage : outcome.setup.partition.stages) {
    text += text.empty() ? "[[" : ", [";
    for (std::size_t r = 0; r < stage.devices.size(); ++r)
      text += fmt::format("{}{}", r == 0 ? "" : ", ", stage.devices[r].value);
    text += ']';
  }
  return "# plan.devices: " + text + "]\n";
}

TEST_CASE("what is printed of a schedule, in any form, takes as long when it is read back") {
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.asynchronous || rule.whole_model) continue;
    for (const char* transfers : {"overlapped", "blocking"}) {
      CAPTURE(rule.name);
      CAPTURE(transfers);
      const auto named =
          predicted(kFour + fmt::format("schedule: {{name: {}, micro_batches: 8, transfers: {}}}\n",
                                        rule.name, transfers));
      REQUIRE_MESSAGE(named, (named ? "" : to_text(named.problems())));
      const Schedule& schedule = named->setup.schedule;
      std::vector<std::string> names;
      for (std::uint32_t d = 0; d < schedule.shape.slots; ++d)
        names.push_back(fmt::format("device {}", d));
      for (const std::string& text : {torch_csv(schedule), *replay_grid(schedule, names),
                                      devices_of(*named) + issue_sequence(schedule)}) {
        CAPTURE(text);
        const auto again = of_file(text, kFour, fmt::format(", transfers: {}", transfers));
        REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
        CHECK(again->iteration_time_s == named->iteration_time_s);
        CHECK(again->setup.schedule.lists() == schedule.lists());
        if (text.starts_with('#'))
          CHECK(issue_sequence(again->setup.schedule) == issue_sequence(schedule));
      }
    }
  }
}

TEST_CASE(
    "a loop of one host is the schedule that it writes down, over as many stages as there are") {
  const auto loop = [](const std::string& text, const std::string& rest) {
    const auto outcome = of_file(text, rest);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return outcome->iteration_time_s * 1e3;
  };
  // Two stages of four layers: F 4 ms, B 8 ms, free links.
  const std::string two = "cluster: {devices: 2}\n";
  CHECK(loop("F0 F1 B0 F2 B1 F3 B2 B3\n", two) == close_to((3 * 2 + 1) * 12));  // delayed-backward
  CHECK(loop("F0 F1 F2 F3 B0 B1 B2 B3\n", two) == close_to((4 + 1) * 12));      // gpipe
  CHECK(loop("F0 B0 F1 B1\n", "plan: {stages: 4}\n") == close_to(2 * 24));      // naive
  CHECK(loop("F0 F1 B0 B1\n", "plan: {devices: [0, 0]}\n") == close_to(2 * 24));
  const auto nothing = of_file("F0 B0\n");
  REQUIRE(!nothing);
  CHECK(nothing.problems().front().message ==
        "schedule.file is a loop over the whole model, and nothing says how many stages it has");
}

TEST_CASE("a sequence of stages goes round the devices, or where plan.devices says") {
  const std::string order = "0F0 1F0 2F0 3F0 3B0 2B0 1B0 0B0\n";
  const auto stages_of = [&](const std::string& rest) {
    const auto outcome = of_file(order, rest);
    REQUIRE_MESSAGE(outcome, (outcome ? "" : to_text(outcome.problems())));
    return devices_of(*outcome);
  };
  CHECK(stages_of("cluster: {devices: 4}\n") == "# plan.devices: [[0], [1], [2], [3]]\n");
  CHECK(stages_of("") == "# plan.devices: [[0], [1], [2], [3]]\n");
  CHECK(stages_of("cluster: {devices: 2}\n") == "# plan.devices: [[0], [1], [0], [1]]\n");
  CHECK(stages_of("cluster: {devices: 4}\nplan: {data_parallel: 2}\n") ==
        "# plan.devices: [[0], [1], [0], [1]]\n");
  CHECK(stages_of("cluster: {devices: 4}\nplan: {devices: [3, 1, 1, 3]}\n") ==
        "# plan.devices: [[3], [1], [1], [3]]\n");
  const auto round = of_file(order, "cluster: {devices: 2}\n");
  CHECK(std::count(round->setup.notes.begin(), round->setup.notes.end(),
                   "schedule.file is a sequence, which does not say where its 4 stages stand: "
                   "stage s on device s mod 2 (plan.devices says otherwise)") == 1);
}

TEST_CASE("a host launches nothing before what it needs") {
  // On two devices each list is right, and only the host's order is not.
  const auto wrong = of_file("1F0 0F0 1B0 0B0\n", "cluster: {devices: 2}\n");
  REQUIRE(!wrong);
  CHECK(wrong.problems().front().message == "op 1: 1F0 stands before what it needs");
  CHECK(wrong.problems().front().mark.column == 1);
  CHECK(wrong.problems().front().fault == Fault::infeasible);
  CHECK(of_file("0F0,0B0\n1F0,1B0\n"));
}

TEST_CASE("DualPipe's own numbers of micro-batches make the same order") {
  const auto named = predicted(kFour + "schedule: {name: dualpipe, micro_batches: 8}\n");
  REQUIRE(named);
  // The reverse direction from m/2 on: 1, 3, 5, 7 become 4, 5, 6, 7.
  std::string own;
  for (const auto& list : named->setup.schedule.lists()) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      Op op = list[i];
      const std::uint32_t j = op.micro_batch.value;
      op.micro_batch.value = j / 2 + (j % 2) * 4;
      own += (i == 0 ? "" : ",") + to_text(op);
    }
    own += '\n';
  }
  const auto again = of_file(own, kFour);
  REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
  CHECK(again->iteration_time_s == named->iteration_time_s);
  CHECK(again->setup.schedule.lists() == named->setup.schedule.lists());
}

}  // namespace
}  // namespace plumbline::test
