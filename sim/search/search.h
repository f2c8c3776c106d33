// Every way to lay a training out over the devices that there are, each predicted.
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
#include "sim/search/search_result.h"

namespace plumbline {

/// A scenario that leaves keys open, with all values that they may take. What of model sharing
/// (tensor, context and expert parallelism, of a model by its config.json), stages and copies,
/// schedule and chunks, micro-batch size and recomputation the scenario and the arguments give is
/// kept; the rest is searched. It may be used by several threads at once.
class Search {
 public:
  /// Arguments are `key=value` or `key=a,b,c`; the values of several keys are combined. `free`
  /// takes all keys of a layout out of the scenario first, and its mini-batch is kept.
  /// Errors: those of reading; no devices, no mini-batch size; no layout that the numbers divide.
  static Result<Search> open(const std::string& path, const std::vector<std::string>& arguments,
                             bool free = false);
  static Result<Search> parse(const std::shared_ptr<const Source>& source,
                              const std::vector<std::string>& arguments, bool free = false);

  const std::vector<LayoutFamily>& families() const { return families_; }
  std::uint64_t layouts() const { return facts_.layouts; }
  /// All that is told besides the layouts; the file is named as it was opened.
  const SearchFacts& facts() const { return facts_; }

  /// Predicts the layouts of a family, up to the first that does not fit: those with larger
  /// micro-batches hold at least as much. Once `stop` is set no further one.
  FamilyResult evaluate(const LayoutFamily& family, const std::atomic<bool>* stop = nullptr) const;

  /// The scenario of a layout, with its plan settled, under `more` overrides.
  Result<Scenario> scenario(const Layout& layout, const std::vector<std::string>& more = {}) const;

 private:
  /// One choice of the arguments' values.
  struct Combination {
    std::vector<std::string> overrides;
    YamlNode root;
    std::shared_ptr<const ModelSection> model;  ///< Null where layouts change it.
  };

  static Result<Search> make(YamlNode root, const std::vector<std::string>& arguments, bool free);
  void note_what_holds(const Scenario& one);
  /// The scenario under those of the first combination's overrides that are the same in all, or set
  /// what the file does not. `chosen` gets what stands there of the others.
  Result<Scenario> read_as_it_stands(const std::vector<std::vector<std::string>>& all,
                                     std::vector<std::string>& chosen) const;
  /// Notes what becomes of the scenario as it stands, and returns what `free` puts in the place of
  /// the scenario's layout. Errors: those of reading, where no mini-batch is known without it.
  Result<std::vector<std::string>> take_layout_out(
      const std::vector<std::vector<std::string>>& all);
  std::optional<Diagnostics> add_families(std::size_t combination);
  void note_kept_keys();
  std::string fingerprint(const std::vector<std::string>& arguments, bool free) const;
  Layout layout_of(const LayoutFamily& family, std::size_t index) const;
  /// As it is written, its plan not settled.
  Result<Scenario> read(const Layout& layout, const std::vector<std::string>& more) const;
  /// What is wrong with every layout, whatever values the open keys have. Where one can be read,
  /// nothing, and its notes are kept.
  Diagnostics read_any();
  SearchRow predict_layout(const LayoutFamily& family, std::size_t index) const;

  YamlNode root_;
  std::vector<Combination> combinations_;
  std::vector<LayoutFamily> families_;
  SearchFacts facts_;
};

/// The search that these facts are of, to ask it more; nothing where the scenario is not here as it
/// was searched.
std::optional<Search> open_again(const SearchFacts& facts);

}  // namespace plumbline
