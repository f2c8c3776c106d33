// Every name of a range that is known, its near misses, and templates of one's own.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/op_names.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace plumbline::test {
namespace {

/// What a name means, in one line: "op F stage 0 micro-batch 3", "nothing".
std::string meaning_text(const OpNames& names, std::string_view name) {
  const auto title = names.meaning(name);
  if (!title) return "nothing";
  const auto text = [](const NamedOp& op) {
    std::string all(1, letter(op.kind));
    if (op.stage) all += fmt::format(" stage {}", *op.stage);
    if (op.micro_batch) all += fmt::format(" micro-batch {}", *op.micro_batch);
    return all;
  };
  switch (title->use) {
    case RangeUse::op:
      return "op " + text(title->op);
    case RangeUse::pair:
      return fmt::format("pair {} and {}", text(title->op), text(title->partner));
    case RangeUse::send:
      return "send " + text(title->op);
    case RangeUse::receive:
      return "receive " + text(title->op);
    case RangeUse::reduction:
      return fmt::format("reduction stage {}", title->op.stage.value_or(0));
    case RangeUse::update:
      return "update";
    case RangeUse::iteration:
      return fmt::format("iteration {}", title->iteration);
  }
  return "";
}

std::string known(std::string_view name) { return meaning_text({}, name); }

OpNames with(OpKind kind, const std::string& text) {
  OpNames names;
  const auto wrong = names.add(kind, text);
  REQUIRE_MESSAGE(!wrong, (wrong ? to_text(*wrong) : ""));
  return names;
}

std::string template_fault(const std::string& text) {
  OpNames names;
  const auto wrong = names.add(OpKind::forward, text);
  REQUIRE(wrong);
  CHECK(meaning_text(names, text) == "nothing");  // it was not added
  return wrong->message;
}

TEST_CASE("the actions of torch.distributed.pipelining are known") {
  CHECK(known("PP:0F3") == "op F stage 0 micro-batch 3");
  CHECK(known("PP:12B10") == "op B stage 12 micro-batch 10");
  CHECK(known("PP:1I0") == "op I stage 1 micro-batch 0");
  CHECK(known("PP:1W0") == "op W stage 1 micro-batch 0");
  CHECK(known("PP:0SEND_F3") == "send F stage 0 micro-batch 3");
  CHECK(known("PP:1RECV_F3") == "receive F stage 1 micro-batch 3");
  CHECK(known("PP:1SEND_B3") == "send B stage 1 micro-batch 3");
  CHECK(known("PP:0RECV_B3") == "receive B stage 0 micro-batch 3");
  CHECK(known("PP:2REDUCE_GRAD") == "reduction stage 2");
  CHECK(known("PP:2REDUCE_GRAD0") == "reduction stage 2");
  CHECK(known("PP:(0F3;1B2)OVERLAP_F_B") ==
        "pair F stage 0 micro-batch 3 and B stage 1 micro-batch 2");
  CHECK(known("PP:(0F3;1I2)OVERLAP_F_B") ==
        "pair F stage 0 micro-batch 3 and I stage 1 micro-batch 2");
}

TEST_CASE("ranges that number micro-batches alone tell no stage") {
  CHECK(known("Forward 3") == "op F micro-batch 3");
  CHECK(known("Backward 0") == "op B micro-batch 0");
}

TEST_CASE("functions of Megatron Core and DeepSpeed are known by their file") {
  CHECK(known("megatron/core/pipeline_parallel/schedules.py(165): forward_step") == "op F");
  CHECK(known("/opt/m/megatron/core/pipeline_parallel/schedules.py(250): backward_step") == "op B");
  CHECK(known("deepspeed/runtime/pipe/engine.py(630): _exec_forward_pass") == "op F");
  CHECK(known("deepspeed/runtime/pipe/engine.py(730): _exec_backward_pass") == "op B");
  CHECK(known("deepspeed/runtime/pipe/engine.py(1180): _exec_optimizer_step") == "update");
  CHECK(known("my/own.py(165): forward_step") == "nothing");
  CHECK(known("pipeline_parallel/schedules.py(165): forward_step_calc_loss") == "nothing");
  CHECK(known("pipeline_parallel/schedules.py(165): my_forward_step") == "nothing");
}

TEST_CASE("steps and optimizers of torch.profiler are known") {
  CHECK(known("ProfilerStep#7") == "iteration 7");
  CHECK(known("ProfilerStep#0") == "iteration 0");
  CHECK(known("Optimizer.step#Adam.step") == "update");
  CHECK(known("Optimizer.step#SGD.step") == "update");
  CHECK(known("Optimizer.zero_grad#Adam.zero_grad") == "nothing");
}

TEST_CASE("what is nearly a known name is none") {
  for (const char* name : {"",
                           "PP:",
                           "PP:F3",
                           "PP:0F",
                           "PP:0F3 ",
                           " PP:0F3",
                           "pp:0F3",
                           "PP:0X3",
                           "PP:0FORWARD3",
                           "PP:-1F3",
                           "PP:0F-3",
                           "PP:4294967296F0",
                           "PP:0SEND_F",
                           "PP:0UNSHARD",
                           "PP:0RESHARD",
                           "PP:(0F3;1B2)",
                           "PP:(0F3;1B2)OVERLAP_F_B ",
                           "PP:(0F3)OVERLAP_F_B",
                           "PP:(0F3,1B2)OVERLAP_F_B",
                           "PP:(0SEND_F3;1B2)OVERLAP_F_B",
                           "PP:(0F3;1RECV_B2)OVERLAP_F_B",
                           "PP:REDUCE_GRAD",
                           "Forward",
                           "Forward ",
                           "Forward x",
                           "Forward 3 of 4",
                           "forward 3",
                           "Forward3",
                           "Backward 3B",
                           "ProfilerStep",
                           "profilerstep#7",
                           "Optimizer.step",
                           "0F3",
                           "F3"}) {
    CHECK_MESSAGE(known(name) == "nothing", name, " is ", known(name));
  }
}

TEST_CASE("an own template names the kind, and the numbers where it has placeholders") {
  const OpNames names = with(OpKind::forward, "stage{stage} F{micro_batch}");
  CHECK(meaning_text(names, "stage2 F13") == "op F stage 2 micro-batch 13");
  CHECK(meaning_text(names, "stage2 F") == "nothing");
  CHECK(meaning_text(names, "stageF13") == "nothing");
  CHECK(meaning_text(names, "stage2 F13x") == "nothing");
  CHECK(meaning_text(names, "my stage2 F13") == "nothing");
  CHECK(meaning_text(with(OpKind::backward, "bwd"), "bwd") == "op B");
  CHECK(meaning_text(with(OpKind::backward_weight, "w {micro_batch}!"), "w 5!") ==
        "op W micro-batch 5");
  CHECK(meaning_text(with(OpKind::backward_input, "{stage}"), "8") == "op I stage 8");
}

TEST_CASE("placeholders stand in any order") {
  const OpNames names = with(OpKind::backward_input, "mb {micro_batch} on {stage}");
  CHECK(meaning_text(names, "mb 7 on 1") == "op I stage 1 micro-batch 7");
}

TEST_CASE("own templates come before what is known, and the first of them counts") {
  OpNames names = with(OpKind::backward, "PP:{stage}F{micro_batch}");
  CHECK(meaning_text(names, "PP:0F3") == "op B stage 0 micro-batch 3");
  CHECK(meaning_text(names, "PP:0I3") == "op I stage 0 micro-batch 3");  // known as before
  REQUIRE_FALSE(names.add(OpKind::forward, "PP:{stage}F{micro_batch}"));
  CHECK(meaning_text(names, "PP:0F3") == "op B stage 0 micro-batch 3");
}

TEST_CASE("a name tells which own template it fits") {
  OpNames names = with(OpKind::forward, "F{micro_batch}");
  REQUIRE_FALSE(names.add_update("step"));
  CHECK(names.texts() == std::vector<std::string>{"F{micro_batch}", "step"});
  CHECK(names.meaning("F3")->own == 0);
  CHECK(names.meaning("step")->own == 1);
  CHECK(names.meaning("PP:0F3")->own == -1);
}

TEST_CASE("a template may name the optimizer's step") {
  OpNames names;
  REQUIRE_FALSE(names.add_update("step of {stage}"));
  CHECK(meaning_text(names, "step of 3") == "update");
  CHECK(meaning_text(names, "step of x") == "nothing");
}

TEST_CASE("an empty template, another placeholder, or one twice is an error") {
  CHECK(template_fault("") == "a template for the names of ranges is empty");
  CHECK(template_fault("F{mb}") == "'F{mb}' has a brace that is no placeholder");
  CHECK(template_fault("F{micro_batch") == "'F{micro_batch' has a brace that is no placeholder");
  CHECK(template_fault("F{}") == "'F{}' has a brace that is no placeholder");
  CHECK(template_fault("{stage} of {stage}") == "'{stage} of {stage}' has a placeholder twice");
  OpNames names;
  const auto wrong = names.add_update("");
  REQUIRE(wrong);
  CHECK(wrong->help.find("{stage} and {micro_batch} stand for numbers") == 0);
}

}  // namespace
}  // namespace plumbline::test
