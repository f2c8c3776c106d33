// The keys of a config.json: sizes, flags and lists, with what counts where they are absent.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/section_reader.h"

namespace plumbline {

/// The largest dimension of a model. Products of two stay far below the end of 64 bits.
inline constexpr std::int64_t kLargestDimension = 100'000'000;

/// Takes out the keys of a map that are null: they read as absent. Returns their places.
std::map<std::string, Mark, std::less<>> take_nulls(YamlNode& map);

/// Reads one map of a config.json. A key that is null counts as absent. Errors go to the
/// diagnostics; a read that failed returns a value with which reading may go on.
class ConfigFile {
 public:
  /// `map` and `problems` must outlive it.
  ConfigFile(YamlNode& map, std::string path, Diagnostics& problems);

  SectionReader& section() { return section_; }
  const std::map<std::string, Mark, std::less<>>& nulls() const { return nulls_; }
  bool is_ok() const { return problems_->empty(); }
  bool has(std::string_view key) const { return section_.has(key); }

  /// A size of at least 1 that must be there.
  std::int64_t size(std::string_view key, std::int64_t max = kLargestDimension);
  /// A size, or what counts where it is absent.
  std::int64_t size_or(std::string_view key, std::int64_t otherwise);
  /// A count, which may be 0.
  std::int64_t count_or(std::string_view key, std::int64_t otherwise);
  bool flag(std::string_view key, bool otherwise);
  double real_or(std::string_view key, double otherwise);
  /// A word, "" where it is absent.
  std::string word(std::string_view key);
  /// A list of words, or of numbers; empty where it is absent or no list of these.
  std::vector<std::string> words(std::string_view key);
  std::vector<std::int64_t> numbers(std::string_view key);
  /// The map under a key, without nulls; nothing where it is absent.
  std::optional<ConfigFile> map(std::string_view key);
  /// The first of two names of a key that is there, else the first.
  std::string_view either(std::string_view key, std::string_view old) const;
  /// Marks keys as read that change no cost here.
  void pass_over(const std::vector<std::string_view>& keys);
  /// Adds an error at a key.
  void refuse(std::string_view key, std::string message, std::string help = "");
  /// Adds an error where a list has other than `wanted` entries.
  template <class Entry>
  void check_length(std::string_view key, const std::vector<Entry>& list, std::int64_t wanted) {
    if (!list.empty() && static_cast<std::int64_t>(list.size()) < wanted)
      report_length(key, static_cast<std::int64_t>(list.size()), wanted);
  }

 private:
  void report_length(std::string_view key, std::int64_t has, std::int64_t wanted);

  YamlNode* node_;
  std::string path_;
  Diagnostics* problems_;
  std::map<std::string, Mark, std::less<>> nulls_;
  SectionReader section_;
};

}  // namespace plumbline
