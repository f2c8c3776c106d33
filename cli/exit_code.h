// The exit codes of the contract, and the exit code of a verdict.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "calibrate/runtime/validation.h"

namespace plumbline {

struct ExitCode {
  static constexpr int done = 0;
  static constexpr int check_failed = 1;
  static constexpr int wrong_input = 2;
  static constexpr int file_trouble = 3;
  static constexpr int infeasible = 4;
  static constexpr int no_device = 5;
  static constexpr int inconclusive = 6;
  static constexpr int bug = 70;
  static constexpr int interrupted = 130;
};

/// The exit code of `validate`: a failed check if a prediction is off, another code if the result
/// is inconclusive.
constexpr int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::off:
      return ExitCode::check_failed;
    case Verdict::inconclusive:
      return ExitCode::inconclusive;
    case Verdict::same:
    case Verdict::close:
      break;
  }
  return ExitCode::done;
}

}  // namespace plumbline
