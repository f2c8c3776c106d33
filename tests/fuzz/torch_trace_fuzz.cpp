// Any bytes as a trace of PyTorch's profiler.
//
// SPDX-License-Identifier: MIT
#include <sstream>

#include "models/import/torch_trace.h"
#include "models/profile/model_checks.h"
#include "models/profile/profile_reader.h"
#include "models/profile/profile_writer.h"
#include "tests/fuzz/model_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  if (size == 0) return 0;
  TraceOptions options;
  options.skip = data[0] % 3;
  std::istringstream text(fuzz::text(data + 1, size - 1));
  const auto trace = parse_torch_trace(text, fuzz::source(""), options);
  if (!trace) {
    fuzz::use(to_text(trace.problems()));
    return 0;
  }
  fuzz::use(Result<Model>(trace->model));
  Diagnostics problems;
  report_unwritable(trace->model, {}, problems);
  if (!problems.empty()) return 0;
  const auto back = parse_profile(fuzz::source(profile_yaml(trace->model)));
  PLUMBLINE_CHECK(back, back ? "" : to_text(back.problems()));
  return 0;
}
