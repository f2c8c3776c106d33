// Typed values from a YAML tree, with every error reported at its place.
//
// SPDX-License-Identifier: MIT
#include "base/section_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/quantity.h"

namespace plumbline {
namespace {

/// Reads a scalar. An error gives the path, the text, and the rule that it breaks.
template <class T>
std::optional<T> scalar(const YamlNode& node, const std::string& path, Diagnostics& problems,
                        Parsed<T> (*parse)(std::string_view), std::string_view wanted) {
  if (node.kind == YamlNode::Kind::null) {
    problems.push_back(input_error(node.mark, fmt::format("{} has no value", path)));
    return std::nullopt;
  }
  if (node.kind != YamlNode::Kind::scalar) {
    problems.push_back(input_error(
        node.mark, fmt::format("{} is a {}, where {} is wanted", path,
                               node.kind == YamlNode::Kind::map ? "map" : "list", wanted)));
    return std::nullopt;
  }
  Parsed<T> parsed = parse(node.text);
  if (!parsed.value) {
    problems.push_back(input_error(
        node.mark, fmt::format("{} is '{}', which {}", path, clipped(node.text), parsed.problem)));
  }
  return parsed.value;
}

Parsed<std::string> parse_text(std::string_view text) {
  if (text.size() > kLongestText) return {std::nullopt, "is longer than 10,000 bytes"};
  return {std::string(text), ""};
}

Parsed<bool> parse_boolean(std::string_view text) {
  if (text == "true") return {true, ""};
  if (text == "false") return {false, ""};
  return {std::nullopt, "is neither true nor false"};
}

/// A word in lower case, with `-` for `_`.
std::string plain(std::string_view word) {
  std::string text = lower_case(word);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

template <class T>
std::optional<Marked<T>> marked(const YamlNode* node, std::optional<T> value) {
  if (!node || !value) return std::nullopt;
  return Marked<T>{std::move(*value), node->mark};
}

}  // namespace

SectionReader::SectionReader(const YamlNode& node, std::string path, const SectionFormat& format,
                             Diagnostics& problems)
    : SectionReader(node, std::move(path), problems) {
  format_ = &format;
}

SectionReader::SectionReader(const YamlNode& node, std::string path, Diagnostics& problems)
    : node_(node.kind == YamlNode::Kind::map ? &node : nullptr),
      path_(std::move(path)),
      format_(nullptr),
      mark_(node.mark),
      problems_(&problems) {
  if (!node_) {
    const std::string what = node.kind == YamlNode::Kind::sequence ? "is a list"
                             : node.kind == YamlNode::Kind::scalar
                                 ? fmt::format("is '{}'", clipped(node.text))
                                 : "has no value";
    const bool is_glued = node.kind == YamlNode::Kind::scalar &&
                          node.text.find(':') != std::string::npos &&
                          node.text.find(": ") == std::string::npos;
    error(node.mark,
          fmt::format("{} {}, where a map of keys is wanted", path_.empty() ? "the file" : path_,
                      what),
          is_glued ? "a space stands behind the colon: `key: value`" : "");
  }
}

const YamlNode::Entry* SectionReader::find(std::string_view key) const {
  if (!node_) return nullptr;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const ValueFormat* SectionReader::format_of(std::string_view key, ValueFormat::Type type) const {
  if (!format_) return nullptr;
  const KeyFormat* known = format_->find(key);
  PLUMBLINE_CHECK(known, format_->name, key);
  const auto value = std::find_if(known->values.begin(), known->values.end(),
                                  [&](const ValueFormat& v) { return v.type == type; });
  PLUMBLINE_CHECK(value != known->values.end(), format_->name, key, static_cast<int>(type));
  return &*value;
}

const YamlNode* SectionReader::child(std::string_view key) {
  if (format_) PLUMBLINE_CHECK(format_->find(key), format_->name, key);
  known_.emplace_back(key);
  const YamlNode::Entry* entry = find(key);
  return entry ? &entry->value : nullptr;
}

std::optional<Marked<Duration>> SectionReader::duration(std::string_view key) {
  format_of(key, ValueFormat::Type::duration);
  const YamlNode* node = child(key);
  return marked(node, node ? read_duration(*node, path_of(key), *problems_) : std::nullopt);
}

std::optional<Marked<Bytes>> SectionReader::bytes(std::string_view key) {
  format_of(key, ValueFormat::Type::bytes);
  const YamlNode* node = child(key);
  return marked(node, node ? read_bytes(*node, path_of(key), *problems_) : std::nullopt);
}

std::optional<Marked<BytesPerSecond>> SectionReader::bandwidth(std::string_view key) {
  format_of(key, ValueFormat::Type::bandwidth);
  const YamlNode* node = child(key);
  return marked(node, node ? scalar(*node, path_of(key), *problems_, &parse_bandwidth,
                                    "a bandwidth such as 10 Gbit/s")
                           : std::nullopt);
}

std::optional<Marked<FlopsPerSecond>> SectionReader::flops_per_second(std::string_view key) {
  format_of(key, ValueFormat::Type::flops_per_second);
  const YamlNode* node = child(key);
  return marked(node, node ? scalar(*node, path_of(key), *problems_, &parse_flops_per_second,
                                    "a rate such as 989 TFLOP/s")
                           : std::nullopt);
}

std::optional<Marked<std::int64_t>> SectionReader::tokens(std::string_view key) {
  format_of(key, ValueFormat::Type::tokens);
  const YamlNode* node = child(key);
  return marked(node, node ? scalar(*node, path_of(key), *problems_, &parse_tokens,
                                    "a number of tokens such as 15T")
                           : std::nullopt);
}

std::optional<Marked<Price>> SectionReader::price(std::string_view key) {
  format_of(key, ValueFormat::Type::price);
  const YamlNode* node = child(key);
  return marked(node, node ? scalar(*node, path_of(key), *problems_, &parse_price,
                                    "a price such as 2.5 USD/h")
                           : std::nullopt);
}

std::optional<Marked<Power>> SectionReader::power(std::string_view key) {
  format_of(key, ValueFormat::Type::power);
  const YamlNode* node = child(key);
  return marked(
      node, node ? scalar(*node, path_of(key), *problems_, &parse_power, "a power such as 700 W")
                 : std::nullopt);
}

std::optional<Marked<LongTime>> SectionReader::long_time(std::string_view key) {
  format_of(key, ValueFormat::Type::long_time);
  const YamlNode* node = child(key);
  return marked(node, node ? scalar(*node, path_of(key), *problems_, &parse_long_time,
                                    "a time such as 50000 h")
                           : std::nullopt);
}

std::optional<Marked<std::int64_t>> SectionReader::count(std::string_view key) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::count);
  PLUMBLINE_CHECK(format, key);
  return count_within(key, format->min, format->max);
}

std::optional<Marked<std::int64_t>> SectionReader::count(std::string_view key, std::int64_t min,
                                                         std::int64_t max) {
  PLUMBLINE_CHECK(!format_, key);
  return count_within(key, min, max);
}

std::optional<Marked<std::int64_t>> SectionReader::count_within(std::string_view key,
                                                                std::int64_t min,
                                                                std::int64_t max) {
  const YamlNode* node = child(key);
  return marked(node, node ? read_count(*node, path_of(key), min, max, *problems_) : std::nullopt);
}

std::optional<Marked<double>> SectionReader::real(std::string_view key) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::real);
  PLUMBLINE_CHECK(format, key);
  const YamlNode* node = child(key);
  return marked(node,
                node ? read_real(*node, path_of(key), format->max_real, *problems_) : std::nullopt);
}

