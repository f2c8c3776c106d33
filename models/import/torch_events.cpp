// The trace as a stream of JSON tokens. What stands in it, from the code that writes it
// (libkineto/src/output_json.cpp, ActivityType.cpp and GenericActivityProfiler.cpp of
// github.com/pytorch/kineto):
// - an object whose `traceEvents` is a list of events, most with "ph": "X", `cat`, `name`, `pid`,
//   `tid`, `ts` and `dur` in microseconds with three decimals, and `args`;
// - record_function makes an event of category `user_annotation`; profiler.step() makes one named
//   `ProfilerStep#N`;
// - where kernels were launched within it, there is also a `gpu_user_annotation` of the same name
//   and `External id` for each stream: from the start of the first kernel to the end of the last,
//   made 2 ns longer so that viewers draw it around them;
// - GPU work has the categories `kernel`, `gpu_memcpy` and `gpu_memset`; `args.correlation` is that
//   of the call that launched it, an event of a category that ends in `_runtime` or `_driver` (in
//   traces of PyTorch 1.x these are `Kernel`, `Memcpy`, `Memset` and `Runtime`);
//   kernels of NCCL have `args["Collective name"]`: send, recv, all_to_allv, ... (since
//   PyTorch 2.4);
// - autograd names its events `autograd::engine::evaluate_function: ...`.
// A list of events without the object around it is a Chrome trace, too.
//
// SPDX-License-Identifier: MIT
#include "models/import/torch_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/quantity.h"

