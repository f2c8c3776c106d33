// Reads slices, and checks the order against them.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/section_reader.h"
#include "sim/scenario/plan.h"

namespace plumbline {
namespace {

/// The numbers of a list, relative to their mean; empty if all are the same.
std::vector<double> work_of(std::vector<double> given, double sum) {
  if (std::adjacent_find(given.begin(), given.end(), std::not_equal_to<>()) == given.end())
    return {};
  for (double& one : given) one *= static_cast<double>(given.size()) / sum;
  return given;
}

/// The op of the neighbouring slice that must come before `op`; nothing if there is none.
std::optional<Op> needed_before(Op op, std::uint32_t slices) {
  const std::uint32_t slice = op.micro_batch.value % slices;
  if (op.kind == OpKind::forward) {
    if (slice == 0) return std::nullopt;
    --op.micro_batch.value;
    return op;
  }
  if (slice + 1 == slices || op.kind == OpKind::backward_weight) return std::nullopt;
  ++op.micro_batch.value;
  return op;
}

}  // namespace

SliceChoice read_slices(SectionReader& schedule, const ScheduleRule* rule,
                        const ScheduleFile* file) {
  const YamlNode* const node = schedule.child("slices");
  if (node == nullptr) return {};
  SliceChoice slices;
  slices.mark = node->mark;
  const auto wrong = [&](std::string message, std::string help = "") {
    schedule.error(node->mark, std::move(message), std::move(help));
    return slices;
  };
  if (node->kind == YamlNode::Kind::sequence) {
    if (node->items.empty()) return wrong("schedule.slices is an empty list");
    const auto work = schedule.reals("slices");
    if (!work) return slices;
    const double sum = std::accumulate(work->begin(), work->end(), 0.0);
    if (sum <= 0) return wrong("schedule.slices add up to 0");
    slices.count = static_cast<std::uint32_t>(work->size());
    slices.work = work_of(*work, sum);
  } else if (const auto count = schedule.count("slices")) {
    slices.count = static_cast<std::uint32_t>(count->value);
  }
  if (slices.count > kMaxSlices)
    return wrong(fmt::format("schedule.slices are {}, more than {}", slices.count, kMaxSlices));
  if (file != nullptr && file->micro_batches % slices.count != 0) {
    return wrong(
        fmt::format("schedule.slices is {}, which does not divide the {} numbers of schedule.file",
                    slices.count, file->micro_batches),
        "slice k of micro-batch m has the number m x slices + k there");
  }
  if (slices.count > 1 && rule != nullptr && !rule->takes_slices) {
    return wrong(fmt::format("schedule.slices does not apply to the schedule '{}'", rule->name),
                 "it is for gpipe, 1f1b, eager-1f1b and orders from schedule.file");
  }
  return slices;
}

std::optional<Diagnostic> check_slices_on(const SliceChoice& slices,
                                          const std::vector<std::uint32_t>& replicas) {
  for (std::size_t s = 0; slices.count > 1 && s < replicas.size(); ++s) {
    if (replicas[s] == 1) continue;
    return input_error(slices.mark,
                       fmt::format("schedule.slices is {}, but stage {} has {} replicas",
                                   slices.count, s, replicas[s]),
                       "a slice needs the keys and values of those before it, on one device; "
                       "plan.data_parallel copies whole pipelines");
  }
  return std::nullopt;
}

std::optional<Diagnostic> check_slices_in(const SliceChoice& slices, const ScheduleFile& file) {
  for (std::uint32_t slot = 0; slices.count > 1 && slot < file.lists.size(); ++slot) {
    std::set<Op> seen;
    for (std::size_t i = 0; i < file.lists[slot].size(); ++i) {
      const Op& op = file.lists[slot][i];
      seen.insert(op);
      const auto needed = needed_before(op, slices.count);
      if (!needed || seen.count(*needed) > 0) continue;
      return input_error(
          mark_of(file, slot, i),
          fmt::format("{} stands before {}, a slice of the same sequence that it needs",
                      to_text(op), to_text(*needed)),
          "forwards go through the slices in order, backwards last slice first");
    }
  }
  return std::nullopt;
}

std::vector<std::string> notes_on(const SliceChoice& slices, Recompute recompute,
                                  bool is_estimated) {
  std::vector<std::string> notes = {
      fmt::format("each micro-batch is cut into {} slices along its sequence: ops, their numbers "
                  "and what is in flight are slices; those of micro-batch 0 are 0 to {}",
                  slices.count, slices.count - 1)};
  if (recompute == Recompute::full || recompute == Recompute::layers) {
    notes.emplace_back(
        "keys and values that later slices read are not counted in what recomputation keeps");
  }
  if (is_estimated) {
    notes.emplace_back(
        "a slice's estimated time is its part of a micro-batch's: weights that each reads again, "
        "and keys and values that a group sends again, are not counted");
  }
  return notes;
}

}  // namespace plumbline
