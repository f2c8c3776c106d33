// Bounds of all layouts, then rounds of predictions.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_best.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

/// A layout that may be among the best.
struct Candidate {
  std::uint64_t family = 0;
  std::size_t index = 0;  ///< In its family.
  std::uint64_t point = 0;
  double best = 0;  ///< It has no more of the objective.
};

/// The layouts of a search that are known so far.
class BestSearch {
 public:
  BestSearch(const Search& search, const SearchSelection& selection, std::size_t wanted,
             const WorkOptions& options)
      : search_(search),
        selection_(selection),
        wanted_(wanted),
        options_(options),
        results_(search.families().size()),
        misfit_(search.families().size(), std::numeric_limits<std::size_t>::max()) {
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].family = i;
  }

  SearchRun run() {
    bound_all();
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.best != b.best ? a.best > b.best : a.point < b.point;
    });
    while (!options_.is_stopped() && next_ < candidates_.size() &&
           candidates_[next_].best >= last_wanted()) {
      predict_some();
      tell();
    }
    return result();
  }

 private:
  /// The number of layouts that are predicted before the best are looked at again.
  static constexpr std::size_t kAtOnce = 16;

  double goodness(double throughput, std::int64_t devices) const {
    const bool each = selection_.rows.objective == Objective::per_device;
    return each ? throughput / static_cast<double>(devices) : throughput;
  }

  /// Does `work` for all numbers below `count`, and hands each result to `take`.
  template <class Work, class Take>
  void each(std::uint64_t count, Work&& work, Take&& take) {
    std::optional<PartialFile> none;
    work_through(count, options_, none, [&](std::uint64_t i) {
      auto done = std::make_shared<decltype(work(i))>(work(i));
      return Finished{"", [&take, done, i] { take(i, std::move(*done)); }};
    });
  }

  struct FamilyBounds {
    FamilyResult result;
    std::vector<Candidate> candidates;
  };

  /// Bounds the layouts of a family, up to the first one that cannot fit.
  FamilyBounds bound(const LayoutFamily& family) const {
    FamilyBounds bounds;
    bounds.result.family = family.number;
    for (std::size_t i = 0; i < family.layouts(); ++i) {
      const auto one = search_.bounds(family, i);
      if (!one) {
        bounds.result.rows.push_back(search_.refused(family, i, one.problems()));
      } else if (one->may_fit) {
        bounds.candidates.push_back(
            {family.number, i, family.first + i, goodness(one->throughput(), one->devices)});
      } else {
        bounds.result.passed_over = family.layouts() - i;
        break;
      }
    }
    return bounds;
  }

  void bound_all() {
    const std::vector<LayoutFamily>& families = search_.families();
    each(
        families.size(), [&](std::uint64_t i) { return bound(families[i]); },
        [&](std::uint64_t i, FamilyBounds bounds) {
          bounded_ += families[i].layouts();
          results_[i] = std::move(bounds.result);
          candidates_.insert(candidates_.end(), bounds.candidates.begin(), bounds.candidates.end());
        });
  }

  /// Predicts the next few candidates, without those of which a smaller one did not fit.
  void predict_some() {
    std::vector<Candidate> some;
    for (; next_ < candidates_.size() && some.size() < kAtOnce; ++next_) {
      const Candidate& candidate = candidates_[next_];
      if (candidate.index > misfit_[candidate.family]) {
        ++results_[candidate.family].passed_over;
      } else {
        some.push_back(candidate);
      }
    }
    std::vector<std::optional<SearchRow>> rows(some.size());
    each(
        some.size(),
        [&](std::uint64_t i) {
          return search_.predict_layout(search_.families()[some[i].family], some[i].index);
        },
        [&](std::uint64_t i, SearchRow row) { rows[i] = std::move(row); });
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (rows[i]) take(some[i], *std::move(rows[i]));
    }
    last_wanted_ = best_so_far();
  }

  void take(const Candidate& candidate, SearchRow row) {
    if (row.row.numbers && !row.row.feasible())
      misfit_[candidate.family] = std::min(misfit_[candidate.family], candidate.index);
    if (row.row.feasible()) feasible_.push_back(row);
    results_[candidate.family].rows.push_back(std::move(row));
  }

  /// What the last of the wanted rows has of the objective; without so many rows, less than any.
  double last_wanted() const { return last_wanted_; }
  double best_so_far() const {
    const RankedLayouts ranked = rank(feasible_, selection_);
    if (ranked.best.size() < wanted_) return -std::numeric_limits<double>::infinity();
    const SweepNumbers& last = *ranked.best[wanted_ - 1]->row.numbers;
    constexpr double no_time = std::numeric_limits<double>::infinity();
    return goodness(last.throughput_samples_per_s.value_or(no_time), last.devices);
  }

  void tell() const {
    if (!options_.progress) return;
    const auto possible = std::partition_point(
        candidates_.begin() + static_cast<std::ptrdiff_t>(next_), candidates_.end(),
        [&](const Candidate& candidate) { return candidate.best >= last_wanted(); });
    const auto left = possible - (candidates_.begin() + static_cast<std::ptrdiff_t>(next_));
    options_.progress(search_.layouts() - static_cast<std::uint64_t>(left), search_.layouts());
  }

  SearchRun result() {
    SearchRun run;
    const bool all_bounded = bounded_ == search_.layouts();
    run.stopped =
        options_.is_stopped() &&
        (!all_bounded || (next_ < candidates_.size() && candidates_[next_].best >= last_wanted()));
    for (; next_ < candidates_.size(); ++next_) {
      const Candidate& candidate = candidates_[next_];
      FamilyResult& family = results_[candidate.family];
      if (candidate.index > misfit_[candidate.family]) {
        ++family.passed_over;
      } else if (!run.stopped) {
        ++family.slower;
      }
    }
    run.wanted = search_.layouts();
    for (FamilyResult& family : results_) {
      // What cannot run counts as passed over where run_search() does not come to it.
      const std::uint64_t first = search_.families()[family.family].first;
      family.passed_over += std::erase_if(family.rows, [&](const SearchRow& row) {
        return row.row.point - first > misfit_[family.family];
      });
      std::sort(family.rows.begin(), family.rows.end(),
                [](const SearchRow& a, const SearchRow& b) { return a.row.point < b.row.point; });
      run.done += family.rows.size() + family.passed_over + family.slower;
    }
    run.part.facts = search_.facts();
    run.part.families = std::move(results_);
    return run;
  }

  const Search& search_;
  const SearchSelection& selection_;
  std::size_t wanted_ = 0;
  const WorkOptions& options_;
  std::vector<FamilyResult> results_;  ///< By family.
  std::vector<std::size_t> misfit_;    ///< The first layout of each family that did not fit.
  std::vector<Candidate> candidates_;
  std::size_t next_ = 0;       ///< The first candidate that is not decided.
  std::uint64_t bounded_ = 0;  ///< Layouts of families whose bounds are known.
  std::vector<SearchRow> feasible_;
  double last_wanted_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

bool takes_bounds(const SearchSelection& selection) {
  const Objective objective = selection.rows.objective;
  return selection.rows.top > 0 && selection.rows.front == Front::none &&
         (objective == Objective::throughput || objective == Objective::per_device);
}

SearchRun search_best(const Search& search, const SearchSelection& selection, std::size_t least,
                      const WorkOptions& options) {
  return BestSearch(search, selection, std::max(least, selection.rows.top), options).run();
}

}  // namespace plumbline
