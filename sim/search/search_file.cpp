// Families of layouts as lines of JSON, and parts put together.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/scenario/axes.h"
#include "sim/whatif/kept_lines.h"
#include "sim/whatif/sweep_numbers.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

const std::string kPartKind = "search part";
const std::string kNoun = "search";

Json layout_json(const Layout& layout) {
  return {{"overrides", layout.overrides},
          {"combination", layout.combination},
          {"tensor", layout.tensor},
          {"context", layout.context},
          {"expert", layout.expert},
          {"batches", layout.batches},
          {"stages", layout.stages},
          {"chunks", layout.chunks},
          {"copies", layout.copies},
          {"schedule", layout.schedule},
          {"micro_batch_size", layout.micro_batch_size},
          {"micro_batches", layout.micro_batches},
          {"sequence", layout.sequence},
          {"made_again", layout.recomputation}};
}

Layout layout_of(const Json& json) {
  Layout layout;
  json.at("overrides").get_to(layout.overrides);
  json.at("combination").get_to(layout.combination);
  json.at("tensor").get_to(layout.tensor);
  json.at("context").get_to(layout.context);
  json.at("expert").get_to(layout.expert);
  json.at("batches").get_to(layout.batches);
  json.at("stages").get_to(layout.stages);
  json.at("chunks").get_to(layout.chunks);
  json.at("copies").get_to(layout.copies);
  json.at("schedule").get_to(layout.schedule);
  json.at("micro_batch_size").get_to(layout.micro_batch_size);
  json.at("micro_batches").get_to(layout.micro_batches);
  json.at("sequence").get_to(layout.sequence);
  json.at("made_again").get_to(layout.recomputation);
  return layout;
}

FamilyResult family_of(const Json& json) {
  FamilyResult result;
  json.at("family").get_to(result.family);
  json.at("passed_over").get_to(result.passed_over);
  for (const Json& row : json.at("rows"))
    result.rows.push_back({layout_of(row.at("layout")), read_row(row)});
  return result;
}

/// Whether a result is safe to use in the rest of the program.
bool is_sound(const FamilyResult& result, const SearchFacts& facts) {
  return result.family < facts.families && !result.rows.empty() &&
         result.rows.size() <= facts.layouts &&
         result.passed_over <= facts.layouts - result.rows.size() &&
         std::all_of(result.rows.begin(), result.rows.end(), [&](const SearchRow& found) {
           const Layout& layout = found.layout;
           const auto& numbers = found.row.numbers;
           return found.row.point < facts.layouts && is_sound(found.row) && layout.chunks >= 1 &&
                  layout.batches >= 1 && layout.stages >= 1 &&
                  (found.row.feasible() || !numbers || numbers->memory_limit_bytes);
         });
}

Json standing_json(const std::optional<StandingScenario>& standing) {
  if (!standing) return nullptr;
  Json json = {{"reason", standing->reason}, {"chosen", standing->chosen}};
  SweepRow row;
  row.numbers = standing->numbers;
  row.reason = standing->reason;
  add_row(row, json["row"]);
  return json;
}

std::optional<StandingScenario> standing_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return StandingScenario{read_row(json.at("row")).numbers, json.at("reason").get<std::string>(),
                          json.at("chosen").get<std::vector<std::string>>()};
}

Json facts_json(const SearchFacts& facts) {
  return {{"scenario", facts.scenario},
          {"scenario_file", facts.file},
          {"fingerprint", facts.fingerprint},
          {"arguments", facts.arguments},
          {"free", facts.free},
          {"open_keys", facts.open_keys},
          {"kept_keys", facts.kept_keys},
          {"varied_keys", facts.varied_keys},
          {"notes", facts.notes},
          {"families", facts.families},
          {"layouts", facts.layouts},
          {"as_it_stands", standing_json(facts.as_it_stands)}};
}

SearchFacts facts_of(const Json& json) {
  SearchFacts facts;
  json.at("scenario").get_to(facts.scenario);
  json.at("scenario_file").get_to(facts.file);
  json.at("fingerprint").get_to(facts.fingerprint);
  json.at("arguments").get_to(facts.arguments);
  json.at("free").get_to(facts.free);
  json.at("open_keys").get_to(facts.open_keys);
  json.at("kept_keys").get_to(facts.kept_keys);
  json.at("varied_keys").get_to(facts.varied_keys);
  json.at("notes").get_to(facts.notes);
  json.at("families").get_to(facts.families);
  json.at("layouts").get_to(facts.layouts);
  facts.as_it_stands = standing_of(json.at("as_it_stands"));
  return facts;
}

