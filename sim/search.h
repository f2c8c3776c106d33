// Every way to lay a training out over the devices that there are, each predicted.
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/layouts.h"
#include "sim/sweep.h"

namespace plumbline {

/// One way to lay a training out: what it sets beside the scenario, and what that comes to.
struct Layout {
  std::vector<std::string> overrides;  ///< `key=value`, those of the arguments first.
  std::size_t combination = 0;         ///< Of the arguments' values.
  std::int64_t tensor = 1;             ///< GPUs that share each layer,
  std::int64_t context = 1;            ///< of such groups, those that share each sample,
  std::int64_t expert = 1;             ///< and GPUs that share experts.
  std::int64_t batches = 1;            ///< Of a group, micro-batches that it trains at a time.
  std::int64_t stages = 1;             ///< Of the pipeline; several a device with chunks.
  std::int64_t chunks = 1;
  std::int64_t copies = 1;
  std::string schedule;
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;
  std::int64_t sequence = 0;  ///< Tokens of a sample; 0 = unknown.
  std::string made_again;     ///< "none", "selective", "layers 12/80".

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// A layout with what it comes to.
struct SearchRow {
  Layout layout;
  SweepRow row;  ///< Its point numbers the layouts of a search.
};

/// What became of a family.
struct FamilyResult {
  std::uint64_t family = 0;       ///< Its number in the search.
  std::vector<SearchRow> rows;    ///< Those that were predicted, or cannot run.
  std::uint64_t passed_over = 0;  ///< Larger micro-batches than one that does not fit.
};

/// The scenario of the command line as `simulate` would read it, that `free` takes the layout out
/// of.
struct StandingScenario {
  std::optional<SweepNumbers> numbers;  ///< Nothing where it cannot run.
  std::string reason;                   ///< Why not.
  /// What stands there of keys that the arguments give several values: that of the file, else the
  /// first one.
  std::vector<std::string> chosen;

  friend bool operator==(const StandingScenario&, const StandingScenario&) = default;
};

/// What a report tells of a search besides its layouts.
struct SearchFacts {
  std::string scenario;     ///< Its name.
  std::string file;         ///< As the user named it.
  std::string fingerprint;  ///< Equal for equal scenarios, files and arguments.
  std::vector<std::string> arguments;
  bool free = false;
  std::vector<std::string> open_keys;    ///< That are searched.
  std::vector<std::string> kept_keys;    ///< Of a layout: that the scenario or the arguments give.
  std::vector<std::string> varied_keys;  ///< Beside those of a layout: with several values.
  std::vector<std::string> notes;        ///< Of reading the scenario, whatever the layout.
  std::uint64_t families = 0;
  std::uint64_t layouts = 0;
  std::optional<StandingScenario> as_it_stands;  ///< Nothing without `free`.

  friend bool operator==(const SearchFacts&, const SearchFacts&) = default;
};

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

}  // namespace plumbline
