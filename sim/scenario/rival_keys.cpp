// Rival keys from the tables of the sections, and those that the tables cannot express.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/rival_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/file_format.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "sim/scenario/scenario_format.h"

namespace plumbline {
namespace {

/// The format of a section of a scenario; null if there is no such section.
const SectionFormat* format_of(std::string_view section) {
  const KeyFormat* const key = scenario_format().find(section);
  if (!key) return nullptr;
  for (const ValueFormat& value : key->values) {
    if (value.type == ValueFormat::Type::section) return &value.section();
  }
  return nullptr;
}

/// The keys of the section that exclude `key`.
std::vector<std::string_view> rivals_in_table(const SectionFormat& format, std::string_view key) {
  std::vector<std::string_view> rivals;
  const auto holds = [&](const std::vector<std::string_view>& keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (holds(format.exactly_one)) {
    for (const std::string_view other : format.exactly_one) {
      if (other != key) rivals.push_back(other);
    }
  }
  for (const std::vector<std::string_view>& keys : format.excludes) {
    if (!holds(keys)) continue;
    if (keys.front() == key) {
      rivals.insert(rivals.end(), keys.begin() + 1, keys.end());
    } else {
      rivals.push_back(keys.front());
    }
  }
  return rivals;
}

/// The number of devices of `levels`; nothing if a size is no number.
std::optional<std::int64_t> devices_of(const YamlNode& levels) {
  std::int64_t product = 1;
  for (YamlNode level : levels.items) {
    const YamlNode::Entry* const size = entry_of(level, "size");
    if (!size) return std::nullopt;
    const auto count = parse_count(size->value.text);
    if (!count.value || *count.value > 1'000'000) return std::nullopt;
    product = std::min<std::int64_t>(product * *count.value, 1'000'000'000);
  }
  return product;
}

/// The rival of `key` among devices and levels, if their numbers of devices differ.
std::optional<std::string_view> other_count(YamlNode& cluster, std::string_view key) {
  if (key != "devices" && key != "levels") return std::nullopt;
  const YamlNode::Entry* const devices = entry_of(cluster, "devices");
  const YamlNode::Entry* const levels = entry_of(cluster, "levels");
  if (!devices || !levels) return std::nullopt;
  // Kinds of devices stay beside levels of another size: what is wrong is told then.
  if (devices->value.kind == YamlNode::Kind::sequence) return std::nullopt;
  const auto count = parse_count(devices->value.text);
  if (count.value && devices_of(levels->value) == *count.value) return std::nullopt;
  return key == "devices" ? "levels" : "devices";
}

/// One of the three batch keys, of which two determine the third.
struct BatchKey {
  std::string_view section;
  std::string_view key;

  friend bool operator==(const BatchKey&, const BatchKey&) = default;
};
constexpr BatchKey kMiniBatch{"training", "mini_batch_size"};
constexpr BatchKey kMicroBatch{"training", "micro_batch_size"};
constexpr BatchKey kMicroBatches{"schedule", "micro_batches"};

class Rivals {
 public:
  Rivals(YamlNode& root, const YamlOverride& change, const std::vector<std::string>& set)
      : root_(root), change_(change), set_(set) {}

  std::optional<std::string> take_out() {
    if (change_.value.kind == YamlNode::Kind::null || change_.path.size() < 2) return std::nullopt;
    const std::string& section = change_.path[0].text;
    const std::string& key = change_.path[1].text;
    if (const SectionFormat* const format = format_of(section)) {
      YamlNode::Entry* const entry = entry_of(root_, section);
      if (entry) take_out_of(section, entry->value, *format, key);
    }
    take_out_third({section, key});
    if (gone_.empty()) return std::nullopt;
    return fmt::format("{} of the scenario {} left out: {}.{} replaces {}", fmt::join(gone_, ", "),
                       gone_.size() == 1 ? "is" : "are", section, key,
                       gone_.size() == 1 ? "it" : "them");
  }

 private:
  bool is_written(std::string_view section, std::string_view key) const {
    const std::string path = fmt::format("{}.{}", section, key);
    return std::none_of(set_.begin(), set_.end(),
                        [&](const std::string& one) { return one == path || one == section; });
  }

  bool take_out(std::string_view section, YamlNode& map, std::string_view key) {
    if (!entry_of(map, key) || !is_written(section, key)) return false;
    gone_.push_back(fmt::format("{}.{}", section, key));
    std::erase_if(map.entries, [&](const YamlNode::Entry& e) { return e.key == key; });
    return true;
  }

  void take_out_of(std::string_view section, YamlNode& map, const SectionFormat& format,
                   std::string_view key) {
    std::vector<std::string_view> gone;
    for (const std::string_view rival : rivals_in_table(format, key)) {
      if (take_out(section, map, rival)) gone.push_back(rival);
    }
    if (section == "cluster") {
      if (const auto other = other_count(map, key)) take_out(section, map, *other);
    }
    // Remove the keys that need a removed key.
    for (std::size_t i = 0; i < gone.size(); ++i) {
      for (const std::vector<std::string_view>& needs : format.needs) {
        const bool needs_it = std::find(needs.begin() + 1, needs.end(), gone[i]) != needs.end();
        if (needs_it && needs.front() != key && take_out(section, map, needs.front()))
          gone.push_back(needs.front());
      }
    }
  }

  const YamlNode::Entry* written_entry(const BatchKey& key) const {
    YamlNode::Entry* const section = entry_of(root_, key.section);
    return section ? entry_of(section->value, key.key) : nullptr;
  }

  /// Removes one of the mini-batch, the micro-batch and the number of micro-batches, if all three
  /// are there. If only one other than `set` was written in the scenario, that one goes. If both
  /// were, the other size goes when `set` is a size, and the mini-batch when `set` is the number.
  void take_out_third(BatchKey set) {
    if (set.section == "schedule" && set.key == "file") set = kMicroBatches;
    const bool is_one = set == kMiniBatch || set == kMicroBatch || set == kMicroBatches;
    YamlNode::Entry* const schedule = entry_of(root_, "schedule");
    const bool has_file = schedule && entry_of(schedule->value, "file");
    if (!is_one || !written_entry(kMiniBatch) || !written_entry(kMicroBatch)) return;
    if (!has_file && !written_entry(kMicroBatches)) return;
    std::vector<BatchKey> written;
    for (const BatchKey& key : {kMiniBatch, kMicroBatch, kMicroBatches}) {
      if (written_entry(key) && is_written(key.section, key.key) && !(key == set))
        written.push_back(key);
    }
    if (written.empty()) return;
    BatchKey out = written.front();
    if (written.size() > 1) out = set == kMiniBatch ? kMicroBatch : kMiniBatch;
    take_out(out.section, entry_of(root_, out.section)->value, out.key);
  }

  YamlNode& root_;
  const YamlOverride& change_;
  const std::vector<std::string>& set_;
  std::vector<std::string> gone_;
};

}  // namespace

std::optional<std::string> take_out_rivals(YamlNode& root, const YamlOverride& change,
                                           const std::vector<std::string>& set) {
  return Rivals(root, change, set).take_out();
}

}  // namespace plumbline