/// Errors: families of another part, or missing families.
std::optional<Diagnostic> check_families(const SearchPart& part) {
  const Shard shard = part.shard.value_or(Shard{});
  std::vector<bool> seen(part.facts.families, false);
  for (const FamilyResult& result : part.families) {
    if (seen[result.family] || !shard.holds(result.family)) {
      return input_error({part.source},
                         fmt::format("the family {} of layouts {}", result.family,
                                     seen[result.family] ? "stands twice" : "is of another part"));
    }
    seen[result.family] = true;
  }
  std::uint64_t missing = 0;
  for (std::uint64_t i = 0; i < part.facts.families; ++i)
    missing += shard.holds(i) && !seen[i] ? 1 : 0;
  if (missing == 0) return std::nullopt;
  return input_error({part.source}, fmt::format("lacks {} of its families of layouts", missing),
                     "an interrupted part goes on with --resume");
}

}  // namespace

std::string family_json(const FamilyResult& result) {
  Json rows = Json::array();
  for (const SearchRow& found : result.rows) {
    Json row = {{"layout", layout_json(found.layout)}};
    add_row(found.row, row);
    rows.push_back(std::move(row));
  }
  return in_a_line(
      {{"family", result.family}, {"passed_over", result.passed_over}, {"rows", std::move(rows)}});
}

std::string to_json(const SearchPart& part, const std::string& version) {
  std::string text = fmt::format(
      "{{\n \"schema_version\": 1,\n \"kind\": \"{}\",\n \"tool\": {},\n \"search\": {},\n "
      "\"shard\": {},\n \"families\": [",
      kPartKind, in_a_line({{"name", "plumbline"}, {"version", version}}),
      in_a_line(facts_json(part.facts)), in_a_line(shard_json(part.shard)));
  for (std::size_t i = 0; i < part.families.size(); ++i)
    text += (i == 0 ? "\n  " : ",\n  ") + family_json(part.families[i]);
  return text + (part.families.empty() ? "]\n}\n" : "\n ]\n}\n");
}

bool is_search_part(const Source& source) {
  constexpr std::size_t head = 200;
  return source.text.substr(0, head).find(fmt::format("\"kind\": \"{}\"", kPartKind)) !=
         std::string::npos;
}

Result<SearchPart> parse_search_part(const std::shared_ptr<const Source>& source,
                                     const std::string& version) {
  try {
    const Json json = Json::parse(source->text);
    if (!is_of_kind(json, kPartKind)) {
      return input_error({source}, "is no part of a search",
                         "plumbline search SCENARIO --shard 1/2 --json -o FILE writes one");
    }
    if (json.at("tool").at("version") != version)
      return other_version({source}, json, version, kNoun);
    SearchPart part{source, facts_of(json.at("search")), shard_of(json.at("shard")), {}};
    bool sound =
        part.facts.families <= part.facts.layouts && part.facts.layouts <= kMaxCombinations &&
        (!part.shard || (part.shard->index >= 1 && part.shard->index <= part.shard->count &&
                         part.shard->count <= kMaxCombinations));
    for (const Json& family : json.at("families")) {
      part.families.push_back(family_of(family));
      sound = sound && is_sound(part.families.back(), part.facts);
    }
    if (sound) return part;
  } catch (const Json::parse_error& error) {
    return input_error(mark_at(source, error.byte), "not valid JSON from here on",
                       "a search writes its file whole or not at all: this one was cut or changed");
  } catch (const Json::exception&) {  // reported below: a key is missing or has another type
  }
  return input_error({source},
                     "is a damaged part of a search: it lacks a key, or has values that do not "
                     "belong together",
                     "one that an earlier build wrote may lack what is new: search again");
}

Result<SearchPart> merge(std::vector<SearchPart> parts) {
  std::vector<ShardFile> files;
  files.reserve(parts.size());
  for (const SearchPart& part : parts)
    files.push_back({part.source, part.facts.fingerprint, part.shard});
  if (Diagnostics refused = check_parts(files, kNoun); !refused.empty()) return refused;
  for (const SearchPart& part : parts) {
    if (auto refused = check_families(part)) return *refused;
  }
  SearchPart whole = std::move(parts.front());
  whole.shard.reset();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::move(parts[i].families.begin(), parts[i].families.end(),
              std::back_inserter(whole.families));
  }
  return whole;
}

std::string partial_header(const SearchFacts& facts, const std::optional<Shard>& shard,
                           const std::string& version) {
  return kept_header({kNoun, facts.fingerprint, shard}, version);
}

Result<PartialSearch> parse_partial(const std::shared_ptr<const Source>& source,
                                    const SearchFacts& facts, const std::optional<Shard>& shard,
                                    const std::string& version) {
  PartialSearch partial;
  std::vector<bool> seen(facts.families, false);
  const auto kept = read_kept(
      source, {kNoun, facts.fingerprint, shard}, version, [&](const Json& json) -> std::string {
        FamilyResult result = family_of(json);
        if (!is_sound(result, facts) || !shard.value_or(Shard{}).holds(result.family))
          return fmt::format("the family {} of layouts is not of this search", result.family);
        if (seen[result.family])
          return fmt::format("the family {} of layouts stands twice", result.family);
        seen[result.family] = true;
        partial.families.push_back(std::move(result));
        return "";
      });
  if (!kept) return kept.problems();
  partial.kept_bytes = *kept;
  return partial;
}

}  // namespace plumbline
