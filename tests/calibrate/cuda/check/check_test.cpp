// The proof of devices, on fake drivers that keep to the split and on some that do not.
//
// SPDX-License-Identifier: MIT
#include "calibrate/cuda/check/check.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "calibrate/cuda/check/layer_check.h"
#include "tests/support/emulated_kernels.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/trials.h"

namespace plumbline {
namespace {

TEST_CASE("devices that keep to their SMs and work together pass, and all is told") {
  FakeCuda fake;
  const auto check = check_cuda_devices(fake.driver(), 4, false);
  REQUIRE(check);
  CHECK(check->failures.empty());
  CHECK(check->text ==
        "driver      for CUDA 13.0\n"
        "GPU 0       Fake H100, 132 SMs, 1.0 GiB, compute capability 9.0\n"
        "device 0    32 SMs of GPU 0; kernels seen on 32, of graphs on 32\n"
        "device 1    32 SMs of GPU 0; kernels seen on 32, of graphs on 32\n"
        "device 2    32 SMs of GPU 0; kernels seen on 32, of graphs on 32\n"
        "device 3    32 SMs of GPU 0; kernels seen on 32, of graphs on 32\n"
        "overlap     5.00 of 5 ms\n"
        "streams     12, three on each device, of which 12 work at the same time\n"
        "copies      on 4 SMs for all copies: 1 MiB beside a kernel of 5 ms that fills its device "
        "ends 4.98 ms before it\n");
  CHECK(fake.faults().empty());
  CHECK(fake.live().empty());
}

TEST_CASE("a whole GPU passes by itself, several without a joint clock") {
  FakeOptions options;
  options.gpus = {FakeGpu{}, FakeGpu{"Fake A100", 108, 4, 2}};
  FakeCuda fake(options);
  const auto one = check_cuda_devices(fake.driver(), 1, false);
  REQUIRE(one);
  CHECK(one->failures.empty());
  const auto two = check_cuda_devices(fake.driver(), 2, false);
  REQUIRE(two);
  CHECK(two->failures.empty());
  CHECK(two->text ==
        "driver      for CUDA 13.0\n"
        "GPU 0       Fake H100, 132 SMs, 1.0 GiB, compute capability 9.0\n"
        "GPU 1       Fake A100, 108 SMs, 1.0 GiB, compute capability 9.0\n"
        "device 0    132 SMs of GPU 0; kernels seen on 132, of graphs on 132\n"
        "device 1    108 SMs of GPU 1; kernels seen on 108, of graphs on 108\n"
        "overlap     not looked at: each GPU has a clock of its own\n");
}

TEST_CASE("kernels on SMs that are not the device's are found") {
  FakeOptions options;
  options.leaves_partitions = true;
  FakeCuda fake(options);
  const auto check = check_cuda_devices(fake.driver(), 2, false);
  REQUIRE(check);
  CHECK(check->failures ==
        std::vector<std::string>{"device 0 has 64 SMs, but its kernels ran on 132",
                                 "device 1 has 64 SMs, but its kernels ran on 132",
                                 "devices 0 and 1 share 132 SMs (0, 1, 2, 3, ...)"});
}

TEST_CASE("a device that overlaps another is found, even where the counts are right") {
  FakeCuda fake;
  FakeKernel where{{8, 8}, {}, {}};
  where.run = [](const FakeLaunch& launch) {
    std::uint32_t* sms = *static_cast<std::uint32_t**>(launch.arguments[0]);
    const unsigned first = launch.first_sm == 0 ? 0 : launch.first_sm - 2;
    for (unsigned block = 0; block < launch.grid[0]; ++block)
      sms[block] = first + block % launch.sms;
  };
  fake.add({{"plumbline_where", where}});
  const auto check = check_cuda_devices(fake.driver(), 2, false);
  REQUIRE(check);
  CHECK(check->failures == std::vector<std::string>{"devices 0 and 1 share 2 SMs (62, 63)"});
}

TEST_CASE("graphs that leave their device's SMs are found") {
  FakeOptions options;
  options.graphs_leave_partitions = true;
  FakeCuda fake(options);
  const auto check = check_cuda_devices(fake.driver(), 2, false);
  REQUIRE(check);
  CHECK(check->failures ==
        std::vector<std::string>{"a graph captured on device 0 ran on 68 SMs that its kernels do "
                                 "not run on (64, 65, 66, 67, ...)",
                                 "a graph captured on device 1 ran on 68 SMs that its kernels do "
                                 "not run on (0, 1, 2, 3, ...)"});
}

TEST_CASE("devices that wait for each other are found") {
  FakeOptions options;
  options.one_at_a_time = true;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    options.seed = seed;
    FakeCuda fake(options);
    const auto check = check_cuda_devices(fake.driver(), 2, false);
    REQUIRE(check);
    REQUIRE(check->failures.size() == 1);
    const std::string& text = check->failures[0];
    const bool either =
        text ==
            "the devices do not work at the same time: each spun for 5 ms, but device 1 began "
            "0.00 ms after device 0 had ended" ||
        text ==
            "the devices do not work at the same time: each spun for 5 ms, but device 0 began "
            "0.00 ms after device 1 had ended";
    CHECK_MESSAGE(either, text);
  }
}

TEST_CASE("a kernel that writes nothing proves nothing") {
  FakeCuda fake;
  FakeKernel where{{8, 8}, {}, {}};
  fake.add({{"plumbline_where", where}});
  const auto check = check_cuda_devices(fake.driver(), 2, false);
  REQUIRE(check);
  CHECK(check->failures.size() == 1);
}

TEST_CASE("whatever call fails in the proof, its name is told and nothing stays behind") {
  for (const char* const call :
       {"cuMemAlloc", "cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyDtoHAsync",
        "cuStreamSynchronize", "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate",
        "cuGraphLaunch", "cuDeviceTotalMem"}) {
    for (int nth = 1; nth <= 2; ++nth) {
      CAPTURE(std::string(call));
      CAPTURE(nth);
      FakeCuda fake;
      fake.fail(call, nth, CUDA_ERROR_LAUNCH_FAILED);
      std::string said;
      try {
        static_cast<void>(check_cuda_devices(fake.driver(), 2, false));
      } catch (const CudaError& error) {
        said = error.what();
      }
      // The GPU is asked for its memory once.
      if (call == std::string("cuDeviceTotalMem") && nth == 2) continue;
      CHECK(said ==
            std::string(call) +
                ": unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED); the device is lost to "
                "this process: run again, and look at nvidia-smi if it comes back");
      CHECK(fake.live() == std::string());
    }
  }
}

TEST_CASE("every library has a line, whether it is found or not") {
  const std::string text = cuda_library_text();
  for (const char* const name : {"cuBLASLt", "cuDNN", "NCCL"})
    CHECK(text.find(name) != std::string::npos);
}

TEST_CASE("layers are held against the reference, on whatever the device has" *
          doctest::test_suite("slow")) {
  const auto checked = [](const auto& breaks) {
    FakeCuda fake;
    FakeKernels kernels = test::emulated_kernels();
    breaks(fake, kernels);
    fake.add(kernels);
    CudaCheck check;
    REQUIRE_FALSE(check_cuda_layers(fake.driver(), 2, /*own=*/true, check));
    return check;
  };
  const CudaCheck lost = checked([](FakeCuda& fake, FakeKernels&) {
    fake.fail("cuLaunchKernel", 48, CUDA_ERROR_LAUNCH_FAILED, /*lost=*/true);
  });
  REQUIRE(lost.failures.size() == 1);
  CHECK(lost.failures.front().starts_with(
      "layers do not run from attention_block on [70, 64], fp32 on: cuLaunchKernel: "));
  if (test::kSanitized) return;  // half a minute there, and other cases see the same

  const CudaCheck right = checked([](FakeCuda&, FakeKernels&) {});
  CAPTURE(right.text);
  CHECK(right.failures.empty());
  CHECK(
      right.text.starts_with("layers      28 in fp32, tf32 and bf16 beside the reference, with "
                             "own products, own convolutions\n            furthest off is "));
  CHECK(right.text.find("recorded") == std::string::npos);

  // A kernel that is refused once, one that writes nothing, one that gets a number wrong, and one
  // that does so only where it is replayed; a layer that cannot be recorded.
  const CudaCheck wrong = checked([](FakeCuda& fake, FakeKernels& kernels) {
    fake.fail("cuLaunchKernel", 1, CUDA_ERROR_INVALID_VALUE);
    fake.fail("cuStreamBeginCapture", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    kernels.at("plumbline_activate_bf16").run = [](const FakeLaunch&) {};
    FakeKernel& forward = kernels.at("plumbline_attention_forward_64");
    forward.run = [run = forward.run](const FakeLaunch& launch) {
      run(launch);
      auto* const context = *static_cast<std::uint16_t**>(launch.arguments[0]);
      context[0] =
          static_cast<std::uint16_t>(context[0] ^ 0x0180U);  // eight times as much, or less
    };
    FakeKernel& relu = kernels.at("plumbline_relu_bf16");
    relu.run = [run = relu.run, runs = std::make_shared<int>(0)](const FakeLaunch& launch) {
      if ((*runs)++ == 0) run(launch);
    };
  });
  std::vector<std::string> layers;
  for (const std::string& failure : wrong.failures) {
    const std::string layer = failure.substr(0, failure.find(" is not the reference's: its "));
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
  }
  CHECK(layers == std::vector<std::string>{
                      "layer linear on [48], fp32 does not run: cuLaunchKernel: invalid argument "
                      "(CUDA_ERROR_INVALID_VALUE)",
                      "layer relu on [77], bf16, replayed as a graph,", "layer gelu on [77], bf16",
                      "layer attention_block on [81, 64], bf16",
                      "layer attention_block on [37, 48], bf16",
                      "layer mlp_block on [7, 24], bf16"});
  CHECK(wrong.text.find("            1 cannot be recorded and replayed as graphs, such as linear "
                        "on [5, 17], fp32: cuStreamBeginCapture: ") != std::string::npos);
}

}  // namespace
}  // namespace plumbline
