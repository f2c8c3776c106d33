// GPUs are divided as parallel_state.py of Megatron Core does it: tensor, context, pipeline, and
// copies of the rest.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/megatron_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/layout_string.h"

namespace plumbline {
namespace {

/// "t*4", "t", "".
std::string blocks_text(std::int64_t count) {
  return count == 0 ? "" : count == 1 ? "t" : fmt::format("t*{}", count);
}

/// A layout with these numbers of blocks.
std::string layout_of(const std::vector<std::int64_t>& blocks) {
  std::string text;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0) text += '|';
    if (i == 0) text += 'E';
    text += blocks_text(blocks[i]);
    if (i + 1 == blocks.size()) text += 'L';
  }
  return text;
}

void read_gpus(LaunchArguments& arguments, const LaunchGiven& given, ReadLaunch& read) {
  Launch& launch = read.launch;
  const std::string_view per_node =
      arguments.either({"nproc-per-node", "gpus-per-node", "ntasks-per-node", "devices"});
  const std::string_view nodes = arguments.either({"nnodes", "num-nodes", "nodes"});
  const auto in_server = arguments.count(per_node, 1, 1'000'000);
  const auto servers = arguments.count(nodes, 1, 1'000'000);
  const auto world = arguments.count("world-size", 1, 1'000'000);
  launch.gpus_per_server = in_server.value_or(8);
  if (given.gpus) {
    launch.gpus = *given.gpus;
  } else if (world) {
    launch.gpus = *world;
  } else if (in_server || servers) {
    launch.gpus = launch.gpus_per_server * servers.value_or(1);
    if (!servers) read.notes.emplace_back("one server is assumed: --gpus says how many GPUs");
  } else {
    arguments.error("nnodes", "the number of GPUs is not given", "--gpus 64");
  }
  if (!in_server && launch.gpus > launch.gpus_per_server)
    read.notes.emplace_back("servers of 8 GPUs are assumed");
  launch.gpus_per_server = std::min(launch.gpus_per_server, launch.gpus);
}

/// The numbers of blocks where the first or the last stage has its own; empty on errors.
std::vector<std::int64_t> uneven_blocks(LaunchArguments& arguments, std::int64_t blocks,
                                        std::int64_t stages, std::optional<std::int64_t> first,
                                        std::optional<std::int64_t> last) {
  const std::int64_t others = stages - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t left = blocks - first.value_or(0) - last.value_or(0);
  if (others < 0 || left < 0 || (others == 0 ? left != 0 : left % others != 0)) {
    arguments.error(
        first ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers",
        fmt::format("{} blocks are left for {} stages, which do not divide them", left, others));
    return {};
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(stages), others > 0 ? left / others : 0);
  if (first) all.front() = *first;
  if (last) all.back() = *last;
  return all;
}

}  // namespace

