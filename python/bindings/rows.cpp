// plumbline._core: sweeps and searches, which can be watched and interrupted.
//
// SPDX-License-Identifier: MIT
#include "bindings.h"

namespace plumbline_python {
namespace {

namespace pl = plumbline;

/// Does the task, and tells `progress`, a function of two numbers or None.
template <class Task>
pl::Rows rows_of(const Task& task, unsigned threads, const py::object& progress) {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> done = 0, count = 0;
  pl::Work work;
  work.threads = threads;
  work.stop = &stop;
  work.progress = [&](std::uint64_t now, std::uint64_t all) {
    done = now;
    count = all;
  };
  pl::Rows rows = watched(
      stop, [&] { return task(work); },
      [&] {
        if (!progress.is_none() && count > 0) progress(done.load(), count.load());
      });
  if (!progress.is_none()) progress(rows.done(), rows.wanted());
  return rows;
}

pl::Selection selection_of(const std::string& objective, std::vector<std::string> where,
                           std::size_t top, const std::string& pareto, bool distinct) {
  pl::Selection selection;
  selection.objective = objective;
  selection.where = std::move(where);
  selection.top = top;
  selection.front = pareto;
  selection.distinct = distinct;
  return selection;
}

/// (name, unit, values) of each column; numbers are arrays without a copy.
py::list columns_of(const py::object& self) {
  const auto& rows = self.cast<const pl::Rows&>();
  py::list columns;
  for (const pl::Column& column : rows.columns()) {
    const py::object values = column.texts.empty()
                                  ? py::object(array_over<double>(column.numbers, self))
                                  : py::cast(column.texts);
    columns.append(py::make_tuple(column.name, column.unit, values));
  }
  return columns;
}

}  // namespace

void bind_rows(py::module_& module) {
  const py::call_guard<py::gil_scoped_release> released;
  const auto check = [](const pl::Rows& rows, std::size_t row) {
    if (row >= rows.size())
      throw py::index_error("there are " + std::to_string(rows.size()) + " rows");
  };
  py::class_<pl::Rows>(module, "Rows")
      .def("__len__", &pl::Rows::size)
      .def("columns", &columns_of)
      .def("settings",
           [check](const pl::Rows& rows, std::size_t row) {
             check(rows, row);
             return rows.settings(row);
           })
      .def("reason",
           [check](const pl::Rows& rows, std::size_t row) {
             check(rows, row);
             return rows.reason(row);
           })
      .def_property_readonly("done", &pl::Rows::done)
      .def_property_readonly("wanted", &pl::Rows::wanted)
      .def_property_readonly("remarks", &pl::Rows::remarks)
      .def("text", &pl::Rows::text, released)
      .def("csv", &pl::Rows::csv, released)
      .def("json", &pl::Rows::json, released)
      .def("html", &pl::Rows::html, released);
  module.def(
      "sweep", [](const pl::Input& input, const pl::Settings& settings,
                  const std::string& objective, std::vector<std::string> where, std::size_t top,
                  const std::string& pareto, unsigned threads, const py::object& progress) {
        const auto selection = selection_of(objective, std::move(where), top, pareto, false);
        return rows_of(
            [&](const pl::Work& work) { return pl::sweep(input, settings, selection, work); },
            threads, progress);
      });
  module.def("search", [](const pl::Input& input, const pl::Settings& settings,
                          const std::string& objective, std::vector<std::string> where,
                          std::size_t top, const std::string& pareto, bool distinct, bool free,
                          unsigned threads, const py::object& progress) {
    const auto selection = selection_of(objective, std::move(where), top, pareto, distinct);
    return rows_of(
        [&](const pl::Work& work) { return pl::search(input, settings, selection, free, work); },
        threads, progress);
  });
}

}  // namespace plumbline_python
