// Ctrl-C, for commands that have something to keep before they end.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

namespace plumbline {

/// While one exists, the first SIGINT or SIGTERM is only noted; the second ends the process as it
/// always did. Signals that were ignored stay so. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether such a signal has come.
  static bool interrupted();

 private:
  struct sigaction before_interrupt_ {};
  struct sigaction before_terminate_ {};
};

}  // namespace plumbline
