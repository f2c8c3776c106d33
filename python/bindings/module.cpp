// plumbline._core: scenarios, plans and orders.
//
// SPDX-License-Identifier: MIT
#include "bindings.h"

namespace plumbline_python {
namespace {

namespace pl = plumbline;

void bind_scenario(py::module_& module) {
  py::class_<pl::Input>(module, "Input")
      .def(py::init<std::string>())
      .def_static("of_text", &pl::Input::of_text, py::arg("text"), py::arg("name"),
                  py::arg("folder"));
  py::class_<pl::Scenario>(module, "Scenario")
      .def_property_readonly("name", &pl::Scenario::name)
      .def_property_readonly("notes", &pl::Scenario::notes);
  module.def("load", [](const pl::Input& input, const pl::Settings& settings) {
    return without_gil([&] { return pl::load(input, settings); });
  });
  module.def("predict", [](const pl::Scenario& scenario) {
    return without_gil([&] { return pl::predict(scenario); });
  });
}

void bind_plan(py::module_& module) {
  py::class_<pl::PlanStage>(module, "PlanStage")
      .def_readonly("layers", &pl::PlanStage::layers)
      .def_readonly("devices", &pl::PlanStage::devices)
      .def_readonly("replicas", &pl::PlanStage::replicas)
      .def_readonly("compute", &pl::PlanStage::compute_s)
      .def_readonly("warm_up", &pl::PlanStage::warm_up)
      .def_readonly("peak_memory", &pl::PlanStage::peak_memory_bytes)
      .def("__repr__", [](const pl::PlanStage& stage) {
        return "<stage of " + std::to_string(stage.layers.size()) + " layers on " +
               std::to_string(stage.replicas) + " devices>";
      });
  py::class_<pl::Plan>(module, "Plan")
      .def_readonly("config", &pl::Plan::config)
      .def_readonly("stages", &pl::Plan::stages)
      .def_readonly("time_per_micro_batch", &pl::Plan::time_per_micro_batch_s)
      .def_readonly("formula", &pl::Plan::formula_s)
      .def_readonly("fits", &pl::Plan::fits)
      .def_readonly("yaml", &pl::Plan::yaml)
      .def_readonly("json", &pl::Plan::json)
      .def("__repr__",
           [](const pl::Plan& plan) {
             return "<plan " + plan.config + ": " + std::to_string(plan.time_per_micro_batch_s) +
                    " s per micro-batch>";
           })
      .def("__str__", [](const pl::Plan& plan) { return plan.text; });
  module.def("plan", [](const pl::Scenario& scenario, bool straight, std::uint32_t devices_at_most,
                        std::uint32_t candidates) {
    pl::PlanLimits limits;
    limits.straight = straight;
    limits.devices_at_most = devices_at_most;
    limits.candidates = candidates;
    Signals signals;
    limits.progress = [&](double) { return signals.go_on([] {}); };
    auto result = [&] {
      const py::gil_scoped_release released;
      return pl::plan(scenario, limits);
    }();
    signals.raise_kept();
    return value_of(std::move(result));
  });

  py::class_<pl::TimedOrder>(module, "TimedOrder")
      .def_readonly("name", &pl::TimedOrder::name)
      .def_readonly("time", &pl::TimedOrder::time_s)
      .def_readonly("fits", &pl::TimedOrder::fits)
      .def("__repr__", [](const pl::TimedOrder& order) {
        return "<" + order.name + ": " + std::to_string(order.time_s) + " s>";
      });
  py::class_<pl::Order>(module, "FoundOrder")
      .def_readonly("time", &pl::Order::time_s)
      .def_readonly("bound", &pl::Order::bound_s)
      .def_readonly("gap", &pl::Order::gap)
      .def_readonly("peak_memory", &pl::Order::peak_memory_bytes)
      .def_readonly("named", &pl::Order::named)
      .def_readonly("csv", &pl::Order::csv)
      .def_readonly("lowered_csv", &pl::Order::lowered_csv)
      .def_readonly("json", &pl::Order::json)
      .def("__repr__",
           [](const pl::Order& order) {
             return "<order of " + std::to_string(order.time_s) + " s, at most " +
                    std::to_string(100 * order.gap) + " % above any>";
           })
      .def("__str__", [](const pl::Order& order) { return order.text; });
  module.def("order", [](const pl::Input& input, const pl::Settings& settings) {
    std::atomic<bool> stop = false;
    return watched(
        stop, [&] { return pl::order(input, settings, &stop); }, [] {});
  });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiled part of plumbline.";
  module.attr("__version__") = pl::version();
  bind_scenario(module);
  bind_run(module);
  bind_rows(module);
  bind_plan(module);
  bind_measure(module);
}

}  // namespace plumbline_python
