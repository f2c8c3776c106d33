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

/// The most times a length may be the model's own, so that tokens are not taken for such numbers.
constexpr double kMostTimes = 1000;
/// Drawn lengths are rounded up to this part of the model's length, unless the file says another.
constexpr double kUsualParts = 32;

LengthChoice read_drawn(SectionReader& section, const Mark& mark) {
  LengthChoice choice;
  choice.mark = mark;
  if (section.has("lengths")) {
    choice.list = section.reals("lengths");
    for (const char* const key : {"mean", "spread", "longest", "multiple", "seed"}) {
      if (!section.has(key)) continue;
      section.child(key);
      section.error(section.mark_of(key),
                    fmt::format("training.micro_batch_lengths.{} stands beside lengths", key),
                    "lengths are given one by one, or drawn: leave one of them out");
    }
  } else {
    section.require("mean", "the mean length; or lengths, one by one");
    if (const auto mean = section.real("mean")) choice.mean = mean->value;
    if (const auto spread = section.real("spread")) choice.spread = spread->value;
    if (const auto longest = section.real("longest")) choice.longest = longest->value;
    if (const auto multiple = section.real("multiple")) choice.multiple = multiple->value;
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

/// Log-normal lengths, cut and rounded up.
std::vector<double> drawn(const LengthChoice& choice, double of, std::int64_t count) {
  const double multiple = choice.multiple.value_or(of / kUsualParts);
  const double variance = std::log1p(choice.spread * choice.spread);
  std::vector<double> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double normal = random_normal(choice.seed, static_cast<std::uint64_t>(i));
    double length = choice.mean * std::exp(std::sqrt(variance) * normal - variance / 2);
    if (choice.longest) length = std::min(length, *choice.longest);
    if (multiple > 0) length = std::max(1.0, std::ceil(length / multiple)) * multiple;
    if (choice.longest) length = std::min(length, *choice.longest);
    lengths.push_back(length);
  }
  return lengths;
}

Diagnostic wrong(const LengthChoice& choice, std::string message, std::string help = "") {
  return input_error(choice.mark, "training.micro_batch_lengths " + std::move(message),
                     std::move(help));
}

}  // namespace

std::optional<LengthChoice> read_lengths(SectionReader& training) {
  const YamlNode* const node = training.child("micro_batch_lengths");
  if (node == nullptr) return std::nullopt;
  if (node->kind == YamlNode::Kind::map) {
    auto section = training.section("micro_batch_lengths");
    return section ? std::optional(read_drawn(*section, node->mark)) : std::nullopt;
  }
  if (node->kind == YamlNode::Kind::scalar) {
    training.error(node->mark,
                   fmt::format("training.micro_batch_lengths is '{}', which is no list of lengths",
                               clipped(node->text)),
                   "[1, 2, 1, 1], or {mean: 2048, spread: 0.5}, which draws them");
    return std::nullopt;
  }
  LengthChoice choice;
  choice.mark = node->mark;
  choice.list = training.reals("micro_batch_lengths");
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
  if (of) decided.of = static_cast<double>(*of);
  if (choice.of && of) {
    return input_error(choice.of->mark,
                       fmt::format("training.micro_batch_lengths.of stands beside the {} tokens of "
                                   "a sample of the model",
                                   *of),
                       "leave it out: it is for models that do not say their length");
  }
  if (choice.of) decided.of = choice.of->value;
  if (!(decided.of > 0)) return wrong(choice, "are of 0");
  std::vector<double> all =
      choice.list ? *choice.list : drawn(choice, decided.of, micro_batches * copies);
  const auto count = static_cast<std::int64_t>(all.size());
  if (count != micro_batches && count != micro_batches * copies) {
    return wrong(choice,
                 fmt::format("has {} length{}, and a mini-batch has {} micro-batch{}{}", count,
                             count == 1 ? "" : "s", micro_batches, micro_batches == 1 ? "" : "es",
                             copies > 1 ? fmt::format(" in each of {} copies", copies) : ""),
                 copies > 1 ? fmt::format("{} lengths for all copies alike, or {}, copy after copy",
                                          micro_batches, micro_batches * copies)
                            : "a length for each, or {mean: 2048, spread: 0.5}, which draws them");
  }
  const double most = choice.list ? *std::max_element(all.begin(), all.end()) : choice.mean;
  if (of && most * kMostTimes < decided.of) {
    return wrong(choice,
                 fmt::format("{} {:g}, and a sample of the model has {} tokens",
                             choice.list ? "has no length above" : "has the mean", most, *of),
                 "lengths are in tokens: 4096 and not 1");
  }
  for (std::int64_t copy = 0; copy < count / micro_batches; ++copy) {
    const auto first = all.begin() + copy * micro_batches;
    if (choice.ascending) std::sort(first, first + micro_batches);
    if (choice.descending) std::sort(first, first + micro_batches, std::greater<>());
  }
  for (const double length : all) {
    if (!(length > 0)) return wrong(choice, fmt::format("has the length {:g}", length));
    if (!of && !choice.of && length > kMostTimes) {
      return wrong(choice,
                   fmt::format("has the length {:g}, but the model does not say which length its "
                               "times are for",
                               length),
                   "{lengths: [...], of: 4096}; without `of`, 1 is the length of the model");
    }
  }
  decided.lengths = all;
  std::sort(decided.lengths.begin(), decided.lengths.end());
  decided.lengths.erase(std::unique(decided.lengths.begin(), decided.lengths.end()),
                        decided.lengths.end());
  if (decided.lengths.size() > kMaxLengths) {
    return wrong(
        choice,
        fmt::format("has {} different lengths, more than {}", decided.lengths.size(), kMaxLengths),
        "round them up, as padding does; drawn ones have `multiple` for that");
  }
  for (const double length : all) {
    const auto place = std::lower_bound(decided.lengths.begin(), decided.lengths.end(), length);
    decided.kind_of.push_back(static_cast<std::uint32_t>(place - decided.lengths.begin()));
  }
  return decided;
}

