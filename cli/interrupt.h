// Ctrl-C, for commands that must save something before they end.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <csignal>

namespace plumbline {

/// While a guard exists, the first SIGINT or SIGTERM is only recorded; the second ends the process
/// as usual. Ignored signals stay ignored. Only one guard may exist at a time. The record stays
/// readable until the next guard is made.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether such a signal has arrived.
  static bool interrupted() { return flag(); }
  /// The same, for work that polls it. Setting it stops such work as a signal does.
  static std::atomic<bool>& flag();

 private:
  struct sigaction before_interrupt_ {};
  struct sigaction before_terminate_ {};
};

}  // namespace plumbline