std::optional<Marked<bool>> SectionReader::boolean(std::string_view key) {
  format_of(key, ValueFormat::Type::boolean);
  const YamlNode* node = child(key);
  return marked(node, node
                          ? scalar(*node, path_of(key), *problems_, &parse_boolean, "true or false")
                          : std::nullopt);
}

std::optional<Marked<std::string>> SectionReader::text(std::string_view key) {
  const KeyFormat* known = format_ ? format_->find(key) : nullptr;
  const bool is_word = known && known->values.front().type == ValueFormat::Type::word;
  if (!is_word) format_of(key, ValueFormat::Type::text);
  return word(key);
}

std::optional<Marked<std::string>> SectionReader::word(std::string_view key) {
  const YamlNode* node = child(key);
  return marked(node, node ? read_text(*node, path_of(key), *problems_) : std::nullopt);
}

std::optional<Marked<std::string>> SectionReader::file(std::string_view key) {
  format_of(key, ValueFormat::Type::file);
  auto name = word(key);
  if (!name) return std::nullopt;
  std::filesystem::path path(name->value);
  if (path.is_relative()) path = std::filesystem::path(name->mark.source->directory) / path;
  name->value = path.lexically_normal().string();
  return name;
}

void SectionReader::add_file_problems(std::string_view key, const Mark& mark,
                                      const Diagnostics& problems) {
  for (Diagnostic problem : problems) {
    if (problem.mark.line == 0 && problem.fault == Fault::file) {
      problem.message = fmt::format("{} is '{}', which {}", path_of(key),
                                    clipped(problem.mark.source->name), problem.message);
      problem.mark = mark;
    }
    problems_->push_back(std::move(problem));
  }
}

std::optional<Marked<std::string>> SectionReader::choice(std::string_view key,
                                                         std::string_view noun,
                                                         std::string_view more_help,
                                                         const Abbreviations& short_for) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::word);
  PLUMBLINE_CHECK(format, key);
  return word_of(key, format->words, noun, more_help, short_for);
}

