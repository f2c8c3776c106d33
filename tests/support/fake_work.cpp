// The adversary, and the clock, which it does not influence.
//
// SPDX-License-Identifier: MIT
#include "tests/support/fake_work.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/bug.h"
#include "base/random.h"

namespace plumbline {

FakeDemand FakeWorks::act(const FakeWork& work) {
  if (work.task.act == nullptr || broken_) return 0;
  try {
    return work.task.act(work.task, work.begin);
  } catch (const Bug&) {  // no failure of the device
    throw;
  } catch (const std::exception& error) {
    broken_ = true;
    on_failure(work.task.what + ": " + error.what());
    return 0;
  }
}

FakeAdversary::FakeAdversary(std::uint64_t seed, bool one_at_a_time)
    : seed_(seed), one_at_a_time_(one_at_a_time) {}

double FakeAdversary::chance() { return random_uniform(seed_, drawn_++); }

double FakeAdversary::rank(std::size_t lane) {
  while (ranks_.size() <= lane) ranks_.push_back(chance());
  return ranks_[lane];
}

FakeWorkPointer FakeAdversary::add(FakeTask task, std::size_t lane,
                                   const std::vector<FakeWorkPointer>& predecessors) {
  auto work = std::make_shared<FakeWork>();
  work->task = std::move(task);
  work->lane = lane;
  work->begin = now;
  for (const FakeWorkPointer& before : predecessors) {
    if (before == nullptr) continue;
    if (before->done) {
      work->begin = std::max(work->begin, before->end);
    } else {
      ++work->unmet;
      before->next.push_back(work);
    }
  }
  if (work->unmet == 0) ready_.push_back(work);
  return work;
}

void FakeAdversary::run(FakeWork& work) {
  const bool waits_for_others = one_at_a_time_ && work.task.is_kernel;
  if (waits_for_others) work.begin = std::max(work.begin, kernels_free_);
  work.end = work.begin + act(work).nanoseconds;
  if (waits_for_others) kernels_free_ = work.end;
}

void FakeAdversary::step() {
  if (ready_.empty()) return;
  constexpr double kMindChanges = 0.125;
  if (chance() < kMindChanges) ranks_.clear();
  std::size_t first = 0;
  for (std::size_t i = 1; i < ready_.size(); ++i)
    if (rank(ready_[i]->lane) > rank(ready_[first]->lane)) first = i;
  const FakeWorkPointer work = ready_[first];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(first));
  run(*work);
  work->done = true;
  if (!work->task.what.empty()) on_done(*work);
  for (const FakeWorkPointer& next : work->next) {
    next->begin = std::max(next->begin, work->end);
    if (--next->unmet == 0) ready_.push_back(next);
  }
  work->next.clear();
}

void FakeAdversary::finish(const FakeWorkPointer& work) {
  if (work == nullptr) return;
  while (!work->done) {
    PLUMBLINE_CHECK(!ready_.empty(), "the fake device waits for work that nothing can begin");
    step();
  }
  now = std::max(now, work->end);
}

void FakeAdversary::finish_all() {
  while (!ready_.empty()) {
    const FakeWorkPointer work = ready_.front();
    finish(work);
  }
}

}  // namespace plumbline
