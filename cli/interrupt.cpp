// Signal handlers that set a flag.
//
// SPDX-License-Identifier: MIT
#include "cli/interrupt.h"

namespace plumbline {
namespace {

std::atomic<bool> has_come{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal handler");

void note(int) { has_come = true; }

void handle(int signal, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  has_come = false;
  handle(SIGINT, before_interrupt_);
  handle(SIGTERM, before_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
}

std::atomic<bool>& InterruptGuard::flag() { return has_come; }

}  // namespace plumbline
