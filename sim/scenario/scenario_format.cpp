// One table per section.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/scenario_format.h"

#include "models/hardware/device_presets.h"
#include "models/import/expert_routing.h"
#include "models/import/recompute_modules.h"
#include "models/profile/layer_format.h"
#include "models/profile/model_checks.h"
#include "schedules/generators/generators.h"
#include "schedules/stages/recompute.h"
#include "sim/scenario/cluster_section.h"
#include "sim/scenario/goodput_section.h"
#include "sim/scenario/micro_batch_lengths.h"
#include "sim/scenario/model_section.h"
#include "sim/scenario/noise.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/synonyms.h"

namespace plumbline {
namespace {

using namespace format;

// ---- cluster ----

ValueFormat pue() {
  ValueFormat factor = real(10);
  factor.min = 1;
  return factor;
}

ValueFormat longer() {
  ValueFormat factor = real(100);
  factor.min = 1;
  return factor;
}

const SectionFormat& overlap_slowdown_format() {
  static const SectionFormat overlap = {
      .name = "overlap_slowdown",
      .text = "How many times longer an op takes while its device sends or receives.",
      .keys = {{"collectives", {longer()}, "While a collective of copies is under way.", "1"},
               {"transfers", {longer()}, "While a transfer between stages is.", "1"}}};
  return overlap;
}

const SectionFormat& prices_format() {
  static const SectionFormat prices = {
      .name = "prices",
      .text = "A price for each device preset; that of cluster.device is taken.",
      .keys = {},
      .other_keys = {price()}};
  return prices;
}

const SectionFormat& powers_format() {
  static const SectionFormat powers = {
      .name = "powers",
      .text = "A power for each device preset; that of cluster.device is taken.",
      .keys = {},
      .other_keys = {power()}};
  return powers;
}

const SectionFormat& device_format() {
  static const SectionFormat device = {
      .name = "device",
      .text = "What the devices are, for times that nobody measured: a roofline.",
      .keys =
          {{"preset",
            {words(device_preset_names())},
            "A device that is known; what stands beside it goes before it."},
           {"peak",
            {flops_per_second()},
            "The peak of dense matrix products in the numbers of the model."},
           {"fp8_peak",
            {flops_per_second()},
            "The same of products in fp8, for layers that give fp8_flops."},
           {"memory_bandwidth", {bandwidth()}, "The bandwidth of its memory."},
           {"memory", {bytes()}, "Its memory; cluster.memory goes before it."},
           {"link",
            {bandwidth()},
            "The bandwidth of its own link, each way: what `link: device` takes."},
           {"network",
            {bandwidth()},
            "The bandwidth of its own network card, each way: what `link: network` takes, and a "
            "layer's network_traffic."},
           {"stack",
            {words(software_stack_names())},
            "The training framework, whose kernels and overlaps are assumed for a model given by "
            "its config.json.",
            usual_stack().name},
           {"kernels",
            {file()},
            "A table of measured kernel times (kind: kernels), which go before those of the "
            "model."},
           {"efficiency",
            {real(1)},
            "The share of its peaks that is counted on, above 0. Given: times by a roofline, not "
            "kernel by kernel. Default for layers that give FLOPs: 0.5."},
           {"link_overlap",
            {real(1)},
            "The share of a layer's traffic in a server that the layer's computing hides. Default: "
            "that of the stack; for layers that give FLOPs 0."},
           {"network_overlap", {real(1)}, "The same for its traffic between servers."}},
      .some_group = {{"preset"}, {"peak", "memory_bandwidth"}}};
  return device;
}

std::vector<KeyFormat> link_keys() {
  return {{"bandwidth", {bandwidth()}, "Its bandwidth; absent: unlimited."},
          {"latency", {duration()}, "What a transfer takes beside its bytes.", "0 us"}};
}

const SectionFormat& link_format() {
  static const SectionFormat link = {
      .name = "link", .text = "A link between each ordered pair of devices.", .keys = link_keys()};
  return link;
}

const SectionFormat& cluster_format() {
  static const SectionFormat cluster = {
      .name = "cluster",
      .text = "The devices and what links them.",
      .keys =
          {{"devices",
            {count(1, kMaxDevices), list({section(&device_run_format)}, 1)},
            "How many devices there are; absent: as many as the plan needs. Where they are not all "
            "alike: a list of kinds, in the order of the devices' numbers."},
           {"gpus",
            {count(1, kMaxGpus)},
            "In the place of devices: how many single GPUs there are. A device is a group of "
            "them where layers, samples or experts are shared."},
           {"gpus_per_server",
            {count(1, kMaxGpus)},
            "With gpus: how many share a server. Without a link those have that of the device, "
            "others its network; absent: all."},
           {"memory", {bytes()}, "The memory of each device; absent: not checked."},
           {"reserve",
            {bytes()},
            "The memory of each device that is kept free: for contexts, libraries and an "
            "allocator's gaps.",
            "0 B"},
           {"device",
            {words(device_preset_names()), section(&device_format)},
            "What the devices are, for layers that give FLOPs instead of times: a preset "
            "(plumbline list presets) or its numbers."},
           {"link",
            {section(&link_format), words({"measured", "device", "network"})},
            "The link of each ordered pair of devices; `measured`: the profile's; `device` and "
            "`network`: the link and the network card of cluster.device; absent: free."},
           {"host_link",
            {bandwidth()},
            "The bandwidth between each device and its host's memory, each way, over which "
            "schedule.offload copies; absent: that of a preset, which is its peak."},
           {"price",
            {price(), section(&prices_format)},
            "What an hour of one GPU costs, in any currency, such as 2.5 USD/h; with "
            "training.tokens the training has a cost. A map of presets gives each its own."},
           {"power",
            {power(), section(&powers_format)},
            "What one GPU draws on average, its share of the server included; with "
            "training.tokens the training has an energy."},
           {"pue",
            {pue()},
            "The energy of the whole building over that of what computes in it, at least 1; "
            "a factor of the energy.",
            "1"},
           {"slowdown",
            {words({"measured", "none"})},
            "Whether devices of one machine slow each other, and each other's transfers, down as "
            "the profile says they do; `none`: each takes the times of a device whose neighbours "
            "rest.",
            "measured"},
           {"overlap_slowdown",
            {longer(), section(&overlap_slowdown_format)},
            "How many times longer ops take while a collective of their device is under way, whose "
            "kernels run on the same multiprocessors. As a map also while a transfer is.",
            "1"},
           {"links",
            {list({section(&pair_link_format)}, 1)},
            "Links of their own between some devices, before link and levels; of several for one "
            "pair the last counts."},
           {"levels",
            {list({section(&level_format)}, 1)},
            "In the place of devices and link, innermost first: servers, racks. There are as "
            "many devices as the product of the sizes."}},
      .needs = {{"gpus_per_server", "gpus"}, {"pue", "power"}},
      .excludes = {{"levels", "link"}, {"gpus", "devices", "levels"}},
      .elsewhere = words_elsewhere};
  return cluster;
}

// ---- schedule ----

/// It is over 80 lines as it is a table of data: the keys in the order in which they are told.
const SectionFormat& schedule_format() {
  static const SectionFormat schedule = {
      .name = "schedule",
      .text = "Who does what in which order.",
      .keys =
          {{"name", {words(schedule_names())}, "The schedule (plumbline list schedules)."},
           {"file",
            {file()},
            "In the place of a name: the order of every device, as PyTorch's pipelining writes or "
            "prints it, or of the whole as one host launches it."},
           {"micro_batches",
            {count(1, kMaxMicroBatches)},
            "How many parts a mini-batch is split into; each runs by itself; absent: as the sizes "
            "in "
            "training say, or an order from a file."},
           {"mini_batches",
            {count(1, kMaxMicroBatches)},
            "How many mini-batches run, each ending in an update.",
            "1"},
           {"chunks",
            {count(1, kMaxChunks)},
            "How many stages each device has; only for interleaved-1f1b, interleaved-zb, "
            "looped-bfs, "
            "zb-v, v-half, v-min, dualpipev, and auto as schedule.placement says.",
            "2"},
           {"group",
            {count(1, kMaxMicroBatches)},
            "How many micro-batches go round the chunks together; the last group may be smaller; "
            "only for interleaved-1f1b and interleaved-zb. Absent: as PyTorch rounds them, else as "
            "Megatron-LM takes them."},
           {"placement",
            {words({"straight", "looped", "v", "auto"})},
            "Where stages stand under auto: one on each device; in a loop, schedule.chunks on "
            "each; two on each, down and back up; or auto, the fastest of these.",
            "straight"},
           {"in_flight",
            {real(1e7)},
            "Under auto, the most activations that a device may hold, in those of one stage (with "
            "placement: auto, of all stages of a device); absent: what the memory holds."},
           {"effort",
            {real(1000)},
            "Under auto, how long to search, in times of the usual effort.",
            "1"},
           {"slices",
            {count(1, kMaxSlices), list({real(1000)}, 1)},
            "How many slices each micro-batch is cut into along its sequence, each an op of its "
            "own; "
            "or what each of them takes beside the others, such as [1, 1.2, 1.4]; only for gpipe, "
            "1f1b, eager-1f1b and orders from files.",
            "1"},
           {"transfers",
            {words({"overlapped", "blocking"})},
            "Whether a transfer runs beside compute, or holds the streams of both devices.",
            "overlapped"},
           {"communication",
            {words({"free", "in-order"})},
            "in-order: each device does the SEND and RECV cells of its row in a schedule.file one "
            "after the other, and a send waits for its receive; free: each transfer begins when "
            "its data is there. Absent: in-order where the file has such cells and transfers "
            "block."},
           {"pairs",
            {words({"apart", "overlapped"})},
            "Whether a forward and the backward of another micro-batch that stand side by side on "
            "a "
            "device run at the same time: each computes while the other sends within its group.",
            "apart"},
           {"recompute",
            {words({kRecomputeNames.begin(), kRecomputeNames.end()})},
            "What a backward recomputes instead of keeping it: the forward of its stage as a "
            "whole, or of each layer by itself, or of each layer what its `selective` says.",
            "none"},
           {"recompute_layers",
            {words({"all", "fit"}), count(0, kMaxLayers), list({count(0, kMaxLayers)}, 1)},
            "With recompute: layers or selective, how many layers of each stage recompute "
            "activations, from its first one on in the model's order; a list: of each stage by "
            "itself; "
            "fit: as few in all as the memory needs.",
            "all"},
           {"recompute_modules",
            {list({words({kRecomputeModules.begin(), kRecomputeModules.end()})}, 1)},
            "With recompute: selective of a model.huggingface, which modules of each layer are "
            "recomputed, named as Megatron Core's --recompute-modules are; mlp_act: the activation "
            "of "
            "MLPs that all tokens go through. Absent: what costs little."},
           {"recompute_early",
            {boolean()},
            "With recompute: full, whether a stage recomputes its forward as soon as its device is "
            "free, while the gradient is on its way, as torchgpipe does; false: when the gradient "
            "has come. Not for split backwards, blocking transfers, overlapped pairs, pipedream "
            "and "
            "auto.",
            "false"},
           {"offload",
            {real(1)},
            "The share of what each layer keeps that is copied to the host's memory beside its "
            "forward, and back beside its backward; of a model.huggingface what its blocks keep. "
            "With recompute: none or selective.",
            "0"},
           {"weights",
            {words({"stash", "vertical-sync", "none", "two"})},
            "Which versions of the weights are kept; only for pipedream.",
            "stash"},
           {"update_lag",
            {count(0, 1)},
            "How many rounds later a replicated stage updates; only for pipedream.",
            "1"},
           {"bucket",
            {bytes()},
            "At least so many bytes of gradients are all-reduced at once, as soon as the last "
            "backward has made them; not for pipedream. Absent: with data-parallel, and with "
            "zero_stage 2 and 3, 25 MiB, else all of a stage, behind its last backward."}},
      .exactly_one = {"name", "file"},
      .elsewhere = words_elsewhere};
  return schedule;
}

const SectionFormat& lengths_format() {
  static const SectionFormat lengths = {
      .name = "micro_batch_lengths",
      .text = "Lengths of micro-batches, one by one or drawn from a log-normal distribution.",
      .keys = {
          {"lengths",
           {list({real(kLongestLength)}, 1)},
           "The lengths, one by one, each above 0; at most 1000 different ones."},
          {"mean",
           {real(kLongestLength)},
           "The mean of drawn lengths, above 0; they are scaled to it."},
          {"spread",
           {real(kMaxSpread)},
           "The standard deviation of drawn lengths over their mean.",
           "0"},
          {"longest",
           {real(kLongestLength)},
           "Drawn lengths above are cut to this one, before rounding; the mean or more."},
          {"multiple",
           {real(kLongestLength)},
           "Drawn lengths are rounded up to multiples of this, as padding does; absent: they are "
           "rounded to a 32nd of the model's length; 0: not at all."},
          {"seed", {count(0)}, "What the random numbers start from.", "1"},
          {"sort",
           {words({"as-given", "ascending", "descending"})},
           "The order in which each copy runs its micro-batches: as given or drawn, the shortest "
           "first, or the longest first.",
           "as-given"},
          {"of",
           {real(kLongestLength)},
           "The length that the model's times are for, of a model that does not say its own; "
           "absent: 1."}}};
  return lengths;
}

const SectionFormat& training_format() {
  static const SectionFormat training = {
      .name = "training",
      .text = "What is trained with.",
      .keys =
          {{"micro_batch_size",
            {count(1, kMaxBatch)},
            "The samples of a micro-batch; absent: model.batch, or 1; of a group that shares "
            "experts "
            "those of all its micro-batches."},
           {"mini_batch_size",
            {count(1, kMaxBatch)},
            "The samples of a mini-batch, which the micro-batches of all copies must divide: with "
            "schedule.micro_batches it decides their size, with micro_batch_size their number."},
           {"tokens",
            {tokens()},
            "The tokens of the whole training, such as 15T: then predictions say how many days it "
            "takes."},
           {"sequence",
            {count(1, kMaxBatch)},
            "The tokens of a sample, of a model that does not say so itself."},
           {"micro_batch_lengths",
            {list({real(kLongestLength)}, 1), section(&lengths_format)},
            "The lengths of a mini-batch's micro-batches, where documents are not packed to one "
            "size: "
            "the tokens of a sample of each. If the model does not say its tokens, lengths are "
            "multiples of the model's length. A list for every copy alike, or for one copy after "
            "the other. Absent: all are as long as the model's."},
           {"optimizer_state",
            {real(1000)},
            "Bytes of optimizer state for each byte of parameters; Adam in fp32: 2. Absent: 0, or "
            "with model.huggingface that of Adam: 6 beside bf16 weights."},
           {"gradients",
            {real(1000)},
            "Bytes of gradients for each byte of parameters, as they are held, cut into buckets "
            "and "
            "reduced; in fp32 of bf16 weights: 2. Networks are run with 1 only, and cost_model: "
            "published knows no other. Absent: 1, or with model.huggingface those in fp32."},
           {"zero_stage",
            {count(0, 3)},
            "What replicas and copies of a stage share (ZeRO). 1: the optimizer state and the "
            "update: "
            "gradients are reduce-scattered, weights all-gathered. 2: gradients too, which every "
            "backward reduces bucket by bucket. 3: weights too, which every forward and backward "
            "gathers bucket by bucket (FSDP). All of them also within a group that holds "
            "parameters "
            "alike; 2 and 3 not between replicas; none for pipedream.",
            "0"},
           {"shard_degree",
            {count(1, kMaxDevices), words({"server"})},
            "So many copies share, one behind the other: hybrid sharding (HSDP, MiCS). Each such "
            "group holds everything, and the groups all-reduce what each of them has "
            "reduce-scattered. It divides the copies. `server`: those of a server, or all where "
            "they are fewer. Absent: all copies share."},
           {"reduce",
            {words({"each-backward", "in-groups-each-backward", "with-last-backward",
                    "behind-last-backward"})},
            "When gradients of zero_stage 2 and 3 are reduced: beside each backward; with "
            "shard_degree also in each group beside each backward, and across the groups beside "
            "the last one; or once in a mini-batch, beside the last backward, bucket by bucket, or "
            "when it has ended. Gradients that are reduced once are held whole.",
            "each-backward"},
           {"reshard",
            {words({"each-pass", "after-forward", "after-backward", "after-mini-batch"})},
            "When weights of zero_stage 3 are freed again: behind each forward and each backward; "
            "behind forwards only, or behind backwards only; or not before the mini-batch ends. "
            "What is not freed is not gathered again, and counts as held throughout.",
            "each-pass"},
           {"prefetch",
            {count(0, 1000)},
            "How many buckets ahead the gather of weights of zero_stage 3 begins; 0: when they are "
            "needed. So many buckets more are whole.",
            "1"},
           {"gather",
            {words({"behind-update", "with-forward"})},
            "When the weights of zero_stage 1 and 2 are gathered: behind the update, or as the "
            "next "
            "mini-batch begins, beside the forwards, the first of which wait for theirs, bucket by "
            "bucket where schedule.bucket is given.",
            "behind-update"},
           {"flush",
            {words({"all", "none"})},
            "all: every device ends a mini-batch before any begins the next; none: each updates "
            "when its own work is done, and begins the next at once, as with the optimizer's "
            "post-validation of zero-bubble schedules. Not for pipedream, which never flushes; "
            "real runs flush.",
            "all"}},
      .elsewhere = words_elsewhere};
  return training;
}

// ---- noise, goodput and sweep ----

std::vector<KeyFormat> rare_keys(std::string_view share) {
  return {{.name = "probability", .values = {real(1)}, .text = share, .required = true},
          {"factor", {real(kMaxFactor)}, "How many times longer they take, at least 1.", "2"}};
}

const SectionFormat& stragglers_format() {
  static const SectionFormat stragglers = {.name = "stragglers",
                                           .text = "Ops that take much longer now and then.",
                                           .keys = rare_keys("The share of ops that take longer.")};
  return stragglers;
}

const SectionFormat& slow_devices_format() {
  static const SectionFormat slow_devices = {
      .name = "slow_devices",
      .text = "Devices that are slow for a whole run.",
      .keys = rare_keys("The share of devices all of whose ops take longer.")};
  return slow_devices;
}

const SectionFormat& slow_links_format() {
  static const SectionFormat slow_links = {
      .name = "slow_links",
      .text =
          "Links that are slow for a whole run: between two devices, both ways, or the card of "
          "a server (or device) where a level of the cluster has cards.",
      .keys = rare_keys("The share of links over which bytes take longer.")};
  return slow_links;
}

const SectionFormat& noise_format() {
  static const SectionFormat noise = {
      .name = "noise",
      .text = "How the times of ops differ from run to run: many runs are sampled.",
      .keys = {
          {"spread",
           {real(kMaxSpread), word("measured")},
           "The standard deviation of an op's time over its mean; `measured`: that of each "
           "layer's profile.",
           "0"},
          {"stragglers", {section(&stragglers_format)}, "Ops that take much longer."},
          {"device_spread",
           {real(kMaxSpread)},
           "How devices differ for a whole run: the standard deviation of their times over "
           "the mean.",
           "0"},
          {"slow_devices",
           {section(&slow_devices_format)},
           "Devices that are slow for a whole run."},
          {"slow_links", {section(&slow_links_format)}, "Links that are slow for a whole run."},
          {"seed", {count(0)}, "What the random numbers start from.", "1"},
          {"samples", {count(1, kMaxSamples)}, "How many runs are sampled.", "1000"}}};
  return noise;
}

const SectionFormat& checkpoint_format() {
  static const SectionFormat checkpoint = {
      .name = "checkpoint",
      .text = "What saving a checkpoint takes, and how often it is done.",
      .keys = {{.name = "pause",
                .values = {duration(), bandwidth()},
                .text = "How long training stands still for one; or the bandwidth at which each "
                        "device saves its weights and optimizer state meanwhile.",
                .required = true},
               {"write",
                {duration(), bandwidth()},
                "What passes from the end of the pause until one can start from it, while training "
                "goes on; or a bandwidth, as of the pause.",
                "0 s"},
               {"interval",
                {duration(), word("best")},
                "The training between two checkpoints, rounded to whole iterations; `best`: that "
                "with the most goodput.",
                "best"},
               {"iterations", {count(1)}, "The same in iterations."}},
      .excludes = {{"interval", "iterations"}}};
  return checkpoint;
}

const SectionFormat& goodput_format() {
  static const SectionFormat goodput = {
      .name = "goodput",
      .text = "What failures, restarts and checkpoints leave of the throughput over weeks.",
      .keys = {{"device_mtbf",
                {long_time()},
                "The mean time between failures of one device, its share of server and network "
                "included, such as 50000 h; each failure ends the job."},
               {"job_mtbf", {long_time()}, "The same of the whole job."},
               {.name = "restart",
                .values = {duration()},
                .text = "The time from a failure until training goes on: to notice it, to replace "
                        "what failed, to start, to load the checkpoint. A failure meanwhile begins "
                        "it anew.",
                .required = true},
               {.name = "checkpoint",
                .values = {section(&checkpoint_format)},
                .text = "What saving takes.",
                .required = true},
               {"seed", {count(0)}, "What the random numbers start from.", "1"},
               {"samples",
                {count(0, kMaxTrainings)},
                "How many whole trainings are sampled, for reports of one run; 0: none.",
                "1000"}},
      .exactly_one = {"device_mtbf", "job_mtbf"}};
  return goodput;
}

/// The values of an axis: a list of anything, or a range.
const SectionFormat& sweep_format() {
  static const SectionFormat sweep = {
      .name = "sweep",
      .text =
          "Keys by their dotted path, each with a list of values or range(from, to, step): "
          "plumbline sweep runs every combination.",
      .keys = {},
      .other_keys = {list({}, 1), range()}};
  return sweep;
}

}  // namespace

const SectionFormat& device_run_format() {
  static const SectionFormat run = {
      .name = "device_run",
      .text = "Some devices that are alike.",
      .keys = {{.name = "count",
                .values = {count(1, kMaxDevices)},
                .text = "How many there are.",
                .required = true},
               {"name", {text()}, "What reports call them; absent: the name of the device."},
               {"device",
                {words(device_preset_names()), section(&device_format)},
                "What they are; absent: cluster.device."},
               {"speed",
                {real(1e6)},
                "How fast they are, against the times of the model: with 0.5 these take twice as "
                "long. At "
                "least 1e-06.",
                "1"},
               {"memory",
                {bytes()},
                "The memory of each; absent: cluster.memory, or that of the device."},
               {"link",
                {section(&link_format), words({"measured", "device", "network"})},
                "The link of each pair of them; absent: that of all devices."}}};
  return run;
}

const SectionFormat& pair_link_format() {
  static const SectionFormat pair = [] {
    SectionFormat built = {
        .name = "pair_link",
        .text = "A link between some devices, both ways.",
        .keys = {{"among", {list({count(0, kMaxDevices - 1)}, 2)}, "All pairs of these devices."},
                 {"from", {list({count(0, kMaxDevices - 1)}, 1)}, "Each of these devices ..."},
                 {"to", {list({count(0, kMaxDevices - 1)}, 1)}, "... with each of these."}},
        .exactly_one = {"among", "from"},
        .needs = {{"from", "to"}, {"to", "from"}}};
    for (KeyFormat& key : link_keys()) built.keys.push_back(std::move(key));
    return built;
  }();
  return pair;
}

const SectionFormat& level_format() {
  static const SectionFormat level = [] {
    SectionFormat built = {
        .name = "level",
        .text = "One level of a cluster: what links its members.",
        .keys = {{"name", {text()}, "Its name in reports."},
                 {.name = "size",
                  .values = {count(1, kMaxDevices)},
                  .text = "How many members one group of this level has: devices for the "
                          "innermost, groups of the level below for the others.",
                  .required = true}}};
    for (KeyFormat& key : link_keys()) built.keys.push_back(std::move(key));
    built.keys.push_back({"cards",
                          {words({"shared", "each"})},
                          "shared: the devices of a group of the level below share one network "
                          "card; each: every device has its own, and transfers do not meet there. "
                          "The innermost level has none.",
                          "shared"});
    return built;
  }();
  return level;
}

const SectionFormat& plan_format() {
  static const SectionFormat plan =
      {.name = "plan",
       .text = "How layers come to stages, and stages to devices.",
       .keys =
           {{"stages",
             {count(1, kMaxDevices)},
             "How many stages there are; for partition: pipedream the most of them; absent: "
             "the length of partition, replicas or devices, else one for each device. Where the "
             "schedule puts several on each device (schedule.chunks) and this says one for each, "
             "that many times as many are taken, with a note."},
            {"partition",
             {words({"even", "blocks", "balanced", "pipedream", "auto"}),
              list({count(1, kMaxLayers)}, 1), list({list({text()}, 1)}, 1), text()},
             "even: equal numbers of layers; blocks: equal numbers of a transformer's blocks, "
             "embedding and head on top; balanced: by their times; pipedream: the planner "
             "chooses; auto: together with the order of schedule.name: auto; or the number of "
             "layers of each stage, or their names: [[a, b], [c]]; or "
             "a layout of Megatron-LM: \"Et*3|(tt|)*29,m|L\".",
             "even"},
            {"replicas",
             {list({count(1, kMaxDevices)}, 1)},
             "How many devices run each stage; absent: one each."},
            {"devices",
             {word("auto"),
              list({count(0, kMaxDevices - 1), list({count(0, kMaxDevices - 1)}, 1)}, 1)},
             "The devices of each stage, from 0: [[0], [1]]; absent: in order; auto: the fastest "
             "arrangement of devices that are not all alike."},
            {"warm_up",
             {list({count(0, kMaxMicroBatches)}, 1)},
             "For each stage, the forwards before its first forward-backward pair; absent: by "
             "the rule of the schedule."},
            {"data_parallel",
             {count(1, kMaxDevices), word("fill")},
             "Copies of the whole pipeline; fill: as many as there are devices for.",
             "1"},
            {"cost_model",
             {words({"calibrated", "published"})},
             "What partition: pipedream counts with.",
             "calibrated"},
            {"activation_transfers",
             {boolean()},
             "Whether partition: pipedream counts the transfers of activations; absent: true "
             "for calibrated, false for published."},
            {"candidates",
             {count(1, 1'000)},
             "How many partitions of partition: pipedream are simulated to choose the best.",
             "8"},
            {"file",
             {file()},
             "Instead of all other keys: a plan that `plumbline plan -o` "
             "wrote."}},
       .excludes = {{"file", "stages", "partition", "replicas", "devices", "warm_up",
                     "data_parallel", "cost_model", "activation_transfers", "candidates"}},
       .elsewhere = words_elsewhere};
  return plan;
}

const SectionFormat& scenario_format() {
  static const SectionFormat scenario = {
      .name = "scenario",
      .text = "A scenario of plumbline: what is trained, on what, and in which order.",
      .keys = {{.name = "version",
                .values = {count(1, 1)},
                .text = "The version of the format.",
                .required = true},
               {"name", {text()}, "What reports call it; absent: the name of the file."},
               {.name = "model",
                .values = {section(&model_section_format)},
                .text = "What is trained, and what it costs.",
                .required = true},
               {"cluster", {section(&cluster_format)}, "The devices and what links them."},
               {"plan",
                {section(&plan_format)},
                "How layers come to stages, and stages to devices; absent: partition even."},
               {.name = "schedule",
                .values = {section(&schedule_format)},
                .text = "Who does what in which order.",
                .required = true},
               {"training", {section(&training_format)}, "Batch sizes and optimizer state."},
               {"overhead",
                {section(&overheads_format), word("measured")},
                "What is added to ops and transfers; `measured`: the profile's; absent: nothing."},
               {"noise", {section(&noise_format)}, "How times differ from run to run."},
               {"goodput",
                {section(&goodput_format)},
                "What failures, restarts and checkpoints cost over weeks."},
               {"sweep",
                {section(&sweep_format)},
                "Keys with several values each, for plumbline sweep."}},
      .elsewhere = words_elsewhere};
  return scenario;
}

}  // namespace plumbline
