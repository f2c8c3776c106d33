// What a training's time costs: the tokens to train on, the price and the power of a GPU, and what
// failures lose.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "base/quantity.h"
#include "sim/scenario/goodput_section.h"

namespace plumbline {

class SectionReader;
struct DevicePreset;

/// The figures that turn a throughput into days, money and energy. Each may be unknown.
struct CostRates {
  std::optional<std::int64_t> tokens;      ///< Of the whole training: training.tokens.
  std::optional<std::int64_t> per_sample;  ///< Tokens of a sample.
  std::optional<Price> price;              ///< Of one GPU: cluster.price.
  std::optional<Power> power;              ///< Of one GPU, on average: cluster.power.
  double pue = 1;  ///< Energy of the building over that of the GPUs: cluster.pue.
  std::optional<GoodputSection> goodput;  ///< Nothing = it never fails, and saves nothing.

  friend bool operator==(const CostRates&, const CostRates&) = default;
};

/// Reads price, power and pue of the cluster section. Both first may be maps by preset, of which
/// the entry of `device` is taken. Adds all errors to `problems`.
void read_cluster_rates(SectionReader& cluster, const DevicePreset* device, CostRates& rates,
                        Diagnostics& problems);

/// The tokens of a training, as the training section gives them.
struct TokenKeys {
  std::optional<Marked<std::int64_t>> tokens;    ///< training.tokens.
  std::optional<Marked<std::int64_t>> sequence;  ///< training.sequence.
};

/// Reads tokens and sequence of the training section.
TokenKeys read_token_keys(SectionReader& training);

/// Works the keys into `rates`. `sequence` is that of the model, if it has one. Errors: tokens of a
/// training whose samples have no known number of tokens; training.sequence of a model that says
/// its own.
std::optional<Diagnostic> resolve_tokens(const TokenKeys& keys,
                                         std::optional<std::int64_t> sequence, CostRates& rates);

}  // namespace plumbline
