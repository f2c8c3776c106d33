// Reading and writing results; the only file of the tools that uses the JSON library.
//
// SPDX-License-Identifier: MIT
#include "tools/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_tree.h"
#include "base/section_reader.h"

namespace plumbline {
namespace {

constexpr std::int64_t kMax = 1'000'000'000;

std::string text(SectionReader& section, std::string_view key) {
  section.require(key);
  const auto value = section.text(key);
  return value ? value->value : "";
}

std::int64_t count(SectionReader& section, std::string_view key, std::int64_t min) {
  section.require(key);
  const auto value = section.count(key, min, kMax);
  return value ? value->value : min;
}

/// The enumerator that `key` names; `last` is the last enumerator.
template <class Enum>
Enum named(SectionReader& section, std::string_view key, Enum last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace_back(name(static_cast<Enum>(i)));
  section.require(key);
  const auto value = section.choice_of(key, names, key);
  if (!value) return last;
  return static_cast<Enum>(std::find(names.begin(), names.end(), value->value) - names.begin());
}

ErrorShares read_shares(SectionReader& point, Diagnostics& problems) {
  auto section = point.section("error_by_cause_s");
  if (!section) {
    point.require("error_by_cause_s");
    return {};
  }
  ErrorShares shares;
  const YamlNode* profile = section->child("profile");
  if (profile && profile->kind != YamlNode::Kind::null)
    shares.profile_s = signed_number(*section, "profile", problems);
  shares.compute_s = signed_number(*section, "compute", problems);
  shares.transfer_s = signed_number(*section, "transfer", problems);
  shares.hand_over_s = signed_number(*section, "hand_over", problems);
  shares.waiting_s = signed_number(*section, "waiting", problems);
  const YamlNode* telling = section->child("telling");
  if (telling && telling->kind != YamlNode::Kind::null)
    shares.telling_s = signed_number(*section, "telling", problems);
  return shares;
}

/// The number of iterations, from a count or from a list.
std::int64_t read_iterations(SectionReader& measured) {
  const YamlNode* node = measured.child("iterations");
  if (node && node->kind == YamlNode::Kind::sequence)
    return static_cast<std::int64_t>(node->items.size());
  return count(measured, "iterations", 1);
}

std::vector<double> read_rounds(SectionReader& measured) {
  std::vector<double> rounds;
  if (!measured.has("rounds_s")) return rounds;
  const auto* nodes = measured.list("rounds_s");
  if (!nodes) return rounds;
  rounds.reserve(nodes->size());
  for (const YamlNode& node : *nodes) {
    char* end = nullptr;
    rounds.push_back(std::strtod(node.text.c_str(), &end));
    if (end == node.text.c_str() || *end != '\0')
      measured.error(node.mark, measured.path_of("rounds_s") + " holds what is no number");
  }
  return rounds;
}

/// Nothing where the layers were not timed again.
std::optional<double> read_again(SectionReader& point, Diagnostics& problems) {
  const YamlNode* node = point.child("timed_again");
  if (!node || node->kind == YamlNode::Kind::null) return std::nullopt;
  auto section = point.section("timed_again");
  if (!section) return std::nullopt;
  section->child("iteration_time_s");
  return signed_number(*section, "error", problems);
}

ResultPoint read_point(const YamlNode& node, const std::string& path, Diagnostics& problems) {
  SectionReader section(node, path, problems);
  ResultPoint point;
  if (!section.is_map()) return point;
  point.scenario = text(section, "scenario");
  point.schedule = text(section, "schedule");
  point.devices = count(section, "device_count", 1);
  point.micro_batches = count(section, "micro_batches", 1);
  point.verdict = named(section, "verdict", Verdict::inconclusive);
  std::vector<double> rounds;
  if (auto measured = section.section("measured")) {
    point.clean = count(*measured, "clean_iterations", 0);
    point.iterations = read_iterations(*measured);
    rounds = read_rounds(*measured);
  } else {
    section.require("measured");
  }
  auto times = section.section("iteration_time_s");
  if (!times) {
    section.require("iteration_time_s");
    return point;
  }
  point.predicted_s = signed_number(*times, "predicted", problems);
  if (point.clean == 0) {
    for (const char* key : {"error", "memory", "error_by_cause_s", "timed_again"})
      section.child(key);  // null
    times->child("measured");
    return point;
  }
  ResultPoint::Measured measured;
  measured.time_s = signed_number(*times, "measured", problems);
  measured.error = signed_number(section, "error", problems);
  measured.shares = read_shares(section, problems);
  measured.memory = named(section, "memory", MemoryVerdict::differs);
  measured.again_error = read_again(section, problems);
  measured.rounds_s = std::move(rounds);
  if (measured.time_s <= 0) {
    section.error(times->mark_of("measured"),
                  times->path_of("measured") + " is not above zero, with clean iterations");
  }
  point.measured = measured;
  return point;
}

Ranking read_ranking(SectionReader& document) {
  Ranking ranking;
  auto section = document.section("ranking");
  if (!section) {
    document.require("ranking");
    return ranking;
  }
  const auto of = [&](std::string_view key) {
    return static_cast<std::size_t>(count(*section, key, 0));
  };
  ranking.pairs = of("pairs");
  if (section->has("equal")) ranking.equal = of("equal");  // older results count them as wrong
  ranking.ties = of("ties");
  ranking.right = of("right");
  ranking.wrong = of("wrong");
  return ranking;
}

/// Reads the common part of results and `validate --json`.
void read_points(SectionReader& document, ResultFile& result, Diagnostics& problems) {
  count(document, "schema_version", 1);
  result.ranking = read_ranking(document);
  document.require("points");
  const auto* nodes = document.list("points");
  if (!nodes) return;
  result.points.reserve(nodes->size());
  for (std::size_t i = 0; i < nodes->size(); ++i)
    result.points.push_back(read_point((*nodes)[i], fmt::format("points.{}", i), problems));
  if (nodes->empty()) document.error(document.mark_of("points"), "points has none");
}

std::map<std::string, std::string> read_texts(SectionReader& section, std::string_view key,
                                              Diagnostics& problems) {
  std::map<std::string, std::string> texts;
  const YamlNode* node = section.child(key);
  if (!node) return texts;
  SectionReader map(*node, section.path_of(key), problems);
  for (const YamlNode::Entry& entry : node->entries) {
    if (const auto value = map.text(entry.key)) texts[entry.key] = value->value;
  }
  return texts;
}

void read_header(SectionReader& document, ResultHeader& header, Diagnostics& problems) {
  auto section = document.section("result");
  if (!section) {
    document.require("result", "a file of scripts/validate has it");
    return;
  }
  header.group = named(*section, "group", ResultGroup::gpu_networks);
  header.name = text(*section, "name");
  header.command = text(*section, "command");
  section->require("short");
  if (const auto is_short = section->boolean("short")) header.is_short = is_short->value;
  section->require("machine");
  header.machine = read_texts(*section, "machine", problems);
  header.calibration = read_texts(*section, "calibration", problems);
  section->finish();
}

using Json = nlohmann::ordered_json;

/// Rounds to `count` decimals, so that the shortest text of the number has no more.
double decimals(double value, int count) { return std::stod(fmt::format("{:.{}f}", value, count)); }

Json time(double time_s) { return decimals(time_s, 9); }

Json point_json(const ResultPoint& point) {
  const auto& measured = point.measured;
  const Json none;
  Json json = {{"scenario", point.scenario},
               {"schedule", point.schedule},
               {"device_count", point.devices},
               {"micro_batches", point.micro_batches},
               {"verdict", name(point.verdict)},
               {"memory", none},
               {"error", none},
               {"iteration_time_s",
                {{"predicted", time(point.predicted_s)},
                 {"measured", measured ? time(measured->time_s) : none}}},
               {"error_by_cause_s", none},
               {"measured", {{"clean_iterations", point.clean}, {"iterations", point.iterations}}}};
  if (measured) {
    json["memory"] = name(measured->memory);
    json["error"] = decimals(measured->error, 6);
    json["error_by_cause_s"] = {{"compute", time(measured->shares.compute_s)},
                                {"transfer", time(measured->shares.transfer_s)},
                                {"hand_over", time(measured->shares.hand_over_s)},
                                {"waiting", time(measured->shares.waiting_s)}};
    if (measured->shares.telling_s != 0)
      json["error_by_cause_s"]["telling"] = time(measured->shares.telling_s);
    if (measured->again_error) {
      json["error_by_cause_s"]["profile"] = time(measured->shares.profile_s);
      json["timed_again"] = {{"error", decimals(*measured->again_error, 6)}};
    }
    if (measured->rounds_s.size() > 1) {
      for (const double round : measured->rounds_s)
        json["measured"]["rounds_s"].push_back(time(round));
    }
  }
  return json;
}

}  // namespace

double signed_number(SectionReader& section, std::string_view key, Diagnostics& problems) {
  const YamlNode* node = section.child(key);
  if (!node) {
    section.require(key);
    return 0;
  }
  char* end = nullptr;
  const double value = std::strtod(node->text.c_str(), &end);
  if (node->kind != YamlNode::Kind::scalar || node->text.empty() || *end != '\0' ||
      !std::isfinite(value)) {
    problems.push_back(input_error(node->mark, section.path_of(key) + " is no number"));
    return 0;
  }
  return value;
}

double ResultPoint::Measured::range_of_rounds() const {
  if (rounds_s.empty()) return 0;
  const auto [min, max] = std::minmax_element(rounds_s.begin(), rounds_s.end());
  return (*max - *min) / time_s;
}

std::string_view name(ResultGroup group) {
  constexpr std::string_view names[] = {"practicals", "matrix",      "examples", "networks",
                                        "schedules",  "copies",      "links",    "recomputation",
                                        "gpu-spins",  "gpu-networks"};
  return names[static_cast<std::size_t>(group)];
}

std::optional<ResultGroup> group_named(std::string_view wanted) {
  for (const ResultGroup group : kResultGroups) {
    if (name(group) == wanted) return group;
  }
  return std::nullopt;
}

Result<ResultFile> read_validation(const std::string& path, ResultHeader header) {
  const auto tree = read_json(path);
  if (!tree) return tree.problems();
  Diagnostics problems;
  ResultFile result;
  static_cast<ResultHeader&>(result) = std::move(header);
  SectionReader document(*tree, "", problems);
  if (document.is_map()) read_points(document, result, problems);
  if (!problems.empty()) return problems;
  return result;
}

Result<ResultFile> read_result(const std::string& path) {
  const auto tree = read_json(path);
  if (!tree) return tree.problems();
  Diagnostics problems;
  ResultFile result;
  SectionReader document(*tree, "", problems);
  if (document.is_map()) {
    read_header(document, result, problems);
    read_points(document, result, problems);
    document.finish();
  }
  if (!problems.empty()) return problems;
  return result;
}

Result<std::vector<ResultFile>> read_results(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code trouble;
  for (const auto& entry : std::filesystem::directory_iterator(folder, trouble)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  if (paths.empty()) {
    Diagnostic wrong;
    wrong.message = trouble ? fmt::format("cannot list '{}': {}", folder, trouble.message())
                            : fmt::format("'{}' holds no results (*.json)", folder);
    wrong.help = "scripts/validate makes them";
    wrong.fault = Fault::file;
    return wrong;
  }
  std::sort(paths.begin(), paths.end());
  Diagnostics problems;
  std::vector<ResultFile> results;
  results.reserve(paths.size());
  for (const std::string& path : paths) {
    auto result = read_result(path);
    if (keep(result, problems)) results.push_back(*std::move(result));
  }
  if (!problems.empty()) return problems;
  return results;
}

std::string to_json(const ResultFile& result) {
  Json header = {{"group", name(result.group)},
                 {"name", result.name},
                 {"command", result.command},
                 {"short", result.is_short},
                 {"machine", result.machine}};
  if (!result.calibration.empty()) header["calibration"] = result.calibration;
  const Ranking& ranking = result.ranking;
  Json order = {{"pairs", ranking.pairs}};
  if (ranking.equal > 0) order["equal"] = ranking.equal;
  order.update({{"ties", ranking.ties}, {"right", ranking.right}, {"wrong", ranking.wrong}});
  std::string points;
  for (const ResultPoint& point : result.points) {
    if (!points.empty()) points += ",\n";
    points += "  " + point_json(point).dump();
  }
  return fmt::format(
      "{{\n \"schema_version\": 1,\n \"result\": {},\n \"ranking\": {},\n \"points\": [\n{}\n ]\n}}"
      "\n",
      header.dump(), order.dump(), points);
}

}  // namespace plumbline
