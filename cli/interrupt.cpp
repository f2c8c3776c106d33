// Signal handlers that set a flag.
// SPDX-License-Identifier: MIT
#include "cli/interrupt.h"

namespace plumbline {
namespace {

volatile std::sig_atomic_t has_come = 0;

void note(int) { has_come = 1; }

void handle(int signal, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  has_come = 0;
  handle(SIGINT, before_interrupt_);
  handle(SIGTERM, before_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
}

bool InterruptGuard::interrupted() { return has_come != 0; }

}  // namespace plumbline
