// Groups of runs with the same value.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/likeness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/quantity.h"
#include "base/yaml.h"
#include "sim/scenario/axes.h"

namespace plumbline {
namespace {

using Text = std::function<std::string(const ComparedRun&)>;  ///< "" = unknown.

/// Groups of runs with the same text, in the order of their first run. Runs with "" are in no
/// group.
std::vector<SharedText> grouped(const std::vector<ComparedRun>& runs, const Text& text) {
  std::vector<SharedText> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string own = text(runs[i]);
    if (own.empty()) continue;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const SharedText& group) { return group.text == own; });
    if (known != groups.end()) {
      known->runs.push_back(i);
    } else {
      groups.push_back({own, {i}});
    }
  }
  return groups;
}

/// "what (4: 1f1b; 2: zb-v)", or "" where all runs have the same.
std::string unlike(const std::vector<ComparedRun>& runs, std::string_view what, const Text& text) {
  const std::vector<SharedText> groups = grouped(runs, text);
  if (groups.size() < 2) return "";
  std::vector<std::string> parts;
  parts.reserve(groups.size());
  for (const SharedText& group : groups)
    parts.push_back(fmt::format("{}: {}", group.text, titles_of(runs, group.runs)));
  return fmt::format("{} ({})", what, fmt::join(parts, "; "));
}

std::string count_text(std::optional<std::int64_t> count) {
  return count ? std::to_string(*count) : "";
}

std::vector<SharedText> shared(const std::vector<ComparedRun>& runs,
                               std::vector<std::string> ComparedRun::*texts) {
  std::vector<SharedText> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& text : runs[i].*texts) {
      const auto known = std::find_if(all.begin(), all.end(),
                                      [&](const SharedText& one) { return one.text == text; });
      if (known == all.end()) {
        all.push_back({text, {i}});
      } else if (known->runs.back() != i) {
        known->runs.push_back(i);
      }
    }
  }
  return all;
}

void add_keys(const YamlNode& node, const std::string& path, WrittenKeys& keys) {
  for (const YamlNode::Entry& entry : node.entries) {
    if (path.empty() && (entry.key == "version" || entry.key == "name" || entry.key == "sweep"))
      continue;
    const std::string own = path.empty() ? entry.key : path + '.' + entry.key;
    if (entry.value.kind == YamlNode::Kind::map && !entry.value.entries.empty()) {
      add_keys(entry.value, own, keys);
    } else {
      keys.emplace_back(own, flow_text(entry.value));
    }
  }
}

}  // namespace

std::string titles_of(const std::vector<ComparedRun>& runs, const std::vector<std::size_t>& some) {
  std::string text;
  for (std::size_t i = 0; i < some.size(); ++i)
    text += (i == 0 ? "" : i + 1 == some.size() ? " and " : ", ") + runs[some[i]].title;
  return text;
}

std::vector<std::string> unlikenesses(const std::vector<ComparedRun>& runs) {
  const auto of_samples = [](const ComparedRun& run) {
    if (!run.throughput_samples_per_s) return std::string();
    return fmt::format("{} samples", std::llround(run.samples()));
  };
  const bool idles = std::any_of(runs.begin(), runs.end(), [](const ComparedRun& run) {
    return run.devices_in_all && *run.devices_in_all != run.devices_used;
  });
  std::vector<std::string> all = {
      unlike(runs, "devices used",
             [](const ComparedRun& run) { return std::to_string(run.devices_used); }),
      unlike(runs, "devices in all",
             [&](const ComparedRun& run) {
               return idles ? count_text(run.devices_in_all) : std::string();
             }),
      unlike(runs, "copies of the pipeline",
             [](const ComparedRun& run) { return count_text(run.copies); }),
      unlike(runs, "mini-batch", of_samples),
      unlike(runs, "layers", [](const ComparedRun& run) { return count_text(run.layers); }),
      unlike(runs, "parameters",
             [](const ComparedRun& run) {
               return run.parameters_bytes ? to_text(Bytes{*run.parameters_bytes}) : std::string();
             }),
      unlike(runs, "model FLOPs of a sample",
             [](const ComparedRun& run) {
               return run.model_flops_per_sample
                          ? fmt::format("{:.6g}", *run.model_flops_per_sample)
                          : std::string();
             }),
      unlike(runs, "fit into the memory",
             [](const ComparedRun& run) {
               return !run.fits ? std::string() : *run.fits ? "yes" : "no";
             }),
      unlike(runs, "flush before each update",
             [](const ComparedRun& run) { return std::string(run.flushes ? "yes" : "no"); })};
  std::erase(all, "");
  return all;
}

std::vector<SharedText> shared_notes(const std::vector<ComparedRun>& runs) {
  return shared(runs, &ComparedRun::notes);
}

std::vector<SharedText> shared_estimates(const std::vector<ComparedRun>& runs) {
  return shared(runs, &ComparedRun::estimated);
}

std::vector<DifferingKey> differing_keys(const std::vector<ComparedRun>& runs) {
  std::vector<DifferingKey> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [key, value] : runs[i].keys) {
      auto known = std::find_if(all.begin(), all.end(), [wanted = &key](const DifferingKey& one) {
        return one.key == *wanted;
      });
      if (known == all.end())
        known = all.insert(all.end(), {key, std::vector<std::string>(runs.size(), "-")});
      known->values[i] = value;
    }
  }
  std::erase_if(all, [&](const DifferingKey& one) {
    const std::string* first = nullptr;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].keys.empty()) continue;  // unknown
      if (!first) first = &one.values[i];
      if (one.values[i] != *first) return false;
    }
    return true;
  });
  return all;
}

WrittenKeys written_keys(const YamlNode& root) {
  WrittenKeys keys;
  add_keys(root, "", keys);
  return keys;
}

}  // namespace plumbline
