// Ctrl-C, for commands that have something to keep before they end.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <csignal>

namespace plumbline {

/// While one exists, the first SIGINT or SIGTERM is only noted; the second ends the process as it
/// always did. Signals that were ignored stay so. One at a time; what was noted stays readable
/// until the next one is made.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether such a signal has come.
  static bool interrupted() { return flag(); }
  /// The same, for work that looks at it now and then; setting it stops such work as a signal does.
  static std::atomic<bool>& flag();

 private:
  struct sigaction before_interrupt_ {};
  struct sigaction before_terminate_ {};
};

}  // namespace plumbline
