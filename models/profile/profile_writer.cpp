// The native profile format, version 1, as text.
//
// SPDX-License-Identifier: MIT
#include "models/profile/profile_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>

#include "base/bug.h"
#include "base/diagnostic.h"
#include "base/section_reader.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::size_t kWidth = 120;  // of a line that may be broken
/// YAML 1.2, section 7.4.2: a key in one line has at most 1024 characters.
constexpr std::size_t kLongestPlainKey = 1'000;

constexpr std::string_view kReplacement = "\uFFFD";  // for a byte that is no UTF-8

// Quantities, to the last digit.

/// `ticks` in a unit of 10^`decimals` ticks, without trailing zeros: 1234500 at 6 is 1.2345.
std::string decimal(std::int64_t ticks, int decimals) {
  std::string digits = std::to_string(ticks);
  if (decimals == 0) return digits;
  const auto places = static_cast<std::size_t>(decimals);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  digits.insert(digits.size() - places, 1, '.');
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

/// The largest of units 1000 apart in which the number is at least 1.
template <std::size_t N>
std::string in_decimal_units(std::int64_t ticks, const std::array<std::string_view, N>& units) {
  std::size_t unit = 0;
  for (std::int64_t one = 1000; unit + 1 < N && ticks >= one; one *= 1000) ++unit;
  return fmt::format("{} {}", decimal(ticks, static_cast<int>(3 * unit)), units[unit]);
}

std::string exact(Duration time) {
  PLUMBLINE_CHECK(time.count() >= 0 && time.count() <= kLargestQuantity, time.count());
  if (time.count() == 0) return "0 s";
  return in_decimal_units<4>(time.count(), {"ns", "us", "ms", "s"});
}

std::string exact(BytesPerSecond rate) {
  PLUMBLINE_CHECK(rate.count >= 1 && rate.count <= kLargestQuantity, rate.count);
  return in_decimal_units<5>(rate.count, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"});
}

std::string exact(Flops work) {
  PLUMBLINE_CHECK(work.count >= 0 && work.count <= kMaxFlops, work.count);
  if (work.count == 0) return "0 FLOP";
  return in_decimal_units<7>(work.count,
                             {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}

/// A whole number of the largest unit that divides the size, in powers of 1024 or else of 1000.
std::string exact(Bytes size) {
  PLUMBLINE_CHECK(size.count >= 0 && size.count <= kLargestQuantity, size.count);
  constexpr std::array<std::array<std::string_view, 5>, 2> units = {
      {{"B", "KiB", "MiB", "GiB", "TiB"}, {"B", "kB", "MB", "GB", "TB"}}};
  const std::size_t family = size.count % 1024 == 0 ? 0 : 1;
  const std::int64_t step = family == 0 ? 1024 : 1000;
  std::int64_t count = size.count;
  std::size_t unit = 0;
  while (count != 0 && count % step == 0 && unit + 1 < units[family].size()) {
    count /= step;
    ++unit;
  }
  return fmt::format("{} {}", count, units[family][unit]);
}

// Texts, as YAML.

/// The character that starts `text`. Requires: valid UTF-8.
std::uint32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::uint32_t code = byte(0);
  if (text.size() > 1) code &= 0xFFU >> (text.size() + 1);
  for (std::size_t i = 1; i < text.size(); ++i) code = code << 6U | (byte(i) & 0x3FU);
  return code;
}

/// What YAML 1.2, section 5.1, calls not printable, and what YAML 1.1 takes for the end of a line.
bool needs_escape(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         code == 0xFEFF || code == 0xFFFE || code == 0xFFFF;
}

/// Whether the opening brackets in `text` close again: our reader counts brackets in quotes, too.
bool brackets_close(std::string_view text) {
  constexpr int max = 8;
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    if (open < 0 || open > max) return false;
  }
  return open == 0;
}

std::string quoted(std::string_view text) {
  const bool keeps_brackets = brackets_close(text);
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    const std::string_view character = text.substr(at, length);
    const std::uint32_t code = code_point(character);
    const bool is_open_bracket = code == '[' || code == '{';
    if (code == '"' || code == '\\') {
      out += '\\';
      out += character;
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (needs_escape(code) || (is_open_bracket && !keeps_brackets)) {
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    } else {
      out += character;
    }
    at += length;
  }
  return out + '"';
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Words that some version of YAML reads as something else (YAML 1.1: bool, null).
bool is_reserved(std::string_view text) {
  constexpr std::array<std::string_view, 9> words = {"null", "true", "false", "yes", "no",
                                                     "on",   "off",  "y",     "n"};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// A text that every reader of YAML takes as it stands, anywhere.
bool is_plain(std::string_view text) {
  if (text.empty() || !(is_letter(text.front()) || text.front() == '_')) return false;
  if (text.back() == ' ' || is_reserved(text)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("_-./ ").find(c) != std::string_view::npos;
  });
}

std::string scalar(std::string_view text) {
  return is_plain(text) ? std::string(text) : quoted(text);
}

std::string checked_scalar(std::string_view text) {
  PLUMBLINE_CHECK(text.size() <= kLongestText, text.size());
  return scalar(text);
}

/// The front of `text` that, as it is written, the reader takes.
std::string clipped_value(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = length == 0 ? kReplacement : text.substr(at, length);
    if (kept.size() + character.size() > kLongestText) break;
    kept += character;
    at += std::max<std::size_t>(length, 1);
  }
  return kept;
}

// Flow collections, which may be broken between pieces.

/// Words of a text; a line may end between two of them.
using Pieces = std::vector<std::string>;

class FlowMap {
 public:
  void add(std::string_view key, std::string_view value) {
    if (!pieces_.empty()) pieces_.back() += ',';
    pieces_.push_back(fmt::format("{}: {}", key, value));
  }
  void add(std::string_view key, Pieces values) {
    values.front().insert(0, fmt::format("{}: ", key));
    if (!pieces_.empty()) pieces_.back() += ',';
    pieces_.insert(pieces_.end(), std::make_move_iterator(values.begin()),
                   std::make_move_iterator(values.end()));
  }
  Pieces pieces() && {
    pieces_.front().insert(0, "{");
    pieces_.back() += '}';
    return std::move(pieces_);
  }

 private:
  Pieces pieces_;
};

Pieces flow_list(Pieces items) {
  if (items.empty()) return {"[]"};
  for (std::size_t i = 0; i + 1 < items.size(); ++i) items[i] += ',';
  items.front().insert(0, "[");
  items.back() += ']';
  return items;
}

class ProfileWriter {
 public:
  ProfileWriter(const Model& model, const ProfileComments& comments)
      : model_(model), comments_(comments) {}

  std::string write() && {
    write_comments(comments_.head, "");
    text_ += "version: 1\nkind: profile\n";
    if (!model_.name.empty()) text_ += fmt::format("model: {}\n", checked_scalar(model_.name));
    if (model_.profile.dtype)
      text_ += fmt::format("dtype: {}\n", plumbline::name_of(*model_.profile.dtype));
    write_group();
    write_texts("provenance", model_.profile.provenance);
    write_measurements();
    write_edges();
    write_blocks();
    write_overheads();
    write_links();
    write_factors("slowdown", model_.profile.slowdown);
    write_factors("in_flight", model_.profile.in_flight);
    write_texts("algorithms", model_.profile.algorithms);
    return std::move(text_);
  }

 private:
  void write_comments(const std::vector<std::string>& lines, std::string_view indent) {
    for (const std::string& line : lines) text_ += fmt::format("{}# {}\n", indent, line);
  }

  /// Adds `lead` and the pieces; what does not fit goes on below, further in than the lead.
  void add_lines(std::string_view lead, const Pieces& pieces) {
    const std::size_t indent = lead.find_first_not_of(' ') + 3;
    text_ += lead;
    std::size_t column = lead.size();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0 && column + 1 + pieces[i].size() > kWidth) {
        text_ += '\n';
        text_.append(indent, ' ');
        column = indent;
      } else if (i > 0) {
        text_ += ' ';
        ++column;
      }
      text_ += pieces[i];
      column += pieces[i].size();
    }
    text_ += '\n';
  }

  /// A key of a block map; one that is too long for its line is told as such.
  static std::string block_key(const std::string& key) {
    std::string written = scalar(key);
    if (written.size() <= kLongestPlainKey) return fmt::format("  {}: ", written);
    return fmt::format("  ? {}\n  : ", written);
  }

  void write_texts(std::string_view section, const std::map<std::string, std::string>& texts) {
    if (texts.empty()) return;
    text_ += fmt::format("{}:\n", section);
    for (const auto& [key, value] : texts)
      text_ += fmt::format("{}{}\n", block_key(key), scalar(clipped_value(value)));
  }

  static std::string time_text(const MeasuredTime& time) {
    if (!time.median && !time.q1 && !time.q3 && !time.samples) return exact(time.mean);
    std::string text = "{mean: " + exact(time.mean);
    if (time.median) text += ", median: " + exact(*time.median);
    if (time.q1) text += ", q1: " + exact(*time.q1);
    if (time.q3) text += ", q3: " + exact(*time.q3);
    if (time.samples) {
      PLUMBLINE_CHECK(*time.samples >= 1 && *time.samples <= kLargestQuantity, *time.samples);
      text += fmt::format(", samples: {}", *time.samples);
    }
    return text + "}";
  }

  static bool is_bare(const MeasuredTime& time, Duration mean) {
    return time.mean == mean && !time.median && !time.q1 && !time.q3 && !time.samples;
  }

  /// The work of the three passes, where they differ; else one quantity for each.
  template <class T>
  static void add_passes(FlowMap& map, std::string_view key, T forward, T input, T weight) {
    if (forward == T{} && input == T{} && weight == T{} && key != "flops") return;
    if (forward == input && input == weight) return map.add(key, exact(forward));
    FlowMap passes;
    if (forward != T{}) passes.add("forward", exact(forward));
    if (input != T{}) passes.add("backward_input", exact(input));
    if (weight != T{}) passes.add("backward_weight", exact(weight));
    map.add(key, std::move(passes).pieces());
  }

  static void add_work(FlowMap& map, const LayerWork& work) {
    const PassWork& f = work.forward;
    const PassWork& i = work.backward_input;
    const PassWork& w = work.backward_weight;
    add_passes(map, "flops", f.flops, i.flops, w.flops);
    add_passes(map, "fp8_flops", f.fp8_flops, i.fp8_flops, w.fp8_flops);
    add_passes(map, "memory_traffic", f.memory_traffic, i.memory_traffic, w.memory_traffic);
    add_passes(map, "link_traffic", f.link_traffic, i.link_traffic, w.link_traffic);
    add_passes(map, "network_traffic", f.network_traffic, i.network_traffic, w.network_traffic);
  }

  static void add_times(FlowMap& map, const LayerCosts& costs) {
    map.add("forward", time_text(costs.forward));
    if (!costs.split ||
        !is_bare(costs.backward, costs.split->input.mean + costs.split->weight.mean))
      map.add("backward", time_text(costs.backward));
    if (costs.split) {
      map.add("backward_input", time_text(costs.split->input));
      map.add("backward_weight", time_text(costs.split->weight));
    }
  }

  static Pieces selective_pieces(const Selective& selective) {
    FlowMap map;
    map.add("activation", exact(selective.activation));
    if (!selective.work) {
      map.add("forward", time_text(selective.forward));
    } else {
      const PassWork& work = *selective.work;
      if (work.flops != Flops{} || work.memory_traffic == Bytes{})
        map.add("flops", exact(work.flops));
      if (work.fp8_flops != Flops{}) map.add("fp8_flops", exact(work.fp8_flops));
      if (work.memory_traffic != Bytes{}) map.add("memory_traffic", exact(work.memory_traffic));
    }
    return std::move(map).pieces();
  }

  static Pieces layer_pieces(const Layer& layer, const LayerCosts& costs) {
    FlowMap map;
    map.add("name", checked_scalar(layer.name));
    if (!layer.kind.empty()) map.add("kind", checked_scalar(layer.kind));
    PLUMBLINE_CHECK(costs.timed || costs.work, "a layer has neither times nor work", layer.name);
    if (costs.timed) add_times(map, costs);
    if (costs.work) add_work(map, *costs.work);
    if (!is_bare(costs.update, Duration::zero()) || (costs.update_given && !costs.timed))
      map.add("update", time_text(costs.update));
    if (costs.output != Bytes{}) map.add("output", exact(costs.output));
    if (costs.activation != Bytes{}) map.add("activation", exact(costs.activation));
    if (costs.selective) map.add("selective", selective_pieces(*costs.selective));
    if (layer.parameters != Bytes{}) map.add("parameters", exact(layer.parameters));
    if (layer.replicated != Bytes{}) map.add("replicated", exact(layer.replicated));
    return std::move(map).pieces();
  }

  void write_layers(const Measurement& measurement, std::string_view lead) {
    const std::vector<Layer>& layers = model_.graph.layers();
    PLUMBLINE_CHECK(measurement.layers.size() == layers.size(), measurement.layers.size(),
                    layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (const auto found = comments_.above_layer.find(layers[i].name);
          found != comments_.above_layer.end())
        write_comments(found->second, lead.substr(0, lead.find('-')));
      add_lines(lead, layer_pieces(layers[i], measurement.layers[i]));
    }
  }

  void write_measurements() {
    const std::vector<Layer>& layers = model_.graph.layers();
    PLUMBLINE_CHECK(!layers.empty() && layers.size() <= static_cast<std::size_t>(kMaxLayers) &&
                        !model_.profile.measurements.empty(),
                    layers.size(), model_.profile.measurements.size());
    std::set<std::string_view> names;
    for (const Layer& layer : layers)
      PLUMBLINE_CHECK(names.insert(layer.name).second, "a second layer is named", layer.name);

    if (model_.profile.measurements.size() == 1) {
      const Measurement& only = model_.profile.measurements.front();
      if (only.batch) text_ += fmt::format("batch: {}\n", *only.batch);
      text_ += "layers:\n";
      write_layers(only, "  - ");
      return;
    }
    text_ += "measurements:\n";
    std::int64_t last = 0;
    for (const Measurement& measurement : model_.profile.measurements) {
      PLUMBLINE_CHECK(measurement.batch && *measurement.batch > last, measurement.batch.value_or(0),
                      last);
      last = *measurement.batch;
      text_ += fmt::format("  - batch: {}\n    layers:\n", last);
      write_layers(measurement, "      - ");
    }
  }

  bool is_chain() const {
    const std::vector<LayerEdge>& edges = model_.graph.edges();
    if (edges.size() + 1 != model_.graph.size()) return false;
    for (std::uint32_t i = 0; i < edges.size(); ++i) {
      if (edges[i] != LayerEdge{{i}, {i + 1}}) return false;
    }
    return true;
  }

  std::string name_of(LayerId id) const {
    PLUMBLINE_CHECK(id.value < model_.graph.size(), id.value, model_.graph.size());
    return scalar(model_.graph.layer(id).name);
  }

  void write_edges() {
    if (is_chain()) return;
    Pieces pairs;
    pairs.reserve(model_.graph.edges().size());
    for (const LayerEdge& edge : model_.graph.edges())
      pairs.push_back(fmt::format("[{}, {}]", name_of(edge.from), name_of(edge.to)));
    add_lines("edges: ", flow_list(std::move(pairs)));
  }

  void write_blocks() {
    if (model_.profile.blocks.empty()) return;
    text_ += "blocks:\n";
    for (const Block& block : model_.profile.blocks) {
      Pieces names;
      names.reserve(block.layers.size());
      for (const LayerId id : block.layers) names.push_back(name_of(id));
      FlowMap map;
      map.add("layers", flow_list(std::move(names)));
      map.add("forward", exact(block.forward));
      map.add("backward", exact(block.backward));
      add_lines("  - ", std::move(map).pieces());
    }
  }

  void write_group() {
    const DeviceGroup& group = model_.profile.group;
    if (!group.given) return;
    FlowMap map;
    map.add("devices", std::to_string(group.devices));
    if (group.tensor_parallel > 1)
      map.add("tensor_parallel", std::to_string(group.tensor_parallel));
    if (group.devices_per_server)
      map.add("devices_per_server", std::to_string(*group.devices_per_server));
    if (group.forward) map.add("forward_flops", exact(*group.forward));
    add_lines("group: ", std::move(map).pieces());
  }

  void write_overheads() {
    if (!model_.profile.overheads) return;
    const Overheads& overheads = *model_.profile.overheads;
    FlowMap map;
    map.add("per_op", exact(overheads.per_op));
    map.add("hand_over", exact(overheads.hand_over));
    map.add("per_iteration", exact(overheads.per_iteration));
    if (overheads.add_up) map.add("add_up", exact(*overheads.add_up));
    if (overheads.stash) map.add("stash", exact(*overheads.stash));
    add_lines("overheads: ", std::move(map).pieces());
  }

  void write_links() {
    if (model_.profile.links.empty()) return;
    text_ += "links:\n";
    for (const MeasuredLink& link : model_.profile.links) {
      FlowMap map;
      if (!link.kind.empty()) map.add("kind", checked_scalar(link.kind));
      map.add("latency", exact(link.latency));
      if (link.bandwidth) map.add("bandwidth", exact(*link.bandwidth));
      if (!link.table.empty()) {
        Pieces rows;
        rows.reserve(link.table.size());
        for (const auto& [size, time] : link.table)
          rows.push_back(fmt::format("[{}, {}]", exact(size), exact(time)));
        map.add("table", flow_list(std::move(rows)));
      }
      add_lines("  - ", std::move(map).pieces());
    }
  }

  /// Lists of factors by kind of layer.
  void write_factors(std::string_view key, const KindFactors& all) {
    if (all.empty()) return;
    text_ += fmt::format("{}:\n", key);
    for (const auto& [kind, factors] : all) {
      PLUMBLINE_CHECK(!factors.empty(), kind);
      Pieces items;
      items.reserve(factors.size());
      for (const double factor : factors) {
        PLUMBLINE_CHECK(factor >= 0 && factor <= 1000, factor);
        items.push_back(
            fmt::format("{}", std::abs(factor)));  // the fewest digits that give it back
      }
      add_lines(block_key(kind), flow_list(std::move(items)));
    }
  }

  const Model& model_;
  const ProfileComments& comments_;
  std::string text_;
};

}  // namespace

std::string profile_yaml(const Model& model, const ProfileComments& comments) {
  return ProfileWriter(model, comments).write();
}

}  // namespace plumbline
