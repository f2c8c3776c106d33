// The results of searches in files: those of an interrupted search, and the parts of a search on
// several machines.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/search_result.h"
#include "sim/whatif/shards.h"

namespace plumbline {

/// A part of a search, or the whole search, with the file that it was read from. Families have
/// their numbers in the search; a shard consists of families.
struct SearchPart {
  std::shared_ptr<const Source> source;
  SearchFacts facts;
  std::optional<Shard> shard;
  std::vector<FamilyResult> families;
};

/// The part as JSON; one family per line.
std::string to_json(const SearchPart& part, const std::string& version);

/// Whether to_json wrote a file, judged by its first lines.
bool is_search_part(const Source& source);

/// Reads a part back. Errors: no JSON, no part of a search, another version of the tool, damaged
/// data.
Result<SearchPart> parse_search_part(const std::shared_ptr<const Source>& source,
                                     const std::string& version);

/// Merges the parts of one search into the whole. Errors: parts of another search; parts that are
/// missing, stand twice or lack families. Requires: parts.
Result<SearchPart> merge(std::vector<SearchPart> parts);

/// A family in a line, no newline.
std::string family_json(const FamilyResult& result);

/// The first line of the file that an interrupted search keeps, with a newline. The other lines are
/// families.
std::string partial_header(const SearchFacts& facts, const std::optional<Shard>& shard,
                           const std::string& version);

/// The families that an interrupted search kept.
struct PartialSearch {
  std::vector<FamilyResult> families;
  std::size_t kept_bytes = 0;  ///< The length of the text's complete lines.
};

/// Reads the families of this search. Errors: the same as for sweeps.
Result<PartialSearch> parse_partial(const std::shared_ptr<const Source>& source,
                                    const SearchFacts& facts, const std::optional<Shard>& shard,
                                    const std::string& version);

}  // namespace plumbline
