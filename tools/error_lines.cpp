// Two runs of a schedule make a line.
//
// SPDX-License-Identifier: MIT
#include "tools/error_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "tools/markdown.h"

namespace plumbline {
namespace {

/// A part below this share of the smaller run hides nothing.
constexpr double kLeastPart = 0.005;

struct Ends {
  const ResultPoint* fewest = nullptr;
  const ResultPoint* most = nullptr;
};

double missed_s(const ResultPoint& point) { return point.predicted_s - point.measured->time_s; }

ErrorLine line_of(const Ends& ends) {
  const auto more = static_cast<double>(ends.most->micro_batches - ends.fewest->micro_batches);
  ErrorLine line;
  line.schedule = ends.fewest->schedule;
  line.slope_s = (missed_s(*ends.most) - missed_s(*ends.fewest)) / more;
  const double grown_s = line.slope_s * static_cast<double>(ends.fewest->micro_batches);
  line.fixed_s = missed_s(*ends.fewest) - grown_s;
  const double took_s = (ends.most->measured->time_s - ends.fewest->measured->time_s) / more;
  line.slope = took_s > 0 ? line.slope_s / took_s : 0;
  const double least_s = kLeastPart * ends.fewest->measured->time_s;
  line.cancels =
      line.fixed_s * grown_s < 0 && std::min(std::abs(line.fixed_s), std::abs(grown_s)) >= least_s;
  return line;
}

std::string range_of(const std::vector<ErrorLine>& lines,
                     const std::function<double(const ErrorLine&)>& value,
                     const std::function<std::string(double)>& text) {
  const auto [least, most] = std::minmax_element(
      lines.begin(), lines.end(),
      [&](const ErrorLine& a, const ErrorLine& b) { return value(a) < value(b); });
  if (lines.size() == 1) return text(value(*least));
  return fmt::format("{} to {}", text(value(*least)), text(value(*most)));
}

std::string microseconds(double time_s) { return fmt::format("{:+.1f} us", 1e6 * time_s); }

std::string cancelling(const std::vector<ErrorLine>& lines) {
  std::vector<std::string> names;
  for (const ErrorLine& line : lines) {
    if (line.cancels) names.push_back(line.schedule);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<ErrorLine> error_lines(const ResultFile& file) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, Ends> ends;
  std::vector<const Ends*> in_order;
  for (const ResultPoint& point : file.points) {
    if (!point.measured) continue;
    const auto [at, is_new] =
        ends.try_emplace({point.scenario, point.schedule, point.devices}, Ends{&point, &point});
    Ends& known = at->second;
    if (is_new) in_order.push_back(&known);
    if (point.micro_batches < known.fewest->micro_batches) known.fewest = &point;
    if (point.micro_batches > known.most->micro_batches) known.most = &point;
  }
  std::vector<ErrorLine> lines;
  for (const Ends* both : in_order) {
    if (both->fewest->micro_batches < both->most->micro_batches) lines.push_back(line_of(*both));
  }
  return lines;
}

std::string error_line_table(const std::vector<const ResultFile*>& files, const std::string& noun) {
  std::vector<std::vector<std::string>> rows = {
      {noun, "schedules", "a micro-batch more", "of its time", "fixed part", "two that cancel"}};
  for (const ResultFile* file : files) {
    const std::vector<ErrorLine> lines = error_lines(*file);
    if (lines.empty()) continue;
    rows.push_back({file->name, std::to_string(lines.size()),
                    range_of(
                        lines, [](const ErrorLine& line) { return line.slope_s; }, microseconds),
                    range_of(
                        lines, [](const ErrorLine& line) { return line.slope; }, signed_percent),
                    range_of(
                        lines, [](const ErrorLine& line) { return line.fixed_s; }, microseconds),
                    cancelling(lines)});
  }
  if (rows.size() == 1) return "";
  return markdown_table(rows, {0, 5});
}

}  // namespace plumbline
