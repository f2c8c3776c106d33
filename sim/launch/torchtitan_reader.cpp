// Names and defaults of keys as torchtitan's config/job_config.py has them.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/torchtitan_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/quantity.h"
#include "models/architectures/huggingface.h"
#include "sim/launch/torchtitan_names.h"

namespace plumbline {
namespace {

/// Keys that change neither time nor memory here, by the beginning of their paths.
constexpr std::string_view kIdleKeys[] = {"job.",
                                          "profiling.",
                                          "metrics.",
                                          "checkpoint.",
                                          "comm.",
                                          "debug.",
                                          "experimental.custom",
                                          "lr_scheduler.",
                                          "validation.",
                                          "model.hf_assets_path",
                                          "model.tokenizer_path",
                                          "model.print_after_conversion",
                                          "optimizer.lr",
                                          "optimizer.beta",
                                          "optimizer.eps",
                                          "optimizer.weight_decay",
                                          "optimizer.implementation",
                                          "training.dataset",
                                          "training.dataloader",
                                          "training.max_norm",
                                          "training.gc_",
                                          "training.mixed_precision_reduce",
                                          "training.seed",
                                          "training.deterministic",
                                          "compile.components",
                                          "compile.backend",
                                          "activation_checkpoint.preserve_rng_state",
                                          "activation_checkpoint.early_stop",
                                          "activation_checkpoint.determinism_check",
                                          "parallelism.context_parallel_load_balancer"};

/// The largest degree of one kind: the product of four is a number.
constexpr std::int64_t kMaxDegree = 10'000;

/// One schedule of one stage on each device.
bool has_one_stage(const std::string& schedule) {
  return schedule == "1f1b" || schedule == "gpipe";
}

class TorchtitanReader {
 public:
  TorchtitanReader(LaunchArguments& arguments, const LaunchGiven& given)
      : arguments_(arguments), given_(given) {}

  ReadLaunch read() {
    if (!read_model()) return std::move(read_);
    if (!read_parallelism()) return std::move(read_);
    read_batches();
    read_stages();
    read_sharding();
    read_recomputation();
    for (const LaunchArgument* left : arguments_.unread()) {
      const bool is_idle =
          std::any_of(std::begin(kIdleKeys), std::end(kIdleKeys),
                      [&](std::string_view start) { return left->told.starts_with(start); });
      const bool is_off = left->values.size() == 1 && left->values.front() == "false";
      (is_idle || is_off ? read_.no_effect : read_.not_modelled).push_back(left->told);
    }
    return std::move(read_);
  }

 private:
  Launch& launch() { return read_.launch; }
  std::int64_t degree(const std::string& name) {
    return arguments_.count("parallelism." + name, 1, kMaxDegree).value_or(1);
  }
  /// One of `words`, of which the first stands for an absent one. Another one is an error.
  std::string one_of_words(std::string_view path, std::initializer_list<std::string_view> words) {
    std::string word = word_or(path, *words.begin());
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      arguments_.error(path, fmt::format("{} is '{}'", path, clipped(word)),
                       fmt::format("one of {}", fmt::join(words, ", ")));
      word = *words.begin();
    }
    return word;
  }
  std::string word_or(std::string_view path, std::string_view otherwise) {
    const std::string word = arguments_.word(path);
    return word.empty() ? std::string(otherwise) : word;
  }

