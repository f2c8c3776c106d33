// Models by their config.json in a scenario, GPUs in servers, and what follows from both.
//
// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "models/architectures/huggingface.h"
#include "models/hardware/device_presets.h"
#include "models/import/transformer_profile.h"
#include "models/profile/profile_writer.h"
#include "sim/planning/predict.h"
#include "sim/whatif/sweep.h"
#include "tests/support/close_to.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 32000, "max_position_embeddings": 8192})";
const std::string kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2048,
        "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 8,
        "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2})";
const std::string kGpt2 =
    R"({"model_type": "gpt2", "n_embd": 1024, "n_head": 16, "n_layer": 4, "n_positions": 2048,
        "vocab_size": 50257})";
/// Latent attention; a dense block, then blocks with experts, then a module for a further token.
const std::string kDeepSeek =
    R"({"model_type": "deepseek_v3", "hidden_size": 1024, "intermediate_size": 4096,
        "moe_intermediate_size": 512, "n_routed_experts": 16, "num_experts_per_tok": 4,
        "n_group": 4, "topk_group": 2, "n_shared_experts": 1, "first_k_dense_replace": 1,
        "num_hidden_layers": 3, "num_nextn_predict_layers": 1, "num_attention_heads": 16,
        "q_lora_rank": 384, "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
        "v_head_dim": 64, "vocab_size": 32000})";

struct Files {
  TemporaryFolder folder;
  Files() {
    folder.file("llama.json", kLlama);
    folder.file("mixtral.json", kMixtral);
    folder.file("gpt2.json", kGpt2);
    folder.file("deepseek.json", kDeepSeek);
  }
  std::string path(const std::string& name) const { return folder[name]; }
};

Scenario read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
  REQUIRE_MESSAGE(scenario, (scenario ? "" : to_text(scenario.problems())));
  return *std::move(scenario);
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(text_source("s.yaml", text), overrides);
  REQUIRE_FALSE(scenario);
  return scenario.problems().front().message;
}

SweepNumbers predicted(const Scenario& scenario) {
  const auto outcome = predict(scenario);
  REQUIRE(outcome);
  return numbers_of(*outcome);
}

/// The sections after the model section.
std::string rest(const std::string& cluster, std::int64_t size) {
  return fmt::format(
      "cluster: {}\nplan: {{stages: 2, partition: balanced}}\n"
      "schedule: {{name: 1f1b, micro_batches: 4, recompute: selective}}\n"
      "training: {{micro_batch_size: {}, gradients: 2, optimizer_state: 6, zero_stage: 1}}\n",
      cluster, size);
}

