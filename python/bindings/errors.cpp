// Errors as exceptions: plumbline._errors has their classes.
//
// SPDX-License-Identifier: MIT
#include "bindings.h"

namespace plumbline_python {
namespace {

const char* name_of(plumbline::Fault fault) {
  switch (fault) {
    case plumbline::Fault::file:
      return "file";
    case plumbline::Fault::infeasible:
      return "infeasible";
    case plumbline::Fault::no_device:
      return "no_device";
    case plumbline::Fault::input:
    case plumbline::Fault::stopped:  // an exception of its own is raised then
      break;
  }
  return "input";
}

}  // namespace

void raise(const plumbline::Error& error) {
  py::list problems;
  for (const plumbline::Problem& one : error.problems) {
    problems.append(
        py::make_tuple(name_of(one.fault), one.file, one.line, one.column, one.message, one.help));
  }
  const py::object exception =
      py::module_::import("plumbline._errors").attr("error_of")(problems, error.text);
  PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  throw py::error_already_set();
}

py::array letters_over(std::span<const char> column, const py::object& owner) {
  py::array array(py::dtype("S1"), {static_cast<py::ssize_t>(column.size())}, {1}, column.data(),
                  owner);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

}  // namespace plumbline_python