void read_megatron_parallelism(LaunchArguments& arguments, const LaunchGiven& given,
                               ReadLaunch& read) {
  Launch& launch = read.launch;
  read_gpus(arguments, given, read);
  const auto size = [&](std::string_view name) {
    return arguments.count(name, 1, 65'536).value_or(1);
  };
  launch.tensor = size(arguments.either({"tensor-model-parallel-size", "model-parallel-size"}));
  launch.pipeline = size("pipeline-model-parallel-size");
  launch.context = size("context-parallel-size");
  launch.expert = size("expert-model-parallel-size");
  const auto parts = arguments.count("expert-tensor-parallel-size", 1, 65'536);
  launch.expert_tensor = launch.expert > 1 ? parts.value_or(launch.tensor) : 1;
  if (launch.expert == 1 && parts && *parts != launch.tensor)
    read.not_modelled.emplace_back(arguments.told("expert-tensor-parallel-size"));
  launch.sequence_parallel = arguments.flag("sequence-parallel") && launch.tensor > 1;
  const std::string exchange = arguments.word("cp-comm-type");
  launch.context_by_heads = launch.context > 1 && exchange == "a2a";
  if (launch.context > 1 && exchange == "a2a+p2p")
    read.notes.emplace_back("the exchange of context parallelism is taken to be that of keys");
  const std::int64_t rest = launch.tensor * launch.context * launch.pipeline;
  if (launch.gpus % rest != 0 || launch.gpus % (launch.group() * launch.pipeline) != 0) {
    arguments.error(
        "tensor-model-parallel-size",
        fmt::format("{} GPUs are not divided by {} (tensor {} x context {} x pipeline {}, experts "
                    "{})",
                    launch.gpus, std::max(rest, launch.group() * launch.pipeline), launch.tensor,
                    launch.context, launch.pipeline, launch.expert),
        "--gpus says how many there are");
  }
}

void read_megatron_stages(LaunchArguments& arguments, std::int64_t blocks, ReadLaunch& read) {
  Launch& launch = read.launch;
  const std::string layout = arguments.word("pipeline-model-parallel-layout");
  const std::string_view chunk_name = arguments.either(
      {"num-virtual-stages-per-pipeline-rank", "virtual-pipeline-model-parallel-size"});
  const auto chunks = arguments.count(chunk_name, 1, 1024);
  const auto of_chunk = arguments.count("num-layers-per-virtual-pipeline-stage", 1, 100'000);
  const auto first = arguments.count("decoder-first-pipeline-num-layers", 0, 100'000);
  const auto last = arguments.count("decoder-last-pipeline-num-layers", 0, 100'000);
  const bool with_embedding = arguments.flag("account-for-embedding-in-pipeline-split");
  const bool with_loss = arguments.flag("account-for-loss-in-pipeline-split");
  const auto group = arguments.count("microbatch-group-size-per-virtual-pipeline-stage", 1);
  if (launch.pipeline > 1 && group && *group != launch.pipeline)
    read.not_modelled.push_back(arguments.told("microbatch-group-size-per-virtual-pipeline-stage"));
  launch.chunks = chunks.value_or(1);
  if (launch.pipeline == 1) {
    launch.chunks = 1;
    return;
  }
  if (of_chunk && blocks > 0) {
    if (blocks % (launch.pipeline * *of_chunk) != 0) {
      arguments.error("num-layers-per-virtual-pipeline-stage",
                      fmt::format("{} blocks are not divided by {} stages of {}", blocks,
                                  launch.pipeline, *of_chunk));
      return;
    }
    launch.chunks = blocks / launch.pipeline / *of_chunk;
  } else if (of_chunk) {
    arguments.error("num-layers-per-virtual-pipeline-stage",
                    "the number of blocks is not known, so that of chunks is not",
                    "--num-layers beside it, or --num-virtual-stages-per-pipeline-rank");
  }
  if (!layout.empty()) {
    const auto stages =
        parse_layout_string(layout, arguments.mark("pipeline-model-parallel-layout"));
    if (!stages)
      return arguments.error("pipeline-model-parallel-layout", stages.problems().front().message);
    launch.layout = layout;
    launch.chunks = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(stages->stages.size()) / launch.pipeline);
  } else if ((first || last || with_embedding || with_loss) && blocks == 0) {
    arguments.error("decoder-first-pipeline-num-layers",
                    "the number of blocks is not known, so the stages are not",
                    "--num-layers beside it");
  } else if (first || last) {
    launch.layout =
        layout_of(uneven_blocks(arguments, blocks, launch.pipeline * launch.chunks, first, last));
  } else if (with_embedding || with_loss) {
    const std::int64_t stages = launch.pipeline * launch.chunks;
    const std::int64_t all = blocks + (with_embedding ? 1 : 0) + (with_loss ? 1 : 0);
    if (all % stages != 0)
      return arguments.error("account-for-embedding-in-pipeline-split",
                             fmt::format("{} layers are not divided by {} stages", all, stages));
    std::vector<std::int64_t> of_stages(static_cast<std::size_t>(stages), all / stages);
    of_stages.front() -= with_embedding ? 1 : 0;
    of_stages.back() -= with_loss ? 1 : 0;
    launch.layout = layout_of(of_stages);
  }
  launch.schedule = launch.chunks > 1 ? "interleaved-1f1b" : "1f1b";
}

void read_megatron_batches(LaunchArguments& arguments, ReadLaunch& read) {
  Launch& launch = read.launch;
  const std::string_view sequence =
      arguments.either({"seq-length", "encoder-seq-length", "sequence-length", "max-length"});
  launch.sequence = arguments.count(sequence, 1, 100'000'000).value_or(0);
  if (launch.sequence == 0 && !arguments.has(sequence))
    arguments.error(sequence, "--seq-length is missing");
  launch.micro_batch_size =
      arguments.count_or(arguments.either({"micro-batch-size", "batch-size"}), 1);
  const std::int64_t samples_at_once =
      launch.gpus / (launch.tensor * launch.context * launch.pipeline) * launch.micro_batch_size;
  const auto size = arguments.count("global-batch-size", 1, 1'000'000'000);
  launch.mini_batch_size = size.value_or(samples_at_once);
  if (!size)
    read.notes.emplace_back("--global-batch-size is not given: one micro-batch on each copy");
  if (samples_at_once > 0 && launch.mini_batch_size % samples_at_once != 0)
    arguments.error("global-batch-size",
                    fmt::format("{} is {}, which micro-batches of {} on {} copies do not divide",
                                arguments.told("global-batch-size"), launch.mini_batch_size,
                                launch.micro_batch_size, samples_at_once / launch.micro_batch_size),
                    "--gpus says how many GPUs there are");
  for (const char* growing : {"rampup-batch-size", "step-batch-size-schedule"}) {
    if (arguments.has(growing)) read.not_modelled.push_back(arguments.told(growing));
    arguments.pass_over(growing);
  }
  const auto samples = arguments.count("train-samples", 1);
  const auto steps = arguments.count(arguments.either({"train-iters", "max-steps"}), 1);
  constexpr std::int64_t max = 1'000'000'000'000'000;
  const std::int64_t all = samples ? *samples
                           : steps && *steps < max / launch.mini_batch_size
                               ? *steps * launch.mini_batch_size
                               : 0;
  if (all > 0 && launch.sequence > 0 && all < max / launch.sequence)
    launch.tokens = all * launch.sequence;
}

}  // namespace plumbline
