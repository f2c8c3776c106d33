// Chrome's trace format: one JSON object per event, written directly into a buffer.
//
// SPDX-License-Identifier: MIT
#include "sim/report/chrome_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>

#include "base/bug.h"
#include "sim/engine/critical.h"
#include "sim/engine/idle.h"

namespace plumbline {
namespace {

constexpr std::uint32_t kCompute = 0;
constexpr std::uint32_t kIdle = 1;
constexpr std::uint32_t kFirstChannel =
    2;  ///< Two tracks per channel: one at its sender, one at its receiver.

/// Microseconds with the nanoseconds as decimals.
struct Microseconds {
  Duration time;
};

}  // namespace
}  // namespace plumbline

template <>
struct fmt::formatter<plumbline::Microseconds> : fmt::formatter<std::string_view> {
  auto format(const plumbline::Microseconds& us, fmt::format_context& context) const {
    const std::int64_t ns = us.time.count();
    return fmt::format_to(context.out(), "{}.{:03}", ns / 1000, ns % 1000);
  }
};

namespace plumbline {
namespace {

/// The name of a slice: `F 12`, `U 7`. A transfer has the name of the op that it feeds.
std::string slice_name(const Activity& activity) {
  if (is_collective(activity.kind)) return to_text(activity);
  constexpr char letters[] = "FBIWBWFUFB";
  return fmt::format("{} {}", letters[static_cast<std::size_t>(activity.kind)],
                     activity.micro_batch.value);
}

class Writer {
 public:
  /// The run has number `place` among `runs` runs, whose devices alternate.
  Writer(const TracedRun& run, std::uint32_t place, std::uint32_t runs, fmt::memory_buffer& out)
      : p_(run.outcome),
        title_(run.title),
        place_(place),
        runs_(runs),
        graph_(run.outcome.graph),
        spans_(run.outcome.trace.spans),
        out_(out) {
    if (p_.setup.rules.recompute_early) is_again_ = early_forwards(graph_);
  }

  void write() {
    name_tracks();
    for (std::uint32_t node = 0; node < graph_.size(); ++node) write_node(node);
    const auto nodes = nodes_by_slot(graph_);
    const SimTime makespan = SimTime(p_.metrics.makespan);
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      for (const IdleGap& gap : idle_gaps(graph_, p_.trace, nodes[slot], makespan)) {
        put("{{\"ph\":\"X\",\"name\":\"idle "
            "{}\",\"cat\":\"idle\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}}},\n",
            name(gap.cause), process(slot), kIdle, at(gap.begin),
            Microseconds{gap.end - gap.begin});
      }
    }
    write_counters();
    write_critical_path();
    put("{{\"ph\":\"M\",\"name\":\"plumbline\",\"pid\":{},\"args\":{{\"makespan_ns\":{}}}}}",
        process(0), p_.metrics.makespan.count());
  }

 private:
  template <class... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  std::uint32_t process(std::uint32_t slot) const { return slot * runs_ + place_; }
  static Microseconds at(SimTime time) { return {time.time_since_epoch()}; }
  std::uint32_t device(std::uint32_t slot) const { return graph_.devices[slot].value; }
  std::uint32_t track(std::uint32_t channel, bool receives) const {
    return kFirstChannel + 2 * channel + (receives ? 1 : 0);
  }

  void name_track(std::uint32_t slot, std::uint32_t tid, const std::string& title) {
    put("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{0},\"tid\":{1},\"args\":{{\"name\":\"{2}"
        "\"}}}},\n"
        "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{0},\"tid\":{1},\"args\":{{\"sort_"
        "index\":{1}}}}},\n",
        process(slot), tid, title);
  }

