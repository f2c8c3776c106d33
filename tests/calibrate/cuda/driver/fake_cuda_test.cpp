// The fake driver that other tests stand on.
//
// SPDX-License-Identifier: MIT
#include "tests/support/fake_cuda.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/cuda/driver/queue.h"

namespace plumbline {
namespace {

/// A primary context that is current, two streams, and a kernel that adds its second argument to
/// ten times what is at its first.
class Bench {
 public:
  explicit Bench(FakeOptions options = {}) : fake(std::move(options)), driver(fake.driver()) {
    FakeKernel push{{8, 4}, {}, {}};
    push.run = [](const FakeLaunch& launch) {
      int* place = nullptr;
      int digit = 0;
      std::memcpy(&place, launch.arguments[0], sizeof place);
      std::memcpy(&digit, launch.arguments[1], sizeof digit);
      *place = *place * 10 + digit;
    };
    fake.add({{"push", push}});
    PLUMBLINE_CUDA(driver, cuDevicePrimaryCtxRetain, &context, 0);
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, context);
    PLUMBLINE_CUDA(driver, cuModuleLoadData, &module, "");
    PLUMBLINE_CUDA(driver, cuModuleGetFunction, &function, module, "push");
    PLUMBLINE_CUDA(driver, cuStreamCreateWithPriority, &one, CU_STREAM_NON_BLOCKING, 0);
    PLUMBLINE_CUDA(driver, cuStreamCreateWithPriority, &two, CU_STREAM_NON_BLOCKING, 0);
    PLUMBLINE_CUDA(driver, cuMemAlloc, &memory, sizeof(int));
    PLUMBLINE_CUDA(driver, cuMemsetD32Async, memory, 0, 1, one);
    PLUMBLINE_CUDA(driver, cuStreamSynchronize, one);
  }

  void push(CUstream stream, int digit) {
    void* arguments[] = {&memory, &digit};
    PLUMBLINE_CUDA(driver, cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, arguments,
                   nullptr);
  }
  CUevent event() {
    CUevent made = nullptr;
    PLUMBLINE_CUDA(driver, cuEventCreate, &made, CU_EVENT_DEFAULT);
    return made;
  }
  void record(CUevent event, CUstream stream) {
    PLUMBLINE_CUDA(driver, cuEventRecord, event, stream);
  }
  void wait(CUstream stream, CUevent event) {
    PLUMBLINE_CUDA(driver, cuStreamWaitEvent, stream, event, 0);
  }
  CUgraphExec end_capture(CUstream stream) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    PLUMBLINE_CUDA(driver, cuStreamEndCapture, stream, &graph);
    PLUMBLINE_CUDA(driver, cuGraphInstantiate, &exec, graph, 0);
    PLUMBLINE_CUDA(driver, cuGraphDestroy, graph);
    return exec;
  }
  int read() {
    PLUMBLINE_CUDA(driver, cuCtxSynchronize);
    int value = 0;
    PLUMBLINE_CUDA(driver, cuMemcpyDtoHAsync, &value, memory, sizeof value, one);
    return value;
  }

  FakeCuda fake;
  const CudaDriver& driver;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream one = nullptr;
  CUstream two = nullptr;
  CUdeviceptr memory = 0;
};

/// The contents of the memory after `program`, for all seeds.
template <class Program>
std::set<int> outcomes(const Program& program) {
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    FakeOptions options;
    options.seed = seed;
    Bench bench(options);
    program(bench);
    seen.insert(bench.read());
    CHECK(bench.fake.faults().empty());
  }
  return seen;
}

TEST_CASE("fake cuda: a stream keeps its order, and takes arguments as they were") {
  CHECK(outcomes([](Bench& bench) {
          for (int digit = 1; digit <= 4; ++digit) bench.push(bench.one, digit);
        }) == std::set<int>{1234});
}

TEST_CASE("fake cuda: nothing runs before it is waited for") {
  Bench bench;
  bench.push(bench.one, 1);
  CHECK(bench.fake.executions().size() == 1);  // the memset
  CHECK(bench.read() == 1);
}

TEST_CASE("fake cuda: streams without an event between them run in any order") {
  const auto seen = outcomes([](Bench& bench) {
    bench.push(bench.one, 1);
    bench.push(bench.one, 2);
    bench.push(bench.two, 3);
  });
  CHECK(seen == std::set<int>{123, 132, 312});
}

