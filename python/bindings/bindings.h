// What the parts of the module share.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <plumbline/plumbline.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
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

}  // namespace plumbline_python
