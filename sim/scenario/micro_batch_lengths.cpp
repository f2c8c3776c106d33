// Reads lengths, draws them, sorts them.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/micro_batch_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.h"
#include "base/section_reader.h"
#include "sim/scenario/scenario.h"

namespace plumbline {
namespace {

/// The most times that a length may be longer or shorter than the model's. Numbers of tokens are
/// not taken for such numbers, nor the other way round.
constexpr double kMostTimes = 1000;
/// Drawn lengths are rounded to this part of the model's length, unless the file says another.
constexpr double kUsualParts = 32;

/// The list under `key` with the place of each number.
std::optional<std::vector<Marked<double>>> read_list(SectionReader& section, const char* key) {
  const auto numbers = section.reals(key);
  if (!numbers) return std::nullopt;
  const YamlNode* const node = section.child(key);
  std::vector<Marked<double>> list;
  for (std::size_t i = 0; i < numbers->size(); ++i)
    list.push_back({(*numbers)[i], node->items[i].mark});
  return list;
}

LengthChoice read_map(SectionReader& section, const Mark& mark) {
  LengthChoice choice;
  choice.mark = mark;
  if (section.has("lengths")) {
    choice.mark = section.child("lengths")->mark;
    choice.list = read_list(section, "lengths");
    choice.list_path = section.path_of("lengths");
    for (const char* const key : {"mean", "spread", "longest", "multiple", "seed"}) {
      if (!section.has(key)) continue;
      section.child(key);
      section.error(section.mark_of(key),
                    fmt::format("{} stands beside lengths", section.path_of(key)),
                    "lengths are given one by one, or drawn: leave one of them out");
    }
  } else {
    section.require("mean", "the mean length; or lengths, one by one");
    if (const auto mean = section.real("mean")) choice.mean = *mean;
    if (const auto spread = section.real("spread")) choice.spread = spread->value;
    choice.longest = section.real("longest");
    choice.multiple = section.real("multiple");
    if (const auto seed = section.count("seed"))
      choice.seed = static_cast<std::uint64_t>(seed->value);
  }
  choice.of = section.real("of");
  if (const auto sort = section.choice("sort", "order of lengths")) {
    choice.ascending = sort->value == "ascending";
    choice.descending = sort->value == "descending";
  }
  section.finish();
  return choice;
}

/// Log-normal lengths, scaled to their mean, cut and rounded.
std::vector<double> drawn(const LengthChoice& choice, double of, bool in_tokens,
                          std::int64_t count) {
  const double variance = std::log1p(choice.spread * choice.spread);
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double normal = random_normal(choice.seed, static_cast<std::uint64_t>(i));
    lengths.push_back(std::exp(std::sqrt(variance) * normal));
  }
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const double scale = choice.mean.value * static_cast<double>(count) / sum;
  double step = choice.multiple ? choice.multiple->value : of / kUsualParts;
  if (in_tokens) step = std::max(1.0, std::floor(step));
  for (double& length : lengths) {
    length *= scale;
    if (choice.longest) length = std::min(length, choice.longest->value);
    if (step == 0) continue;
    const double steps = choice.multiple ? std::ceil(length / step) : std::round(length / step);
    length = std::max(1.0, steps) * step;
  }
  return lengths;
}

/// Errors in the numbers of drawn lengths.
std::optional<Diagnostic> check_drawn(const LengthChoice& choice, bool in_tokens) {
  const auto wrong = [](const Marked<double>& number, const char* key, const std::string& why) {
    return input_error(number.mark, fmt::format("training.micro_batch_lengths.{} is {:g}{}", key,
                                                number.value, why));
  };
  if (!(choice.mean.value > 0)) return wrong(choice.mean, "mean", "");
  if (choice.longest && choice.longest->value < choice.mean.value)
    return wrong(*choice.longest, "longest",
                 fmt::format(", below the mean of {:g}", choice.mean.value));
  const auto& multiple = choice.multiple;
  if (multiple && in_tokens && multiple->value != std::floor(multiple->value))
    return wrong(*multiple, "multiple", ", and lengths are whole tokens");
  return std::nullopt;
}

/// Errors: a length that no micro-batch has.
std::optional<Diagnostic> check_length(const LengthChoice& choice, const Marked<double>& length,
                                       const std::string& what, double of, bool in_tokens) {
  const auto wrong = [&](const std::string& why, std::string help = "") {
    return input_error(length.mark, fmt::format("{} is {:g}{}", what, length.value, why),
                       std::move(help));
  };
  if (!(length.value > 0)) return wrong("");
  const bool too_long = length.value > kMostTimes * of;
  if (!too_long && length.value * kMostTimes >= of) return std::nullopt;
  if (in_tokens) {
    return wrong(fmt::format(", and a sample of the model has {:g} tokens", of),
                 too_long ? "" : "lengths are in tokens: 4096 and not 1");
  }
  if (choice.of)
    return wrong(fmt::format(", {} than a thousand times `of`, which is {:g}",
                             too_long ? "more" : "less", of));
  return wrong(", but the model does not say which length its times are for",
               choice.list
                   ? "{lengths: [...], of: 4096}; without `of`, 1 is the length of the model"
                   : "{mean: 2048, spread: 0.5, of: 4096}; without `of`, 1 is the length "
                     "of the model");
}

}  // namespace