TEST_CASE("a model by its config.json is what the profile is that import writes of it") {
  const Files files;
  struct Sharing {
    std::string config;
    std::string keys;
    std::int64_t tensor, context, expert;
    std::int64_t group;
    std::optional<std::int64_t> per_server;
  };
  for (const Sharing& s : std::vector<Sharing>{
           {"llama.json", "", 1, 1, 1, 1, {}},
           {"llama.json", ", split_blocks: true, flash_attention: false", 1, 1, 1, 1, {}},
           {"llama.json", ", tensor_parallel: 4, sequence_parallel: true", 4, 1, 1, 4, {}},
           {"llama.json", ", tensor_parallel: 2, context_parallel: 4", 2, 4, 1, 8, 4},
           {"mixtral.json", ", expert_parallel: 8", 1, 1, 8, 8, 2},
           {"mixtral.json",
            ", tensor_parallel: 2, sequence_parallel: true, expert_parallel: 8, dtype: fp16",
            2,
            1,
            8,
            8,
            {}},
           {"llama.json",
            ", tensor_parallel: 4, sequence_parallel: true, fp8_linear: true",
            4,
            1,
            1,
            4,
            {}},
           {"llama.json", ", context_parallel: 8, context_exchange: heads", 1, 8, 1, 8, 4},
           {"mixtral.json", ", expert_parallel: 4, expert_tensor_parallel: 2", 1, 1, 4, 8, 4},
           {"gpt2.json", "", 1, 1, 1, 1, {}},
           {"gpt2.json", ", cross_entropy: unfused", 1, 1, 1, 1, {}},
           {"gpt2.json", ", dropout: 0.1, tensor_parallel: 8", 8, 1, 1, 8, 4},
           {"deepseek.json", ", fp8_linear: true, mtp: true", 1, 1, 1, 1, {}},
           {"deepseek.json",
            ", expert_parallel: 8, dispatch: per-server, fp8_linear: true, fp8_dispatch: true, "
            "mtp: true",
            1, 1, 8, 8, 4}}) {
    CAPTURE(s.config);
    CAPTURE(s.keys);
    TransformerOptions options;
    options.sequence = 2048;
    options.batch = 3;
    options.tensor_parallel = s.tensor;
    options.context_parallel = s.context;
    options.expert_parallel = s.expert;
    options.sequence_parallel = s.keys.find("sequence_parallel") != std::string::npos;
    const auto has = [&](const char* key) { return s.keys.find(key) != std::string::npos; };
    options.split_blocks = has("split");
    options.flash_attention = !has("flash");
    if (has("fp16")) options.dtype = NumberFormat::fp16;
    options.fp8_linear = has("fp8_linear");
    options.fp8_dispatch = has("fp8_dispatch");
    options.mtp = has("mtp");
    if (has("per-server")) options.dispatch = Dispatch::per_server;
    if (has("dropout")) options.dropout = 0.1;
    if (has("cross_entropy")) options.fused_loss = false;
    if (has("expert_tensor_parallel")) options.expert_tensor_parallel = 2;
    if (has("heads")) options.context_exchange = ContextExchange::heads;
    options.devices_per_server = s.per_server;
    const auto shape = read_huggingface(files.path(s.config));
    REQUIRE(shape);
    const auto profile = transformer_profile("m", *shape, options);
    REQUIRE_MESSAGE(profile, (profile ? "" : to_text(profile.problems())));
    files.folder.file("p.profile.yaml", profile_yaml(profile->model, profile->comments));

    const std::int64_t size = 3 * options.group_batches();
    const std::string device = "device: {preset: h100-sxm, network: 50 GB/s}";
    const Scenario by_profile =
        read(fmt::format("version: 1\nmodel: {{profile: {}}}\n{}", files.path("p.profile.yaml"),
                         rest(fmt::format("{{devices: 2, {}, link: network}}", device), size)));
    const Scenario by_config = read(fmt::format(
        "version: 1\nmodel: {{huggingface: {}, sequence: 2048{}}}\n{}", files.path(s.config),
        s.keys,
        rest(fmt::format("{{gpus: {}, {}{}, link: network}}", 2 * s.group, device,
                         s.per_server ? fmt::format(", gpus_per_server: {}", *s.per_server) : ""),
             size)));
    CHECK(by_config.micro_batch_size == size);
    SweepNumbers numbers = predicted(by_config);
    numbers.bill = {};  // a profile does not say how many tokens a sample has
    CHECK(numbers == predicted(by_profile));
    // Both are estimated kernel by kernel, and layer for layer alike to the nanosecond.
    CHECK(by_profile.model->profile.estimated.find("kernel by kernel") != std::string::npos);
    const auto& derived = by_config.model->profile.measurements.front().layers;
    const auto& imported = by_profile.model->profile.measurements.front().layers;
    REQUIRE(derived.size() == imported.size());
    for (std::size_t i = 0; i < derived.size(); ++i) {
      CAPTURE(i);
      CHECK(derived[i].forward.mean == imported[i].forward.mean);
      CHECK(derived[i].backward.mean == imported[i].backward.mean);
      CHECK(derived[i].split->weight.mean == imported[i].split->weight.mean);
      CHECK(derived[i].update.mean == imported[i].update.mean);
      CHECK(derived[i].selective.has_value() == imported[i].selective.has_value());
      if (derived[i].selective)
        CHECK(derived[i].selective->forward.mean == imported[i].selective->forward.mean);
      CHECK(derived[i].skipped == imported[i].skipped);
      CHECK(derived[i].temporary == imported[i].temporary);
    }
  }
}

TEST_CASE("layers follow from the micro-batch, exactly and not in proportion") {
  const Files files;
  const std::string text =
      fmt::format("version: 1\nmodel: {{huggingface: {}, sequence: 128}}\n{}",
                  files.path("llama.json"), rest("{gpus: 2, device: h100-sxm}", 1));
  const Scenario one = read(text);
  const Scenario four = read(text, {"training.micro_batch_size=4"});
  const auto forward = [](const Scenario& scenario) {
    return scenario.model->profile.measurements.front().layers[1].forward.mean;
  };
  // Weights are read once, however many samples there are.
  CHECK(forward(four) < 4 * forward(one));
  CHECK(forward(four) > forward(one));
  CHECK(read(text, {"training.micro_batch_size=null"}).micro_batch_size == 1);
}