TEST_CASE("fake cuda: what nobody waits for may not have run when something else has") {
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FakeOptions options;
    options.seed = seed;
    Bench bench(options);
    bench.push(bench.one, 1);
    PLUMBLINE_CUDA(bench.driver, cuStreamSynchronize, bench.two);
    bench.push(bench.two, 2);
    PLUMBLINE_CUDA(bench.driver, cuStreamSynchronize, bench.two);
    int value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(bench.memory), sizeof value);
    seen.insert(value);
  }
  CHECK(seen == std::set<int>{2, 12});
}

TEST_CASE("fake cuda: an event orders two streams, at its last record") {
  CHECK(outcomes([](Bench& bench) {
          const CUevent event = bench.event();
          bench.record(event, bench.one);
          bench.push(bench.one, 1);
          bench.record(event, bench.one);
          bench.wait(bench.two, event);
          bench.push(bench.two, 2);
        }) == std::set<int>{12});
}

TEST_CASE("fake cuda: a wait for what was never recorded waits for nothing, and is told") {
  Bench bench;
  bench.wait(bench.two, bench.event());
  REQUIRE(bench.fake.faults().size() == 1);
  CHECK(bench.fake.faults()[0] == "wait_before_record: an event that no stream has recorded");
}

TEST_CASE("fake cuda: times are those of the kernels and their dependencies, for every seed") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    FakeOptions options;
    options.seed = seed;
    Bench bench(options);
    bench.fake.set_duration("push", 2'000'000);
    const CUevent begin = bench.event();
    const CUevent middle = bench.event();
    const CUevent end = bench.event();
    bench.record(begin, bench.one);
    bench.push(bench.one, 1);
    bench.record(middle, bench.one);
    bench.push(bench.one, 2);
    bench.wait(bench.two, middle);
    bench.push(bench.two, 3);  // beside the second
    bench.record(end, bench.two);
    CHECK(bench.driver.cuEventQuery(end) == CUDA_ERROR_NOT_READY);
    PLUMBLINE_CUDA(bench.driver, cuEventSynchronize, end);
    float milliseconds = 0;
    PLUMBLINE_CUDA(bench.driver, cuEventElapsedTime, &milliseconds, begin, end);
    CHECK(milliseconds == 4.0F);
    CHECK(bench.fake.now() >= 4'000'000);
  }
}

TEST_CASE("fake cuda: asking often enough is as good as waiting") {
  Bench bench;
  for (int digit = 1; digit <= 3; ++digit) bench.push(bench.one, digit);
  int asked = 0;
  while (bench.driver.cuStreamQuery(bench.one) == CUDA_ERROR_NOT_READY) ++asked;
  CHECK(asked == 2);
}

