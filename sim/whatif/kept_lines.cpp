// Lines of JSON, written and read back.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/kept_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

/// A line of a text, and its end.
struct Line {
  std::string_view text;
  std::size_t end = 0;  ///< Past its newline.
  int number = 1;
};

/// The whole lines; text after the last newline is not one.
std::vector<Line> whole_lines(const std::string& text) {
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    if (newline == std::string::npos) break;
    lines.push_back({std::string_view(text).substr(at, newline - at), newline + 1,
                     static_cast<int>(lines.size()) + 1});
    at = newline + 1;
  }
  return lines;
}

std::string kind_of(const KeptWork& work) { return "interrupted " + work.noun; }

Diagnostic no_rows(const std::shared_ptr<const Source>& source, const KeptWork& work) {
  return input_error({source}, fmt::format("holds no rows of an {}", kind_of(work)),
                     "name another -o FILE");
}

/// An error if the rows belong to other work.
std::optional<Diagnostic> check_header(const Json& json,
                                       const std::shared_ptr<const Source>& source,
                                       const KeptWork& work, const std::string& version) {
  if (!is_of_kind(json, kind_of(work))) return no_rows(source, work);
  if (json.at("tool").at("version") != version)
    return other_version({source}, json, version, work.noun);
  if (json.at("fingerprint") != work.fingerprint) {
    return input_error({source},
                       fmt::format("holds rows of another {}: the scenario, a file that it names, "
                                   "or an axis is not as it was",
                                   work.noun),
                       "remove it to begin anew, or name another -o FILE");
  }
  if (shard_of(json.at("shard")) != work.shard) {
    return input_error({source}, fmt::format("holds rows of another shard of this {}", work.noun),
                       "a shard has its own -o FILE");
  }
  return std::nullopt;
}

}  // namespace

std::string in_a_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json shard_json(const std::optional<Shard>& shard) {
  if (!shard) return nullptr;
  return {{"index", shard->index}, {"count", shard->count}};
}

std::optional<Shard> shard_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return Shard{json.at("index").get<std::uint64_t>(), json.at("count").get<std::uint64_t>()};
}

bool is_of_kind(const Json& json, const std::string& kind) {
  return json.is_object() && json.value("kind", "") == kind && json.contains("tool");
}

Diagnostic other_version(const Mark& mark, const Json& json, const std::string& version,
                         const std::string& noun) {
  const std::string theirs = json.at("tool").at("version").get<std::string>();
  return input_error(mark,
                     fmt::format("was written by plumbline {}, and this is plumbline {}",
                                 clipped(theirs), version),
                     fmt::format("run the whole {} with one of them", noun));
}

Mark mark_at(const std::shared_ptr<const Source>& source, std::size_t byte) {
  const std::string& text = source->text;
  const std::size_t at = std::min(byte > 0 ? byte - 1 : 0, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t column = start == std::string::npos ? at + 1 : at - start;
  return {source, static_cast<int>(line) + 1, static_cast<int>(column), 1};
}

std::string kept_header(const KeptWork& work, const std::string& version) {
  return in_a_line({{"kind", kind_of(work)},
                    {"tool", {{"name", "plumbline"}, {"version", version}}},
                    {"fingerprint", work.fingerprint},
                    {"shard", shard_json(work.shard)}}) +
         '\n';
}

Result<std::size_t> read_kept(const std::shared_ptr<const Source>& source, const KeptWork& work,
                              const std::string& version,
                              const std::function<std::string(const Json&)>& take) {
  std::size_t kept_bytes = 0;
  for (const Line& line : whole_lines(source->text)) {
    const Mark mark{source, line.number, 1, 1};
    try {
      const Json json = Json::parse(line.text);
      if (line.number == 1) {
        if (auto refused = check_header(json, source, work, version)) return *refused;
      } else if (const std::string wrong = take(json); !wrong.empty()) {
        return input_error(mark, wrong);
      }
    } catch (const Json::exception&) {
      if (line.number == 1) return no_rows(source, work);
      return input_error(mark, fmt::format("a damaged row of an {}", kind_of(work)),
                         "one that an earlier build wrote may lack what is new: remove the file to "
                         "begin anew");
    }
    kept_bytes = line.end;
  }
  return kept_bytes;
}

}  // namespace plumbline
