// The table of devices' kernels: a row for each device, and where its numbers come from.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_traits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bug.h"

namespace plumbline {
namespace {

// Sources of the numbers of measured devices, unless another stands beside them:
// - Products: fitted to half of the points (m >= 1024, n >= 512, k >= 256) of the measured tables
//   of github.com/ai-dynamo/aiconfigurator (gemm_perf, TensorRT-LLM 1.x), and held against the
//   other half. The times in fp8 hold a cast of the input there, which is left out.
// - weights_factor: github.com/MooreThreads/SimuMax, products with fp32 sums beside those of the
//   forward.
// - Shares of the memory's bandwidth: SimuMax; update_share is taken to be as large.
// - Collectives: nccl_perf of aiconfigurator. From 1 MiB on the formula is 6 to 12 % off there.
// - network_share, network_step_s, ring_step_s: what is usual for NCCL.
constexpr std::string_view kTables =
    "measured tables of ai-dynamo/aiconfigurator; MooreThreads/SimuMax";
constexpr std::string_view kTablesAndRuns =
    "measured tables of ai-dynamo/aiconfigurator; MooreThreads/SimuMax; the sustained clock and "
    "the "
    "share of the memory's bandwidth from published runs";

// ---- Attention, by generation.

/// FlashAttention 2 on an A100: see attention_rates().
constexpr AttentionRates kAmpereAttention = {
    .forward = {.at = {{{64, .5985, 330}, {128, .63, 330}, {}, {}}}, .fill = .9},
    .backward = {.at = {{{64, .551, 330}, {128, .58, 330}, {}, {}}}, .fill = .5}};

/// Ratios between head sizes and lengths from aiconfigurator's context_attention_perf; the level of
/// FlashAttention 3 (Dao-AILab/flash-attention, pull request 1791: 630 TFLOP/s forward and 532
/// backward for 8,192 tokens, causal).
constexpr AttentionRates kHopperAttention = {
    .forward = {.at = {{{64, .53, 1100}, {128, .66, 395}, {256, .70, 271}, {}}}, .fill = .85},
    .backward = {.at = {{{64, .45, 1100}, {128, .56, 395}, {192, .52, 333}, {256, .50, 271}}},
                 .fill = .85}};

/// SimuMax's measured tables of a B200.
constexpr AttentionRates kBlackwellAttention = {
    .forward = {.at = {{{64, .42, 1200}, {128, .66, 1200}, {192, .60, 1200}, {256, .66, 1200}}},
                .fill = 2.5},
    .backward = {.at = {{{64, .34, 300}, {128, .45, 300}, {192, .354, 300}, {}}}, .fill = .5}};

/// Attention on an H20, whose products are slow beside its exponentials. Forward:
/// Dao-AILab/flash-attention, issue 1310: 129 of 148 TFLOP/s without a mask; with one 109 and 108
/// for 2,048 tokens in heads of 64 and 128. Backward: as much slower as on an H100.
constexpr AttentionRates kH20Attention = {
    .forward = {.at = {{{64, .87, 222}, {128, .87, 119}, {}, {}}}, .fill = .85},
    .backward = {.at = {{{64, .74, 222}, {128, .74, 119}, {}, {}}}, .fill = .85}};

// ---- Collectives, by link: start, step, root; shares of all-reduce, all-gather, reduce-scatter,
// all-to-all.

constexpr CollectiveTraits kNvLink3 = {7.8e-6, .9e-6, 12e-9, .80, .73, .73, .76};
constexpr CollectiveTraits kNvLink4 = {4.6e-6, .8e-6, 5.9e-9, .88, .78, .78, .79};
/// SimuMax's fits to collectives within training steps of a B200. Alone they take 0.55 to 0.8 of
/// that in aiconfigurator's tables.
constexpr CollectiveTraits kNvLink5 = {23e-6, 9e-6, 0, .74, .67, .67, .60};

// ---- Devices that were measured.

constexpr KernelTraits kA100 = {
    .device = "a100-sxm-80gb",
    .multiprocessors = 108,  // data sheet
    .bf16 = {.ceiling = .877,
             .depth = 117,
             .tail = .34,
             .memory_share = .59,
             .small = 1.13,
             .held_out_error = .055},
    .fp8 = std::nullopt,
    .weights_factor = 1.05,
    .launch_s = 5.1e-6,
    .sustained = .93,  // the clock of HPL, 1305 of 1410 MHz (glennklockwood.com/garden/peak-FLOPS)
    .newest = kAmpereAttention,
    .clock_hz = 1.41e9,  // data sheet
    .memory_share = .80,
    .permute_share = .4,
    .update_share = .8,
    .memory_start_s = 3e-6,
    .collectives = kNvLink3,
    .network_share = .8,
    .network_step_s = 8e-6,
    .source = kTables};

constexpr KernelTraits kH100 = {
    .device = "h100-sxm",
    .multiprocessors = 132,  // data sheet
    .bf16 = {.ceiling = .819,
             .depth = 139,
             .tail = .05,
             .memory_share = .63,
             .small = 1.4,
             .held_out_error = .052},
    .fp8 = ProductTraits{.ceiling = .798,
                         .depth = 364,
                         .tail = 0,
                         .memory_share = .66,
                         .small = 1,
                         .held_out_error = .051},
    .weights_factor = 1.05,
    .launch_s = 2.6e-6,
    .sustained = .87,  // from published runs: no table of sustained clocks is public
    .newest = kHopperAttention,
    .clock_hz = 1.98e9,   // data sheet
    .memory_share = .52,  // from published runs
    .permute_share = .5,
    .update_share = .8,
    .memory_start_s = 3e-6,
    .collectives = kNvLink4,
    .network_share = .8,
    .network_step_s = 8e-6,
    .source = kTablesAndRuns};

constexpr KernelTraits kB200 = {
    .device = "b200-sxm",
    .multiprocessors = 148,  // hmc-tech.com/gpus/nvidia-b200-vs-nvidia-gb200
    .bf16 = {.ceiling = .704,
             .depth = 40,
             .tail = .156,
             .memory_share = .54,
             .small = 1.02,
             .held_out_error = .064},
    .fp8 = ProductTraits{.ceiling = .715,
                         .depth = 250,
                         .tail = .09,
                         .memory_share = .64,
                         .small = 1.06,
                         .held_out_error = .074},
    .weights_factor = 1.06,
    .launch_s = 2.3e-6,
    .sustained = .71,  // SimuMax's products take 1.41 times as long as aiconfigurator's
    .newest = kBlackwellAttention,
    .clock_hz = 1.85e9,  // that of the peak; the same page
    .memory_share = .67,
    .permute_share = .5,
    .update_share = .67,
    .memory_start_s = 3e-6,
    .collectives = kNvLink5,
    .network_share = .8,
    .network_step_s = 8e-6,
    .source = kTables};

constexpr KernelTraits named(KernelTraits traits, std::string_view device) {
  traits.device = device;
  return traits;
}

constexpr KernelTraits h200() {
  KernelTraits traits = named(kH100, "h200-sxm");
  traits.bf16 = {.ceiling = .820,
                 .depth = 120,
                 .tail = .02,
                 .memory_share = .46,
                 .small = 1.2,
                 .held_out_error = .051};
  traits.fp8 = ProductTraits{.ceiling = .798,
                             .depth = 320,
                             .tail = 0,
                             .memory_share = .54,
                             .small = 1,
                             .held_out_error = .049};
  return traits;
}

constexpr KernelTraits gb200() {
  KernelTraits traits = named(kB200, "gb200");
  traits.multiprocessors = 152;
  traits.bf16 = {.ceiling = .671,
                 .depth = 40,
                 .tail = .07,
                 .memory_share = .60,
                 .small = 1.26,
                 .held_out_error = .062};
  traits.fp8 = ProductTraits{.ceiling = .648,
                             .depth = 244,
                             .tail = .12,
                             .memory_share = .66,
                             .small = 1.02,
                             .held_out_error = .066};
  traits.sustained = .88;  // from published runs: 1,200 W a device
  traits.source =
      "measured tables of ai-dynamo/aiconfigurator; MooreThreads/SimuMax, of a B200; the sustained "
      "clock from published runs";
  return traits;
}

// ---- Devices that are taken to be like one that was measured.

/// The same chip with another link, which the data sheet gives.
constexpr KernelTraits h800() {
  KernelTraits traits = named(kH100, "h800-sxm");
  traits.source = "as h100-sxm, which is the same chip";
  return traits;
}

/// `traits` for another device, of which nothing was measured.
constexpr KernelTraits assumed(KernelTraits traits, std::string_view device,
                               std::string_view source, std::string_view caveat) {
  traits.device = device;
  traits.bf16.held_out_error = 0;
  traits.fp8->held_out_error = 0;
  traits.source = source;
  traits.caveat = caveat;
  return traits;
}

/// 148 multiprocessors, as public notes quote its driver, and the peaks of a B200. Its exponentials
/// are twice as fast (verda.com/blog/gb300-nvl72-architecture), from which attention may gain.
constexpr KernelTraits kB300 = assumed(kB200, "b300-sxm", "as b200-sxm; not held against anything",
                                       "its kernels are taken to be those of a b200-sxm");

/// 152 multiprocessors, as public notes quote its driver, and the peaks of a GB200.
constexpr KernelTraits kGb300 = assumed(gb200(), "gb300", "as gb200; not held against anything",
                                        "its kernels are taken to be those of a gb200");

// ---- Devices of which little more than the data sheet is known.

/// The usual shares. Against the tables of measured devices they give products within 7 to 13 %,
/// with no number of that device but those of its data sheet.
constexpr KernelTraits usual(std::string_view device, std::int64_t multiprocessors, double clock_hz,
                             const AttentionRates& attention, const CollectiveTraits& links) {
  return {.device = device,
          .multiprocessors = multiprocessors,
          .bf16 = {.ceiling = .76, .depth = 120, .tail = .15, .memory_share = .58, .small = 1.15},
          .fp8 =
              ProductTraits{
                  .ceiling = .74, .depth = 300, .tail = .06, .memory_share = .62, .small = 1.05},
          .weights_factor = 1.05,
          .launch_s = 3e-6,
          .sustained = .88,
          .newest = attention,
          .clock_hz = clock_hz,
          .memory_share = .65,
          .permute_share = .5,
          .update_share = .8,
          .memory_start_s = 3e-6,
          .collectives = links,
          .network_share = .8,
          .network_step_s = 8e-6,
          .source =
              "usual shares of a data sheet, with which products of devices that were "
              "measured are 7 to 13 % off",
          .caveat = "nothing is known of its kernels but what is usual"};
}

/// Multiprocessors and clock: data sheet. github.com/zzc0721/torch-performance-test-data, issue
/// 112: an H800 PCIe, the same chip, reaches 487 to 504 of 756 TFLOP/s in products of 4,096 to
/// 10,240 cubed; these numbers give 478 to 498.
constexpr KernelTraits kH100Pcie = usual("h100-pcie", 114, 1.755e9, kHopperAttention, kNvLink4);

/// Multiprocessors and clock: data sheet. The same data, issue 43: 269 of 362 TFLOP/s at the best
/// size; these numbers give 239. Latencies of collectives are those of an A100's NVLink.
constexpr KernelTraits kL40s = usual("l40s", 142, 2.52e9, kAmpereAttention, kNvLink3);

/// An H100 whose products are held back: power does not slow it besides. 78 multiprocessors: public
/// output of torch.cuda.get_device_properties. Products: the same data, issue 77: 133 of 148
/// TFLOP/s for 4,096 cubed, 139 for 8,192, 142 for 10,240. Those in fp8 are taken to lie as much
/// below as they usually do.
constexpr KernelTraits h20() {
  KernelTraits traits = usual("h20-sxm", 78, 1.98e9, kH20Attention, kNvLink4);
  traits.bf16.ceiling = .96;
  traits.fp8->ceiling = .93;
  traits.sustained = 1;
  traits.source =
      "products and attention forward from public measurements (zzc0721/"
      "torch-performance-test-data, issue 77; Dao-AILab/flash-attention, issue 1310); the rest is "
      "usual";
  traits.caveat = "of its kernels only products and attention forward were measured";
  return traits;
}

constexpr std::array kTraits = {named(kA100, "a100-sxm-40gb"),
                                kA100,
                                kB200,
                                kB300,
                                gb200(),
                                kGb300,
                                kH100Pcie,
                                kH100,
                                h20(),
                                h200(),
                                h800(),
                                kL40s};

/// Generations of devices, by the peak of their largest.
struct Generation {
  double peak;  ///< FLOP/s of products in bf16.
  KernelTraits traits;
};
constexpr std::array kGenerations = {
    Generation{312e12, usual("", 108, 1.41e9, kAmpereAttention, kNvLink3)},
    Generation{989.5e12, usual("", 132, 1.98e9, kHopperAttention, kNvLink4)},
    Generation{2250e12, usual("", 148, 1.85e9, kBlackwellAttention, kNvLink5)}};

/// FlashAttention `forward` and `backward` shares of an A100's peak, on another device.
AttentionRates flash_attention(double forward, double backward, double scale) {
  constexpr double small_heads = .95;  // of 64 beside 128
  constexpr double half = 330;
  const auto traits = [&](double share, double fill) {
    return AttentionTraits{
        .at = {{{64, small_heads * share * scale, half}, {128, share * scale, half}, {}, {}}},
        .fill = fill};
  };
  return {traits(forward, .9), traits(backward, .5)};
}

}  // namespace

AttentionRates attention_rates(const KernelTraits& traits, AttentionKind kind, double peak) {
  if (kind == AttentionKind::newest) return traits.newest;
  constexpr double a100_clocks = 108 * 1.41e9;
  constexpr double a100_peak = 312e12;
  const double clocks = static_cast<double>(traits.multiprocessors) * traits.clock_hz;
  const double scale = std::min(1.0, clocks / a100_clocks * a100_peak / peak);
  // The paper gives FlashAttention 1 25 to 40 % of an A100: the level in it is from published runs.
  // The level of FlashAttention 2 is SimuMax's.
  return kind == AttentionKind::flash_1 ? flash_attention(.37, .31, scale)
                                        : flash_attention(.63, .58, scale);
}

const KernelTraits& kernel_traits(std::string_view preset) {
  const auto found = std::find_if(kTraits.begin(), kTraits.end(), [&](const KernelTraits& traits) {
    return traits.device == preset;
  });
  PLUMBLINE_CHECK(found != kTraits.end(), preset);
  return *found;
}

const KernelTraits& usual_kernel_traits(double peak) {
  const auto distance = [peak](const Generation& generation) {
    return std::abs(std::log(peak / generation.peak));
  };
  return std::min_element(
             kGenerations.begin(), kGenerations.end(),
             [&](const Generation& a, const Generation& b) { return distance(a) < distance(b); })
      ->traits;
}

}  // namespace plumbline