  /// Returns whether the model is known.
  bool read_model() {
    launch().config = given_.config;
    const std::string name = word_or("model.name", "llama3");
    const std::string flavor = word_or("model.flavor", "debugmodel");
    if (given_.config.empty()) {
      const TorchtitanModel* model = find_torchtitan_model(name, flavor);
      if (!model) {
        arguments_.error("model.flavor",
                         fmt::format("the sizes of '{}' of '{}' are not known here", flavor, name),
                         "--model config.json gives them");
        return false;
      }
      launch().shape = config_of(*model);
    }
    const auto shape = given_.config.empty() ? parse_huggingface(std::make_shared<const Source>(
                                                   Source{"config.json", launch().shape, ""}))
                                             : read_huggingface(given_.config);
    if (shape) blocks_ = shape->blocks;  // the scenario's reader says what is wrong with it
    launch().sequence = arguments_.count("training.seq_len", 1, 1'000'000'000).value_or(2048);
    const std::string type =
        one_of_words("training.mixed_precision_param", {"bfloat16", "float32"});
    launch().dtype = type == "float32" ? "fp32" : "bf16";
    for (const std::string& converter : arguments_.words("model.converters")) {
      const bool is_fp8 = converter.find("float8") != std::string::npos;
      if (is_fp8) {
        launch().fp8 = true;
      } else {
        read_.not_modelled.push_back("model.converters " + converter);
      }
    }
    launch().attention_dropout = 0;
    launch().hidden_dropout = 0;
    launch().stack = "torch-compile";
    if (!arguments_.flag("compile.enable"))
      read_.notes.emplace_back(
          "nothing is compiled there, and no stack here is slower than torch-compile");
    const std::string optimizer = lower_case(word_or("optimizer.name", "adamw"));
    if (optimizer.find("adam") == std::string::npos)
      read_.not_modelled.emplace_back("optimizer.name");
    return true;
  }

  /// Returns whether the degrees fit the GPUs.
  bool read_parallelism() {
    launch().tensor = degree("tensor_parallel_degree");
    launch().sequence_parallel = launch().tensor > 1;
    launch().context = degree("context_parallel_degree");
    launch().pipeline = degree("pipeline_parallel_degree");
    launch().expert = degree("expert_parallel_degree");
    launch().expert_tensor = degree("expert_tensor_parallel_degree");
    if (word_or("parallelism.expert_parallel_comm_backend", "standard") == "deepep")
      launch().dispatch_per_server = true;
    if (one_of_words("parallelism.context_parallel_rotate_method", {"allgather", "alltoall"}) !=
        "allgather")
      read_.not_modelled.emplace_back("parallelism.context_parallel_rotate_method");
    copies_ = degree("data_parallel_replicate_degree");
    const std::int64_t sharers = launch().tensor * launch().context * launch().pipeline;
    const std::string_view shards_key = "parallelism.data_parallel_shard_degree";
    shards_ = arguments_.count(shards_key, -1, kMaxDegree).value_or(-1);
    const std::string_view wrong_key =
        copies_ > 1 ? "parallelism.data_parallel_replicate_degree" : shards_key;
    if (shards_ == 0) {
      arguments_.error(shards_key, "no copies: data_parallel_shard_degree is 0");
      return false;
    }
    if (shards_ < 1) {
      if (!given_.gpus) {
        arguments_.error(shards_key, "the number of GPUs is not given", "--gpus 64");
        return false;
      }
      if (*given_.gpus % (sharers * copies_) != 0) {
        arguments_.error(wrong_key,
                         fmt::format("{} GPUs are not divided by {}, which the other degrees make",
                                     *given_.gpus, sharers * copies_));
        return false;
      }
      shards_ = *given_.gpus / (sharers * copies_);
    }
    launch().gpus = shards_ * copies_ * sharers;
    launch().gpus_per_server = std::min<std::int64_t>(8, launch().gpus);
    if (!given_.gpus || *given_.gpus == launch().gpus) return true;
    arguments_.error(shards_key, fmt::format("the degrees make {} GPUs, but --gpus is {}",
                                             launch().gpus, *given_.gpus));
    return false;
  }

  void read_batches() {
    constexpr std::int64_t most = 100'000'000;
    const std::int64_t local = arguments_.count("training.local_batch_size", 1, most).value_or(8);
    const std::int64_t all = arguments_.count("training.global_batch_size", -1, most).value_or(-1);
    const std::int64_t of_once = local * shards_ * copies_;
    launch().micro_batch_size = local;
    if (launch().pipeline > 1)
      launch().micro_batch_size =
          arguments_.count("parallelism.pipeline_parallel_microbatch_size", 1, most).value_or(1);
    if (local % launch().micro_batch_size != 0)
      arguments_.error("training.local_batch_size",
                       fmt::format("training.local_batch_size is {}, which micro-batches of {} do "
                                   "not divide",
                                   local, launch().micro_batch_size));
    launch().mini_batch_size = all < 1 ? of_once : all;
    if (launch().mini_batch_size % of_once != 0)
      arguments_.error("training.global_batch_size",
                       fmt::format("training.global_batch_size is {}, which {} samples on each of "
                                   "{} copies do not divide",
                                   launch().mini_batch_size, local, shards_ * copies_));
    if (launch().pipeline > 1 && launch().mini_batch_size > of_once)
      read_.notes.push_back(
          fmt::format("{} runs of the pipeline before each update are taken as one",
                      launch().mini_batch_size / of_once));
    constexpr std::int64_t max = 1'000'000'000'000;
    const auto steps = arguments_.count("training.steps", 1, max);
    const std::int64_t of_step = launch().mini_batch_size * launch().sequence;
    if (steps && of_step < max && *steps < 1'000'000'000'000'000 / of_step)
      launch().tokens = *steps * of_step;
  }

  void read_stages() {
    const std::string name = word_or("parallelism.pipeline_parallel_schedule", "1F1B");
    const std::int64_t first =
        arguments_.count("parallelism.pipeline_parallel_first_stage_less_layers", 0, kMaxDegree)
            .value_or(1);
    const std::int64_t last =
        arguments_.count("parallelism.pipeline_parallel_last_stage_less_layers", 0, kMaxDegree)
            .value_or(1);
    const auto of_stage =
        arguments_.count("parallelism.pipeline_parallel_layers_per_stage", 1, kMaxDegree);
    if (launch().pipeline == 1) return;
    const auto schedule = schedule_of_torchtitan(name);
    if (!schedule) {
      arguments_.error("parallelism.pipeline_parallel_schedule",
                       fmt::format("the schedule '{}' is not known here", clipped(name)),
                       "plumbline list schedules; schedule.file takes the CSV of one");
      return;
    }
    launch().schedule = *schedule;
    launch().chunks = has_one_stage(*schedule) ? 1 : 2;
    if (of_stage && blocks_ > 0) {
      const std::int64_t stages = (blocks_ + first + last + *of_stage - 1) / *of_stage;
      if (stages % launch().pipeline != 0)
        arguments_.error("parallelism.pipeline_parallel_layers_per_stage",
                         fmt::format("{} stages of {} layers are no multiple of {} devices", stages,
                                     *of_stage, launch().pipeline));
      launch().chunks = std::max<std::int64_t>(1, stages / launch().pipeline);
      if (has_one_stage(*schedule) != (launch().chunks == 1))
        arguments_.error(
            "parallelism.pipeline_parallel_layers_per_stage",
            fmt::format("{} stages on each of {} devices, but {} takes {}", launch().chunks,
                        launch().pipeline, name, has_one_stage(*schedule) ? "one" : "two or more"));
    }
    launch().overlapped_pairs =
        *schedule == "dualpipev" && launch().expert > 1 &&
        arguments_.flag_or("parallelism.pipeline_parallel_expert_parallel_overlap", true);
    if (read_parts()) return;
    launch().layout = torchtitan_layout(blocks_, launch().pipeline * launch().chunks, first, last);
    if (launch().layout.empty()) launch().balanced = true;
  }

  /// Reads the parts of the model where they are given one by one. Returns whether they are.
  bool read_parts() {
    const std::string key = "parallelism.module_fqns_per_model_part";
    std::vector<std::string> stages;
    std::int64_t layers = 0;
    for (std::size_t part = 0;; ++part) {
      const std::string path = fmt::format("{}.{}", key, part);
      if (!arguments_.has(path)) break;
      std::string& stage = stages.emplace_back();
      for (const std::string& module : arguments_.words(path)) {
        if (module == "tok_embeddings") stage.insert(0, "E");
        if (module == "output") stage += 'L';
        if (!module.starts_with("layers.")) continue;
        if (module != fmt::format("layers.{}", layers++))
          arguments_.error(path, fmt::format("'{}' stands where layers.{} is next", clipped(module),
                                             layers - 1));
        stage += 't';
      }
    }
    if (stages.empty()) return false;
    const auto parts = static_cast<std::int64_t>(stages.size());
    if (parts % launch().pipeline != 0) {
      arguments_.error(key + ".0", fmt::format("{} parts are no multiple of {} devices", parts,
                                               launch().pipeline));
      return true;
    }
    if (blocks_ > 0 && layers != blocks_)
      arguments_.error(key + ".0",
                       fmt::format("the parts have {} layers, and the model {}", layers, blocks_));
    launch().chunks = parts / launch().pipeline;
    for (const std::string& stage : stages)
      launch().layout += (launch().layout.empty() ? "" : "|") + stage;
    return true;
  }

  /// FSDP2. Beside a pipeline, torch.distributed.pipelining keeps what a backward has gathered, and
  /// reduces gradients when a stage's last backward has ended (stage.py,
  /// backward_maybe_with_nosync).
  void set_sharing(const std::string& reshard) {
    Sharing& sharing = launch().sharing;
    const bool is_pipelined = launch().pipeline > 1;
    sharing.state = Sharded::weights;
    sharing.frees_after_forward = reshard == "always" || (reshard == "default" && !is_pipelined);
    sharing.frees_after_backward = !is_pipelined;
    const std::string& name = launch().schedule;
    if (is_pipelined && sharing.frees_after_forward &&
        (name == "interleaved-zb" || name == "zb-v" || name == "dualpipev")) {
      sharing.frees_after_forward = false;
      read_.notes.emplace_back(
          "weights that forwards free are not simulated where backwards are split: they stay");
    }
    if (is_pipelined) sharing.reduction = Reduction::behind_last_backward;
    if (copies_ == 1) return;
    if (shards_ > 1) {
      sharing.degree = static_cast<std::uint32_t>(shards_);
    } else {  // shared over context parallelism alone
      read_.not_modelled.emplace_back("parallelism.data_parallel_replicate_degree");
    }
  }

  /// Parameters are kept in training.dtype and sharded, computed with in mixed_precision_param.
  void read_sharding() {
    const std::string reshard =
        one_of_words("parallelism.fsdp_reshard_after_forward", {"default", "always", "never"});
    const bool is_sharded = shards_ * launch().context > 1;
    if (is_sharded) set_sharing(reshard);
    const bool is_alone = launch().tensor * launch().pipeline == 1;
    if (!is_sharded && !is_alone && launch().dtype != "fp32") {
      launch().dtype = "fp32";
      read_.notes.emplace_back("without FSDP nothing computes in mixed precision: fp32");
    }
    if (!is_sharded && copies_ > 1) {
      if (!is_alone)
        arguments_.error("parallelism.data_parallel_replicate_degree",
                         "torchtitan has no copies beside tensor or pipeline parallelism that "
                         "share nothing");
      launch().bucket = Bytes{std::int64_t{100} << 20};  // its DistributedDataParallel
    }
    launch().gradients = launch().dtype == "fp32" ? 1 : 2;
    // Adam's two moments and the parameters themselves, less those that are computed with.
    const bool in_bf16 = arguments_.word("training.dtype") == "bfloat16";
    if (launch().dtype != "fp32") launch().optimizer_state = in_bf16 ? 2 : 5;
  }

  void read_recomputation() {
    const std::string mode =
        one_of_words("activation_checkpoint.mode", {"selective", "full", "none", "memory_budget"});
    const std::string option = word_or("activation_checkpoint.selective_ac_option", "2");
    if (mode == "full") launch().recompute = "layers";
    if (mode == "memory_budget") read_.not_modelled.emplace_back("activation_checkpoint.mode");
    if (mode != "selective") return;
    const auto every = parse_count(option).value;
    if (!every) {
      if (option != "op")
        arguments_.error(
            "activation_checkpoint.selective_ac_option",
            fmt::format("activation_checkpoint.selective_ac_option is '{}'", clipped(option)),
            "op, or a number");
      launch().recompute = "selective";
      read_.notes.emplace_back(
          "selective_ac_option op recomputes every second product, too; here only what costs "
          "little is");
      return;
    }
    launch().recompute = "layers";
    const std::int64_t stages = launch().pipeline * launch().chunks;
    if (*every > 1)
      launch().recompute_layers = std::max<std::int64_t>(1, blocks_ / stages / *every);
  }

  LaunchArguments& arguments_;
  const LaunchGiven& given_;
  ReadLaunch read_;
  std::int64_t blocks_ = 0;  ///< 0 = not known.
  std::int64_t shards_ = 1;  ///< Copies that share parameters.
  std::int64_t copies_ = 1;  ///< Copies of those.
};

}  // namespace

std::string torchtitan_layout(std::int64_t layers, std::int64_t stages, std::int64_t first,
                              std::int64_t last) {
  if (layers < 1 || stages < 2 || stages > layers + first + last) return "";
  const std::int64_t each = (layers + first + last) / stages;
  const std::int64_t more = (layers + first + last) % stages;
  if (first > each || last > each) return "";
  std::string layout;
  for (std::int64_t s = 0; s < stages; ++s) {
    std::int64_t blocks = each + (s < more ? 1 : 0);
    if (s == 0) blocks -= first;
    if (s == stages - 1) blocks -= last;
    if (s > 0) layout += '|';
    if (s == 0) layout += 'E';
    if (blocks > 0) layout += blocks == 1 ? "t" : fmt::format("t*{}", blocks);
    if (s == stages - 1) layout += 'L';
  }
  return layout;
}

Result<ReadLaunch> read_torchtitan(LaunchArguments arguments, Diagnostics& problems,
                                   const LaunchGiven& given) {
  ReadLaunch read = TorchtitanReader(arguments, given).read();
  if (!problems.empty()) return problems;
  return read;
}

}  // namespace plumbline
