// The work that goes on beside a transfer: where, when and for how long.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/work_beside.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "calibrate/cuda/driver/stopwatch.h"
#include "calibrate/cuda/libraries/device_libraries.h"
#include "calibrate/cuda/timing/link_benchmark.h"
#include "models/network/network_reader.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"

namespace plumbline::test {
namespace {

/// Four devices with a layer each, of which the last two walk.
struct TwoWalkers {
  explicit TwoWalkers(const FakeOptions& options = {}) : fake(options) {
    fake.add(emulated_kernels());
    const auto read = parse_network(std::make_shared<const Source>(
        Source{"n.network.yaml",
               "version: 1\nkind: network\nname: n\ninput: {shape: [6]}\nlayers:\n"
               "  - {kind: linear, features: 5}\n  - {kind: relu}\n  - {kind: gelu}\n"
               "  - {kind: head, classes: 3, norm: false}\n",
               ""}));
    REQUIRE(read);
    network = *read;
    auto opened = open_cuda_devices(fake.driver(), 4, /*one_gpu=*/true);
    REQUIRE(opened);
    devices = *std::move(opened);
    libraries = std::make_unique<DeviceLibraries>(*devices, network, /*builtin_kernels=*/true,
                                                  std::optional<Nccl>{});
    for (std::uint32_t device = 2; device < 4; ++device) {
      const CudaDevice& on = devices->all()[device];
      REQUIRE(fake.driver().cuCtxSetCurrent(on.context) == CUDA_SUCCESS);
      walkers.push_back(std::make_unique<CudaStageTimer>(
          libraries->queue(device, on.compute), on.context, network,
          CudaMeasuring{device, device, 2, 4, device}, launching, 0));
    }
  }

  FakeCuda fake;
  Network network;
  std::unique_ptr<CudaDevices> devices;
  std::unique_ptr<DeviceLibraries> libraries;
  CudaLaunching launching;
  std::vector<std::unique_ptr<CudaStageTimer>> walkers;
};

TEST_CASE("work beside a transfer is on the other devices, behind the first one's, and lasts") {
  TwoWalkers two;
  {
    CudaWorkBeside others(*two.devices, two.walkers);
    CHECK(others.workers() == 2);
    CudaSpinOps ops(*two.devices, two.launching);
    for (const std::uint32_t workers : {1U, 2U}) {
      CAPTURE(workers);
      two.fake.clear_executions();
      CudaStopwatch stopwatch(*two.devices, 0);
      // The work begins when the first device has done an op.
      const auto enqueue = [&] {
        ops.enqueue(0);
        others.enqueue(0, workers, 300'000);
        ops.enqueue(0);
      };
      const auto took = stopwatch.time_behind_gate(enqueue, [&] { others.wait(); });
      REQUIRE(took);
      CHECK(*took == doctest::Approx(2 * CudaSpinOps::kNanoseconds).epsilon(0.01));
      others.wait();
      const unsigned sms = two.devices->all()[0].sms;
      std::uint64_t first_op = 0;
      std::vector<std::uint64_t> busy(4, 0);
      std::uint64_t first_work = UINT64_MAX;
      for (const FakeExecution& one : two.fake.executions()) {
        if (one.what == "plumbline_spin" && first_op == 0) first_op = one.end;
        if (one.what.find("plumbline_spin") == 0 || one.what == "plumbline_wait_for_host") continue;
        busy[one.first_sm / sms] += one.end - one.begin;
        first_work = std::min(first_work, one.begin);
      }
      CHECK(first_work >= first_op);
      CHECK(busy[0] == 0);
      CHECK(busy[1] == 0);
      // Six times, of which one warms up.
      constexpr std::uint64_t kAll = 6 * std::uint64_t{300'000};
      CHECK(busy[2] >= kAll);
      CHECK((busy[3] >= kAll) == (workers == 2));
    }
  }
  CHECK(two.fake.faults() == std::vector<std::string>{});
}

/// The links of the first two devices, beside the others' work, where each kernel of it takes so
/// long.
std::vector<MeasuredLink> links_beside(std::uint64_t kernel_nanoseconds) {
  FakeOptions options;
  options.kernel_nanoseconds = kernel_nanoseconds;
  options.wait_nanoseconds = 700;
  TwoWalkers two(options);
  CudaWorkBeside others(*two.devices, two.walkers);
  CHECK(others.lasts(1, 1));
  CHECK(others.lasts(2, 6'400'000) == (kernel_nanoseconds >= 10'000));
  const CudaLaunchTimes launches = measure_launch_times(*two.devices, two.launching);
  auto links = measure_cuda_links(*two.devices, two.launching, launches, nullptr,
                                  {Bytes{1 << 10}, Bytes{1 << 14}, Bytes{1 << 18}}, &others);
  CHECK(two.fake.faults() == std::vector<std::string>{});
  return links;
}

TEST_CASE("links that others' work does not slow down have no other times") {
  // Neither where it lasts, nor where it would end before the transfers do.
  for (const std::uint64_t kernel_nanoseconds : {20'000, 100}) {
    CAPTURE(kernel_nanoseconds);
    const auto links = links_beside(kernel_nanoseconds);
    REQUIRE(links.size() == 3);
    for (const MeasuredLink& link : links) CHECK(link.busy.empty());
  }
}

}  // namespace
}  // namespace plumbline::test