TEST_CASE("GPUs become groups, servers levels, and each GPU has a network card of its own") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048, tensor_parallel: 2}}\n"
      "cluster: {{gpus: 32, gpus_per_server: 8, device: {{preset: h100-sxm, network: 50 GB/s}}, "
      "reserve: 6 GiB}}\n"
      "plan: {{stages: 4, data_parallel: fill}}\n"
      "schedule: {{name: 1f1b}}\ntraining: {{mini_batch_size: 96, micro_batch_size: 2}}\n",
      files.path("llama.json"));
  const Scenario scenario = read(text);
  REQUIRE(scenario.cluster.levels.size() == 2);
  CHECK(scenario.cluster.levels[0].size == 4);  // groups of 2 in servers of 8
  CHECK(scenario.cluster.levels[0].link.bandwidth->count == 450'000'000'000);
  CHECK(scenario.cluster.levels[1].size == 4);
  CHECK(scenario.cluster.levels[1].link.bandwidth->count == 50'000'000'000);
  const Path path = scenario.cluster.path({0}, {15});
  CHECK_FALSE(path.out);
  CHECK(path.link.bandwidth->count == 50'000'000'000);
  CHECK(scenario.copies == 4);
  CHECK(scenario.schedule.micro_batches == 12);
  CHECK(*scenario.cluster.memory ==
        find_device_preset("h100-sxm")->memory - Bytes{std::int64_t{6} << 30});

  // Groups that fill a server, or are several, have the network alone; a given link is kept.
  for (const char* tensor : {"8", "4"}) {
    const Scenario whole =
        read(text, {fmt::format("model.tensor_parallel={}", tensor), "plan.stages=1",
                    fmt::format("model.context_parallel={}", tensor == std::string("8") ? 1 : 4)});
    CHECK(whole.cluster.levels.size() == 1);
    CHECK(whole.cluster.levels[0].link.bandwidth->count == 50'000'000'000);
  }
  CHECK(read(text, {"cluster.gpus=8"}).cluster.levels[0].link.bandwidth->count == 450'000'000'000);
  const Scenario flat = read(text, {"cluster.link={bandwidth: 7 GB/s}"});
  CHECK(flat.cluster.levels.size() == 1);
  CHECK(flat.cluster.levels[0].link.bandwidth->count == 7'000'000'000);
}

TEST_CASE("chosen modules run again in the place of what costs little") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048, flash_attention: false}}\n"
      "cluster: {{device: h100-sxm, devices: 2}}\nplan: {{stages: 2, partition: blocks}}\n"
      "schedule: {{name: 1f1b, micro_batches: 4, recompute: selective}}\n",
      files.path("llama.json"));
  const auto with = [&](const std::string& modules) {
    return predicted(read(text, {"schedule.recompute_modules=" + modules}));
  };
  const SweepNumbers usual = predicted(read(text));
  const SweepNumbers nothing = predicted(read(text, {"schedule.recompute=none"}));
  const SweepNumbers norms = with("[layernorm]");
  const SweepNumbers all = with("[core_attn, layernorm, mlp]");
  CHECK(norms.peak_memory_bytes < nothing.peak_memory_bytes);
  CHECK(usual.peak_memory_bytes < norms.peak_memory_bytes);
  CHECK(all.peak_memory_bytes < usual.peak_memory_bytes);
  CHECK(norms.iteration_time_s > nothing.iteration_time_s);
  CHECK(usual.iteration_time_s > norms.iteration_time_s);
  CHECK(all.iteration_time_s > usual.iteration_time_s);
  // A kind of recomputation that has no modules takes no notice, but for a note.
  const Scenario layers =
      read(text, {"schedule.recompute=layers", "schedule.recompute_modules=[mlp]"});
  CHECK(predicted(layers).iteration_time_s ==
        predicted(read(text, {"schedule.recompute=layers"})).iteration_time_s);
  CHECK(std::count(layers.notes.begin(), layers.notes.end(),
                   "schedule.recompute_modules changes nothing: schedule.recompute is layers, not "
                   "selective") == 1);
  const Scenario alone = read(text, {"model.context_exchange=heads", "cluster.host_link=50 GB/s"});
  const auto tells = [&](const std::string& note) {
    return std::count(alone.notes.begin(), alone.notes.end(), note) == 1;
  };
  CHECK(tells("model.context_exchange changes nothing: model.context_parallel is 1"));
  CHECK(tells("cluster.host_link changes nothing: schedule.offload moves no activations to hosts"));
  CHECK(
      refusal("version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, activation: "
              "9 B, selective: {activation: 9 B, forward: 300 us}}}\nschedule: {name: gpipe, "
              "micro_batches: 2, recompute: selective, recompute_modules: [mlp]}\n") ==
      "schedule.recompute_modules stands without model.huggingface");
  CHECK(refusal(text, {"schedule.recompute_modules=[moe]"}) ==
        "schedule.recompute_modules names no module that a layer of this model has");
}

TEST_CASE("copies fill the devices that stages, chunks, replicas or a partition leave") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 8, forward: 1 ms, backward: 2 ms}}\n"
      "cluster: {devices: 24}\nplan: {stages: 4, data_parallel: fill}\n"
      "schedule: {name: 1f1b, micro_batches: 6}\n";
  CHECK(read(text).copies == 6);
  CHECK(read(text, {"schedule.name=interleaved-1f1b"}).copies == 12);
  CHECK(read(text, {"plan.stages=null", "plan.partition=[4, 2, 2]"}).copies == 8);
  CHECK(read(text, {"plan.stages=null", "plan.replicas=[2, 1]"}).copies == 8);
  CHECK(read(text, {"plan.stages=null", "plan.devices=[[0], [1, 2]]", "plan.replicas=[1, 2]"})
            .copies == 8);
  CHECK(read(text, {"plan.stages=1", "schedule.name=data-parallel"}).copies == 24);
  CHECK(refusal(text, {"plan.stages=5"}) ==
        "plan.data_parallel is 'fill', but copies of 5 devices do not fill 24");
  CHECK(refusal(text, {"plan.stages=null"}) ==
        "plan.data_parallel is 'fill', but the number of stages is not given");
  CHECK(refusal(text, {"cluster.devices=null"}) ==
        "plan.data_parallel is 'fill', but the number of devices is not given");
}

