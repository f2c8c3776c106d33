// Transfer times from device to device, on a driver whose copies take 500 ns plus 1 ns per 64
// bytes.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/timing/link_benchmark.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/measure/sampling.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/fake_nccl.h"

namespace plumbline::test {
namespace {

const std::vector<Bytes> kSizes = {Bytes{1 << 10}, Bytes{1 << 14}, Bytes{1 << 18}, Bytes{1 << 20}};

/// Kernels that compute, but for the one that writes what is sent: that takes no time.
FakeKernels kernels() {
  FakeKernels all = emulated_kernels();
  all["plumbline_fill_f32"] = FakeKernel{{8, 4, 8}, {}, {}};
  all["plumbline_fill_f32"].duration = [](const FakeLaunch&) { return std::uint64_t{0}; };
  return all;
}

/// The links of so many devices of a driver, and what the driver had to say against it.
std::vector<MeasuredLink> links_of(const FakeOptions& options, std::uint32_t count,
                                   double crossing = 0, bool one_gpu = false,
                                   const Nccl* nccl = nullptr) {
  FakeCuda fake(options);
  fake.add(kernels());
  std::vector<MeasuredLink> links;
  {
    const auto devices = open_cuda_devices(fake.driver(), count, one_gpu);
    REQUIRE(devices);
    CudaLaunching launching;
    CudaLaunchTimes launches = measure_launch_times(**devices, launching);
    CHECK(launches.alone < 0.1);  // as a driver tells times
    CHECK(launches.beside < 0.1);
    CHECK(launches.crossing < 0.1);
    launches.crossing = crossing;
    links = measure_cuda_links(**devices, launching, launches, nccl, kSizes);
  }
  CHECK(fake.faults() == std::vector<std::string>{});
  CHECK(fake.live() == "");
  return links;
}

std::vector<std::string> kinds(const std::vector<MeasuredLink>& links) {
  std::vector<std::string> kinds;
  kinds.reserve(links.size());
  for (const MeasuredLink& link : links) kinds.push_back(link.kind);
  return kinds;
}

TEST_CASE("links between parts of a GPU take what copies take, and twice that by the host") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    FakeOptions options;
    options.seed = seed;
    const auto links = links_of(options, 4);
    REQUIRE(kinds(links) == std::vector<std::string>{"copy", "blocking copy", "host"});
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const std::int64_t once = 500 + kSizes[i].count / 64;
      CHECK(links[0].table[i] == std::pair{kSizes[i], Duration{once}});
      CHECK(links[1].table[i] ==
            std::pair{kSizes[i], Duration{once}});  // streams that wait for 0 s
      CHECK(links[2].table[i] == std::pair{kSizes[i], Duration{2 * once}});
    }
    CHECK(links[0].latency == Duration{500});
    REQUIRE(links[0].bandwidth);
    CHECK(static_cast<double>(links[0].bandwidth->count) == doctest::Approx(64e9));
    CHECK(links[2].latency == Duration{1000});
    REQUIRE(links[2].bandwidth);
    CHECK(static_cast<double>(links[2].bandwidth->count) == doctest::Approx(32e9));
  }
}

TEST_CASE("launches and hand-overs are found beside ops, and links beyond both") {
  FakeOptions options;
  options.graph_nanoseconds = 400;
  options.wait_nanoseconds = 700;
  FakeCuda fake(options);
  fake.add(kernels());
  for (const std::uint32_t count : {2U, 3U, 8U}) {
    for (const bool replays : {true, false}) {
      CAPTURE(count);
      CAPTURE(replays);
      const auto devices = open_cuda_devices(fake.driver(), count, false);
      REQUIRE(devices);
      CudaLaunching launching;
      launching.replays = replays;
      const CudaLaunchTimes launches = measure_launch_times(**devices, launching);
      const double launch = replays ? 400 : 0;
      CHECK(launches.alone == doctest::Approx(launch).epsilon(0.01).scale(10));
      CHECK(launches.beside == doctest::Approx(launch).epsilon(0.01).scale(10));
      CHECK(launches.signals == doctest::Approx(700).epsilon(0.01));  // a wait for what has been
      CHECK(launches.crossing == doctest::Approx(0).scale(10));
      const auto links = measure_cuda_links(**devices, launching, launches, nullptr, kSizes);
      REQUIRE(kinds(links) == std::vector<std::string>{"copy", "blocking copy", "host"});
      for (std::size_t i = 0; i < kSizes.size(); ++i) {
        // A stream of its own waits for what was made, and the receiver for it: one of the two is
        // with the op. Where it blocks, the sender waits for the receiver.
        const std::int64_t once = 500 + kSizes[i].count / 64;
        CHECK(std::abs(links[0].table[i].second.count() - once) <= 2);
        CHECK(std::abs(links[1].table[i].second.count() - once) <= 2);
        CHECK(std::abs(links[2].table[i].second.count() - (2 * once + 700)) <= 2);
      }
    }
  }
}