std::optional<LengthChoice> read_lengths(SectionReader& training) {
  const YamlNode* const node = training.child("micro_batch_lengths");
  if (node == nullptr) return std::nullopt;
  if (node->kind == YamlNode::Kind::map) {
    auto section = training.section("micro_batch_lengths");
    return section ? std::optional(read_map(*section, node->mark)) : std::nullopt;
  }
  if (node->kind == YamlNode::Kind::scalar) {
    training.error(node->mark,
                   fmt::format("training.micro_batch_lengths is '{}', which is no list of lengths",
                               clipped(node->text)),
                   "[1, 2, 1, 1], or {mean: 1, spread: 0.5}, which draws them");
    return std::nullopt;
  }
  LengthChoice choice;
  choice.mark = node->mark;
  choice.list = read_list(training, "micro_batch_lengths");
  choice.list_path = "training.micro_batch_lengths";
  return choice.list ? std::optional(choice) : std::nullopt;
}

double MicroBatchLengths::mean() const {
  const double sum =
      std::accumulate(kind_of.begin(), kind_of.end(), 0.0,
                      [&](double before, std::uint32_t kind) { return before + lengths[kind]; });
  return sum / static_cast<double>(kind_of.size());
}

double MicroBatchLengths::usual() const {
  const auto found = std::lower_bound(lengths.begin(), lengths.end(), mean());
  return found == lengths.end() ? lengths.back() : *found;
}

