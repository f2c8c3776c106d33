// Columns side by side.
//
// SPDX-License-Identifier: MIT
#include "sim/report/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/quantity.h"
#include "base/table.h"
#include "sim/report/bill_report.h"
#include "sim/report/report.h"
#include "sim/whatif/likeness.h"

namespace plumbline {
namespace {

constexpr std::size_t kMaxDevicesShown = 8;
constexpr std::size_t kMaxKeysShown = 20;

/// The relative difference of `value` from the first run's; "" if that is 0.
std::string relative(double value, double first) {
  if (value == first) return "same";
  return first != 0 ? fmt::format("{:+.2f} %", 100 * (value / first - 1)) : "";
}

std::string points(double value, double first) {
  if (value == first) return "same";
  return fmt::format("{:+.2f} points", 100 * (value - first));
}

std::string rate(double value) { return fmt::format("{:.5g}", value); }

/// The rows of a table. Each run has a column; each run but the first also has a column of
/// differences.
class Columns {
 public:
  explicit Columns(const std::vector<ComparedRun>& runs) : runs_(runs) {
    std::vector<std::string> header = {""};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      header.push_back(runs[i].title);
      if (i > 0) header.emplace_back("");
    }
    table_.row(std::move(header));
  }

  using Value = std::function<double(const ComparedRun&)>;
  using Text = std::function<std::string(double)>;
  using Difference = std::string (*)(double, double);

  void row(const std::string& name, const Value& value, const Text& text, Difference difference) {
    std::vector<std::string> cells = {name};
    const double first = value(runs_.front());
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const double own = value(runs_[i]);
      cells.push_back(std::isnan(own) ? "-" : text(own));
      if (i > 0)
        cells.push_back(std::isnan(own) || std::isnan(first) ? "" : difference(own, first));
    }
    table_.row(std::move(cells));
  }

  void words(const std::string& name, const std::function<std::string(const ComparedRun&)>& word) {
    std::vector<std::string> cells = {name};
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      cells.push_back(word(runs_[i]));
      if (i > 0) cells.emplace_back("");
    }
    table_.row(std::move(cells));
  }

  Table table() && { return std::move(table_); }

 private:
  const std::vector<ComparedRun>& runs_;
  Table table_;
};

/// Whether two runs are of one model, as far as is known. A name alone does not say so: that of a
/// config.json is its family.
bool have_one_model(const ComparedRun& a, const ComparedRun& b) {
  const bool differ_in_parameters =
      a.parameters_bytes && b.parameters_bytes && a.parameters_bytes != b.parameters_bytes;
  return !a.model.empty() && a.model == b.model && a.layers == b.layers && !differ_in_parameters;
}

/// Whether the runs are like the pairs of published runs: all say how sure they are, and all are of
/// one model on one device with one stack.
bool has_sure_order(const std::vector<ComparedRun>& runs) {
  const ComparedRun& first = runs.front();
  return !first.setting.empty() && std::all_of(runs.begin(), runs.end(), [&](const auto& run) {
    return run.likely_time && run.setting == first.setting && have_one_model(run, first);
  });
}

void add_noise(Columns& columns, const std::vector<ComparedRun>& runs) {
  const bool any = std::any_of(runs.begin(), runs.end(), [](const ComparedRun& run) {
    return run.outcome && run.outcome->uncertainty;
  });
  if (!any) return;
  for (const auto& [share, name] :
       {std::pair{0.05, "  with noise, p5"}, {0.5, "  p50"}, {0.95, "  p95"}}) {
    columns.row(
        name,
        [wanted = share](const ComparedRun& run) {
          return run.outcome && run.outcome->uncertainty
                     ? run.outcome->uncertainty->iteration_time_s(wanted)
                     : std::nan("");
        },
        time_text, relative);
  }
}

/// Adds the intervals that a share of kErrorCoverage of such runs lie in, where they are known.
void add_likely(Columns& columns, const std::vector<ComparedRun>& runs) {
  const bool any = std::any_of(runs.begin(), runs.end(),
                               [](const ComparedRun& run) { return run.likely_time.has_value(); });
  if (!any) return;
  columns.words("  likely range", [](const ComparedRun& run) -> std::string {
    return run.likely_time ? range_text(*run.likely_time) : "-";
  });
}

