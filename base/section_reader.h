// The strict reader of a YAML map: reports all missing, wrong and unknown keys at once.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/file_format.h"
#include "base/quantity.h"
#include "base/units.h"
#include "base/yaml.h"

namespace plumbline {

/// The most bytes of a text value.
inline constexpr std::size_t kLongestText = 10'000;

/// Reads the keys of one map strictly. Missing keys, wrong types, values out of range, and keys
/// that nobody reads are added to the diagnostics. Reading goes on, so that all errors are reported
/// at once. Each read returns nothing where the key is absent, and where an error was added. The
/// section's format says which values a key may hold. To read a key that is not in the format, or
/// as another type, is a bug. Files of other programs have no format here: their ranges and words
/// are arguments of each read.
class SectionReader {
 public:
  /// `path` is the dotted name of the section ("" = the document); `problems` must outlive the
  /// reader. A node that is no map is an error, and then every key reads as absent.
  SectionReader(const YamlNode& node, std::string path, const SectionFormat& format,
                Diagnostics& problems);
  /// A section of another program's file.
  SectionReader(const YamlNode& node, std::string path, Diagnostics& problems);

  /// The value under `key`, or nullptr. The key counts as read from then on.
  const YamlNode* child(std::string_view key);

  std::optional<Marked<Duration>> duration(std::string_view key);
  std::optional<Marked<Bytes>> bytes(std::string_view key);
  std::optional<Marked<BytesPerSecond>> bandwidth(std::string_view key);
  std::optional<Marked<FlopsPerSecond>> flops_per_second(std::string_view key);
  std::optional<Marked<std::int64_t>> tokens(std::string_view key);
  std::optional<Marked<Price>> price(std::string_view key);
  std::optional<Marked<Power>> power(std::string_view key);
  std::optional<Marked<LongTime>> long_time(std::string_view key);
  std::optional<Marked<std::int64_t>> count(std::string_view key);
  /// Requires: the section has no format.
  std::optional<Marked<std::int64_t>> count(std::string_view key, std::int64_t min,
                                            std::int64_t max);
  std::optional<Marked<double>> real(std::string_view key);
  std::optional<Marked<bool>> boolean(std::string_view key);
  /// A text, or a word that the caller looks up itself.
  std::optional<Marked<std::string>> text(std::string_view key);
  /// A path, made relative to the folder of the text that names it.
  std::optional<Marked<std::string>> file(std::string_view key);
  /// Adds the errors in the file that `key` names. Errors of the file itself are reported at
  /// `mark`, where it is named.
  void add_file_problems(std::string_view key, const Mark& mark, const Diagnostics& problems);
  /// `noun` ends the message: "schedule.name is 'x', which is no schedule".
  std::optional<Marked<std::string>> choice(std::string_view key, std::string_view noun,
                                            std::string_view more_help = "",
                                            const Abbreviations& short_for = {});
  /// Requires: the section has no format.
  std::optional<Marked<std::string>> choice_of(std::string_view key,
                                               const std::vector<std::string>& offered,
                                               std::string_view noun,
                                               std::string_view more_help = "");
  /// Whether the value of `key` is this word.
  bool is_word(std::string_view key, std::string_view word) const;
  /// Adds an error where `key` has a scalar, but a map or one of `words` is wanted. Returns whether
  /// it did.
  bool check_word(std::string_view key, const std::vector<std::string>& words);
  /// A list of whole numbers.
  std::optional<std::vector<std::int64_t>> counts(std::string_view key);
  /// Requires: the section has no format.
  std::optional<std::vector<std::int64_t>> counts(std::string_view key, std::int64_t min,
                                                  std::int64_t max);
  /// A list of numbers.
  std::optional<std::vector<double>> reals(std::string_view key);
  std::optional<SectionReader> section(std::string_view key);
  /// The elements of a list; adds an error where the value is not a list.
  const std::vector<YamlNode>* list(std::string_view key);

  /// Adds an error where `key` is absent.
  void require(std::string_view key, std::string_view why = "");
  /// Adds an error for every key that nobody has read. Call it once, after the last read.
  void finish();
  /// The keys that nobody has read, in the order of the file.
  std::vector<std::string> unread() const;

  bool is_map() const { return node_ != nullptr; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Whether `key` is a map that has `inner`.
  bool holds(std::string_view key, std::string_view inner) const;
  /// The place of the key, or of the section where the key is absent.
  Mark mark_of(std::string_view key) const;
  Mark mark() const { return mark_; }
  /// The dotted name of `key`: "schedule.name".
  std::string path_of(std::string_view key) const;
  void error(const Mark& mark, std::string message, std::string help = "");

 private:
  const YamlNode::Entry* find(std::string_view key) const;
  /// A key that is there and that excludes `key`; "" where there is none.
  std::string_view excluder(std::string_view key) const;
  /// The format of `key` as a value of `type`; nullptr where there is no format.
  const ValueFormat* format_of(std::string_view key, ValueFormat::Type type) const;
  std::optional<Marked<std::int64_t>> count_within(std::string_view key, std::int64_t min,
                                                   std::int64_t max);
  std::optional<std::vector<std::int64_t>> counts_within(std::string_view key, std::int64_t min,
                                                         std::int64_t max);
  std::optional<Marked<std::string>> word_of(std::string_view key,
                                             const std::vector<std::string>& offered,
                                             std::string_view noun, std::string_view more_help,
                                             const Abbreviations& short_for);
  std::optional<Marked<std::string>> word(std::string_view key);

  const YamlNode* node_;  ///< nullptr where the section is not a map.
  std::string path_;
  const SectionFormat* format_;  ///< nullptr for a file of another program.
  std::string meant_elsewhere(const std::string& key, std::string near) const;

  Mark mark_;
  Diagnostics* problems_;
  std::vector<std::string> known_;
};

/// The scalar readers for elements of lists: `path` names the element in messages.
std::optional<Duration> read_duration(const YamlNode& node, const std::string& path,
                                      Diagnostics& problems);
std::optional<Bytes> read_bytes(const YamlNode& node, const std::string& path,
                                Diagnostics& problems);
std::optional<Flops> read_flops(const YamlNode& node, const std::string& path,
                                Diagnostics& problems);
std::optional<std::int64_t> read_count(const YamlNode& node, const std::string& path,
                                       std::int64_t min, std::int64_t max, Diagnostics& problems);
std::optional<double> read_real(const YamlNode& node, const std::string& path, double max,
                                Diagnostics& problems);
std::optional<std::string> read_text(const YamlNode& node, const std::string& path,
                                     Diagnostics& problems);

}  // namespace plumbline
