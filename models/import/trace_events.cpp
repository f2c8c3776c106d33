// Each event is kept as a range, a step, a launch or a kernel, or counted by its name.
//
// SPDX-License-Identifier: MIT
#include "models/import/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/section_reader.h"
#include "base/units.h"
#include "models/import/torch_events.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxNames = 10'000;  // the most names that are counted for messages
constexpr std::string_view kStep = "ProfilerStep#";

/// The frequencies of names. New names are not counted once there are kMaxNames.
class NameCounter {
 public:
  void add(const std::string& name) {
    if (const auto found = counts_.find(name); found != counts_.end()) {
      ++found->second;
    } else if (counts_.size() < kMaxNames && name.size() <= kLongestText) {
      counts_.emplace(name, 1);
    }
  }

  std::vector<NameCount> by_frequency() const {
    std::vector<NameCount> sorted(counts_.begin(), counts_.end());
    std::sort(sorted.begin(), sorted.end(), [](const NameCount& a, const NameCount& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return sorted;
  }

 private:
  std::unordered_map<std::string, std::size_t> counts_;
};

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

/// One NCCL kernel name serves sends, receives and all-to-alls. Newer traces say which it was.
PeerWork peer_work(const TorchEvent& event) {
  if (!event.name.starts_with("nccl")) return PeerWork::none;
  if (event.name.find("SendRecv") == std::string::npos) return PeerWork::collective;
  if (event.collective.empty()) return PeerWork::unknown;
  const bool is_pair = event.collective.starts_with("send") ||
                       event.collective.starts_with("recv") || event.collective == "coalesced";
  return is_pair ? PeerWork::send_or_receive : PeerWork::collective;
}

/// Sorts the events of a trace.
class EventSorter {
 public:
  EventSorter(const std::shared_ptr<const Source>& source, const RangeNames& names)
      : source_(source), names_(names) {}

  std::optional<Diagnostic> take(const TorchEvent& event, std::size_t number) {
    found_.events = number;
    if (!event.is_span()) return std::nullopt;
    const bool on_cpu = event.category == "user_annotation";
    const bool on_gpu = event.category == "gpu_user_annotation";
    if (!on_cpu && !on_gpu) {
      take_work(event);
      others_.add(event.name);
      return std::nullopt;
    }
    if (event.name.starts_with(kStep)) {
      if (on_cpu && event.start_ns && event.length_ns)
        found_.steps.push_back({microseconds(*event.start_ns),
                                microseconds(*event.start_ns) + microseconds(*event.length_ns)});
      return std::nullopt;
    }
    if (const auto meaning = names_.meaning(event.name)) return take_range(event, *meaning, on_gpu);
    if (on_cpu) annotations_.add(event.name);
    return std::nullopt;
  }

  TraceEvents found() && {
    found_.annotations = annotations_.by_frequency();
    found_.others = others_.by_frequency();
    return std::move(found_);
  }

 private:
  Diagnostic error(std::string message, std::string help = "") const {
    return input_error({source_}, std::move(message), std::move(help));
  }

  void take_work(const TorchEvent& event) {
    if (event.is_gpu_work()) {
      ++found_.gpu_work;
      if (event.correlation && event.start_ns && event.length_ns)
        found_.kernels.push_back({*event.correlation, microseconds(*event.start_ns),
                                  microseconds(*event.length_ns), peer_work(event)});
    } else if (event.is_launch()) {
      if (event.correlation && event.start_ns)
        found_.launches.push_back(
            {microseconds(*event.start_ns), event.thread, *event.correlation});
    } else if (event.is_autograd()) {
      found_.autograd_threads.insert(event.thread);
    }
  }

  std::optional<Diagnostic> take_range(const TorchEvent& event, const RangeMeaning& meaning,
                                       bool on_gpu) {
    if (!event.start_ns || !event.length_ns || *event.length_ns < 0 ||
        *event.length_ns > kLargestQuantity)
      return error(fmt::format("a range '{}' has no length that makes sense", clipped(event.name)),
                   fmt::format("it is event {} of traceEvents", found_.events));
    const auto layer = layer_index(std::string(meaning.layer));
    if (!layer) return layer.problems().front();
    found_.ranges.push_back({*layer, meaning.pass, on_gpu, microseconds(*event.start_ns),
                             microseconds(*event.length_ns), event.thread, event.external_id});
    return std::nullopt;
  }

  Result<std::uint32_t> layer_index(const std::string& name) {
    const auto [at, is_new] =
        layers_.emplace(name, static_cast<std::uint32_t>(found_.layers.size()));
    if (!is_new) return at->second;
    if (name.size() > kLongestText)
      return error(
          fmt::format("the layer '{}' has a name longer than 10,000 bytes", clipped(name)));
    if (found_.layers.size() == static_cast<std::size_t>(kMaxLayers))
      return error(fmt::format("there are ranges of more than {} layers", kMaxLayers));
    found_.layers.push_back(name);
    return at->second;
  }

  std::shared_ptr<const Source> source_;
  const RangeNames& names_;
  TraceEvents found_;
  NameCounter annotations_, others_;
  std::unordered_map<std::string, std::uint32_t> layers_;
};

}  // namespace

Result<TraceEvents> read_trace_events(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const RangeNames& names) {
  EventSorter sorter(source, names);
  const auto header = read_torch_events(
      text, source,
      [&](const TorchEvent& event, std::size_t number) { return sorter.take(event, number); });
  if (!header) return header.problems();
  return std::move(sorter).found();
}

}  // namespace plumbline
