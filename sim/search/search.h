// A search: every layout of a training over the given devices, each predicted.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"
#include "sim/planning/run_bounds.h"
#include "sim/scenario/bare_model.h"
#include "sim/search/search_result.h"

namespace plumbline {

/// What is known of a layout before it is predicted.
struct LayoutBounds {
  RunBounds run;
  Layout layout;  ///< With all sizes, but no recomputation; as written if run.stages is 0.
};

/// A scenario that leaves keys open, with all values that they may take. The keys are model sharing
/// (tensor, context and expert parallelism, for a model given by its config.json), stages and
/// copies, schedule and chunks, micro-batch size and recomputation. Keys that the scenario or the
/// arguments give are kept; the others are searched. Several threads may use it at once.
class Search {
 public:
  /// Arguments are `key=value` or `key=a,b,c`; the values of several keys are combined. `free`
  /// first removes all layout keys from the scenario, but keeps its mini-batch. Errors: those of
  /// reading; no devices, no mini-batch size; no layout whose numbers divide the sizes.
  static Result<Search> open(const std::string& path, const std::vector<std::string>& arguments,
                             bool free = false);
  static Result<Search> parse(const std::shared_ptr<const Source>& source,
                              const std::vector<std::string>& arguments, bool free = false);

  const std::vector<LayoutFamily>& families() const { return families_; }
  std::uint64_t layouts() const { return facts_.layouts; }
  /// All facts to report besides the layouts; the file has the name with which it was opened.
  const SearchFacts& facts() const { return facts_; }

  /// The rates of the first layout that can be read; none of them has others but by varied keys.
  const CostRates& rates() const { return rates_; }

  /// Predicts the layouts of a family, up to the first one that does not fit: layouts with larger
  /// micro-batches hold at least as much. Once `stop` is set, predicts no further layout.
  FamilyResult evaluate(const LayoutFamily& family, const std::atomic<bool>* stop = nullptr) const;

  /// Predicts one layout of a family.
  SearchRow predict_layout(const LayoutFamily& family, std::size_t index) const;
  /// The bounds of that prediction. Errors: why the layout cannot run.
  Result<LayoutBounds> bounds(const LayoutFamily& family, std::size_t index) const;
  /// The row of a layout that cannot run.
  SearchRow refused(const LayoutFamily& family, std::size_t index,
                    const Diagnostics& problems) const;

  /// The scenario of a layout as written, under `more` overrides.
  Result<Scenario> read(const Layout& layout, const std::vector<std::string>& more = {}) const;
  /// The same with its plan resolved.
  Result<Scenario> scenario(const Layout& layout, const std::vector<std::string>& more = {}) const;

 private:
  /// One combination of the arguments' values.
  struct Combination {
    std::vector<std::string> overrides;
    YamlNode root;
    std::shared_ptr<const ModelSection> model;  ///< Null if layouts change the model.
    /// The layers of its config.json under the options of layouts; null without one.
    std::shared_ptr<DerivedModels> derived;
  };

  static Result<Search> make(OpenedScenario opened, const std::vector<std::string>& arguments,
                             bool free);
  void note_what_holds(const Scenario& one);
  /// The scenario under some of the first combination's overrides: those that are the same in all
  /// combinations, and those that set a key that the file does not give. `chosen` gets the values
  /// of the other keys.
  Result<Scenario> read_as_it_stands(const std::vector<std::vector<std::string>>& all,
                                     std::vector<std::string>& chosen) const;
  /// Records the numbers of the scenario as it stands, and returns the overrides that `free` puts
  /// in place of the scenario's layout. Errors: those of reading, if the mini-batch is not known
  /// otherwise.
  Result<std::vector<std::string>> take_layout_out(
      const std::vector<std::vector<std::string>>& all);
  std::optional<Diagnostics> add_families(std::size_t combination);
  void note_kept_keys();
  std::string fingerprint(const std::vector<std::string>& arguments, bool free) const;
  Layout layout_of(const LayoutFamily& family, std::size_t index) const;
  /// The errors that every layout has, for any values of the open keys. If one layout can be read,
  /// there are none, and its notes are kept.
  Diagnostics read_any();

  YamlNode root_;
  std::vector<Combination> combinations_;
  std::vector<LayoutFamily> families_;
  SearchFacts facts_;
  CostRates rates_;
};

/// The search that these facts are of, to ask it more; nothing where the scenario is not here as it
/// was searched.
std::optional<Search> open_again(const SearchFacts& facts);

}  // namespace plumbline
