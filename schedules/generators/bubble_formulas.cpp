// The closed forms, one function per schedule.
//
// SPDX-License-Identifier: MIT
#include "schedules/generators/bubble_formulas.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/bug.h"

namespace plumbline {
namespace {

Duration sum(const std::vector<Duration>& times) {
  return std::accumulate(times.begin(), times.end(), Duration{});
}

Duration largest(const std::vector<Duration>& times) {
  return *std::max_element(times.begin(), times.end());
}

bool all_equal(const std::vector<Duration>& times) {
  return std::all_of(times.begin(), times.end(), [&](Duration t) { return t == times.front(); });
}

/// The quantities of the formulas.
struct Terms {
  const PipelineTimes& times;
  std::int64_t p = static_cast<std::int64_t>(times.forward.size());
  std::int64_t m = times.micro_batches;
  bool equal = all_equal(times.forward) && all_equal(times.backward);
  bool free = sum(times.latency) == Duration{};
  bool equal_latency = times.latency.empty() || all_equal(times.latency);
  Duration pair = times.forward.front() + times.backward.front();  ///< f + b, if equal everywhere.
  Duration c = times.latency.empty() ? Duration{} : times.latency.front();
};

struct Found {
  Duration makespan;
  std::string text;
};

std::optional<Found> naive(const Terms& t) {
  const Duration round = sum(t.times.forward) + sum(t.times.backward) + 2 * sum(t.times.latency);
  return Found{t.m * round, t.free ? "(p-1)/p" : "makespan = m (sum f + sum b + 2 sum c)"};
}

std::optional<Found> delayed_backward(const Terms& t) {
  if (t.m == 1) return naive(t);
  if (!t.equal || !t.free) return std::nullopt;
  return Found{((t.m - 1) * t.p + 1) * t.pair, "(m-1)(p-1)/((m-1)p+1)"};
}

std::optional<Found> gpipe(const Terms& t) {
  if (t.equal && t.free) return Found{(t.m + t.p - 1) * t.pair, "(p-1)/(m+p-1)"};
  if (t.equal)
    return Found{(t.m + t.p - 1) * t.pair + 2 * sum(t.times.latency),
                 "makespan = (m+p-1)(f+b) + 2 sum c"};
  if (!t.free) return std::nullopt;
  const Duration fill = sum(t.times.forward) + sum(t.times.backward);
  const Duration steady = (t.m - 1) * (largest(t.times.forward) + largest(t.times.backward));
  return Found{fill + steady, "makespan = sum f + sum b + (m-1)(max f + max b)"};
}

std::optional<Found> one_f_one_b(const Terms& t) {
  if (!t.equal) return std::nullopt;
  if (t.free) return Found{(t.m + t.p - 1) * t.pair, "(p-1)/(m+p-1)"};
  if (t.times.slices > 1 || !t.equal_latency || t.p < 2 || t.m % t.p != 0) return std::nullopt;
  return Found{(t.m + t.p - 1) * t.pair + 2 * t.c * ((t.p - 1) * t.m / t.p + t.p - 2),
               "makespan = (m+p-1)(f+b) + 2c((p-1)m/p + p-2)"};
}

/// The forwards again of the last position are on the longest path, all others run while their
/// position waits.
std::optional<Found> recomputed_early(std::string_view schedule, const Terms& t) {
  if (!t.equal || !t.free || !all_equal(t.times.again) || t.times.slices > 1) return std::nullopt;
  const Duration again = t.m * t.times.again.front();
  if (schedule == "naive") return Found{t.m * t.p * t.pair + again, "makespan = m (p(f+b) + r)"};
  if (schedule == "gpipe" || schedule == "1f1b" || schedule == "eager-1f1b")
    return Found{(t.m + t.p - 1) * t.pair + again, "makespan = (m+p-1)(f+b) + mr"};
  return std::nullopt;
}

std::optional<Found> eager_one_f_one_b(const Terms& t) {
  if (!t.equal) return std::nullopt;
  if (t.free) return Found{(t.m + t.p - 1) * t.pair, "(p-1)/(m+p-1)"};
  if (t.times.slices > 1 || !t.equal_latency || 2 * t.c > t.pair) return std::nullopt;
  return Found{(t.m + t.p - 1) * t.pair + 2 * t.c * (t.p - 1), "makespan = (m+p-1)(f+b) + 2c(p-1)"};
}

/// The formula text for k slices per micro-batch: `m` becomes `km`.
std::string in_slices(std::string text) {
  for (const std::string_view m : {"(m+", "(m-"}) {
    for (std::size_t at = 0; (at = text.find(m, at)) != std::string::npos; at += m.size() + 1)
      text.insert(at + 1, "k");
  }
  return text;
}

/// The makespan with its two ratios, for p devices that are busy for `busy` in all.
ClosedForm form_of(const Found& found, std::int64_t p, Duration busy) {
  ClosedForm form{found.makespan, 0, 0, found.text};
  const Duration idle = p * form.makespan - busy;
  if (form.makespan.count() > 0)
    form.bubble_fraction =
        static_cast<double>(idle.count()) / static_cast<double>((p * form.makespan).count());
  if (busy.count() > 0)
    form.bubble_overhead = static_cast<double>(idle.count()) / static_cast<double>(busy.count());
  return form;
}

}  // namespace

std::optional<ClosedForm> closed_form(std::string_view schedule, const PipelineTimes& times) {
  PLUMBLINE_CHECK(!times.forward.empty() && times.forward.size() == times.backward.size() &&
                      times.latency.size() + 1 == times.forward.size(),
                  times.forward.size(), times.backward.size(), times.latency.size());
  const Terms terms{times};
  PLUMBLINE_CHECK(times.again.empty() || times.again.size() == times.forward.size(),
                  times.again.size(), times.forward.size());
  std::optional<Found> found;
  if (schedule == "naive") found = naive(terms);
  if (schedule == "delayed-backward") found = delayed_backward(terms);
  if (schedule == "gpipe") found = gpipe(terms);
  if (schedule == "1f1b") found = one_f_one_b(terms);
  if (schedule == "eager-1f1b") found = eager_one_f_one_b(terms);
  if (!times.again.empty()) found = recomputed_early(schedule, terms);
  if (!found) return std::nullopt;
  if (times.slices > 1) found->text = in_slices(std::move(found->text));
  return form_of(*found, terms.p,
                 terms.m * (sum(times.forward) + sum(times.backward) + sum(times.again)));
}

std::optional<ClosedForm> closed_form_of_lengths(std::string_view schedule,
                                                 const std::vector<PipelineTimes>& micro_batches) {
  PLUMBLINE_CHECK(!micro_batches.empty(), schedule);
  std::vector<Duration> forward, backward;
  for (const PipelineTimes& one : micro_batches) {
    const Terms terms{one};
    if (!terms.equal || !terms.free || !one.again.empty()) return std::nullopt;
    forward.push_back(one.forward.front());
    backward.push_back(one.backward.front());
  }
  const auto p = static_cast<std::int64_t>(micro_batches.front().forward.size());
  const Duration work = sum(forward) + sum(backward);
  if (schedule == "naive") return form_of({p * work, "(p-1)/p"}, p, p * work);
  if (schedule != "gpipe") return std::nullopt;
  const Duration longest = largest(forward) + largest(backward);
  return form_of({work + (p - 1) * longest, "makespan = sum f + sum b + (p-1)(max f + max b)"}, p,
                 p * work);
}

std::optional<ClosedForm> chunk_closed_form(std::string_view schedule, const ChunkTimes& times) {
  const std::int64_t p = times.shape.devices;
  const std::int64_t m = times.shape.micro_batches;
  const std::int64_t rounds = m * times.shape.chunks;
  const Duration f = times.forward;
  const Duration i = times.backward_input;
  const Duration w = times.backward_weight;
  const Duration work = rounds * (f + i + w);  // of one device
  const bool alike = f == i && i == w;
  std::optional<Found> found;
  const std::int64_t group = times.shape.group_size();
  const std::int64_t last = m % group;
  const bool whole_groups = group >= p && (last == 0 || last >= p);
  if ((schedule == "interleaved-1f1b" && whole_groups) || (schedule == "looped-bfs" && m >= p))
    found = Found{work + (p - 1) * (f + i + w), "(p-1)/(vm+p-1)"};
  if (schedule == "interleaved-1f1b" && group == m && m < p)
    found = Found{(m + p * times.shape.chunks - 1) * (f + i + w), "makespan = (m+vp-1)(f+b)"};
  if (schedule == "zb-h1" && f >= w && i >= w && m >= p)
    found = Found{work + (p - 1) * (f + i - w), "makespan = m(f+b) + (p-1)(f+i-w)"};
  if (schedule == "interleaved-zb" && whole_groups && f >= w && i >= w)
    found = Found{work + (p - 1) * (f + i - w), "makespan = vm(f+b) + (p-1)(f+i-w)"};
  if (schedule == "zb-h2" && alike && m >= 2 * p - 1)
    found = Found{work + (p - 1) * f, "makespan = m(f+b) + (p-1)f"};
  if (schedule == "zb-v" && alike && m >= 2 * p - 1)
    found = Found{work + (p - 1) * f, "makespan = 2m(f+b) + (p-1)f"};
  if (schedule == "v-half" && alike && p >= 3 && m >= p)
    found = p % 2 == 0 ? Found{work + (3 * p - 7) * f, "makespan = 2m(f+b) + (3p-7)f"}
                       : Found{work + (3 * p - 4) * f, "makespan = 2m(f+b) + (3p-4)f"};
  if (schedule == "v-min" && alike && p >= 2 && m >= p)
    found = p % 3 == 1 ? Found{work + (4 * p - 5) * f, "makespan = 2m(f+b) + (4p-5)f"}
                       : Found{work + (4 * p - 7) * f, "makespan = 2m(f+b) + (4p-7)f"};
  if (schedule == "chimera" && m == p)
    found = Found{work + (p - 2) * std::max(f, i + w), "makespan = m(f+b) + (p-2) max(f,b)"};
  if (schedule == "chimera" && m % p == 0 && f == i + w)
    found = Found{work + (p - 2) * f, "makespan = m(f+b) + (p-2)f"};
  if (schedule == "dualpipev" && i + w >= f && f >= i && i >= w)
    found = Found{work + (p - 1) * (f + i - w), "makespan = 2m(f+b) + (p-1)(f+i-w)"};
  if (schedule == "dualpipe" && i + w >= f && f >= i && i >= w)
    found = Found{work + (p / 2 - 1) * (f + i - w), "makespan = m(f+b) + (p/2-1)(f+i-w)"};
  if (!found) return std::nullopt;
  return form_of(*found, p, p * work);
}

}  // namespace plumbline
