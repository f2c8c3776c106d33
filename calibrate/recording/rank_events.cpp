// Each event is sorted by its category and its name. Traces of PyTorch 1.x without Kineto have no
// categories: there, ranges and calls are told apart by their names alone.
//
// SPDX-License-Identifier: MIT
#include "calibrate/recording/rank_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace plumbline {
namespace {

constexpr std::size_t kMaxOtherNames = 1000;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  // of a message

SimTime at(std::int64_t ns) { return SimTime{Duration{ns}}; }

/// Times beyond are no times: sums and differences of a few stay within 64 bits.
constexpr std::int64_t kLatest = std::int64_t{1} << 61;

/// The span of an event; nothing where it has no time or length that makes sense.
std::optional<RecordedSpan> span_of(const TorchEvent& event) {
  if (!event.start_ns || *event.start_ns > kLatest || *event.start_ns < -kLatest)
    return std::nullopt;
  if (!event.length_ns || *event.length_ns < 0 || *event.length_ns > kLargestQuantity)
    return std::nullopt;
  return RecordedSpan{at(*event.start_ns), at(*event.start_ns + *event.length_ns)};
}

/// Whether a call on the CPU neither computes nor communicates: it makes room or a view.
bool is_bookkeeping(std::string_view name) {
  constexpr std::array<std::string_view, 12> calls = {
      "aten::empty",  "aten::detach",     "detach",      "aten::zeros",
      "aten::zero_",  "aten::view",       "aten::alias", "aten::slice",
      "aten::select", "aten::as_strided", "aten::set_",  "aten::item"};
  return std::any_of(calls.begin(), calls.end(),
                     [&](std::string_view one) { return name == one; }) ||
         name.starts_with("aten::empty") || name.starts_with("aten::_local_scalar");
}

/// What a call is for, by its name; nothing for one that does neither.
std::optional<CallUse> call_use(std::string_view name) {
  const bool is_distributed = name.starts_with("c10d::") || name.starts_with("gloo:") ||
                              name.starts_with("nccl:") || name.starts_with("mpi:");
  if (is_distributed) {
    const std::string_view call = name.substr(name.rfind(':') + 1);
    if (name == "gloo:recv") return CallUse::received;
    if (name == "gloo:send") return CallUse::sent;
    if (call.starts_with("send")) return CallUse::send;
    if (call.starts_with("recv")) return CallUse::receive;
    return CallUse::collective;
  }
  if (name == "record_param_comms" || is_bookkeeping(name)) return std::nullopt;
  return CallUse::work;
}

/// Bytes of one number of a type as PyTorch writes it; 0 for others.
std::int64_t width_of(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> widths = {{{"Float", 4},
                                                                                {"BFloat16", 2},
                                                                                {"Half", 2},
                                                                                {"Double", 8},
                                                                                {"Int", 4},
                                                                                {"Long", 8},
                                                                                {"Byte", 1},
                                                                                {"Char", 1}}};
  for (const auto& [name, width] : widths) {
    if (name == dtype) return width;
  }
  return dtype.starts_with("Float8") ? 1 : 0;
}

/// Texts of NCCL's arguments may be in quotes.
std::string_view bare(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

class RankSorter {
 public:
  RankSorter(const std::shared_ptr<const Source>& source, const OpNames& names)
      : source_(source), names_(names) {}

  std::optional<Diagnostic> take(const TorchEvent& event, std::size_t number) {
    if (!event.is_span()) return std::nullopt;
    if (event.is_gpu_work()) {
      take_kernel(event);
    } else if (event.is_launch()) {
      if (const auto span = span_of(event); span && event.correlation)
        found_.launches.push_back({*event.correlation, span->begin, event.thread});
    } else if (event.category == "user_annotation" || event.category == "python_function" ||
               event.category.empty()) {
      return take_range(event, number);
    } else if (event.category == "cpu_op" || event.category == "Operator") {
      take_call(event);
    }
    return std::nullopt;
  }

  RankEvents found() && { return std::move(found_); }

 private:
  void take_kernel(const TorchEvent& event) {
    const auto span = span_of(event);
    if (!span) return void(++found_.without_time);
    GpuKernel kernel;
    kernel.correlation = event.correlation.value_or(-1);
    kernel.span = *span;
    kernel.device = static_cast<std::int32_t>(event.device.value_or(event.process));
    if (event.name.starts_with("nccl")) {
      const std::string_view collective = bare(event.collective);
      const bool is_pair = event.name.find("SendRecv") != std::string::npos;
      kernel.use = !is_pair                           ? KernelUse::collective
                   : collective.starts_with("send")   ? KernelUse::send
                   : collective.starts_with("recv")   ? KernelUse::receive
                   : collective.starts_with("all_to") ? KernelUse::collective
                                                      : KernelUse::send_or_receive;
      const auto peer = kernel.use == KernelUse::send ? event.to_rank : event.from_rank;
      kernel.peer = static_cast<std::int32_t>(peer.value_or(-1));
      if (kernel.use == KernelUse::send || kernel.use == KernelUse::receive)
        kernel.bytes = std::clamp<std::int64_t>(event.elements.value_or(0), 0, kMostElements) *
                       width_of(bare(event.dtype));
    }
    found_.kernels.push_back(kernel);
  }

  void take_call(const TorchEvent& event) {
    const auto span = span_of(event);
    if (!span) return void(++found_.without_time);
    if (event.is_autograd()) {
      found_.autograd_threads.insert(event.thread);
      found_.autograd.push_back({*span, event.thread});
    }
    if (const auto use = call_use(event.name)) found_.calls.push_back({*span, event.thread, *use});
  }

  std::optional<Diagnostic> take_range(const TorchEvent& event, std::size_t number) {
    const auto title = names_.meaning(event.name);
    if (!title) {
      if (event.category.empty() || event.name.starts_with("gloo:"))
        return take_call(event), std::nullopt;
      if (event.category == "user_annotation" &&
          (found_.other_ranges.size() < kMaxOtherNames || found_.other_ranges.count(event.name)))
        ++found_.other_ranges[clipped(event.name)];
      return std::nullopt;
    }
    const auto span = span_of(event);
    if (!span)
      return input_error(
          {source_},
          fmt::format("the range '{}' has no {} that makes sense", clipped(event.name),
                      event.start_ns && std::abs(*event.start_ns) <= kLatest ? "length" : "time"),
          fmt::format("it is event {} of the trace", number));
    found_.ranges.push_back({*title, *span, event.thread});
    return std::nullopt;
  }

  std::shared_ptr<const Source> source_;
  const OpNames& names_;
  RankEvents found_;
};

}  // namespace

Result<RankEvents> read_rank_events(std::istream& text, const std::shared_ptr<const Source>& source,
                                    const OpNames& names) {
  RankSorter sorter(source, names);
  const auto header = read_torch_events(
      text, source,
      [&](const TorchEvent& event, std::size_t number) { return sorter.take(event, number); });
  if (!header) return header.problems();
  if (header->base_ns > kLatest || header->base_ns < -kLatest)
    return input_error({source}, "baseTimeNanoseconds is no time that makes sense");
  RankEvents found = std::move(sorter).found();
  found.header = *header;
  return found;
}

}  // namespace plumbline
