// The contract of a pass with its layer.
//
// SPDX-License-Identifier: MIT
#include "calibrate/training/reference.h"

#include <string_view>
#include <utility>
#include <variant>

#include "base/bug.h"
#include "calibrate/training/reference_passes.h"

namespace plumbline {

std::int64_t reference::last_extent(const Shape& shape) {
  PLUMBLINE_CHECK(!shape.extents.empty(), shape.extents.size());
  return shape.extents.back();
}

namespace {

void check_elements(std::string_view name, const Values& values, std::int64_t elements) {
  PLUMBLINE_CHECK(std::ssize(values) == elements, name, values.size(), elements);
}

/// The values without names, checked against the names, the order and the sizes of the layer.
std::vector<Values> arrange(const std::vector<KeptTensor>& tensors, std::int64_t batch,
                            reference::NamedList made) {
  PLUMBLINE_CHECK(tensors.size() == made.size(), tensors.size(), made.size());
  std::vector<Values> values(made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    PLUMBLINE_CHECK(tensors[i].name == made[i].name, tensors[i].name, made[i].name);
    check_elements(tensors[i].name, made[i].values,
                   tensors[i].shape.elements() * (tensors[i].per_sample ? batch : 1));
    values[i] = std::move(made[i].values);
  }
  return values;
}

/// The same for gradients: of the parameters that come with the input gradient, or of the others.
std::vector<Values> arrange_gradients(const std::vector<Parameter>& parameters, bool with_input,
                                      reference::NamedList made) {
  std::vector<Values> values(parameters.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].with_input != with_input) continue;
    PLUMBLINE_CHECK(next < made.size(), parameters[i].name, made.size());
    PLUMBLINE_CHECK(parameters[i].name == made[next].name, parameters[i].name, made[next].name);
    check_elements(parameters[i].name, made[next].values, parameters[i].shape.elements());
    values[i] = std::move(made[next].values);
    ++next;
  }
  PLUMBLINE_CHECK(next == made.size(), next, made.size());
  return values;
}

void check_call(const ReferenceCall& call) {
  const std::vector<Parameter>& parameters = call.layer.parameters;
  PLUMBLINE_CHECK(call.batch > 0, call.layer.name, call.batch);
  check_elements("input", call.input, call.batch * call.layer.input.elements());
  PLUMBLINE_CHECK(parameters.size() == call.parameters.size(), call.layer.name, parameters.size(),
                  call.parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check_elements(parameters[i].name, call.parameters[i], parameters[i].shape.elements());
}

void check_output(std::string_view name, const Values& values, const ReferenceCall& call) {
  check_elements(name, values, call.batch * call.layer.output.elements());
}

}  // namespace

ReferenceForward reference_forward(const ReferenceCall& call) {
  check_call(call);
  const reference::ForwardPass pass{call};
  reference::ForwardMade made =
      std::visit([&](const auto& settings) { return reference::forward(settings, pass); },
                 call.layer.settings);
  check_output("output", made.output, call);
  return {std::move(made.output), arrange(call.layer.kept, call.batch, std::move(made.kept))};
}

ReferenceBackward reference_backward_input(const ReferenceCall& call,
                                           const ReferenceForward& forward,
                                           const Values& output_gradient) {
  check_call(call);
  check_output("output", forward.output, call);
  check_output("output gradient", output_gradient, call);
  const reference::InputPass pass{call, forward, output_gradient};
  reference::InputMade made =
      std::visit([&](const auto& settings) { return reference::backward_input(settings, pass); },
                 call.layer.settings);
  const bool ids = std::holds_alternative<Embedding>(call.layer.settings);
  check_elements("input gradient", made.input_gradient, ids ? 0 : std::ssize(call.input));
  return {std::move(made.input_gradient),
          arrange(call.layer.left_for_weights, call.batch, std::move(made.left)),
          arrange_gradients(call.layer.parameters, true, std::move(made.parameter_gradients))};
}

std::vector<Values> reference_backward_weight(const ReferenceCall& call,
                                              const ReferenceForward& forward,
                                              const ReferenceBackward& backward,
                                              const Values& output_gradient) {
  check_call(call);
  check_output("output", forward.output, call);
  check_output("output gradient", output_gradient, call);
  const reference::WeightPass pass{call, forward, backward, output_gradient};
  reference::NamedList made =
      std::visit([&](const auto& settings) { return reference::backward_weight(settings, pass); },
                 call.layer.settings);
  PLUMBLINE_CHECK(call.layer.splits == !made.empty(), call.layer.name, made.size());
  return arrange_gradients(call.layer.parameters, false, std::move(made));
}

}  // namespace plumbline
