// The results of searches in files: what an interrupted one keeps, and the parts of one that
// several machines share.
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

/// A part of a search, or the whole, with the file that it was read from. Families are numbered as
/// in the search; a shard holds families.
struct SearchPart {
  std::shared_ptr<const Source> source;
  SearchFacts facts;
  std::optional<Shard> shard;
  std::vector<FamilyResult> families;
};

/// The part as JSON; a family a line.
std::string to_json(const SearchPart& part, const std::string& version);

/// Whether a file is one that the function above wrote, by its first lines.
bool is_search_part(const Source& source);

/// Reads it again. Errors: no JSON, no part of a search, another version of the tool, what is
/// damaged.
Result<SearchPart> parse_search_part(const std::shared_ptr<const Source>& source,
                                     const std::string& version);

/// The parts of one search as the whole. Errors: another search among them, parts that are missing,
/// stand twice or lack families. Requires: parts.
Result<SearchPart> merge(std::vector<SearchPart> parts);

/// A family in a line, no newline.
std::string family_json(const FamilyResult& result);

/// The first line of what an interrupted search keeps, with a newline. The others are families.
std::string partial_header(const SearchFacts& facts, const std::optional<Shard>& shard,
                           const std::string& version);

/// The families that an interrupted search kept.
struct PartialSearch {
  std::vector<FamilyResult> families;
  std::size_t kept_bytes = 0;  ///< What of the text is whole.
};

/// Reads the families of this search. Errors: as those of sweeps.
Result<PartialSearch> parse_partial(const std::shared_ptr<const Source>& source,
                                    const SearchFacts& facts, const std::optional<Shard>& shard,
                                    const std::string& version);

}  // namespace plumbline
