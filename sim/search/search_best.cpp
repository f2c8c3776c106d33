// Bounds of all layouts, then rounds of predictions.
//
// SPDX-License-Identifier: MIT
#include "sim/search/search_best.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

constexpr double kMost = std::numeric_limits<double>::infinity();

/// A family of layouts. They are predicted in their order, up to the first one that does not fit.
struct Candidates {
  std::vector<std::size_t> indices;  ///< Of the layouts that may fit, ascending.
  /// None of them has more of the objective; -infinity: it does not meet the conditions. Parallel.
  std::vector<double> best;
  std::size_t next = 0;  ///< The first of them that is not predicted.

  std::size_t left() const { return indices.size() - next; }
  /// The place of the best bound among those that are left.
  std::size_t best_place() const {
    const auto from = best.begin() + static_cast<std::ptrdiff_t>(next);
    return static_cast<std::size_t>(std::max_element(from, best.end()) - best.begin());
  }
  double most() const { return left() > 0 ? best[best_place()] : -kMost; }
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
        candidates_(search.families().size()) {
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].family = i;
  }

  SearchRun run() {
    bound_all();
    while (!options_.is_stopped()) {
      const std::vector<std::size_t> families = best_families();
      if (families.empty()) break;
      predict(families);
      rank_found();
      tell();
    }
    return result();
  }

 private:
  /// The number of families of which layouts are predicted before the best are looked at again.
  static constexpr std::size_t kAtOnce = 8;

  double goodness(double throughput, std::int64_t devices) const {
    const bool each = selection_.rows.objective == Objective::per_device;
    return each ? throughput / static_cast<double>(devices) : throughput;
  }

  /// Whether a layout with this bound may be among the wanted. The bound and the time of a run are
  /// rounded in other places.
  bool may_be_wanted(double best) const {
    constexpr double rounding = 1e-12;
    return best > -kMost && best * (1 + rounding) >= last_wanted_;
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
    Candidates candidates;
  };

  /// Bounds the layouts of a family, up to the first one that cannot fit.
  FamilyBounds bound(const LayoutFamily& family) const {
    FamilyBounds bounds;
    bounds.result.family = family.number;
    for (std::size_t i = 0; i < family.layouts(); ++i) {
      const auto one = search_.bounds(family, i);
      if (!one) {
        bounds.result.rows.push_back(search_.refused(family, i, one.problems()));
      } else if (one->run.may_fit) {
        const bool is_planned = one->run.stages > 0;
        const bool may_count = !is_planned || may_meet(selection_, one->layout);
        bounds.candidates.indices.push_back(i);
        bounds.candidates.best.push_back(
            may_count ? goodness(one->run.throughput(), one->run.devices) : -kMost);
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
          candidates_[i] = std::move(bounds.candidates);
          possible_ += candidates_[i].left();
        });
  }

  /// The next few families, those with the best bounds first.
  std::vector<std::size_t> best_families() const {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const double most = candidates_[i].most();
      if (may_be_wanted(most)) order.emplace_back(-most, i);
    }
    const std::size_t count = std::min(kAtOnce, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end());
    std::vector<std::size_t> families;
    for (std::size_t i = 0; i < count; ++i) families.push_back(order[i].second);
    return families;
  }

  /// Predicts layouts of each family, up to that with its best bound. Once one does not fit, the
  /// larger ones are passed over.
  void predict(const std::vector<std::size_t>& families) {
    each(
        families.size(),
        [&](std::uint64_t i) {
          const Candidates& candidates = candidates_[families[i]];
          std::vector<SearchRow> rows;
          for (std::size_t k = candidates.next; k <= candidates.best_place(); ++k) {
            if (options_.is_stopped()) break;
            rows.push_back(
                search_.predict_layout(search_.families()[families[i]], candidates.indices[k]));
            if (!is_possible(rows.back())) break;
          }
          return rows;
        },
        [&](std::uint64_t i, std::vector<SearchRow> rows) { take(families[i], std::move(rows)); });
  }

  /// Whether larger micro-batches may fit, too.
  static bool is_possible(const SearchRow& row) { return !row.row.numbers || row.row.feasible(); }

  void take(std::size_t family, std::vector<SearchRow> rows) {
    Candidates& candidates = candidates_[family];
    FamilyResult& result = results_[family];
    for (SearchRow& row : rows) {
      ++candidates.next;
      if (row.row.feasible()) found_.push_back(row);
      const bool is_last = !is_possible(row);
      result.rows.push_back(std::move(row));
      if (is_last) pass_over(family);
    }
  }

  /// Passes over what comes behind the last layout that was predicted, as it did not fit. There may
  /// be layouts that cannot run.
  void pass_over(std::size_t family) {
    FamilyResult& result = results_[family];
    Candidates& candidates = candidates_[family];
    const std::uint64_t misfit = result.rows.back().row.point;
    result.passed_over +=
        std::erase_if(result.rows, [&](const SearchRow& row) { return row.row.point > misfit; });
    result.passed_over += candidates.left();
    candidates.next = candidates.indices.size();
  }

  /// Looks for the last of the wanted rows, and forgets those behind it. It does so after some
  /// rounds alone where many rows are wanted.
  void rank_found() {
    if (found_.size() < ranked_ + std::max<std::size_t>(1, wanted_ / 4)) return;
    const RankedLayouts ranked = rank(found_, selection_);
    std::vector<SearchRow> kept;
    for (const SearchRow* row : ranked.best) {
      if (kept.size() < wanted_) kept.push_back(*row);
    }
    found_ = std::move(kept);
    ranked_ = found_.size();
    if (found_.size() < wanted_) return;
    const SweepNumbers& last = *found_.back().row.numbers;
    last_wanted_ = goodness(last.throughput_samples_per_s.value_or(kMost), last.devices);
  }

  /// Of the layouts that may fit by their bounds, tells how many are decided.
  void tell() const {
    if (!options_.progress) return;
    std::uint64_t open = 0;
    for (const Candidates& candidates : candidates_) {
      for (std::size_t k = candidates.next; k < candidates.best.size(); ++k)
        open += may_be_wanted(candidates.best[k]) ? 1 : 0;
    }
    options_.progress(possible_ - open, possible_);
  }

  SearchRun result() {
    SearchRun run;
    run.wanted = search_.layouts();
    run.stopped =
        options_.is_stopped() && (bounded_ < search_.layouts() || !best_families().empty());
    for (std::size_t i = 0; i < results_.size(); ++i) {
      FamilyResult& family = results_[i];
      if (!run.stopped) family.slower = candidates_[i].left();
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
  std::vector<FamilyResult> results_;   ///< By family.
  std::vector<Candidates> candidates_;  ///< By family.
  std::uint64_t bounded_ = 0;           ///< Layouts of families whose bounds are known.
  std::uint64_t possible_ = 0;          ///< Layouts that may fit by their bounds.
  std::vector<SearchRow> found_;        ///< Feasible rows that may be wanted.
  std::size_t ranked_ = 0;              ///< The number of rows that were left by the last ranking.
  /// What the last of the wanted rows has of the objective; without so many rows, less than any.
  double last_wanted_ = -kMost;
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