TEST_CASE("copies add up what their groups leave each device, over all of the cards they have") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048}}\n"
      "cluster: {{gpus: 64, gpus_per_server: 8, device: {{preset: h100-sxm, network: 50 GB/s}}}}\n"
      "plan: {{stages: 1, data_parallel: fill}}\nschedule: {{name: 1f1b, micro_batches: 1}}\n"
      "training: {{gradients: 2, optimizer_state: 6}}\n",
      files.path("llama.json"));
  struct Sharing {
    std::vector<std::string> overrides;
    std::int64_t copies;
    std::int64_t part;       ///< A device has one in so many of the gradients.
    std::int64_t bandwidth;  ///< Bandwidth of the slowest hop, in GB/s.
  };
  for (const Sharing& s :
       std::vector<Sharing>{{{}, 64, 1, 400},                            // eight cards a server
                            {{"model.context_parallel=4"}, 16, 4, 100},  // two groups in each
                            {{"model.context_parallel=8"}, 8, 8, 50},    // one
                            {{"model.context_parallel=16"}, 4, 16, 50},  // two servers each
                            {{"model.tensor_parallel=4"}, 16, 1, 100},   // no two hold the same
                            {{"cluster.gpus=8"}, 8, 1, 450}}) {
    CAPTURE(s.copies);
    const Scenario scenario = read(text, s.overrides);
    const auto outcome = predict(scenario);
    REQUIRE(outcome);
    CHECK(outcome->setup.copies() == s.copies);
    const StageCost& stage = outcome->setup.costs.stages.front();
    const double own = static_cast<double>(stage.gradients.count) / static_cast<double>(s.part);
    CHECK(static_cast<double>(stage.reduced.count) == close_to(own, 1e-6));
    const double ring = 2.0 * static_cast<double>(s.copies - 1) / static_cast<double>(s.copies);
    CHECK(seconds(outcome->metrics.devices.front().idle_by_cause.all_reduce) ==
          close_to(ring * own / (1e9 * static_cast<double>(s.bandwidth)), 1e-3));
    // Sharded: gradients of 2 bytes there and weights of 1 back, instead of gradients both ways.
    std::vector<std::string> sharded = s.overrides;
    sharded.emplace_back("training.zero_stage=1");
    const auto halves = predict(read(text, sharded));
    REQUIRE(halves);
    CHECK(seconds(halves->metrics.devices.front().idle_by_cause.all_reduce) ==
          close_to(0.75 * ring * own / (1e9 * static_cast<double>(s.bandwidth)), 1e-3));
  }
}

