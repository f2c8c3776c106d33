// A launch as the configuration of a launcher.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "sim/launch/launch_of.h"

namespace plumbline {

/// A configuration, and what it cannot say. A format with comments has these in front.
struct EmittedLaunch {
  std::string text;
  std::vector<std::string> notes;
};

/// Those that can be written, by the name for --emit.
std::vector<std::string> launcher_names();

/// Writes the launch for `launcher`, one of launcher_names(). Errors: a schedule or a sharing that
/// it does not have; a config.json that cannot be read.
Result<EmittedLaunch> emitted_launch(std::string_view launcher, const ScenarioLaunch& made);

/// nanotron's YAML. The model's sizes are there for families that nanotron has.
Result<EmittedLaunch> nanotron_launch(const ScenarioLaunch& made);
/// DeepSpeed's JSON. It knows no model, no length of samples and no GPUs: notes say them.
Result<EmittedLaunch> deepspeed_launch(const ScenarioLaunch& made);
/// torchtitan's TOML (until February 2026; the same keys on a command line since).
Result<EmittedLaunch> torchtitan_launch(const ScenarioLaunch& made);
/// YAML of Megatron-Bridge (NeMo), beside a recipe that has the model.
Result<EmittedLaunch> nemo_launch(const ScenarioLaunch& made);

/// An error: `launcher` has no such schedule, with those that it has.
Diagnostic no_such_schedule(std::string_view launcher, const Launch& launch, std::string has);
/// Adds notes on what the formats of `launcher` have no key for, and other programs' defaults
/// decide: dropout, fused losses, plain attention, overlapped pairs, modules for further tokens.
void tell_unsaid(const Launch& launch, std::string_view launcher, std::vector<std::string>& notes);

/// The number of Megatron's optimizer instances, if copies share in groups. Adds a note where
/// experts have instances of their own.
std::optional<std::int64_t> instances_of(const Launch& launch, std::vector<std::string>& notes);

/// Adds a note for each key of the sharing that the launcher has none for; `has_degree`: it has one
/// for copies that share in groups.
void tell_unsaid_sharing(const Launch& launch, std::string_view launcher, bool has_degree,
                         std::vector<std::string>& notes);
/// "# note", a line each.
std::string comments_of(const std::vector<std::string>& notes);
/// The copies of the pipeline, and the micro-batches that each trains before an update.
std::int64_t copies_of(const Launch& launch);
std::int64_t rounds_of(const Launch& launch);
/// The updates until all tokens are trained on; nothing where their number is not known.
std::optional<std::int64_t> steps_of(const Launch& launch);

}  // namespace plumbline