/// Adds the busy and idle times of a device in one iteration, on average. The rows add up to the
/// iteration time.
void add_shares(Columns& columns, const std::vector<ComparedRun>& runs) {
  columns.row(
      "  busy", [](const ComparedRun& run) { return run.busy_s; }, time_text, relative);
  for (std::size_t cause = 0; cause < kIdleCauseCount; ++cause) {
    const bool occurs = std::any_of(runs.begin(), runs.end(),
                                    [&](const ComparedRun& run) { return run.idle_s[cause] > 0; });
    if (!occurs) continue;
    std::string text(name(kIdleCauses[cause]));
    std::replace(text.begin(), text.end(), '_', '-');
    columns.row(
        "  idle, " + text, [&](const ComparedRun& run) { return run.idle_s[cause]; }, time_text,
        relative);
  }
}

void add_memory(Columns& columns, const std::vector<ComparedRun>& runs) {
  const auto bytes = [](double value) { return to_text(Bytes{std::llround(value)}); };
  columns.row(
      "peak memory",
      [](const ComparedRun& run) { return static_cast<double>(run.peak_memory_bytes()); }, bytes,
      relative);
  std::size_t max = 0;
  for (const ComparedRun& run : runs) max = std::max(max, run.devices.size());
  if (max > 1 && max <= kMaxDevicesShown) {
    for (std::size_t i = 0; i < max; ++i) {
      columns.row(
          fmt::format("  device {}", i),
          [&](const ComparedRun& run) {
            const auto found =
                std::find_if(run.devices.begin(), run.devices.end(),
                             [&](const ComparedDevice& device) { return device.device == i; });
            return found == run.devices.end() ? std::nan("")
                                              : static_cast<double>(found->peak_memory_bytes);
          },
          bytes, relative);
    }
  }
  const bool limited = std::any_of(runs.begin(), runs.end(),
                                   [](const ComparedRun& run) { return run.fits.has_value(); });
  if (limited) {
    columns.words("fits", [](const ComparedRun& run) {
      return !run.fits ? "-" : *run.fits ? "yes" : "NO";
    });
  }
}

/// Adds the throughput per device, if the runs have different numbers of devices, and the
/// utilization.
void add_rates(Columns& columns, const std::vector<ComparedRun>& runs) {
  const auto any = [&](const auto& test) { return std::any_of(runs.begin(), runs.end(), test); };
  if (any([&](const ComparedRun& r) { return r.devices_used != runs.front().devices_used; })) {
    columns.row(
        "  per device",
        [](const ComparedRun& run) { return run.throughput_per_device().value_or(std::nan("")); },
        rate, relative);
  }
  if (any([](const ComparedRun& run) { return run.model_flops_utilization.has_value(); })) {
    columns.row(
        "MFU",
        [](const ComparedRun& run) { return run.model_flops_utilization.value_or(std::nan("")); },
        percent, points);
  }
}

/// Adds tokens, goodput, days, cost and energy, as far as any run knows them.
void add_bills(Columns& columns, const std::vector<ComparedRun>& runs) {
  const auto add = [&](const char* title, std::optional<double> Bill::*figure,
                       const Columns::Text& text) {
    const bool any = std::any_of(runs.begin(), runs.end(),
                                 [&](const ComparedRun& run) { return run.bill.*figure; });
    if (!any) return;
    columns.row(
        title,
        [figure](const ComparedRun& run) { return (run.bill.*figure).value_or(std::nan("")); },
        text, relative);
  };
  add("tokens/s", &Bill::tokens_per_s, rate);
  add("goodput", &Bill::goodput, percent);
  add("days", &Bill::days, days_text);
  std::string currency;
  bool same = true;
  for (const ComparedRun& run : runs) {
    if (run.bill.currency.empty()) continue;
    same = same && (currency.empty() || currency == run.bill.currency);
    currency = run.bill.currency;
  }
  if (same) {
    add("cost", &Bill::cost, [&](double amount) { return money_text(amount, currency); });
  } else {
    columns.words("cost", [](const ComparedRun& run) {
      return run.bill.cost ? money_text(*run.bill.cost, run.bill.currency) : "-";
    });
  }
  add("energy", &Bill::energy_kwh, energy_text);
}

