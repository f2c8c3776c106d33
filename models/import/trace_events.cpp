// The trace as a stream of JSON tokens. The content of a trace, from the code that writes it
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
#include "models/import/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/quantity.h"
#include "base/section_reader.h"
#include "base/units.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxNames = 10'000;  // the most names that are counted for messages
constexpr std::string_view kStep = "ProfilerStep#";
constexpr std::string_view kAutograd = "autograd::engine::evaluate_function";

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

/// The keys of an event that are read.
enum class Field { none, phase, category, name, start, length, thread, arguments };

Field field_of(std::string_view key) {
  if (key == "ph") return Field::phase;
  if (key == "cat") return Field::category;
  if (key == "name") return Field::name;
  if (key == "ts") return Field::start;
  if (key == "dur") return Field::length;
  if (key == "tid") return Field::thread;
  if (key == "args") return Field::arguments;
  return Field::none;
}

/// The arguments of an event that are read.
enum class Argument { none, external_id, correlation, collective };

Argument argument_of(std::string_view key) {
  if (key == "External id" || key == "external id") return Argument::external_id;
  if (key == "correlation") return Argument::correlation;
  if (key == "Collective name") return Argument::collective;
  return Argument::none;
}

/// One event, as far as it has been read.
struct Event {
  std::string phase, category, name, collective;
  std::optional<double> start, length;
  std::int64_t thread = 0;
  std::optional<std::int64_t> external_id, correlation;

  bool is_gpu_work() const {
    return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
           category == "Kernel" || category == "Memcpy" || category == "Memset";
  }
  bool is_launch() const {
    return category.ends_with("_runtime") || category.ends_with("_driver") || category == "Runtime";
  }
  /// One NCCL kernel name serves sends, receives and all-to-alls. Newer traces say which it was.
  PeerWork peer_work() const {
    if (!name.starts_with("nccl")) return PeerWork::none;
    if (name.find("SendRecv") == std::string::npos) return PeerWork::collective;
    if (collective.empty()) return PeerWork::unknown;
    const bool is_pair = collective.starts_with("send") || collective.starts_with("recv") ||
                         collective == "coalesced";
    return is_pair ? PeerWork::send_or_receive : PeerWork::collective;
  }
};

