// Options and progress of real runs.
//
// SPDX-License-Identifier: MIT
#include "cli/real.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <cstdio>

#include "cli/option_checks.h"
#include "cli/record/recorder.h"

namespace plumbline {
namespace {

void note_gpu(const std::string& name) {
  if (Recorder* const recorder = Recorder::active()) recorder->note_gpu(name);
}

}  // namespace

void add_real_arguments(CLI::App& command, RealArguments& arguments) {
  command.add_option("--backend", arguments.backend, "what runs the ops (plumbline list backends)")
      ->required()
      ->type_name("NAME");
  command.add_option("--iterations", arguments.run.iterations, "clean iterations to measure")
      ->check(between(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--warm-up", arguments.run.warm_up, "iterations before them")
      ->check(between(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  Noise& synthetic = arguments.synthetic;
  command
      .add_option("--spread", synthetic.spread, "synthetic: relative deviation of each op's time")
      ->check(between_reals(0.0, 10.0))
      ->type_name("FRACTION");
  command
      .add_option("--straggler-probability", synthetic.stragglers.probability,
                  "synthetic: the share of ops that take longer")
      ->check(between_reals(0.0, 1.0))
      ->type_name("FRACTION");
  command
      .add_option("--straggler-factor", synthetic.stragglers.factor,
                  "synthetic: how many times longer those take")
      ->check(between_reals(1.0, 1000.0))
      ->type_name("FACTOR")
      ->capture_default_str();
  command
      .add_option_function<std::uint64_t>(
          "--seed",
          [&arguments](std::uint64_t seed) {
            arguments.synthetic.seed = seed;
            arguments.cpu.seed = seed;
            arguments.cuda.seed = seed;
          },
          "synthetic: of spread and stragglers; cpu, cuda: of weights and data; absent = 1")
      ->type_name("N");
  command
      .add_option_function<double>(
          "--learning-rate",
          [&arguments](double rate) {
            arguments.cpu.learning_rate = rate;
            arguments.cuda.learning_rate = rate;
          },
          "cpu, cuda: of the updates; absent = 0.01")
      ->check(between_reals(0.0, 1000.0))
      ->type_name("RATE");
  add_cuda_device_arguments(command, arguments.cuda);
}

void add_cuda_device_arguments(CLI::App& command, CudaDeviceOptions& options) {
  command.add_flag("--one-gpu", options.one_gpu,
                   "cuda: parts of one GPU, even where there are enough of them");
  command.add_flag_callback(
      "--no-graphs", [&options] { options.graphs = false; },
      "cuda: launch kernels one by one, not as a graph for each op");
  command.add_flag("--nccl", options.nccl,
                   "cuda: tensors go between GPUs by NCCL (send, receive, all-reduce), not by "
                   "copies");
}

Result<std::unique_ptr<Backend>> recorded_backend(const RealArguments& arguments,
                                                  const Scenario& scenario) {
  auto backend = make_backend(arguments, scenario);
  if (backend && arguments.backend == "cuda") note_gpu((*backend)->device_text());
  return backend;
}

Result<std::unique_ptr<CalibrationDevices>> recorded_devices(const std::string& backend,
                                                             const Network& network,
                                                             std::uint32_t devices,
                                                             const CudaDeviceOptions& options) {
  auto opened = open_devices(backend, network, devices, {options});
  if (opened && backend == "cuda") {
    const auto provenance = (*opened)->provenance(devices);
    if (const auto device = provenance.find("device"); device != provenance.end())
      note_gpu(device->second);
  }
  return opened;
}

}  // namespace plumbline