  void name_tracks() {
    const std::size_t digits = std::to_string(graph_.devices.back().value).size();
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      put("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":\"{3}device "
          "{1:0{2}}\"}}}},\n"
          "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}"
          "}}}},\n",
          process(slot), device(slot), digits, title_);
      name_track(slot, kCompute, "compute");
      name_track(slot, kIdle, "idle");
    }
    const std::vector<bool> used = channels_in_use();
    for (std::uint32_t c = 0; c < graph_.channels.size(); ++c) {
      if (!used[c]) continue;  // blocking transfers are shown on the streams that they hold
      const Channel& channel = graph_.channels[c];
      if (channel.from_slot == channel.to_slot) {
        name_track(channel.from_slot, track(c, false), "send in its group");
        name_track(channel.to_slot, track(c, true), "receive in its group");
        continue;
      }
      name_track(channel.from_slot, track(c, false),
                 fmt::format("send to device {}", device(channel.to_slot)));
      name_track(channel.to_slot, track(c, true),
                 fmt::format("receive from device {}", device(channel.from_slot)));
    }
  }

  std::vector<bool> channels_in_use() const {
    std::vector<bool> used(graph_.channels.size(), false);
    for (std::uint32_t node = 0; node < graph_.size(); ++node) {
      if (graph_.holds_channel(node)) used[graph_.nodes[node].resource - graph_.slots()] = true;
    }
    return used;
  }

  bool is_again(std::uint32_t node) const { return !is_again_.empty() && is_again_[node]; }

  void slice(std::string_view prefix, std::uint32_t node, std::uint32_t slot, std::uint32_t tid,
             SimTime begin, SimTime end) {
    const Activity& activity = graph_.activities[node];
    const std::uint32_t by = spans_[node].released_by;
    put("{{\"ph\":\"X\",\"name\":\"{}{}\",\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}"
        ","
        "\"args\":{{\"op\":\"{}\",\"stage\":{},\"waited for\":\"{}\",\"bytes\":{}}}}},\n",
        prefix,
        is_again(node) ? fmt::format("R {}", activity.micro_batch.value) : slice_name(activity),
        is_compute(activity.kind) ? "compute" : "transfer", process(slot), tid, at(begin),
        Microseconds{end - begin}, to_text(activity), activity.stage.value,
        by == kNobody ? "the start" : to_text(graph_.activities[by]),
        graph_.cost(node).bytes.count);
  }

  void write_node(std::uint32_t node) {
    const Activity& activity = graph_.activities[node];
    if (!is_shown(activity.kind)) return;
    const Span& span = spans_[node];
    const Node& n = graph_.nodes[node];
    if (is_compute(activity.kind))
      return slice("", node, n.resource, kCompute, span.begin, span.end);
    if (!graph_.holds_channel(node)) {
      slice("send ", node, n.resource, kCompute, span.begin, span.end);
      return slice("recv ", node, n.peer_resource, kCompute, span.begin, span.end);
    }
    // The receiver's slice is the sender's, shifted by the latency. So neither overlaps with its
    // neighbours.
    const Duration latency = latency_of(node);
    const std::uint32_t channel = n.resource - graph_.slots();
    slice("send ", node, graph_.channel(node).from_slot, track(channel, false), span.begin,
          span.end - latency);
    slice("recv ", node, graph_.channel(node).to_slot, track(channel, true), span.begin + latency,
          span.end);
  }