/// Takes the tokens of the JSON parser. A member that returns false stops the parser.
class EventHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventHandler(const std::shared_ptr<const Source>& source, const RangeNames& names,
               TraceEvents& found)
      : source_(source), names_(names), found_(found) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override {
    set_number(static_cast<double>(value), value);
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    set_number(static_cast<double>(value), static_cast<std::int64_t>(value));
    return true;
  }
  bool number_float(double value, const std::string&) override {
    set_number(value, std::nullopt);
    return true;
  }
  bool string(std::string& value) override {
    if (!in_event_) return true;
    if (depth_ == event_depth_ + 1) take_argument(value);
    if (depth_ != event_depth_) return true;
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
      case Field::thread:
        event_.thread = static_cast<std::int64_t>(std::hash<std::string>{}(value));
        break;
      default:
        break;
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    ++depth_;
    if (has_events_ && depth_ == event_depth_ && !in_event_) {
      event_ = {};
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
      is_trace_events_ = name == "traceEvents";
    }
    return true;
  }
  bool end_object() override {
    const bool ends_event = in_event_ && depth_ == event_depth_;
    --depth_;
    if (!ends_event) return true;
    in_event_ = false;
    return take_event();
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (!in_event_ && !has_events_ && (depth_ == 1 || (depth_ == 2 && is_trace_events_))) {
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
  void count_names() {
    found_.annotations = annotations_.by_frequency();
    found_.others = others_.by_frequency();
  }
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

  bool stop(std::string message, std::string help = "") {
    problem_ = error(std::move(message), std::move(help));
    return false;
  }

  void take_argument(const std::string& value) {
    if (argument_ == Argument::collective) event_.collective = value;
    if (argument_ != Argument::external_id && argument_ != Argument::correlation) return;
    if (const auto whole = parse_count(value).value)
      set_number(static_cast<double>(*whole), *whole);
  }

  void set_number(double value, std::optional<std::int64_t> whole) {
    if (!in_event_) return;
    if (depth_ == event_depth_) {
      if (field_ == Field::start) event_.start = value;
      if (field_ == Field::length) event_.length = value;
      if (field_ == Field::thread && whole) event_.thread = *whole;
    } else if (depth_ == event_depth_ + 1 && whole) {
      if (argument_ == Argument::external_id) event_.external_id = whole;
      if (argument_ == Argument::correlation) event_.correlation = whole;
    }
  }

  bool take_event() {
    ++found_.events;
    if (event_.phase != "X") return true;
    const bool on_cpu = event_.category == "user_annotation";
    const bool on_gpu = event_.category == "gpu_user_annotation";
    if (!on_cpu && !on_gpu) {
      take_work();
      others_.add(event_.name);
      return true;
    }
    if (event_.name.starts_with(kStep)) {
      if (on_cpu && event_.start && event_.length)
        found_.steps.push_back({*event_.start, *event_.start + *event_.length});
      return true;
    }
    if (const auto meaning = names_.meaning(event_.name)) return take_range(*meaning, on_gpu);
    if (on_cpu) annotations_.add(event_.name);
    return true;
  }

  void take_work() {
    if (event_.is_gpu_work()) {
      ++found_.gpu_work;
      if (event_.correlation && event_.start && event_.length)
        found_.kernels.push_back(
            {*event_.correlation, *event_.start, *event_.length, event_.peer_work()});
    } else if (event_.is_launch()) {
      if (event_.correlation && event_.start)
        found_.launches.push_back({*event_.start, event_.thread, *event_.correlation});
    } else if (event_.name.starts_with(kAutograd)) {
      found_.autograd_threads.insert(event_.thread);
    }
  }

  bool take_range(const RangeMeaning& meaning, bool on_gpu) {
    const double max = static_cast<double>(kLargestQuantity) / 1e3;
    if (!event_.start || !event_.length || *event_.length < 0 || *event_.length > max)
      return stop(fmt::format("a range '{}' has no length that makes sense", clipped(event_.name)),
                  fmt::format("it is event {} of traceEvents", found_.events));
    const auto layer = layer_index(std::string(meaning.layer));
    if (!layer) return false;
    found_.ranges.push_back({*layer, meaning.pass, on_gpu, *event_.start, *event_.length,
                             event_.thread, event_.external_id});
    return true;
  }

  std::optional<std::uint32_t> layer_index(const std::string& name) {
    const auto [at, is_new] =
        layers_.emplace(name, static_cast<std::uint32_t>(found_.layers.size()));
    if (!is_new) return at->second;
    if (name.size() > kLongestText) {
      stop(fmt::format("the layer '{}' has a name longer than 10,000 bytes", clipped(name)));
      return std::nullopt;
    }
    if (found_.layers.size() == static_cast<std::size_t>(kMaxLayers)) {
      stop(fmt::format("there are ranges of more than {} layers", kMaxLayers));
      return std::nullopt;
    }
    found_.layers.push_back(name);
    return at->second;
  }

  std::shared_ptr<const Source> source_;
  const RangeNames& names_;
  TraceEvents& found_;
  NameCounter annotations_, others_;
  std::unordered_map<std::string, std::uint32_t> layers_;

  // The position of the parser.
  std::size_t depth_ = 0;        // the number of open objects and lists
  std::size_t event_depth_ = 0;  // the depth of an event's keys
  bool is_trace_events_ = false;
  bool has_events_ = false;  // within the list of events
  bool any_events_ = false;
  bool in_event_ = false;
  Argument argument_ = Argument::none;
  Field field_ = Field::none;
  Event event_;

  std::size_t error_byte_ = 0;
  std::string error_token_;
  bool is_out_of_range_ = false;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<TraceEvents> read_trace_events(std::istream& text,
                                      const std::shared_ptr<const Source>& source,
                                      const RangeNames& names) {
  TraceEvents found;
  EventHandler handler(source, names, found);
  const bool parsed = nlohmann::json::sax_parse(text, &handler);
  if (handler.problem()) return *handler.problem();
  if (!parsed) return handler.syntax_error(text.eof());
  if (!handler.any_events())
    return input_error({source}, "is JSON, and no trace: it has no list traceEvents",
                       "a trace is what torch.profiler's export_chrome_trace writes");
  handler.count_names();
  return found;
}

}  // namespace plumbline