TEST_CASE("keys that are forgotten are told") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048, dropout: 0}}\n"
      "cluster: {{gpus: 16, device: h100-sxm}}\nplan: {{stages: 8, data_parallel: fill}}\n"
      "schedule: {{name: 1f1b, micro_batches: 8}}\n",
      files.path("llama.json"));
  const auto notes = [&](const std::vector<std::string>& overrides) {
    return read(text, overrides).notes.size();
  };
  CHECK(read(text).notes ==
        std::vector<std::string>{
            "training.optimizer_state and training.gradients are not given: Adam in mixed "
            "precision is counted, 6 bytes and 2 for each byte of bf16 weights",
            "cluster.gpus_per_server is not given: all 16 GPUs are taken to share one server",
            "cluster.reserve is not given: what drivers, libraries and an allocator's gaps take of "
            "each device's memory is counted as free"});
  CHECK(read(text, {"model.dropout=null"}).notes[1] ==
        "config.json has no attention_dropout: it counts as 0 (model.dropout sets it)");
  CHECK(notes({"training.optimizer_state=0"}) == 3);
  CHECK(notes({"training.optimizer_state=6", "training.gradients=1"}) == 2);
  CHECK(notes({"training.optimizer_state=6", "training.gradients=1", "cluster.gpus=8"}) == 1);
  CHECK(notes({"training.optimizer_state=6", "training.gradients=1", "cluster.gpus=8",
               "cluster.reserve=4 GiB"}) == 0);
  // Devices that are counted are groups, with nothing between them.
  const std::vector<std::string> groups =
      read(text, {"cluster={devices: 16, device: h100-sxm, reserve: 4 GiB}", "plan.data_parallel=2",
                  "model.tensor_parallel=4", "training={optimizer_state: 6, gradients: 2}"})
          .notes;
  CHECK(groups ==
        std::vector<std::string>{
            "cluster.devices counts groups of 4: 16 of them are 64 GPUs (cluster.gpus counts GPUs)",
            "cluster.link is not given: transfers between devices take no time (link: device or "
            "network takes the device's own)"});
}

TEST_CASE("cross entropy that is given decides memory and kernels, in whatever stack") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 2048, dropout: 0}}\n"
      "cluster: {{gpus: 1, device: {{preset: h100-sxm}}, reserve: 4 GiB}}\n"
      "plan: {{stages: 1}}\nschedule: {{name: 1f1b, micro_batches: 2}}\n"
      "training: {{gradients: 2, optimizer_state: 6}}\n",
      files.path("llama.json"));
  for (const std::string stack : {"eager-2023", "megatron-core"}) {
    CAPTURE(stack);
    const auto head = [&](const std::vector<std::string>& more) {
      std::vector<std::string> overrides = {"cluster.device.stack=" + stack};
      overrides.insert(overrides.end(), more.begin(), more.end());
      const Scenario scenario = read(text, overrides);
      CHECK(scenario.notes.empty());
      return scenario.model->profile.measurements.front().layers.back();
    };
    const LayerCosts usual = head({});
    const LayerCosts fused = head({"model.cross_entropy=fused"});
    const LayerCosts unfused = head({"model.cross_entropy=unfused"});
    CHECK(usual.activation == fused.activation);
    CHECK(unfused.activation - fused.activation == Bytes{2 * 2048 * 32000});
    CHECK(unfused.temporary > fused.temporary);
    CHECK(unfused.forward.mean > fused.forward.mean);
    CHECK(unfused.backward.mean > fused.backward.mean);
    // Kernels that nobody chose are the stack's.
    const LayerCosts& alike = stack == "eager-2023" ? unfused : fused;
    CHECK(usual.forward.mean == alike.forward.mean);
    CHECK(usual.backward.mean == alike.backward.mean);
  }
}