TEST_CASE("a hand-over that predictions add is not a part of a link") {
  const auto links = links_of({}, 2, 100);
  REQUIRE(links.size() == 3);
  CHECK(links[0].latency == Duration{400});
  const auto huge = links_of({}, 2, 1e9);
  REQUIRE(huge.size() == 3);
  for (const auto& [size, time] : huge[0].table) CHECK(time == Duration{1});  // never nothing
}

TEST_CASE("each two neighbouring GPUs have a link of their own, one device has none") {
  FakeOptions options;
  options.gpus.assign(3, FakeGpu{});
  const auto links = links_of(options, 3);
  CHECK(kinds(links) == std::vector<std::string>{"peer 0-1", "peer 1-2", "blocking peer 0-1",
                                                 "blocking peer 1-2", "host"});
  CHECK(links[0].latency == Duration{500});
  CHECK(kinds(links_of(options, 3, {}, true)) ==
        std::vector<std::string>{"copy", "blocking copy", "host"});
  CHECK(links_of({}, 1).empty());
}

TEST_CASE("with NCCL the links between GPUs are its own, but for the one by the host") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    FakeOptions options;
    options.seed = seed;
    options.gpus.assign(3, FakeGpu{});
    const auto links = links_of(options, 3, {}, false, &fake_nccl());
    REQUIRE(kinds(links) == std::vector<std::string>{"nccl 0-1", "nccl 1-2", "blocking nccl 0-1",
                                                     "blocking nccl 1-2", "host"});
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      CHECK(links[0].table[i] == std::pair{kSizes[i], Duration{500 + kSizes[i].count / 64}});
    CHECK(live_nccl_ranks() == 0);
  }
}

TEST_CASE("sizes for which there is no memory are left out of a link") {
  FakeOptions options;
  options.gpus.front().memory = 1 << 20;  // two tensors of 256 KiB, not of 1 MiB
  const auto links = links_of(options, 2);
  REQUIRE(links.size() == 3);
  CHECK(links[0].table.size() == 3);
  CHECK(links[0].table.back().first == kSizes[2]);
  options.gpus.front().memory = 10'000;  // one size is no line
  CHECK(links_of(options, 2).empty());
}

TEST_CASE("a call that fails while links are measured is told, and nothing is left") {
  FakeCuda fake;
  fake.add(kernels());
  {
    const auto devices = open_cuda_devices(fake.driver(), 2, false);
    REQUIRE(devices);
    for (const char* call : {"cuStreamCreateWithPriority", "cuGreenCtxStreamCreate", "cuMemAlloc",
                             "cuMemHostAlloc", "cuMemcpyDtoDAsync", "cuEventElapsedTime"}) {
      CAPTURE(call);
      const int before = fake.calls(call);
      fake.fail(call, 1, CUDA_ERROR_UNKNOWN);
      try {
        CudaLaunching launching;
        const auto links = measure_cuda_links(**devices, launching, {}, nullptr, kSizes);
        CHECK(fake.calls(call) == before);  // it is not called at all
      } catch (const CudaError& error) {
        CHECK(std::string(error.what()).find(call) == 0);
      }
    }
  }
  CHECK(fake.live() == "");
}

}  // namespace
}  // namespace plumbline::test
