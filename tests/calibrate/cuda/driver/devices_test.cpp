// Opening and splitting GPUs, on a fake driver.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/driver/devices.h"

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "calibrate/cuda/driver/device_pool.h"
#include "tests/support/fake_cuda.h"

namespace plumbline {
namespace {

FakeOptions gpus(std::size_t count) {
  FakeOptions options;
  options.gpus.assign(count, FakeGpu{});
  return options;
}

TEST_CASE("one GPU is split into as many devices as asked for, and closed again") {
  FakeCuda fake;
  {
    const auto opened = open_cuda_devices(fake.driver(), 4, false);
    REQUIRE(opened);
    CudaDevices& devices = **opened;
    CHECK(devices.split());
    CHECK(devices.name() == "Fake H100");
    REQUIRE(devices.all().size() == 4);
    for (const CudaDevice& device : devices.all()) {
      CHECK(device.ordinal == 0);
      CHECK(device.sms == 32);
      CHECK(device.compute != nullptr);
      CHECK((*device.kernels)["plumbline_where"] != nullptr);
      CHECK_THROWS_WITH_AS((*device.kernels)["nothing"],
                           "cuModuleGetFunction nothing: named symbol not found "
                           "(CUDA_ERROR_NOT_FOUND)",
                           CudaError);
    }
    // The SMs that the split leaves over copy for all devices.
    CHECK(devices.mover(3).sms == 4);
    CHECK(devices.mover(3).context != devices.mover(0).context);
    CHECK(devices.mover(0).context != devices.all()[0].context);
    CHECK(fake.live() == "1 primary context, 8 green contexts, 8 modules, 4 streams");
    CUstream before = nullptr;
    {
      const CudaUrgentStream more(devices, 2);
      before = more.get();
      CHECK(fake.live() == "1 primary context, 8 green contexts, 8 modules, 5 streams");
      CHECK(CudaUrgentStream(devices, 2).get() != before);
      CHECK(CudaUrgentStream(devices, 1).get() != before);
    }
    CHECK(CudaUrgentStream(devices, 2).get() == before);
    CHECK(fake.live() == "1 primary context, 8 green contexts, 8 modules, 7 streams");
  }
  CHECK(fake.live().empty());
  CHECK(fake.faults().empty());
}

TEST_CASE(
    "a device copies by itself where nothing is left over, or the driver makes nothing of "
    "it") {
  {
    FakeOptions even;
    even.gpus.front().sms = 16;
    FakeCuda fake(even);
    {
      const auto opened = open_cuda_devices(fake.driver(), 2, false);
      REQUIRE(opened);
      CHECK(&(*opened)->mover(1) == &(*opened)->all()[1]);
      const CudaUrgentStream own(**opened, 1);
      CHECK(fake.live() == "1 primary context, 2 green contexts, 2 modules, 3 streams");
    }
    CHECK(fake.live().empty());
  }
  for (const int refused : {3, 4}) {  // of the four green contexts of two devices
    FakeCuda fake;
    fake.fail("cuGreenCtxCreate", refused, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    {
      const auto opened = open_cuda_devices(fake.driver(), 2, false);
      REQUIRE(opened);
      CHECK(&(*opened)->mover(0) == &(*opened)->all()[0]);
      CHECK(fake.live() == "1 primary context, 2 green contexts, 2 modules, 2 streams");
    }
    CHECK(fake.live().empty());
    CHECK(fake.faults().empty());
  }
  FakeCuda broken;
  broken.fail("cuGreenCtxCreate", 4, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_FALSE(open_cuda_devices(broken.driver(), 2, false));
  CHECK(broken.live().empty());
}

TEST_CASE("one device is the whole GPU") {
  FakeCuda fake;
  for (const bool one_gpu : {false, true}) {
    const auto opened = open_cuda_devices(fake.driver(), 1, one_gpu);
    REQUIRE(opened);
    CHECK_FALSE((*opened)->split());
    CHECK((*opened)->all()[0].sms == 132);
  }
  CHECK(fake.live().empty());
}

TEST_CASE("as many GPUs as devices are each taken whole, and reach each other") {
  FakeCuda fake(gpus(2));
  {
    const auto opened = open_cuda_devices(fake.driver(), 2, false);
    REQUIRE(opened);
    CHECK_FALSE((*opened)->split());
    CHECK((*opened)->name() == "Fake H100");
    CHECK((*opened)->all()[1].ordinal == 1);
    CHECK((*opened)->all()[1].sms == 132);
    CHECK(fake.calls("cuCtxEnablePeerAccess") == 2);
  }
  {
    const auto split = open_cuda_devices(fake.driver(), 2, true);
    REQUIRE(split);
    CHECK((*split)->split());
  }
  {
    const auto more = open_cuda_devices(fake.driver(), 3, false);
    REQUIRE(more);
    CHECK((*more)->split());
  }
  CHECK(fake.live().empty());
  CHECK(fake.faults().empty());
}

TEST_CASE("GPUs that do not reach each other are opened all the same") {
  FakeOptions options = gpus(2);
  options.peers = false;
  FakeCuda fake(options);
  CHECK(open_cuda_devices(fake.driver(), 2, false));
  CHECK(fake.calls("cuCtxEnablePeerAccess") == 0);
}

TEST_CASE("opening leaves the thread's context, closing does not leave a dead one") {
  FakeCuda fake;
  const CudaDriver& driver = fake.driver();
  CUcontext mine = nullptr;
  CUcontext current = nullptr;
  PLUMBLINE_CUDA(driver, cuDevicePrimaryCtxRetain, &mine, 0);
  PLUMBLINE_CUDA(driver, cuCtxSetCurrent, mine);
  {
    const auto opened = open_cuda_devices(driver, 2, true);
    REQUIRE(opened);
    PLUMBLINE_CUDA(driver, cuCtxGetCurrent, &current);
    CHECK(current == mine);
    PLUMBLINE_CUDA(driver, cuCtxSetCurrent, (*opened)->all()[1].context);
  }
  PLUMBLINE_CUDA(driver, cuCtxGetCurrent, &current);
  CHECK(current == nullptr);
  CHECK(fake.faults().empty());
}

TEST_CASE("on a machine a primary context stays, once, however often devices are opened") {
  FakeCuda fake;
  CudaDriver driver = fake.driver();
  driver.keeps_contexts = true;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(open_cuda_devices(driver, 2, true));
    CHECK(fake.live() == "1 primary context");
  }
  CHECK(driver.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(fake.live().empty());
}

TEST_CASE("a split that the GPU has no room for says so") {
  FakeCuda fake;
  const auto opened = open_cuda_devices(fake.driver(), 17, false);
  REQUIRE_FALSE(opened);
  CHECK(opened.problems()[0].message == "the GPU has 132 SMs, too few for 17 groups of 8 or more");
  CHECK(opened.problems()[0].fault == Fault::no_device);
  CHECK(fake.live().empty());
}

TEST_CASE("a driver that gives fewer groups is refused, with the numbers") {
  FakeOptions options;
  options.max_groups = 7;
  FakeCuda fake(options);
  const auto opened = open_cuda_devices(fake.driver(), 8, false);
  REQUIRE_FALSE(opened);
  CHECK(opened.problems()[0].message ==
        "the driver makes 7 groups of 8 of the GPU's 132 SMs, not the 8 that are asked for");
  CHECK(opened.problems()[0].help == "it can be split into 7 devices at most");
  CHECK(fake.live().empty());
}

TEST_CASE("where SMs stand apart, groups are as large as the driver has room for") {
  FakeOptions options;
  options.gpus.front().stray = 12;  // as on many an H100: 15 groups of 8, and 12 SMs in none
  FakeCuda fake(options);
  for (const auto& split : {std::pair{2U, 56U}, {3U, 40U}, {4U, 24U}, {8U, 8U}}) {
    const auto& [count, sms] = split;
    CAPTURE(split.first);
    const auto opened = open_cuda_devices(fake.driver(), count, false);
    REQUIRE_MESSAGE(opened, (opened ? "" : to_text(opened.problems())));
    REQUIRE((*opened)->all().size() == count);
    for (const CudaDevice& device : (*opened)->all()) CHECK(device.sms == sms);
  }
  const auto more = open_cuda_devices(fake.driver(), 16, false);
  REQUIRE_FALSE(more);
  CHECK(more.problems()[0].help == "it can be split into 15 devices at most");
  CHECK(fake.faults().empty());
}

TEST_CASE("a driver that refuses a size of group is asked for a smaller one") {
  FakeCuda fake;
  fake.fail("cuDevSmResourceSplitByCount", 1, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  const auto opened = open_cuda_devices(fake.driver(), 2, false);
  REQUIRE(opened);
  CHECK((*opened)->all()[0].sms == 56);
}

TEST_CASE("whatever call fails while devices are opened, nothing stays behind") {
  constexpr std::array kCalls = {"cuDeviceGetCount",         "cuDeviceGet",
                                 "cuDeviceGetName",          "cuDeviceGetAttribute",
                                 "cuDeviceGetDevResource",   "cuDevSmResourceSplitByCount",
                                 "cuDevicePrimaryCtxRetain", "cuDevResourceGenerateDesc",
                                 "cuGreenCtxCreate",         "cuGreenCtxGetDevResource",
                                 "cuCtxFromGreenCtx",        "cuCtxPushCurrent",
                                 "cuGreenCtxStreamCreate",   "cuStreamCreateWithPriority",
                                 "cuModuleLoadData",         "cuDeviceCanAccessPeer",
                                 "cuCtxEnablePeerAccess"};
  for (const char* const call : kCalls) {
    int failures = 0;
    for (const bool one_gpu : {false, true}) {
      for (int nth = 1; nth <= 8; ++nth) {
        CAPTURE(std::string(call));
        CAPTURE(nth);
        CAPTURE(one_gpu);
        FakeCuda fake(gpus(2));
        fake.fail(call, nth, CUDA_ERROR_OUT_OF_MEMORY);
        {
          const auto opened = open_cuda_devices(fake.driver(), 2, one_gpu);
          if (!opened) {
            ++failures;
            CHECK(opened.problems()[0].message ==
                  std::string(call) +
                      ": out of memory (CUDA_ERROR_OUT_OF_MEMORY); take fewer or smaller "
                      "micro-batches, or more devices");
            CHECK(opened.problems()[0].fault == Fault::no_device);
          }
        }
        CHECK(fake.live().empty());
        CHECK(fake.faults().empty());
      }
    }
    CAPTURE(std::string(call));
    CHECK(failures > 0);
  }
}

TEST_CASE("an older driver runs whole GPUs, and says which one splits them") {
  FakeCuda fake(gpus(2));
  CudaDriver driver = fake.driver();
  CHECK(missing_for_split(driver).empty());
  driver.cuGreenCtxStreamCreate = nullptr;
  CHECK(missing_for_split(driver) == "cuGreenCtxStreamCreate, which a driver for CUDA 12.5 brings");
  driver.cuGreenCtxCreate = nullptr;
  CHECK(missing_for_split(driver) == "cuGreenCtxCreate, which a driver for CUDA 12.4 brings");
  CHECK(open_cuda_devices(driver, 2, false));
  const auto split = open_cuda_devices(driver, 4, false);
  REQUIRE_FALSE(split);
  CHECK(split.problems()[0].message ==
        "the CUDA driver does not split a GPU: it lacks cuGreenCtxCreate, which a driver for CUDA "
        "12.4 brings");
  CHECK(split.problems()[0].fault == Fault::no_device);
}

TEST_CASE("a driver's functions are found by name, and only some must be there") {
  static int any = 0;
  std::set<std::string> lacks;
  const auto found = [&] {
    return cuda_driver_of([&](const char* name) -> void* {
      return lacks.count(name) > 0 || std::string(name) == "cuDriverGetVersion" ? nullptr : &any;
    });
  };
  CHECK_FALSE(found());  // cuDriverGetVersion
  const auto with_version = [&] {
    return cuda_driver_of([&](const char* name) -> void* {
      static CUresult (*const version)(int*) = [](int* number) {
        *number = 12020;
        return CUDA_SUCCESS;
      };
      if (std::string(name) == "cuDriverGetVersion") return reinterpret_cast<void*>(version);
      return lacks.count(name) > 0 ? nullptr : &any;
    });
  };
  CHECK(with_version());
  lacks = {"cuEventElapsedTime_v2", "cuGreenCtxCreate", "cuMemPoolCreate"};
  const auto older = with_version();
  REQUIRE(older);
  CHECK((older->cuEventElapsedTime != nullptr));  // the first version
  CHECK((older->cuGreenCtxCreate == nullptr));
  lacks = {"cuEventElapsedTime_v2", "cuEventElapsedTime", "cuGraphLaunch"};
  const auto refused = with_version();
  REQUIRE_FALSE(refused);
  CHECK(refused.problems()[0].message ==
        "the CUDA driver (12.2) is too old: it lacks cuEventElapsedTime_v2 and 1 more");
  CHECK(refused.problems()[0].help == "install a driver for CUDA 12 or 13");
}

TEST_CASE("devices stay open until others are asked for, or nobody has them") {
  FakeCuda fake(gpus(2));
  {
    CudaDevicePool pool;
    const auto first = pool.open(fake.driver(), 4, true);
    REQUIRE(first);
    const auto again = pool.open(fake.driver(), 4, true);
    REQUIRE(again);
    CHECK(*first == *again);
    CHECK((*first)->devices->all().size() == 4);
    const auto whole = pool.open(fake.driver(), 2, false);
    REQUIRE(whole);
    CHECK(*first != *whole);
    CHECK_FALSE((*whole)->devices->split());
    CHECK((*first)->devices->all()[3].compute != nullptr);  // its holder's still
    CHECK_FALSE(pool.open(fake.driver(), 100, true));
    const auto last = pool.open(fake.driver(), 2, true);
    REQUIRE(last);
    (*last)->hangs = true;
    for (const std::uint32_t count : {2U, 4U}) {
      const auto refused = pool.open(fake.driver(), count, true);
      REQUIRE_FALSE(refused);
      CHECK(refused.problems()[0].message ==
            "a device hung in an earlier run, and is not used again");
      CHECK(refused.problems()[0].fault == Fault::no_device);
    }
  }
  CHECK(fake.live().empty());
  CHECK(fake.faults().empty());
}

}  // namespace
}  // namespace plumbline