std::optional<Marked<std::string>> SectionReader::choice_of(std::string_view key,
                                                            const std::vector<std::string>& offered,
                                                            std::string_view noun,
                                                            std::string_view more_help) {
  PLUMBLINE_CHECK(!format_, key);
  return word_of(key, offered, noun, more_help, {});
}

std::optional<Marked<std::string>> SectionReader::word_of(std::string_view key,
                                                          const std::vector<std::string>& offered,
                                                          std::string_view noun,
                                                          std::string_view more_help,
                                                          const Abbreviations& short_for) {
  auto given = word(key);
  if (!given) return std::nullopt;
  const auto same = [&](const std::string& one) { return plain(one) == plain(given->value); };
  auto found = std::find(offered.begin(), offered.end(), given->value);
  if (found == offered.end()) found = std::find_if(offered.begin(), offered.end(), same);
  if (found != offered.end()) {
    given->value = *found;
  } else {
    std::string help = did_you_mean(given->value, offered, short_for);
    if (help.empty()) help = fmt::format("one of {}", fmt::join(offered, ", "));
    if (!more_help.empty()) help += fmt::format(" ({})", more_help);
    error(given->mark,
          fmt::format("{} is '{}', which is no {}", path_of(key), clipped(given->value), noun),
          help);
    return std::nullopt;
  }
  return given;
}

std::optional<std::vector<std::int64_t>> SectionReader::counts(std::string_view key) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::list);
  PLUMBLINE_CHECK(format, key);
  const auto item =
      std::find_if(format->items.begin(), format->items.end(),
                   [](const ValueFormat& v) { return v.type == ValueFormat::Type::count; });
  PLUMBLINE_CHECK(item != format->items.end(), key);
  return counts_within(key, item->min, item->max);
}

std::optional<std::vector<std::int64_t>> SectionReader::counts(std::string_view key,
                                                               std::int64_t min, std::int64_t max) {
  PLUMBLINE_CHECK(!format_, key);
  return counts_within(key, min, max);
}

std::optional<std::vector<std::int64_t>> SectionReader::counts_within(std::string_view key,
                                                                      std::int64_t min,
                                                                      std::int64_t max) {
  const std::vector<YamlNode>* nodes = list(key);
  if (!nodes) return std::nullopt;
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const auto value =
        read_count((*nodes)[i], fmt::format("{}[{}]", path_of(key), i), min, max, *problems_);
    if (value) values.push_back(*value);
  }
  if (values.size() != nodes->size()) return std::nullopt;
  return values;
}

bool SectionReader::is_word(std::string_view key, std::string_view word) const {
  const YamlNode::Entry* entry = find(key);
  return entry && entry->value.kind == YamlNode::Kind::scalar && entry->value.text == word;
}

bool SectionReader::check_word(std::string_view key, const std::vector<std::string>& words) {
  const YamlNode::Entry* entry = find(key);
  if (!entry || entry->value.kind != YamlNode::Kind::scalar) return false;
  error(entry->value.mark,
        fmt::format("{} is '{}', where a map of keys or {}'{}' is wanted", path_of(key),
                    clipped(entry->value.text), words.size() > 1 ? "one of " : "",
                    fmt::join(words, "', '")),
        did_you_mean(entry->value.text, words));
  return true;
}

std::optional<std::vector<double>> SectionReader::reals(std::string_view key) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::list);
  PLUMBLINE_CHECK(format, key);
  const auto item = std::find_if(format->items.begin(), format->items.end(),
                                 [](const auto& v) { return v.type == ValueFormat::Type::real; });
  PLUMBLINE_CHECK(item != format->items.end(), key);
  const std::vector<YamlNode>* nodes = list(key);
  if (!nodes) return std::nullopt;
  std::vector<double> values;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const auto value =
        read_real((*nodes)[i], fmt::format("{}[{}]", path_of(key), i), item->max_real, *problems_);
    if (value) values.push_back(*value);
  }
  if (values.size() != nodes->size()) return std::nullopt;
  return values;
}

std::optional<SectionReader> SectionReader::section(std::string_view key) {
  const ValueFormat* format = format_of(key, ValueFormat::Type::section);
  const YamlNode* node = child(key);
  if (!node) return std::nullopt;
  SectionReader reader(*node, path_of(key), *problems_);
  if (format) reader.format_ = &format->section();
  reader.mark_ = find(key)->mark;
  return reader;
}

