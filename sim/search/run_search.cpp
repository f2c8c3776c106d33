// Evaluates the families that are not done yet.
//
// SPDX-License-Identifier: MIT
#include "sim/search/run_search.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

/// The families of the shard that are not done yet.
std::vector<std::uint64_t> open_families(const SearchPart& part, const WorkOptions& options) {
  std::vector<bool> done(part.facts.families, false);
  for (const FamilyResult& result : part.families) done[result.family] = true;
  std::vector<std::uint64_t> open;
  for (std::uint64_t i = 0; i < done.size(); ++i) {
    if (!done[i] && options.holds(i)) open.push_back(i);
  }
  return open;
}

/// Opens the file that keeps the families, and reads the families that it has.
std::optional<Diagnostics> keep_families(SearchRun& run, const WorkOptions& options) {
  SearchPart& part = run.part;
  const auto read = [&](const std::shared_ptr<const Source>& source) -> Result<std::size_t> {
    auto kept = parse_partial(source, part.facts, part.shard, options.version);
    if (!kept) return kept.problems();
    part.families = std::move(kept->families);
    return kept->kept_bytes;
  };
  return open_partial(options, "search", partial_header(part.facts, part.shard, options.version),
                      read, run.partial);
}

std::uint64_t layouts_in(const FamilyResult& result) {
  return result.rows.size() + result.passed_over;
}

/// Evaluates the open families. Errors: a family that cannot be kept.
std::optional<Diagnostic> evaluate_open(const Search& search, const WorkOptions& options,
                                        SearchRun& run) {
  const std::vector<std::uint64_t> open = open_families(run.part, options);
  std::uint64_t layouts = 0;
  for (const std::uint64_t i : open) layouts += search.families()[i].layouts();
  std::uint64_t done = 0;
  return work_through(open.size(), options, run.partial, [&](std::uint64_t i) {
    const LayoutFamily& family = search.families()[open[i]];
    auto result = std::make_shared<FamilyResult>(search.evaluate(family, options.stop));
    const bool whole = layouts_in(*result) == family.layouts();
    return Finished{run.partial && whole ? family_json(*result) : "", [&, result] {
                      done += layouts_in(*result);
                      run.part.families.push_back(std::move(*result));
                      if (options.progress) options.progress(done, layouts);
                    }};
  });
}

}  // namespace

Result<SearchRun> run_search(const Search& search, const WorkOptions& options) {
  SearchRun run;
  SearchPart& part = run.part;
  part.facts = search.facts();
  part.shard = options.shard;
  if (const auto refused = keep_families(run, options)) return *refused;
  if (const auto failure = evaluate_open(search, options, run)) return *failure;
  for (const FamilyResult& result : part.families) run.done += layouts_in(result);
  for (const LayoutFamily& family : search.families())
    run.wanted += options.holds(family.number) ? family.layouts() : 0;
  run.stopped = options.is_stopped() && run.done < run.wanted;
  std::sort(part.families.begin(), part.families.end(),
            [](const FamilyResult& a, const FamilyResult& b) { return a.family < b.family; });
  return run;
}

}  // namespace plumbline