/// Adds the numbers of stages, devices, micro-batches and samples.
void add_counts(Columns& columns, const std::vector<ComparedRun>& runs) {
  const auto counts = [](double value) { return fmt::format("{:.0f}", value); };
  const auto nothing = [](double, double) { return std::string(); };
  const auto known = [](std::optional<std::int64_t> count) {
    return count ? static_cast<double>(*count) : std::nan("");
  };
  columns.row(
      "stages", [](const ComparedRun& run) { return static_cast<double>(run.stages); }, counts,
      nothing);
  columns.row(
      "devices used", [](const ComparedRun& run) { return static_cast<double>(run.devices_used); },
      counts, nothing);
  if (std::any_of(runs.begin(), runs.end(), [](const ComparedRun& run) {
        return run.devices_in_all.value_or(run.devices_used) != run.devices_used;
      })) {
    columns.row(
        "  in all", [&](const ComparedRun& run) { return known(run.devices_in_all); }, counts,
        nothing);
  }
  if (std::any_of(runs.begin(), runs.end(),
                  [](const ComparedRun& run) { return run.copies.value_or(1) > 1; })) {
    columns.row(
        "data parallel", [&](const ComparedRun& run) { return known(run.copies); }, counts,
        nothing);
  }
  columns.row(
      "micro-batches",
      [](const ComparedRun& run) { return static_cast<double>(run.micro_batches); }, counts,
      nothing);
  if (std::any_of(runs.begin(), runs.end(), [](const auto& run) { return run.slices > 1; })) {
    columns.row(
        "slices of each", [](const ComparedRun& run) { return static_cast<double>(run.slices); },
        counts, nothing);
  }
  columns.row(
      "mini-batch",
      [](const ComparedRun& run) {
        return run.throughput_samples_per_s ? run.samples() : std::nan("");
      },
      [](double value) { return fmt::format("{:.0f} samples", value); }, nothing);
}

/// Texts with their kind and their runs: "note (1f1b, zb-v): ...". No runs are named if a text
/// holds for all.
std::string told(std::string_view kind, const std::vector<SharedText>& texts,
                 const std::vector<ComparedRun>& runs) {
  std::string lines;
  for (const SharedText& one : texts) {
    const bool all = one.runs.size() == runs.size();
    lines += fmt::format("{}{}: {}\n", kind,
                         all ? "" : fmt::format(" ({})", titles_of(runs, one.runs)), one.text);
  }
  return lines;
}

/// Adds the keys in which the runs differ, a row each.
void add_keys(const std::vector<ComparedRun>& runs, Document& text) {
  const std::vector<DifferingKey> keys = differing_keys(runs);
  if (keys.empty()) return;
  Table table;
  std::vector<std::string> header = {"keys that differ"};
  for (const ComparedRun& run : runs) header.push_back(run.title);
  table.row(std::move(header));
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxKeysShown); ++i) {
    std::vector<std::string> cells = {printable(keys[i].key)};
    for (const std::string& value : keys[i].values) cells.push_back(printable(clipped(value)));
    table.row(std::move(cells));
  }
  text.table(std::move(table));
  if (keys.size() > kMaxKeysShown)
    text.sentence(fmt::format("  and {} more keys, which --json has", keys.size() - kMaxKeysShown));
  text.blank_line();
}

}  // namespace

Document to_table(const std::vector<ComparedRun>& runs, const std::vector<RefusedRun>& refused) {
  Columns columns(runs);
  columns.words("schedule", [](const ComparedRun& run) { return run.schedule; });
  add_counts(columns, runs);
  columns.row(
      "iteration time", [](const ComparedRun& run) { return run.iteration_time_s; }, time_text,
      relative);
  add_likely(columns, runs);
  add_noise(columns, runs);
  add_shares(columns, runs);
  columns.row(
      "samples/s",
      [](const ComparedRun& run) { return run.throughput_samples_per_s.value_or(std::nan("")); },
      rate, relative);
  add_bills(columns, runs);
  add_rates(columns, runs);
  columns.row(
      "bubble fraction", [](const ComparedRun& run) { return run.bubble_fraction; }, percent,
      points);
  columns.row(
      "communication", [](const ComparedRun& run) { return run.communication_stall_fraction; },
      percent, points);
  if (std::any_of(runs.begin(), runs.end(),
                  [](const auto& run) { return run.sent_in_groups_fraction.has_value(); })) {
    columns.row(
        "TP, CP, EP",
        [](const ComparedRun& run) { return run.sent_in_groups_fraction.value_or(0); }, percent,
        points);
  }
  add_memory(columns, runs);
  Document text;
  text.table(std::move(columns).table());
  text.blank_line();
  add_keys(runs, text);
  text.sentence(told("estimated", shared_estimates(runs), runs));
  if (has_sure_order(runs)) text.sentence(order_sentence());
  text.sentence(told("note", shared_notes(runs), runs));
  text.sentence(verdict(runs, refused));
  return text;
}

}  // namespace plumbline