TEST_CASE("of a model by its config.json Adam is counted where no other optimizer is given") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 512}}\ncluster: {{gpus: 4, device: "
      "h100-sxm}}\nplan: {{stages: 2, data_parallel: fill}}\n"
      "schedule: {{name: 1f1b, micro_batches: 4}}\n",
      files.path("llama.json"));
  struct Adam {
    std::string dtype;
    double state, gradients;
    std::string note;
  };
  for (const Adam& adam : std::vector<Adam>{
           {"bf16", 6, 2,
            "Adam in mixed precision is counted, 6 bytes and 2 for each byte of bf16"},
           {"fp16", 6, 2,
            "Adam in mixed precision is counted, 6 bytes and 2 for each byte of fp16"},
           {"fp32", 2, 1, "Adam in fp32 is counted, 2 bytes and 1 for each byte of fp32"},
           {"fp8", 12, 4,
            "Adam in mixed precision is counted, 12 bytes and 4 for each byte of "
            "fp8"}}) {
    CAPTURE(adam.dtype);
    const std::string dtype = "model.dtype=" + adam.dtype;
    const std::string state = fmt::format("training.optimizer_state={}", adam.state);
    const std::string gradients = fmt::format("training.gradients={}", adam.gradients);
    const Scenario assumed = read(text, {dtype});
    CHECK(assumed.optimizer_state == adam.state);
    CHECK(assumed.gradient_width == adam.gradients);
    CHECK(assumed.notes[0].find(adam.note) != std::string::npos);
    CHECK(predicted(assumed) == predicted(read(text, {dtype, state, gradients})));
    CHECK(assumed.model->profile.estimated.ends_with(
        "; Adam is assumed (training.optimizer_state, training.gradients)"));
    CHECK(read(text, {dtype, state, gradients}).model->profile.estimated.find("Adam") ==
          std::string::npos);
    // Each key that is there wins by itself.
    CHECK(predicted(read(text, {dtype, "training.gradients=1"})) ==
          predicted(read(text, {dtype, state, "training.gradients=1"})));
    CHECK(predicted(read(text, {dtype, "training.optimizer_state=0"})) ==
          predicted(read(text, {dtype, "training.optimizer_state=0", gradients})));
    CHECK(
        read(text, {dtype, "training.optimizer_state=0", "training.gradients=1"}).optimizer_state ==
        0);
  }
  CHECK(read(text, {"training.optimizer_state=0"}).notes[0] ==
        "training.gradients is not given: gradients in fp32 are counted, 2 bytes for each byte of "
        "bf16 weights");
  CHECK(read(text, {"training.gradients=1"}).notes[0] ==
        "training.optimizer_state is not given: Adam in mixed precision is counted, 6 bytes for "
        "each byte of bf16 weights");
  // Other models are what they say they are.
  const Scenario uniform = read(
      "version: 1\nmodel: {uniform: {layers: 2, forward: 1 ms, backward: 2 ms, parameters: 1 MB}}\n"
      "schedule: {name: 1f1b, micro_batches: 4}\n");
  CHECK(uniform.optimizer_state == 0);
  CHECK(uniform.gradient_width == 1);
}

TEST_CASE("masks of dropout take memory and time of a device") {
  const Files files;
  const std::string text = fmt::format(
      "version: 1\nmodel: {{huggingface: {}, sequence: 512, flash_attention: false}}\n"
      "cluster: {{gpus: 1, device: h100-sxm}}\nschedule: {{name: 1f1b, micro_batches: 2}}\n",
      files.path("llama.json"));
  const auto of = [&](const std::string& rate) {
    const auto outcome = predict(read(text, {"model.dropout=" + rate}));
    REQUIRE(outcome);
    return *outcome;
  };
  const Outcome without = of("0");
  const Outcome with = of("0.1");
  constexpr std::int64_t sbh = 512 * 1024;
  constexpr std::int64_t scores = 512 * 16 * 512;
  CHECK(with.memory[0].peak.activations.count - without.memory[0].peak.activations.count ==
        6 * (3 * scores + 2 * sbh) + sbh);
  CHECK(with.iteration_time_s > without.iteration_time_s);
  CHECK(of("null").iteration_time_s == without.iteration_time_s);
}

