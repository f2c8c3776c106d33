// What the parts of the module share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <plumbline/plumbline.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plumbline_python {

namespace py = pybind11;

/// Raises the Python exception of an error.
[[noreturn]] void raise(const plumbline::Error& error);

/// The value of a result, or its exception.
template <class T>
T value_of(plumbline::Result<T> result) {
  if (!result) raise(result.error());
  return *std::move(result);
}

/// The result of `work`, which runs without the GIL and touches no Python object; or its exception.
template <class Work>
auto without_gil(Work&& work) {
  auto result = [&] {
    const py::gil_scoped_release released;
    return work();
  }();
  return value_of(std::move(result));
}

/// Looks for Ctrl-C while work runs without the GIL, and keeps the exception until it has ended.
class Signals {
 public:
  /// Calls `tell` with the GIL, unless Ctrl-C was pressed. Returns false once there is an
  /// exception. Called by the thread that called Python's function.
  template <class Tell>
  bool go_on(const Tell& tell) {
    if (raised_) return false;
    const py::gil_scoped_acquire acquired;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      tell();
    } catch (py::error_already_set& error) {
      raised_.emplace(std::move(error));
    }
    return !raised_;
  }

  /// Raises the exception, if there is one. Requires: the GIL.
  void raise_kept() {
    if (raised_) throw *std::exchange(raised_, std::nullopt);
  }

 private:
  std::optional<py::error_already_set> raised_;
};

/// The value of `work`, which runs on another thread and ends early once `stop` is set. Meanwhile
/// this one looks for Ctrl-C and calls `tell`. An exception of either sets `stop`, and is raised
/// when the work has ended.
template <class Work, class Tell>
auto watched(std::atomic<bool>& stop, const Work& work, const Tell& tell) {
  Signals signals;
  auto result = [&] {
    const py::gil_scoped_release released;
    auto future = std::async(std::launch::async, work);
    while (future.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (!signals.go_on(tell)) stop = true;
    return future.get();
  }();
  signals.raise_kept();
  return value_of(std::move(result));
}

/// A NumPy array over a column that `owner` keeps alive: no copy, not to be written.
template <class T>
py::array array_over(std::span<const T> column, const py::object& owner) {
  py::array_t<T> array(static_cast<py::ssize_t>(column.size()), column.data(), owner);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

/// The same for numbers below 2^31, as signed ones: differences of unsigned ones would wrap.
inline py::array signed_over(std::span<const std::uint32_t> column, const py::object& owner) {
  return array_over(std::span(reinterpret_cast<const std::int32_t*>(column.data()), column.size()),
                    owner);
}

/// The same for letters: an array of one-byte strings.
py::array letters_over(std::span<const char> column, const py::object& owner);

void bind_run(py::module_& module);
void bind_rows(py::module_& module);
void bind_measure(py::module_& module);

}  // namespace plumbline_python