namespace plumbline {
namespace {

/// The keys of an event that are read.
enum class Field {
  none,
  phase,
  category,
  name,
  start,
  length,
  process,
  thread,
  arguments,
};

Field field_of(std::string_view key) {
  if (key == "ph") return Field::phase;
  if (key == "cat") return Field::category;
  if (key == "name") return Field::name;
  if (key == "ts") return Field::start;
  if (key == "dur") return Field::length;
  if (key == "pid") return Field::process;
  if (key == "tid") return Field::thread;
  if (key == "args") return Field::arguments;
  return Field::none;
}

/// The arguments of an event that are read.
enum class Argument {
  none,
  external_id,
  correlation,
  device,
  from_rank,
  to_rank,
  elements,
  collective,
  dtype,
};

Argument argument_of(std::string_view key) {
  if (key == "External id" || key == "external id") return Argument::external_id;
  if (key == "correlation") return Argument::correlation;
  if (key == "device") return Argument::device;
  if (key == "Src Rank") return Argument::from_rank;
  if (key == "Dst Rank") return Argument::to_rank;
  if (key == "In msg nelems") return Argument::elements;
  if (key == "Collective name") return Argument::collective;
  if (key == "dtype") return Argument::dtype;
  return Argument::none;
}

/// No time has more nanoseconds than this.
constexpr std::int64_t kMostNanoseconds = 9'000'000'000'000'000'000;

/// The same as nanoseconds_of() for a number with an exponent, which is seldom, and then not exact.
std::optional<std::int64_t> rounded_nanoseconds_of(std::string_view text) {
  const double all = std::strtod(std::string(text).c_str(), nullptr) * 1e3;
  if (!(std::abs(all) < static_cast<double>(kMostNanoseconds))) return std::nullopt;
  return std::llround(all);
}

/// Nanoseconds of a decimal number of microseconds, to the nearest; nothing beyond 64 bits.
std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  constexpr std::int64_t limit = kMostNanoseconds;
  const bool is_negative = text.starts_with('-');
  std::int64_t value = 0;
  int decimals = -1;  // none yet
  for (const char c : text.substr(is_negative ? 1 : 0)) {
    if (c == '.') {
      decimals = 0;
      continue;
    }
    if (c < '0' || c > '9') return rounded_nanoseconds_of(text);
    if (decimals == 3) {
      if (text.find_first_of("eE") != std::string_view::npos) return rounded_nanoseconds_of(text);
      value += c >= '5' ? 1 : 0;
      break;
    }
    if (value > limit / 10) return std::nullopt;
    value = value * 10 + (c - '0');
    if (decimals >= 0) ++decimals;
  }
  for (int i = std::max(decimals, 0); i < 3; ++i) {
    if (value > limit / 10) return std::nullopt;
    value *= 10;
  }
  return is_negative ? -value : value;
}

/// Makes an event empty, and keeps the memory of its texts.
void clear(TorchEvent& event) {
  event.phase.clear();
  event.category.clear();
  event.name.clear();
  event.collective.clear();
  event.dtype.clear();
  event.start_ns = event.length_ns = event.external_id = event.correlation = event.device =
      event.from_rank = event.to_rank = event.elements = std::nullopt;
  event.process = event.thread = 0;
}

/// Takes the tokens of the JSON parser. A member that returns false stops the parser.
class EventHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventHandler(const std::shared_ptr<const Source>& source, const TakeTorchEvent& take)
      : source_(source), take_(take) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override {
    set_whole(value);
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    const bool is_time =
        in_event_ && depth_ == event_depth_ && (field_ == Field::start || field_ == Field::length);
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (!is_time || value <= most) set_whole(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_float(double, const std::string& text) override {
    if (in_event_ && depth_ == event_depth_) set_time(nanoseconds_of(text));
    return true;
  }
  bool string(std::string& value) override {
    if (!in_event_) return true;
    if (depth_ == event_depth_ + 1) take_argument(value);
    if (depth_ == event_depth_) set_text(value);
    return true;
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    ++depth_;
    if (has_events_ && depth_ == event_depth_ && !in_event_) {
      clear(event_);
      in_event_ = true;
      field_ = Field::none;
    }
    return true;
  }
  bool key(std::string& name) override {
    if (in_event_) {
      if (depth_ == event_depth_) {
        field_ = field_of(name);
        argument_ = Argument::none;
      }
      if (depth_ == event_depth_ + 1)
        argument_ = field_ == Field::arguments ? argument_of(name) : Argument::none;
    } else if (depth_ == 1) {
      section_ = name;
    } else if (depth_ == 2 && section_ == "distributedInfo") {
      entry_ = name;
    }
    return true;
  }
  bool end_object() override {
    const bool ends_event = in_event_ && depth_ == event_depth_;
    --depth_;
    if (!ends_event) return true;
    in_event_ = false;
    problem_ = take_(event_, ++header_.events);
    return !problem_;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (!in_event_ && !has_events_ && (depth_ == 1 || (depth_ == 2 && section_ == "traceEvents"))) {
      has_events_ = true;
      any_events_ = true;
      event_depth_ = depth_ + 1;
    }
    return true;
  }
  bool end_array() override {
    --depth_;
    if (has_events_ && !in_event_ && depth_ + 2 == event_depth_) has_events_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& wrong) override {
    error_byte_ = position;
    error_token_ = last_token;
    is_out_of_range_ = wrong.id == kOutOfRange;
    return false;
  }

  /// Whether a list of events was seen.
  bool any_events() const { return any_events_; }
  const TorchTraceHeader& header() const { return header_; }
  const std::optional<Diagnostic>& problem() const { return problem_; }

  /// The fault at which the parser stopped.
  Diagnostic syntax_error(bool at_end) const {
    if (at_end && error_byte_ <= 1) return error("is empty, where a trace is wanted", "");
    if (at_end) {
      return error(fmt::format("ends in the middle of its JSON, after byte {}", error_byte_ - 1),
                   "the file is cut off; export the trace again");
    }
    if (is_out_of_range_)
      return error(fmt::format("the number at byte {} is out of range", error_byte_), "");
    return error(fmt::format("byte {} is no JSON, in '{}'", error_byte_, clipped(error_token_)),
                 "a trace is what torch.profiler's export_chrome_trace writes");
  }

 private:
  static constexpr int kOutOfRange = 406;  // nlohmann-json's number for that error

  Diagnostic error(std::string message, std::string help) const {
    return input_error({source_}, std::move(message), std::move(help));
  }

  void set_text(std::string& value) {
    switch (field_) {
      case Field::phase:
        event_.phase = std::move(value);
        break;
      case Field::category:
        event_.category = std::move(value);
        break;
      case Field::name:
        event_.name = std::move(value);
        break;
      case Field::process:
        event_.process = static_cast<std::int64_t>(std::hash<std::string>{}(value));
        break;
      case Field::thread:
        event_.thread = static_cast<std::int64_t>(std::hash<std::string>{}(value));
        break;
      default:
        break;
    }
  }

  void take_argument(std::string& value) {
    if (argument_ == Argument::none) return;
    if (argument_ == Argument::collective) {
      event_.collective = std::move(value);
    } else if (argument_ == Argument::dtype) {
      event_.dtype = std::move(value);
    } else if (const auto whole = parse_count(value).value) {
      set_argument(*whole);
    }
  }

  void set_argument(std::int64_t value) {
    switch (argument_) {
      case Argument::external_id:
        event_.external_id = value;
        break;
      case Argument::correlation:
        event_.correlation = value;
        break;
      case Argument::device:
        event_.device = value;
        break;
      case Argument::from_rank:
        event_.from_rank = value;
        break;
      case Argument::to_rank:
        event_.to_rank = value;
        break;
      case Argument::elements:
        event_.elements = value;
        break;
      default:
        break;
    }
  }

  void set_whole(std::int64_t value) {
    if (in_event_) {
      if (depth_ == event_depth_ + 1) return set_argument(value);
      if (depth_ != event_depth_) return;
      if (field_ == Field::process) event_.process = value;
      if (field_ == Field::thread) event_.thread = value;
      constexpr std::int64_t limit = std::int64_t{9'000'000'000'000'000};
      if (value < limit && value > -limit) set_time(value * 1000);
    } else if (depth_ == 1 && section_ == "baseTimeNanoseconds") {
      header_.base_ns = value;
    } else if (depth_ == 2 && section_ == "distributedInfo") {
      if (entry_ == "rank") header_.rank = value;
      if (entry_ == "world_size") header_.world_size = value;
    }
  }

  void set_time(std::optional<std::int64_t> ns) {
    if (field_ == Field::start) event_.start_ns = ns;
    if (field_ == Field::length) event_.length_ns = ns;
  }

  std::shared_ptr<const Source> source_;
  const TakeTorchEvent& take_;
  TorchTraceHeader header_;

  // The position of the parser.
  std::size_t depth_ = 0;        // the number of open objects and lists
  std::size_t event_depth_ = 0;  // the depth of an event's keys
  std::string section_;          // the last key of the outermost object
  std::string entry_;            // the last key within distributedInfo
  bool has_events_ = false;      // within the list of events
  bool any_events_ = false;
  bool in_event_ = false;
  Argument argument_ = Argument::none;
  Field field_ = Field::none;
  TorchEvent event_;

  std::size_t error_byte_ = 0;
  std::string error_token_;
  bool is_out_of_range_ = false;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<TorchTraceHeader> read_torch_events(std::istream& text,
                                           const std::shared_ptr<const Source>& source,
                                           const TakeTorchEvent& take) {
  EventHandler handler(source, take);
  const bool parsed = nlohmann::json::sax_parse(text, &handler);
  if (handler.problem()) return *handler.problem();
  if (!parsed) return handler.syntax_error(text.eof());
  if (!handler.any_events())
    return input_error({source}, "is JSON, and no trace: it has no list traceEvents",
                       "a trace is what torch.profiler's export_chrome_trace writes");
  return handler.header();
}

}  // namespace plumbline
