// The events of a PyTorch profiler trace, one after the other, read without keeping any.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/gzip_file.h"

namespace plumbline {

/// One event, as far as readers need it. Times are whole nanoseconds on the trace's own clock, as
/// the file has them: a third decimal of a microsecond is exact, however many digits stand before.
struct TorchEvent {
  std::string phase, category, name;
  std::optional<std::int64_t> start_ns, length_ns;
  std::int64_t process = 0;  ///< Texts have the number of their hash.
  std::int64_t thread = 0;
  std::optional<std::int64_t> external_id, correlation, device;
  std::optional<std::int64_t> from_rank, to_rank;  ///< Of a send or receive.
  std::optional<std::int64_t> elements;            ///< The numbers that it moves.
  std::string collective;                          ///< "send", "recv", "allreduce"; "" = unknown.
  std::string dtype;

  bool is_span() const { return phase == "X"; }
  /// Whether autograd evaluated a function.
  bool is_autograd() const { return name.starts_with("autograd::engine::evaluate_function"); }
  /// Whether a GPU did it: a kernel, a copy or a fill.
  bool is_gpu_work() const {
    return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
           category == "Kernel" || category == "Memcpy" || category == "Memset";
  }
  /// Whether it is a call that may start work on a GPU.
  bool is_launch() const {
    return category.ends_with("_runtime") || category.ends_with("_driver") || category == "Runtime";
  }
};

/// What a trace says of itself beside its events.
struct TorchTraceHeader {
  std::optional<std::int64_t> rank, world_size;
  std::int64_t base_ns = 0;  ///< What its times count from.
  std::size_t events = 0;
};

/// Takes an event; a diagnostic ends the reading with it. `number` counts from 1.
using TakeTorchEvent =
    std::function<std::optional<Diagnostic>(const TorchEvent& event, std::size_t number)>;

/// Opens a trace, plain or compressed with gzip, and returns what `read` makes of its text. Errors:
/// those of GzipFile, which go before those of `read`.
template <class T>
Result<T> read_trace_file(
    const std::string& path,
    const std::function<Result<T>(std::istream& text, const std::shared_ptr<const Source>& source)>&
        read) {
  auto source = std::make_shared<Source>();
  source->name = path;
  GzipFile file(path);
  const auto file_error = [&] {
    return Diagnostic{.mark = {source},
                      .message = file.problem(),
                      .help = {},
                      .detail = {},
                      .fault = Fault::file};
  };
  if (!file.problem().empty()) return file_error();
  std::istream text(&file);
  auto found = read(text, source);
  if (!file.problem().empty()) return file_error();  // it explains errors in `found`
  return found;
}

/// Reads the JSON of a Chrome trace to its end, and hands over each event. `source` names the file
/// in messages. Errors: an empty text; no JSON or not all of it (with the byte); no traceEvents;
/// those of `take`. Requires: `take` keeps no reference to an event.
Result<TorchTraceHeader> read_torch_events(std::istream& text,
                                           const std::shared_ptr<const Source>& source,
                                           const TakeTorchEvent& take);

}  // namespace plumbline