  void write_counters() {
    const auto all_steps = memory_steps(graph_, p_.trace, p_.setup.costs,
                                        p_.setup.schedule.shape.positions, memory_rules(p_.setup));
    for (std::uint32_t slot = 0; slot < graph_.slots(); ++slot) {
      const MemoryParts& peak = p_.memory[slot].peak;
      const Bytes fixed = peak.sum() - peak.activations - peak.buffers;
      const auto& steps = all_steps[slot];
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (i + 1 < steps.size() && steps[i + 1].at == steps[i].at) {
          const Bytes here = steps[i].activations + steps[i].buffers;
          if (here != peak.activations + peak.buffers) continue;  // the peak itself is always shown
        }
        put("{{\"ph\":\"C\",\"name\":\"memory\",\"pid\":{0},\"ts\":{1},\"args\":{{\"bytes\":{2}}}}}"
            ",\n"
            "{{\"ph\":\"C\",\"name\":\"in "
            "flight\",\"pid\":{0},\"ts\":{1},\"args\":{{\"{4}\":{3}}}}},\n",
            process(slot), at(steps[i].at), (fixed + steps[i].activations + steps[i].buffers).count,
            steps[i].in_flight, p_.setup.slices > 1 ? "slices" : "micro-batches");
      }
    }
  }

  /// The track on which the begin (or end) of a node is shown, if it is shown at all.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> place(std::uint32_t node,
                                                               bool at_end) const {
    const Activity& activity = graph_.activities[node];
    if (!is_shown(activity.kind)) return std::nullopt;
    const std::uint32_t resource = graph_.nodes[node].resource;
    if (!graph_.holds_channel(node)) return std::pair(resource, kCompute);
    const Channel& channel = graph_.channel(node);
    return std::pair(at_end ? channel.to_slot : channel.from_slot,
                     track(resource - graph_.slots(), at_end));
  }

  void write_critical_path() {
    const std::vector<std::uint32_t> path = critical_path(p_.trace);
    for (std::size_t i = 1; i < path.size(); ++i) {
      const auto from = place(path[i - 1], true);
      const auto to = place(path[i], false);
      if (!from || !to) continue;
      put("{{\"ph\":\"s\",\"name\":\"critical "
          "path\",\"cat\":\"critical\",\"id\":{0},\"pid\":{1},\"tid\":{2},\"ts\":{3}}},\n"
          "{{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"critical "
          "path\",\"cat\":\"critical\",\"id\":{0},\"pid\":{4},\"tid\":{5},\"ts\":{6}}},\n",
          i * runs_ + place_, process(from->first), from->second, at(arrow_start(path[i - 1])),
          process(to->first), to->second, at(spans_[path[i]].begin));
    }
  }

  /// A moment inside the slice that the arrow leaves.
  SimTime arrow_start(std::uint32_t node) const {
    const Span& span = spans_[node];
    return graph_.holds_channel(node) ? span.begin + latency_of(node) : span.begin;
  }

  /// The part of a transfer's span that is shown as its latency. A measured transfer may be shorter
  /// than its latency.
  Duration latency_of(std::uint32_t node) const {
    return std::min(graph_.cost(node).latency, spans_[node].end - spans_[node].begin);
  }

  const Outcome& p_;
  const std::string& title_;
  std::uint32_t place_;
  std::uint32_t runs_;
  const OpGraph& graph_;
  const std::vector<Span>& spans_;
  std::vector<bool> is_again_;  ///< By node; empty: no F is recomputed early.
  fmt::memory_buffer& out_;
};

}  // namespace

std::string chrome_trace(const std::vector<TracedRun>& runs) {
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (std::uint32_t place = 0; place < runs.size(); ++place) {
    Writer(runs[place], place, static_cast<std::uint32_t>(runs.size()), out).write();
    out.append(std::string_view(place + 1 < runs.size() ? ",\n" : "\n]}\n"));
  }
  return fmt::to_string(out);
}

std::string chrome_trace(const Outcome& outcome) { return chrome_trace({{outcome, ""}}); }

std::string gzip(const std::string& text, int level) {
  z_stream stream{};
  constexpr int gzip_format = 16;
  PLUMBLINE_CHECK(deflateInit2(&stream, level, Z_DEFLATED, MAX_WBITS + gzip_format, 8,
                               Z_DEFAULT_STRATEGY) == Z_OK,
                  text.size());
  std::string packed;
  std::string chunk(std::size_t{1} << 20U, '\0');
  std::size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && taken < text.size()) {
      const std::size_t part = std::min<std::size_t>(text.size() - taken, std::size_t{1} << 30U);
      stream.next_in =
          reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + taken));  // zlib only reads
      stream.avail_in = static_cast<uInt>(part);
      taken += part;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
    PLUMBLINE_CHECK(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR, state);
    packed.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

}  // namespace plumbline