TEST_CASE("a preset's peaks go together, and a bucket that reduces nothing is told") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 2, flops: 1 GFLOP, fp8_flops: 1 GFLOP, parameters: 1 "
      "MB}}\ncluster: {devices: 2, device: h100-sxm}\nplan: {stages: 2, partition: balanced}\n"
      "schedule: {name: gpipe, micro_batches: 2}\n";
  CHECK(read(text).peak == FlopsPerSecond{1'979'000'000'000'000});
  const auto given =
      parse_scenario(test::text_source("s.yaml", text), {"cluster.device.peak=600 TFLOP/s"});
  REQUIRE_FALSE(given);
  CHECK(given.problems().front().message ==
        "layer 'layer_0' has products in fp8, but the device has no peak for them");
  CHECK(read(text, {"cluster.device.peak=600 TFLOP/s", "cluster.device.fp8_peak=1 PFLOP/s"}).peak ==
        FlopsPerSecond{1'000'000'000'000'000});

  const auto told = [&](const std::vector<std::string>& overrides) {
    const auto outcome = predict(read(text, overrides));
    REQUIRE(outcome);
    const auto& notes = outcome->setup.notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("schedule.bucket does nothing here");
    });
  };
  CHECK(told({"schedule.bucket=1 MB"}));
  CHECK_FALSE(told({}));
  CHECK_FALSE(told({"schedule.bucket=1 MB", "plan.data_parallel=2", "cluster.devices=4"}));
}

TEST_CASE("times without a batch size, and words of other tools, are told") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}}\n"
      "plan: {stages: 4, partition: balanced}\nschedule: {name: gpipe, micro_batches: 4}\n";
  CHECK(
      read(text, {"training.mini_batch_size=64"}).notes ==
      std::vector<std::string>{"model.batch is not given: the layers' times are taken to be those "
                               "of a micro-batch of 16, whatever its size"});
  CHECK(read(text, {"training.mini_batch_size=64", "model.batch=64"}).notes.empty());
  const auto help = [&](const std::string& override) {
    const auto scenario = parse_scenario(test::text_source("s.yaml", text), {override});
    REQUIRE_FALSE(scenario);
    return scenario.problems().front().help;
  };
  CHECK(help("model.tp=4") == "did you mean 'model.tensor_parallel'?");
  CHECK(help("training.global_batch_size=4") == "did you mean 'training.mini_batch_size'?");
  CHECK(help("micro_batches=4") == "did you mean 'schedule.micro_batches'?");
  CHECK(help("plan.tensor_parallel=4") == "did you mean 'model.tensor_parallel'?");
  CHECK(help("schedule.micro_batch=4") == "did you mean 'micro_batches'?");
  const auto twice = parse_scenario(test::text_source("s.yaml", text),
                                    {"model.batch=4", "name=a", "model.batch=8"});
  REQUIRE_FALSE(twice);
  CHECK(twice.problems().front().message == "'model.batch' is given twice");
  CHECK(help("schedule.micro_batches=2,4") ==
        "one value here; plumbline sweep takes several, KEY=2,4,8");
  CHECK(help("cluster=devices:2") == "a space stands behind the colon: `key: value`");
}

TEST_CASE("the sizes of mini-batch and micro-batch say how many micro-batches there are") {
  const std::string text =
      "version: 1\nmodel: {uniform: {layers: 4, forward: 1 ms, backward: 2 ms}, batch: 4}\n"
      "cluster: {devices: 4}\nplan: {stages: 2, data_parallel: 2}\n"
      "schedule: {name: 1f1b}\ntraining: {mini_batch_size: 96, micro_batch_size: 4}\n";
  const Scenario scenario = read(text);
  CHECK(scenario.schedule.micro_batches == 12);
  CHECK(scenario.micro_batch_size == 4);
  CHECK(predicted(scenario) ==
        predicted(read(text, {"training.mini_batch_size=null", "schedule.micro_batches=12"})));
  CHECK(refusal(text, {"training.micro_batch_size=5"}) ==
        "training.mini_batch_size is 96, which micro-batches of 5 on each of 2 copies do not "
        "divide: 6 is left");
  CHECK(refusal(text, {"training.micro_batch_size=null"}) == "schedule.micro_batches is missing");
  CHECK(read(text, {"schedule.name=pipedream", "plan.data_parallel=1", "schedule.weights=two"})
            .schedule.updates.accumulated == 24);
}

}  // namespace
}  // namespace plumbline::test