Result<MicroBatchLengths> decide_lengths(const LengthChoice& choice, std::optional<std::int64_t> of,
                                         std::int64_t micro_batches, std::int64_t copies) {
  MicroBatchLengths decided;
  decided.mark = choice.mark;
  const bool in_tokens = of.has_value();
  if (of) decided.of = static_cast<double>(*of);
  if (choice.of && of) {
    return input_error(choice.of->mark,
                       fmt::format("training.micro_batch_lengths.of stands beside the {} tokens of "
                                   "a sample of the model",
                                   *of),
                       "leave it out: it is for models that do not say their length");
  }
  if (choice.of) decided.of = choice.of->value;
  if (!(decided.of > 0)) {
    return input_error(choice.of->mark, "training.micro_batch_lengths.of is 0",
                       "the length that the model's times are for, such as 4096");
  }
  std::vector<double> all;
  if (choice.list) {
    for (std::size_t i = 0; i < choice.list->size(); ++i) {
      const Marked<double>& length = (*choice.list)[i];
      const std::string what = fmt::format("{}[{}]", choice.list_path, i);
      if (auto wrong = check_length(choice, length, what, decided.of, in_tokens)) return *wrong;
      if (in_tokens && length.value != std::floor(length.value)) {
        return input_error(length.mark, fmt::format("{} is {:g}, and lengths are whole tokens",
                                                    what, length.value));
      }
      all.push_back(length.value);
    }
  } else {
    if (auto wrong = check_drawn(choice, in_tokens)) return *wrong;
    const std::string what = "training.micro_batch_lengths.mean";
    if (auto wrong = check_length(choice, choice.mean, what, decided.of, in_tokens)) return *wrong;
    all = drawn(choice, decided.of, in_tokens, micro_batches * copies);
    const Marked<double> longest{*std::max_element(all.begin(), all.end()), choice.mark};
    if (auto wrong = check_length(choice, longest, "the longest of training.micro_batch_lengths",
                                  decided.of, in_tokens))
      return *wrong;
  }
  const auto count = static_cast<std::int64_t>(all.size());
  if (count != micro_batches && count != micro_batches * copies) {
    return input_error(
        choice.mark,
        fmt::format("{} has {} length{}, and a mini-batch has {} micro-batch{}{}", choice.list_path,
                    count, count == 1 ? "" : "s", micro_batches, micro_batches == 1 ? "" : "es",
                    copies > 1 ? fmt::format(" in each of {} copies", copies) : ""),
        copies > 1 ? fmt::format("{} lengths for all copies alike, or {}, copy after copy",
                                 micro_batches, micro_batches * copies)
                   : fmt::format("a length for each, or {{mean: {:g}, spread: 0.5}}, which draws "
                                 "them",
                                 decided.of));
  }
  for (std::int64_t copy = 0; copy < count / micro_batches; ++copy) {
    const auto first = all.begin() + copy * micro_batches;
    if (choice.ascending) std::sort(first, first + micro_batches);
    if (choice.descending) std::sort(first, first + micro_batches, std::greater<>());
  }
  decided.lengths = all;
  std::sort(decided.lengths.begin(), decided.lengths.end());
  decided.lengths.erase(std::unique(decided.lengths.begin(), decided.lengths.end()),
                        decided.lengths.end());
  if (decided.lengths.size() > kMaxLengths) {
    return input_error(choice.mark,
                       fmt::format("training.micro_batch_lengths has {} different lengths, more "
                                   "than {}",
                                   decided.lengths.size(), kMaxLengths),
                       "round them up, as padding does; drawn ones have `multiple` for that");
  }
  for (const double length : all) {
    const auto place = std::lower_bound(decided.lengths.begin(), decided.lengths.end(), length);
    decided.kind_of.push_back(static_cast<std::uint32_t>(place - decided.lengths.begin()));
  }
  return decided;
}

std::string note_on(const MicroBatchLengths& lengths, bool derived) {
  const std::string grow =
      derived ? "layers are derived for each"
              : fmt::format(
                    "times, activations and what is sent grow in proportion from the "
                    "model's, which are of {:g}",
                    lengths.of);
  const std::size_t count = lengths.kind_of.size();
  const std::string what =
      fmt::format("training.micro_batch_lengths: {} micro-batch{}", count, count == 1 ? "" : "es");
  if (lengths.lengths.size() == 1)
    return fmt::format("{} of length {:g}; {}", what, lengths.lengths.front(), grow);
  return fmt::format(
      "{} of {} lengths, {:g} to {:g}, {:.4g} in the mean; {}; tables of stages show the mean of "
      "all",
      what, lengths.lengths.size(), lengths.lengths.front(), lengths.lengths.back(), lengths.mean(),
      grow);
}

Scenario with_length(const Scenario& scenario, std::size_t kind) {
  const Scenario& of_length = *scenario.lengths->scenarios[kind];
  Scenario one = scenario;
  one.lengths = nullptr;
  one.model = of_length.model;
  for (std::size_t i = 0; i < one.unlike.size(); ++i)
    one.unlike[i].model = of_length.unlike[i].model;
  return one;
}

}  // namespace plumbline
