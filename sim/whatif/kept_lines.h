// The results that an interrupted command keeps: a line that identifies the work, then a line of
// JSON per result. Each line is complete before the next one begins.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/whatif/shards.h"

namespace plumbline {

/// The work to which lines belong.
struct KeptWork {
  std::string noun;  ///< "sweep".
  std::string fingerprint;
  std::optional<Shard> shard;
};

/// The first line, with its newline; `version` is the tool's.
std::string kept_header(const KeptWork& work, const std::string& version);

/// Gives each result of this work to `take`, which returns an error in it ("stands twice") or "".
/// An incomplete last line is dropped, even if it is the header. Returns the size of the complete
/// lines in bytes. Errors: other work, another shard, another version of the tool; a damaged line;
/// the errors of `take`. `take` may throw the exceptions of nlohmann's reader; the line is then
/// damaged.
Result<std::size_t> read_kept(
    const std::shared_ptr<const Source>& source, const KeptWork& work, const std::string& version,
    const std::function<std::string(const nlohmann::ordered_json&)>& take);

/// Converts a shard to JSON and back; null = the whole work.
nlohmann::ordered_json shard_json(const std::optional<Shard>& shard);
std::optional<Shard> shard_of(const nlohmann::ordered_json& json);

/// JSON in one line; bytes that are no UTF-8 are replaced.
std::string in_a_line(const nlohmann::ordered_json& json);

/// Whether `json` is of this kind and says which tool wrote it.
bool is_of_kind(const nlohmann::ordered_json& json, const std::string& kind);

/// The error for a result of another version of the tool.
Diagnostic other_version(const Mark& mark, const nlohmann::ordered_json& json,
                         const std::string& version, const std::string& noun);

/// The place of a byte in a source, counted from 1.
Mark mark_at(const std::shared_ptr<const Source>& source, std::size_t byte);

}  // namespace plumbline
