// Reads the goodput section.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/goodput_section.h"

#include <fmt/format.h>

#include "base/section_reader.h"

namespace plumbline {
namespace {

/// Adds an error where a value is a text, but no time; `help` names what else it may be. Returns
/// whether it did.
bool refuse_no_time(SectionReader& section, std::string_view key, std::string_view help) {
  const YamlNode* node = section.child(key);
  if (!node || node->kind != YamlNode::Kind::scalar) return false;
  const Parsed<Duration> time = parse_duration(node->text);
  if (time.value) return false;
  section.error(
      node->mark,
      fmt::format("{} is '{}', which {}", section.path_of(key), clipped(node->text), time.problem),
      std::string(help));
  return true;
}

/// Reads a time, or a bandwidth ("2 GB/s").
CheckpointCost read_cost(SectionReader& section, std::string_view key) {
  const YamlNode* node = section.child(key);
  const bool is_rate =
      node && node->kind == YamlNode::Kind::scalar && node->text.find('/') != std::string::npos;
  if (is_rate) {
    const auto rate = section.bandwidth(key);
    return rate ? CheckpointCost{rate->value} : CheckpointCost{};
  }
  if (refuse_no_time(section, key, "a time such as 30 s, or a bandwidth such as 10 GB/s"))
    return {};
  const auto time = section.duration(key);
  return time ? CheckpointCost{time->value} : CheckpointCost{};
}

void read_interval(SectionReader& section, GoodputSection& read) {
  if (section.has("iterations")) {  // finish() refuses an interval beside it
    if (auto iterations = section.count("iterations")) read.iterations = iterations->value;
    return;
  }
  section.child("interval");
  if (section.is_word("interval", "best")) return;
  if (refuse_no_time(section, "interval", "a time such as 30 min, or `best`")) return;
  const auto interval = section.duration("interval");
  if (!interval) return;
  read.interval = interval->value;
  if (interval->value == Duration{})
    section.error(interval->mark, "goodput.checkpoint.interval is 0",
                  "a time such as 30 min, or `best`; each iteration: iterations: 1");
}

void read_checkpoint(SectionReader& goodput, GoodputSection& read) {
  auto section = goodput.section("checkpoint");
  if (!section) return;
  section->require("pause", "the time that training stands still for a checkpoint");
  read.pause = read_cost(*section, "pause");
  read.write = read_cost(*section, "write");
  read_interval(*section, read);
  section->finish();
}

void read_failures(SectionReader& section, GoodputSection& read) {
  if (section.is_map() && section.has("device_mtbf") == section.has("job_mtbf")) {
    section.error(section.mark_of("device_mtbf"),
                  section.has("job_mtbf")
                      ? "goodput.device_mtbf does not stand beside goodput.job_mtbf"
                      : "goodput has neither device_mtbf nor job_mtbf",
                  "the mean time between failures of one device, such as device_mtbf: 50000 h, or "
                  "of the whole job");
  }
  for (const char* key : {"device_mtbf", "job_mtbf"}) {
    const auto mtbf = section.long_time(key);
    if (!mtbf) continue;
    read.mtbf = mtbf->value;
    read.of_one_device = std::string_view(key) == "device_mtbf";
  }
}

}  // namespace

GoodputSection read_goodput_section(SectionReader& section) {
  GoodputSection read;
  read_failures(section, read);
  section.require("restart", "the time from a failure until training goes on");
  if (auto restart = section.duration("restart")) read.restart = restart->value;
  section.require("checkpoint", "checkpoint: {pause: 30 s}");
  read_checkpoint(section, read);
  if (auto seed = section.count("seed")) read.seed = static_cast<std::uint64_t>(seed->value);
  if (auto samples = section.count("samples"))
    read.samples = static_cast<std::uint32_t>(samples->value);
  section.finish();
  return read;
}

}  // namespace plumbline