TEST_CASE("fake cuda: a graph forks, joins, and runs only when it is launched") {
  const auto seen = outcomes([](Bench& bench) {
    const CUevent fork = bench.event();
    const CUevent join = bench.event();
    PLUMBLINE_CUDA(bench.driver, cuStreamBeginCapture, bench.one,
                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    bench.push(bench.one, 1);
    bench.record(fork, bench.one);
    bench.wait(bench.two, fork);
    bench.push(bench.two, 2);
    bench.push(bench.one, 3);
    bench.record(join, bench.two);
    bench.wait(bench.one, join);
    bench.push(bench.one, 4);
    const CUgraphExec exec = bench.end_capture(bench.one);
    CHECK(bench.read() == 0);
    PLUMBLINE_CUDA(bench.driver, cuGraphLaunch, exec, bench.two);
    PLUMBLINE_CUDA(bench.driver, cuGraphLaunch, exec, bench.one);
  });
  CHECK(seen == std::set<int>{12341234, 12341324, 13241234, 13241324});
}

TEST_CASE("fake cuda: captures that CUDA refuses are refused") {
  Bench bench;
  const CUevent outside = bench.event();
  const CUevent fork = bench.event();
  CUgraph graph = nullptr;
  bench.record(outside, bench.two);
  const auto begin = [&] {
    PLUMBLINE_CUDA(bench.driver, cuStreamBeginCapture, bench.one,
                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  };
  SUBCASE("a stream that was forked is not joined") {
    begin();
    bench.record(fork, bench.one);
    bench.wait(bench.two, fork);
    bench.push(bench.two, 1);
    CHECK(bench.driver.cuStreamEndCapture(bench.one, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  SUBCASE("a wait for what is not captured") {
    begin();
    CHECK(bench.driver.cuStreamWaitEvent(bench.one, outside, 0) ==
          CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(bench.driver.cuStreamEndCapture(bench.one, &graph) ==
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("waiting for the device") {
    begin();
    CHECK(bench.driver.cuStreamSynchronize(bench.one) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(bench.driver.cuStreamEndCapture(bench.one, &graph) ==
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("allocating") {
    begin();
    CUdeviceptr more = 0;
    CHECK(bench.driver.cuMemAlloc(&more, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  CHECK(graph == nullptr);
  CHECK(bench.fake.faults().size() == 1);
}

TEST_CASE("fake cuda: memory ends, pools remember the most") {
  Bench bench;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  PLUMBLINE_CUDA(bench.driver, cuMemPoolCreate, &pool, &properties);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  PLUMBLINE_CUDA(bench.driver, cuMemAllocFromPoolAsync, &first, 1000, pool, bench.one);
  PLUMBLINE_CUDA(bench.driver, cuMemAllocFromPoolAsync, &second, 500, pool, bench.one);
  PLUMBLINE_CUDA(bench.driver, cuMemFreeAsync, first, bench.one);
  std::uint64_t high = 0;
  std::uint64_t now = 0;
  PLUMBLINE_CUDA(bench.driver, cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high);
  PLUMBLINE_CUDA(bench.driver, cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now);
  CHECK(high == 1500);
  CHECK(now == 500);
  CUdeviceptr large = 0;
  const std::size_t memory = FakeGpu{}.memory;
  CHECK(bench.driver.cuMemAlloc(&large, memory) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(bench.driver.cuMemcpyDtoDAsync(second, second + 400, 200, bench.one) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("fake cuda: planted failures come at their call; a lost device stays lost") {
  Bench bench;
  CUdeviceptr pointer = 0;
  bench.fake.fail("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(bench.driver.cuMemAlloc(&pointer, 4) == CUDA_SUCCESS);
  CHECK(bench.driver.cuMemAlloc(&pointer, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(bench.driver.cuMemAlloc(&pointer, 4) == CUDA_SUCCESS);
  bench.fake.fail("cuStreamQuery", 1, CUDA_ERROR_ECC_UNCORRECTABLE, true);
  CHECK(bench.driver.cuStreamQuery(bench.one) == CUDA_ERROR_ECC_UNCORRECTABLE);
  CHECK(bench.driver.cuMemAlloc(&pointer, 4) == CUDA_ERROR_ECC_UNCORRECTABLE);
}

TEST_CASE("fake cuda: a kernel that throws is a launch that failed, seen at the next wait") {
  Bench bench;
  FakeKernel bad;
  bad.run = [](const FakeLaunch&) { throw std::runtime_error("out of bounds"); };
  bench.fake.add({{"bad", bad}});
  PLUMBLINE_CUDA(bench.driver, cuModuleGetFunction, &bench.function, bench.module, "bad");
  bench.push(bench.one, 0);
  CHECK(bench.driver.cuStreamSynchronize(bench.one) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(bench.fake.faults() == std::vector<std::string>{"kernel: bad: out of bounds"});
}

TEST_CASE("fake cuda: the kernels' context must be that of the stream, and current") {
  Bench bench;
  PLUMBLINE_CUDA(bench.driver, cuCtxSetCurrent, nullptr);
  CHECK_THROWS_AS(bench.push(bench.one, 1), CudaError);
  CHECK(bench.fake.faults().size() == 1);
}

TEST_CASE("the stand-ins for kernels that need a device take the arguments of the real ones") {
  std::ifstream file("calibrate/cuda/kernels/spin.cu");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  const std::regex kernel("__global__ void (plumbline_\\w+)\\(([^)]*)\\)");
  std::map<std::string, std::vector<std::size_t>> real;
  for (std::sregex_iterator found(source.begin(), source.end(), kernel), last; found != last;
       ++found) {
    std::vector<std::size_t>& sizes = real[(*found)[1]];
    std::stringstream parameters((*found)[2]);
    for (std::string one; std::getline(parameters, one, ',');) {
      const bool is_wide =
          one.find('*') != std::string::npos || one.find("long long") != std::string::npos;
      sizes.push_back(is_wide ? 8 : 4);
    }
  }
  std::map<std::string, std::vector<std::size_t>> stand_ins;
  for (const auto& [name, one] : proof_kernels({})) stand_ins[name] = one.sizes;
  CHECK(real.size() >= 5);
  CHECK(stand_ins == real);
}

}  // namespace
}  // namespace plumbline
