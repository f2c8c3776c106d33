// The table of devices' kernels.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_traits.h"

#include <algorithm>

#include "models/hardware/device_presets.h"

namespace plumbline {
namespace {

// Products: fitted to half of the points (m >= 1024, n >= 512, k >= 256) of the measured tables of
// github.com/ai-dynamo/aiconfigurator (gemm_perf, TensorRT-LLM 1.x), and held against the other
// half: 5.5 % mean error on an A100, 5.2 (fp8 5.1) on an H100, 5.1 (4.9) on an H200, 6.4 (7.4) on a
// B200, 6.2 (6.6) on a GB200. The times in fp8 hold a cast of the input there, which is left out.
// Collectives: nccl_perf of the same tables; for the B200 the fits of
// github.com/MooreThreads/SimuMax, which were made within training steps.
constexpr std::string_view kTables =
    "measured tables of ai-dynamo/aiconfigurator; MooreThreads/SimuMax";

/// Attention for Hopper: ratios between head sizes and lengths from aiconfigurator's
/// context_attention_perf; the level of FlashAttention 3 (Dao-AILab/flash-attention, pull request
/// 1791: 630 TFLOP/s forward and 532 backward for 8,192 tokens, causal).
constexpr AttentionRates kHopper = {
    .forward = {.at = {{{64, .53, 1100}, {128, .66, 395}, {256, .70, 271}, {}}}, .fill = .85},
    .backward = {.at = {{{64, .45, 1100}, {128, .56, 395}, {192, .52, 333}, {256, .50, 271}}},
                 .fill = .85}};

/// Attention for Blackwell: SimuMax's measured tables of a B200.
constexpr AttentionRates kBlackwell = {
    .forward = {.at = {{{64, .42, 1200}, {128, .66, 1200}, {192, .60, 1200}, {256, .66, 1200}}},
                .fill = 2.5},
    .backward = {.at = {{{64, .34, 300}, {128, .45, 300}, {192, .354, 300}, {}}}, .fill = .5}};

/// Attention for Ampere: FlashAttention 2 on an A100 (see flash_attention()).
constexpr AttentionRates kAmpere = {
    .forward = {.at = {{{64, .5985, 330}, {128, .63, 330}, {}, {}}}, .fill = .9},
    .backward = {.at = {{{64, .551, 330}, {128, .58, 330}, {}, {}}}, .fill = .5}};

constexpr CollectiveTraits kNvLink3 = {7.8e-6, .9e-6, 12e-9, .80, .73, .73, .76};
constexpr CollectiveTraits kNvLink4 = {4.6e-6, .8e-6, 5.9e-9, .88, .78, .78, .79};
constexpr CollectiveTraits kNvLink5 = {23e-6, 9e-6, 0, .74, .67, .67, .60};

constexpr KernelTraits kA100 = {
    .device = "a100-sxm-80gb",
    .multiprocessors = 108,
    .bf16 = {.ceiling = .877, .depth = 117, .tail = .34, .memory_share = .59, .small = 1.13},
    .fp8 = std::nullopt,
    .weights_factor = 1.05,  // SimuMax: products with fp32 sums beside those of the forward
    .launch_s = 5.1e-6,
    .sustained = .93,  // the clock of HPL, 1305 of 1410 MHz (glennklockwood.com, peak FLOPS)
    .newest = kAmpere,
    .clock_hz = 1.41e9,
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
    .multiprocessors = 132,
    .bf16 = {.ceiling = .819, .depth = 139, .tail = .05, .memory_share = .63, .small = 1.4},
    .fp8 = ProductTraits{.ceiling = .798, .depth = 364, .tail = 0, .memory_share = .66, .small = 1},
    .weights_factor = 1.05,
    .launch_s = 2.6e-6,
    .sustained = .87,  // from published runs: no table of sustained clocks is public
    .newest = kHopper,
    .clock_hz = 1.98e9,
    .memory_share = .52,  // from published runs
    .permute_share = .5,
    .update_share = .8,
    .memory_start_s = 3e-6,
    .collectives = kNvLink4,
    .network_share = .8,
    .network_step_s = 8e-6,
    .source = kTables};

constexpr KernelTraits kB200 = {
    .device = "b200-sxm",
    .multiprocessors = 148,
    .bf16 = {.ceiling = .704, .depth = 40, .tail = .156, .memory_share = .54, .small = 1.02},
    .fp8 =
        ProductTraits{
            .ceiling = .715, .depth = 250, .tail = .09, .memory_share = .64, .small = 1.06},
    .weights_factor = 1.06,
    .launch_s = 2.3e-6,
    .sustained = .71,  // SimuMax's products take 1.41 times as long as aiconfigurator's
    .newest = kBlackwell,
    .clock_hz = 1.85e9,
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
  traits.bf16 = {.ceiling = .820, .depth = 120, .tail = .02, .memory_share = .46, .small = 1.2};
  traits.fp8 =
      ProductTraits{.ceiling = .798, .depth = 320, .tail = 0, .memory_share = .54, .small = 1};
  return traits;
}

constexpr KernelTraits gb200() {
  KernelTraits traits = named(kB200, "gb200");
  traits.multiprocessors = 152;
  traits.bf16 = {.ceiling = .671, .depth = 40, .tail = .07, .memory_share = .60, .small = 1.26};
  traits.fp8 =
      ProductTraits{.ceiling = .648, .depth = 244, .tail = .12, .memory_share = .66, .small = 1.02};
  traits.sustained = .88;  // from published runs: 1,200 W a device
  return traits;
}

constexpr std::array kTraits = {
    named(kA100, "a100-sxm-40gb"), kA100, kH100, named(kH100, "h800-sxm"), h200(), kB200, gb200()};

/// A device that nobody has measured: the usual shares of its data sheet. Against the tables of
/// devices that were measured these give products within 8 to 13 %.
constexpr KernelTraits usual(std::string_view device, std::int64_t multiprocessors, double clock_hz,
                             const AttentionRates& attention, const CollectiveTraits& links) {
  KernelTraits traits = named(kH100, device);
  traits.multiprocessors = multiprocessors;
  traits.bf16 = {.ceiling = .76, .depth = 120, .tail = .15, .memory_share = .58, .small = 1.15};
  traits.fp8 =
      ProductTraits{.ceiling = .74, .depth = 300, .tail = .06, .memory_share = .62, .small = 1.05};
  traits.launch_s = 3e-6;
  traits.sustained = .88;
  traits.newest = attention;
  traits.clock_hz = clock_hz;
  traits.memory_share = .65;
  traits.collectives = links;
  traits.is_measured = false;
  traits.source = "usual shares of a data sheet";
  return traits;
}

/// Devices whose data sheets alone are known, and any other device.
constexpr std::array kUsual = {usual("h100-pcie", 114, 1.76e9, kHopper, kNvLink4),
                               usual("l40s", 142, 2.52e9, kAmpere, kNvLink3),
                               usual("", 132, 1.98e9, kHopper, kNvLink4)};

template <class Table>
const KernelTraits* find(const Table& table, std::string_view device) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const KernelTraits& traits) {
    return traits.device == device;
  });
  return found == table.end() ? nullptr : &*found;
}

/// FlashAttention `forward` and `backward` shares of an A100's peak, on another device.
AttentionRates flash_attention(double forward, double backward, double scale) {
  constexpr double small_heads = .95;
  const auto traits = [&](double share, double fill) {
    return AttentionTraits{
        .at = {{{64, small_heads * share * scale, 330}, {128, share * scale, 330}, {}, {}}},
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
  const double scale = clocks / a100_clocks * a100_peak / peak;
  return kind == AttentionKind::flash_1 ? flash_attention(.37, .31, scale)
                                        : flash_attention(.63, .58, scale);
}

const KernelTraits& kernel_traits(std::string_view preset) {
  if (const KernelTraits* own = find(kTraits, preset)) return *own;
  const KernelTraits* usual = find(kUsual, preset);
  return usual ? *usual : kUsual.back();
}

}  // namespace plumbline
