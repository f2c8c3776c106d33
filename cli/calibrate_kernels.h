// `plumbline calibrate config.json`: the kernels of a model, timed on this machine.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/cuda/calibration.h"
#include "models/tables/kernel_list.h"

namespace CLI {
class App;
}

namespace plumbline {

struct KernelCalibration {
  std::string command_line;  ///< For the table.
  std::string config;
  std::string backend;
  std::string output;  ///< "" = stdout.
  bool resume = false;
  CudaDeviceOptions cuda;
  std::string dtype;  ///< "" = that of the backend.
  std::string stack;  ///< "" = that of the backend.
  double budget = 120;
  ListedLayouts layouts{
      .sequences = {}, .batches = {1}, .tensor = {1}, .context = {1}, .expert = {1}, .options = {}};
};

/// Adds the options that only this form of calibrate has.
void add_kernel_calibration(CLI::App& command, KernelCalibration& arguments);
/// Their names, as errors tell them.
std::vector<std::string> kernel_calibration_options();

/// Whether the file is a config.json, not a network. Errors: those of read_yaml.
Result<bool> is_config_json(const std::string& path);

/// Measures, and writes the table as it goes. Returns the exit code.
int calibrate_kernels(KernelCalibration arguments);

}  // namespace plumbline