std::string note_on(const MicroBatchLengths& lengths, bool derived) {
  return fmt::format(
      "training.micro_batch_lengths: {} micro-batches of {} length{}, {:g} to {:g}, {:.4g} in the "
      "mean; {}",
      lengths.kind_of.size(), lengths.lengths.size(), lengths.lengths.size() == 1 ? "" : "s",
      lengths.lengths.front(), lengths.lengths.back(), lengths.mean(),
      derived ? fmt::format("layers are derived for each, and tables of stages show those of {:g}",
                            lengths.usual())
              : fmt::format("times, activations and what is sent grow in proportion from the "
                            "model's, which are of {:g}; tables of stages show the mean length",
                            lengths.of));
}

void scale_length(Model& model, double factor) {
  const auto longer = [&](Duration& time) {
    time = Duration{std::llround(factor * static_cast<double>(time.count()))};
  };
  const auto all_longer = [&](MeasuredTime& time) {
    longer(time.mean);
    for (std::optional<Duration>* const part : {&time.q1, &time.median, &time.q3}) {
      if (*part) longer(**part);
    }
  };
  const auto more = [&](Bytes& bytes) {
    bytes = {static_cast<std::int64_t>(std::ceil(factor * static_cast<double>(bytes.count)))};
  };
  const auto more_flops = [&](Flops& flops) {
    flops.count = std::llround(factor * static_cast<double>(flops.count));
  };
  Profile& profile = model.profile;
  if (profile.group.forward) more_flops(*profile.group.forward);
  for (Measurement& measurement : profile.measurements) {
    for (LayerCosts& layer : measurement.layers) {
      const bool is_sum =
          layer.split && layer.backward.mean == layer.split->input.mean + layer.split->weight.mean;
      all_longer(layer.forward);
      all_longer(layer.backward);
      longer(layer.skipped);
      if (layer.split) {
        all_longer(layer.split->input);
        all_longer(layer.split->weight);
      }
      if (is_sum) layer.backward.mean = layer.split->input.mean + layer.split->weight.mean;
      more(layer.output);
      more(layer.activation);
      Bytes of_tokens = layer.temporary - layer.temporary_of_weights;
      more(of_tokens);
      layer.temporary = layer.temporary_of_weights + of_tokens;
      if (layer.work) more_flops(layer.work->forward.flops);
      if (!layer.selective) continue;
      more(layer.selective->activation);
      all_longer(layer.selective->forward);
    }
  }
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
