// The gate that the host opens, on a fake driver.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/gate.h"

#include <doctest/doctest.h>

#include <memory>

#include "calibrate/cuda/driver/devices.h"
#include "calibrate/cuda/driver/scratch.h"
#include "calibrate/cuda/driver/stopwatch.h"
#include "tests/support/fake_cuda.h"

namespace plumbline {
namespace {

struct GateBench {
  GateBench() {
    auto opened = open_cuda_devices(fake.driver(), 1, false);
    REQUIRE(opened);
    devices = *std::move(opened);
    PLUMBLINE_CUDA(fake.driver(), cuCtxSetCurrent, devices->all()[0].context);
  }
  CudaQueue queue() { return bare_queue(fake.driver(), devices->all()[0], stream()); }
  CUstream stream() { return devices->all()[0].compute; }
  void wait() { PLUMBLINE_CUDA(fake.driver(), cuStreamSynchronize, stream()); }

  FakeCuda fake;
  std::unique_ptr<CudaDevices> devices;
};

TEST_CASE("a gate opens when the host says so, again and again") {
  GateBench bench;
  CudaGate gate;
  CHECK(gate.was_in_time());
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t before = bench.fake.now();
    gate.close(bench.queue(), true);
    CHECK_FALSE(gate.is_open());
    gate.open();
    gate.open();
    CHECK(gate.is_open());
    bench.wait();
    CHECK(gate.was_in_time());
    CHECK(bench.fake.now() == before);  // no longer than the host takes
  }
  CHECK(bench.fake.faults().empty());
}

TEST_CASE("a gate that the host does not open opens by itself, and tells") {
  GateBench bench;
  CudaGate gate;
  gate.close(bench.queue(), true, 7000);
  bench.wait();  // as where a queue is full
  CHECK(bench.fake.now() == 7000);
  gate.open();
  CHECK_FALSE(gate.was_in_time());
  gate.close(bench.queue(), true, 7000);  // and the next one is another
  gate.open();
  bench.wait();
  CHECK(gate.was_in_time());
  CHECK(bench.fake.now() == 7000);
  gate.close(bench.queue(), false);  // holds nothing
  CHECK(gate.is_open());
  bench.wait();
  CHECK(gate.was_in_time());
  CHECK(bench.fake.now() == 7000);
}

TEST_CASE("a stopwatch counts no time for which the host was late, unless it always is") {
  GateBench bench;
  CudaStopwatch stopwatch(*bench.devices, 0);
  const CudaScratch counted(bench.fake.driver(), 16);
  int rounds = 0;
  const auto work = [&](bool late) {
    PLUMBLINE_CUDA(bench.fake.driver(), cuCtxSetCurrent, bench.devices->all()[0].context);
    if (late) bench.wait();
    cuda::launch(bench.queue(), "plumbline_count_cycles", {}, 1, 0, 3000ULL, counted.data());
    if (late) bench.wait();
  };
  CHECK(stopwatch.time([&] { work(false); }) == doctest::Approx(3000));
  CHECK(stopwatch.time([&] { work(rounds++ % 2 == 1); }) == doctest::Approx(3000));
  CHECK(rounds >= 10);
  CHECK(stopwatch.time([&] { work(true); }) == doctest::Approx(3000));  // at last, without a gate
}

}  // namespace
}  // namespace plumbline
