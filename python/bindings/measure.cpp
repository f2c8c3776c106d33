// plumbline._core: real runs beside their predictions, and layers timed on this machine.
//
// SPDX-License-Identifier: MIT
#include <plumbline/measure.h>

#include "bindings.h"

namespace plumbline_python {
namespace {

namespace pl = plumbline;

/// The value of `measure`, called without the GIL with a function that looks for Ctrl-C and tells
/// `progress`, a function of two numbers or None.
template <class Measure>
auto measured(const py::object& progress, const Measure& measure) {
  Signals signals;
  const auto go_on = [&](std::uint64_t done, std::uint64_t all) {
    return signals.go_on([&] {
      if (!progress.is_none()) progress(done, all);
    });
  };
  auto result = [&] {
    const py::gil_scoped_release released;
    return measure(go_on);
  }();
  signals.raise_kept();
  return value_of(std::move(result));
}

pl::Validation validate(const std::vector<pl::Input>& scenarios, const pl::Settings& settings,
                        const pl::Backend& backend, pl::ValidationLimits limits,
                        const py::object& progress) {
  return measured(progress, [&](const auto& go_on) {
    limits.progress = [&](std::size_t run, std::size_t runs, std::uint32_t) {
      return go_on(run - 1, runs);
    };
    return pl::validate(scenarios, settings, backend, limits);
  });
}

pl::Profile calibrate(const std::string& network, const pl::Backend& backend,
                      pl::CalibrationLimits limits, const py::object& progress) {
  return measured(progress, [&](const auto& go_on) {
    limits.progress = [&](const std::string&, double share) {
      return go_on(static_cast<std::uint64_t>(100 * share), 100);
    };
    return pl::calibrate(network, backend, limits);
  });
}

void bind_limits(py::module_& module) {
  py::class_<pl::Backend>(module, "Backend")
      .def(py::init<>())
      .def_readwrite("name", &pl::Backend::name)
      .def_readwrite("seed", &pl::Backend::seed)
      .def_readwrite("one_gpu", &pl::Backend::one_gpu)
      .def_readwrite("graphs", &pl::Backend::graphs)
      .def_readwrite("nccl", &pl::Backend::nccl);
  py::class_<pl::ValidationLimits>(module, "ValidationLimits")
      .def(py::init<>())
      .def_readwrite("iterations", &pl::ValidationLimits::iterations)
      .def_readwrite("warm_up", &pl::ValidationLimits::warm_up)
      .def_readwrite("rounds", &pl::ValidationLimits::rounds)
      .def_readwrite("tolerance", &pl::ValidationLimits::tolerance)
      .def_readwrite("recalibrate", &pl::ValidationLimits::recalibrate);
  py::class_<pl::CalibrationLimits>(module, "CalibrationLimits")
      .def(py::init<>())
      .def_readwrite("batches", &pl::CalibrationLimits::batches)
      .def_readwrite("devices", &pl::CalibrationLimits::devices)
      .def_readwrite("copies", &pl::CalibrationLimits::copies)
      .def_readwrite("adam", &pl::CalibrationLimits::adam)
      .def_readwrite("min_seconds", &pl::CalibrationLimits::min_seconds)
      .def_readwrite("max_seconds", &pl::CalibrationLimits::max_seconds);
}

}  // namespace

void bind_measure(py::module_& module) {
  bind_limits(module);
  py::class_<pl::ValidatedRun>(module, "ValidatedRun")
      .def_readonly("settings", &pl::ValidatedRun::settings)
      .def_readonly("predicted", &pl::ValidatedRun::predicted_s)
      .def_readonly("measured", &pl::ValidatedRun::measured_s)
      .def_readonly("error", &pl::ValidatedRun::error)
      .def_readonly("noise", &pl::ValidatedRun::noise)
      .def_readonly("clean", &pl::ValidatedRun::clean)
      .def_readonly("memory", &pl::ValidatedRun::memory)
      .def_property_readonly("verdict",
                             [](const pl::ValidatedRun& run) { return pl::name(run.verdict); })
      .def("__repr__", [](const pl::ValidatedRun& run) {
        return "<run predicted to take " + std::to_string(run.predicted_s) +
               " s: " + pl::name(run.verdict) + '>';
      });
  py::class_<pl::Validation>(module, "Validation")
      .def_readonly("runs", &pl::Validation::runs)
      .def_property_readonly(
          "verdict", [](const pl::Validation& validation) { return pl::name(validation.verdict); })
      .def_readonly("json", &pl::Validation::json)
      .def("__repr__",
           [](const pl::Validation& validation) {
             return "<validation of " + std::to_string(validation.runs.size()) +
                    " runs: " + pl::name(validation.verdict) + '>';
           })
      .def("__str__", [](const pl::Validation& validation) { return validation.text; });
  py::class_<pl::Profile>(module, "Profile")
      .def_readonly("yaml", &pl::Profile::yaml)
      .def_readonly("left_out", &pl::Profile::left_out)
      .def_readonly("noise", &pl::Profile::noise)
      .def("__repr__",
           [](const pl::Profile& profile) {
             return "<profile, noise " + std::to_string(100 * profile.noise) + " %>";
           })
      .def("__str__", [](const pl::Profile& profile) { return profile.yaml; });
  module.def("validate", &validate);
  module.def("calibrate", &calibrate);
}

}  // namespace plumbline_python
