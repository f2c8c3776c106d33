// plumbline._core: runs, their columns, their explanations.
//
// SPDX-License-Identifier: MIT
#include "bindings.h"

namespace plumbline_python {
namespace {

namespace pl = plumbline;

py::dict idle_of(const pl::Device& device) {
  const pl::IdleTimes& idle = device.idle_by_cause_s;
  py::dict causes;
  causes["fill"] = idle.fill;
  causes["drain"] = idle.drain;
  causes["dependency"] = idle.dependency;
  causes["transfer"] = idle.transfer;
  causes["all_reduce"] = idle.all_reduce;
  causes["rendezvous"] = idle.rendezvous;
  causes["update"] = idle.update;
  causes["overhead"] = idle.overhead;
  return causes;
}

py::dict memory_of(const pl::Device& device) {
  const pl::Memory& memory = device.memory;
  py::dict parts;
  parts["weights"] = memory.weights;
  parts["gradients"] = memory.gradients;
  parts["optimizer"] = memory.optimizer;
  parts["activations"] = memory.activations;
  parts["stash"] = memory.stash;
  parts["buffers"] = memory.buffers;
  parts["temporary"] = memory.temporary;
  return parts;
}

void bind_device(py::module_& module) {
  py::class_<pl::Device>(module, "Device")
      .def_readonly("device", &pl::Device::device)
      .def_readonly("stages", &pl::Device::stages)
      .def_readonly("busy", &pl::Device::busy_s)
      .def_readonly("idle", &pl::Device::idle_s)
      .def_readonly("bubble", &pl::Device::bubble_fraction)
      .def_property_readonly("idle_by_cause", &idle_of)
      .def_readonly("peak_memory", &pl::Device::peak_memory_bytes)
      .def_property_readonly("memory", &memory_of)
      .def_readonly("peak_op", &pl::Device::peak_op)
      .def_readonly("peak_in_flight", &pl::Device::peak_in_flight)
      .def_readonly("weight_versions", &pl::Device::weight_versions)
      .def_readonly("fits", &pl::Device::fits)
      .def("__repr__", [](const pl::Device& device) {
        return "<device " + std::to_string(device.device) + ": peak " +
               std::to_string(device.peak_memory_bytes) + " bytes at " + device.peak_op + '>';
      });
}

void bind_explanation(py::module_& module) {
  py::class_<pl::PathStretch>(module, "PathStretch")
      .def_readonly("begin_ns", &pl::PathStretch::begin_ns)
      .def_readonly("end_ns", &pl::PathStretch::end_ns)
      .def_readonly("where", &pl::PathStretch::where)
      .def_readonly("what", &pl::PathStretch::what)
      .def("__repr__", [](const pl::PathStretch& stretch) {
        return "<" + stretch.where + " from " + std::to_string(stretch.begin_ns) + " to " +
               std::to_string(stretch.end_ns) + " ns>";
      });
  py::class_<pl::Lever>(module, "Lever")
      .def_readonly("what", &pl::Lever::what)
      .def_readonly("now", &pl::Lever::now_s)
      .def_readonly("gain", &pl::Lever::gain_s)
      .def_readonly("until", &pl::Lever::until)
      .def_readonly("least", &pl::Lever::least_s)
      .def("__repr__", [](const pl::Lever& lever) {
        return "<" + lever.what + ": at most " + std::to_string(lever.gain_s) + " s>";
      });
  py::class_<pl::OtherSchedule>(module, "OtherSchedule")
      .def_readonly("schedule", &pl::OtherSchedule::schedule)
      .def_readonly("iteration_time", &pl::OtherSchedule::iteration_time_s)
      .def_readonly("peak_memory", &pl::OtherSchedule::peak_memory_bytes)
      .def_readonly("fits", &pl::OtherSchedule::fits)
      .def_readonly("why_not", &pl::OtherSchedule::why_not)
      .def("__repr__", [](const pl::OtherSchedule& other) {
        return "<" + other.schedule + ": " +
               (other.iteration_time_s ? std::to_string(*other.iteration_time_s) + " s"
                                       : other.why_not) +
               ">";
      });
  py::class_<pl::Explanation>(module, "Explanation")
      .def_readonly("critical_path", &pl::Explanation::critical_path)
      .def_readonly("levers", &pl::Explanation::levers)
      .def_readonly("schedules", &pl::Explanation::schedules)
      .def_readonly("json", &pl::Explanation::json)
      .def("text", &pl::Explanation::text, py::arg("width") = 100)
      .def("__repr__",
           [](const pl::Explanation& explanation) {
             const std::string first = explanation.levers.empty() ? "" : explanation.levers[0].what;
             return "<explanation: a critical path of " +
                    std::to_string(explanation.critical_path.size()) + " stretches; " + first +
                    " is worth the most>";
           })
      .def("__str__", [](const pl::Explanation& explanation) { return explanation.text(); });
}

/// The columns as a dict of arrays, which keep the run alive.
py::dict ops_of(const py::object& self) {
  const auto& run = self.cast<const pl::Run&>();
  const pl::Ops* ops = nullptr;
  {
    const py::gil_scoped_release released;
    ops = &run.ops();
  }
  py::dict columns;
  columns["device"] = signed_over(ops->device, self);
  columns["stage"] = signed_over(ops->stage, self);
  columns["micro_batch"] = signed_over(ops->micro_batch, self);
  columns["kind"] = letters_over(ops->kind, self);
  columns["begin_ns"] = array_over(ops->begin_ns, self);
  columns["end_ns"] = array_over(ops->end_ns, self);
  return columns;
}

py::dict transfers_of(const py::object& self) {
  const auto& run = self.cast<const pl::Run&>();
  const pl::Transfers* transfers = nullptr;
  {
    const py::gil_scoped_release released;
    transfers = &run.transfers();
  }
  py::dict columns;
  columns["sender"] = signed_over(transfers->from, self);
  columns["receiver"] = signed_over(transfers->to, self);
  columns["stage"] = signed_over(transfers->stage, self);
  columns["micro_batch"] = signed_over(transfers->micro_batch, self);
  columns["kind"] = letters_over(transfers->kind, self);
  columns["bytes"] = array_over(transfers->bytes, self);
  columns["begin_ns"] = array_over(transfers->begin_ns, self);
  columns["end_ns"] = array_over(transfers->end_ns, self);
  return columns;
}

/// The memory of a device over time: two arrays.
py::tuple memory_curve(const pl::Run& run, std::uint32_t device) {
  auto curve = without_gil([&] { return run.memory(device); });
  const py::object owner = py::cast(std::move(curve));
  const auto& kept = owner.cast<const pl::MemoryCurve&>();
  return py::make_tuple(array_over<std::int64_t>(kept.time_ns, owner),
                        array_over<std::int64_t>(kept.bytes, owner));
}

}  // namespace

void bind_run(py::module_& module) {
  bind_device(module);
  bind_explanation(module);
  py::class_<pl::MemoryCurve>(module, "MemoryCurve");
  const py::call_guard<py::gil_scoped_release> released;
  py::class_<pl::Run>(module, "Run")
      .def_property_readonly("name", &pl::Run::name)
      .def_property_readonly("schedule", &pl::Run::schedule)
      .def_property_readonly("stages", &pl::Run::stages)
      .def_property_readonly("micro_batches", &pl::Run::micro_batches)
      .def_property_readonly("mini_batches", &pl::Run::mini_batches)
      .def_property_readonly("iteration_time", &pl::Run::iteration_time_s)
      .def_property_readonly("makespan", &pl::Run::makespan_s)
      .def_property_readonly("throughput", &pl::Run::throughput_samples_per_s)
      .def_property_readonly("bubble", &pl::Run::bubble_fraction)
      .def_property_readonly("bubble_overhead", &pl::Run::bubble_overhead)
      .def_property_readonly("steady_bubble", &pl::Run::steady_bubble_fraction)
      .def_property_readonly("formula_bubble", &pl::Run::formula_bubble_fraction)
      .def_property_readonly("network_wait", &pl::Run::communication_stall_fraction)
      .def_property_readonly("likely_iteration_time", &pl::Run::likely_iteration_time_s)
      .def_property_readonly("peak_memory", &pl::Run::peak_memory_bytes)
      .def_property_readonly("fits", &pl::Run::fits)
      .def_property_readonly("shortage", &pl::Run::shortage)
      .def_property_readonly("estimated", &pl::Run::estimated)
      .def_property_readonly("notes", &pl::Run::notes)
      .def_property_readonly("devices", &pl::Run::devices)
      .def("ops", &ops_of)
      .def("transfers", &transfers_of)
      .def("memory", &memory_curve)
      .def("number",
           [](const pl::Run& run, const std::string& name) { return value_of(run.number(name)); })
      .def("meets",
           [](const pl::Run& run, const std::string& text) { return value_of(run.meets(text)); })
      .def("explain", &pl::Run::explain, released)
      .def("why", [](const pl::Run& run, const std::string& op,
                     std::size_t width) { return without_gil([&] { return run.why(op, width); }); })
      .def("text", &pl::Run::text, released)
      .def("json", &pl::Run::json, released)
      .def("html", &pl::Run::html, released)
      .def("chrome_trace", &pl::Run::chrome_trace, released)
      .def("order_csv", &pl::Run::order_csv, released);
}

}  // namespace plumbline_python
