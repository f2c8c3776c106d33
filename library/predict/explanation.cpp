// Why a run takes its time.
//
// SPDX-License-Identifier: MIT
#include "base/units.h"
#include "library/predict/inside.h"
#include "sim/report/explain_report.h"
#include "sim/whatif/explain.h"

namespace plumbline::v1 {
namespace {

PathStretch stretch_of(const plumbline::Outcome& outcome, const PathSegment& segment) {
  PathStretch stretch;
  stretch.begin_ns = segment.begin.time_since_epoch().count();
  stretch.end_ns = segment.end.time_since_epoch().count();
  stretch.where = place_name(outcome.graph, segment);
  stretch.what.reserve(segment.nodes.size());
  for (const std::uint32_t node : segment.nodes)
    stretch.what.push_back(to_text(outcome.graph.activities[node]));
  return stretch;
}

Lever lever_of(const Sensitivity& sensitivity) {
  Lever lever;
  lever.what = to_text(sensitivity);
  lever.now_s = seconds(sensitivity.now);
  lever.gain_s = sensitivity.gain_s;
  lever.until = sensitivity.until;
  lever.least_s = sensitivity.min_s;
  return lever;
}

OtherSchedule schedule_of(const OtherOrder& order) {
  return {order.schedule, order.iteration_time_s, order.peak_memory.count, order.fits,
          order.why_not};
}

}  // namespace

struct Explanation::Inside {
  std::shared_ptr<const Run::Inside> run;
  plumbline::Explanation found;
};

std::string Explanation::text(std::size_t width) const {
  if (!inside) return "";
  return to_table(inside->run->with_terms(), inside->found, std::nullopt).print(page_of(width));
}

Explanation Run::explain() const {
  const Scenario::Inside& asked = inside_->asked.inside();
  const plumbline::Outcome& outcome = inside_->with_terms();
  plumbline::Explanation found = plumbline::explain(outcome);
  found.orders = other_orders(asked.scenario, asked.settings, outcome);
  Explanation explanation;
  explanation.critical_path.reserve(found.path.size());
  for (const PathSegment& segment : found.path)
    explanation.critical_path.push_back(stretch_of(outcome, segment));
  explanation.levers.reserve(found.sensitivities.all.size());
  for (const Sensitivity& one : found.sensitivities.all)
    explanation.levers.push_back(lever_of(one));
  explanation.schedules.reserve(found.orders.size());
  for (const OtherOrder& one : found.orders) explanation.schedules.push_back(schedule_of(one));
  explanation.json = to_json(outcome, found, kLibraryVersion);
  explanation.inside =
      std::make_shared<const Explanation::Inside>(Explanation::Inside{inside_, std::move(found)});
  return explanation;
}

Result<std::string> Run::why(const std::string& op, std::size_t width) const {
  const plumbline::Outcome& outcome = inside_->outcome;
  const auto node = find_op(outcome.graph, op);
  if (!node) return error_of({no_such_op(outcome, "the op", op)});
  return op_table(outcome, *node).print(page_of(width));
}

}  // namespace plumbline::v1