const std::vector<YamlNode>* SectionReader::list(std::string_view key) {
  format_of(key, ValueFormat::Type::list);
  const YamlNode* node = child(key);
  if (!node) return nullptr;
  if (node->kind != YamlNode::Kind::sequence) {
    const std::string what = node->kind == YamlNode::Kind::map ? "is a map"
                             : node->kind == YamlNode::Kind::scalar
                                 ? fmt::format("is '{}'", clipped(node->text))
                                 : "has no value";
    error(node->mark, fmt::format("{} {}, where a list is wanted", path_of(key), what));
    return nullptr;
  }
  return &node->items;
}

void SectionReader::require(std::string_view key, std::string_view why) {
  if (!node_ || has(key)) return;
  error(mark_, fmt::format("{} is missing", path_of(key)), std::string(why));
}

std::string_view SectionReader::excluder(std::string_view key) const {
  if (!format_) return {};
  for (const std::vector<std::string_view>& keys : format_->excludes) {
    if (keys.front() != key) continue;
    const auto other =
        std::find_if(keys.begin() + 1, keys.end(), [&](std::string_view k) { return has(k); });
    if (other != keys.end()) return *other;
  }
  return {};
}

/// The help for an unknown key: a key of another section that it may mean, else `near`.
std::string SectionReader::meant_elsewhere(const std::string& key, std::string near) const {
  if (!format_ || !format_->elsewhere) return near;
  const auto& words = format_->elsewhere();
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.first == key; });
  if (found != words.end()) return fmt::format("did you mean '{}'?", found->second);
  return near;
}

void SectionReader::finish() {
  if (!node_) return;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    if (const std::string_view other = excluder(entry.key); !other.empty()) {
      error(entry.mark,
            fmt::format("{} does not stand beside {}", path_of(entry.key), path_of(other)),
            "leave one of the two out");
      continue;
    }
    std::string help = meant_elsewhere(entry.key, did_you_mean(entry.key, known_));
    if (help.empty()) {
      std::vector<std::string> sorted = known_;
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      help = fmt::format("known here: {}", fmt::join(sorted, ", "));
    }
    error(entry.mark, fmt::format("unknown key '{}'", clipped(path_of(entry.key))), help);
  }
}

std::vector<std::string> SectionReader::unread() const {
  std::vector<std::string> keys;
  if (!node_) return keys;
  for (const YamlNode::Entry& entry : node_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) == known_.end())
      keys.push_back(entry.key);
  }
  return keys;
}

bool SectionReader::holds(std::string_view key, std::string_view inner) const {
  const YamlNode::Entry* entry = find(key);
  return entry && std::any_of(entry->value.entries.begin(), entry->value.entries.end(),
                              [&](const YamlNode::Entry& e) { return e.key == inner; });
}

Mark SectionReader::mark_of(std::string_view key) const {
  const YamlNode::Entry* entry = find(key);
  return entry ? entry->mark : mark_;
}

std::string SectionReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void SectionReader::error(const Mark& mark, std::string message, std::string help) {
  problems_->push_back(input_error(mark, std::move(message), std::move(help)));
}

std::optional<Duration> read_duration(const YamlNode& node, const std::string& path,
                                      Diagnostics& problems) {
  return scalar(node, path, problems, &parse_duration, "a time such as 1.25 ms");
}

std::optional<Bytes> read_bytes(const YamlNode& node, const std::string& path,
                                Diagnostics& problems) {
  return scalar(node, path, problems, &parse_bytes, "a size such as 16 GiB");
}

std::optional<Flops> read_flops(const YamlNode& node, const std::string& path,
                                Diagnostics& problems) {
  return scalar(node, path, problems, &parse_flops, "a count such as 1.2 TFLOP");
}

std::optional<std::int64_t> read_count(const YamlNode& node, const std::string& path,
                                       std::int64_t min, std::int64_t max, Diagnostics& problems) {
  auto value = scalar(node, path, problems, &parse_count, "a whole number");
  if (!value && node.kind == YamlNode::Kind::scalar && node.text.find(',') != std::string::npos)
    problems.back().help = "one value here; plumbline sweep takes several, KEY=2,4,8";
  if (value && (*value < min || *value > max)) {
    problems.push_back(input_error(
        node.mark, min == max ? fmt::format("{} is {}, but only {} is read here", path, *value, min)
                              : fmt::format("{} is {}, which is not between {} and {}", path,
                                            *value, min, max)));
    return std::nullopt;
  }
  return value;
}

std::optional<double> read_real(const YamlNode& node, const std::string& path, double max,
                                Diagnostics& problems) {
  auto value = scalar(node, path, problems, &parse_real, "a number");
  if (value && *value > max) {
    problems.push_back(
        input_error(node.mark, fmt::format("{} is {}, which is above {}", path, *value, max)));
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> read_text(const YamlNode& node, const std::string& path,
                                     Diagnostics& problems) {
  return scalar(node, path, problems, &parse_text, "a word");
}

}  // namespace plumbline
