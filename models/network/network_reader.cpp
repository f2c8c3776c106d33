// The network format, version 1.
//
// SPDX-License-Identifier: MIT
#include "models/network/network_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/section_reader.h"
#include "models/network/exact_elements.h"
#include "models/network/layer_misfit.h"
#include "models/network/layer_settings_reader.h"
#include "models/network/network_format.h"

namespace plumbline {
namespace {

constexpr std::size_t kLongestName = 200;

/// An element of a list of layers, as the file gives it: a layer, or a group that repeats.
struct Item {
  std::string path;     ///< "layers[1].layers[0]".
  Mark mark;            ///< The mark of the layer's kind, or of the group.
  bool broken = false;  ///< Something in it is wrong and has been reported.
  std::string kind;
  LayerSettings settings;
  std::optional<Marked<std::string>> name;
  std::int64_t repeat = 1;
  std::vector<Item> layers;  ///< For a group; empty for a layer.
};

SaturatingCount written_out(const std::vector<Item>& items) {
  SaturatingCount sum;
  for (const Item& item : items) {
    sum += item.layers.empty() ? SaturatingCount(1) : written_out(item.layers) * item.repeat;
  }
  return sum;
}

/// One layer of the chain with the item that it comes from.
struct ChainLink {
  const Item* item = nullptr;
  std::string name;  ///< "" where the kind is not known.

  const Mark& mark() const { return item->name ? item->name->mark : item->mark; }
};

/// "'flatten_0' in line 9", for messages.
std::string in_line(const ChainLink& link) {
  const int line = link.item->mark.line;
  return link.name.empty() ? fmt::format("the layer in line {}", line)
                           : fmt::format("'{}' in line {}", clipped(link.name), line);
}

std::string stem_of(const Source& source) {
  std::filesystem::path path = std::filesystem::path(source.name).stem();
  if (path.extension() == ".network") path = path.stem();  // gpt-small.network.yaml
  return path.string();
}

class NetworkReader {
 public:
  Result<Network> read(const Source& source, const YamlNode& root) {
    SectionReader file(root, "", network_format(), problems_);
    file.require("version");
    file.require("kind", "a network says kind: network");
    if (!file.has("kind")) return std::move(problems_);  // something else, such as a scenario
    file.count("version");
    if (auto kind = file.text("kind"); kind && kind->value != "network") {
      file.error(kind->mark,
                 fmt::format("kind is '{}', where a network is wanted", clipped(kind->value)),
                 "a network says kind: network");
    }
    network_.name = stem_of(source);
    if (auto name = file.text("name")) network_.name = name->value;
    read_element(file);
    file.require("input", "such as {shape: [3, 32, 32]} or {tokens: 128, vocabulary: 8192}");
    const bool input_known = read_input(file);
    file.require("layers");
    const std::vector<Item> items = read_items(file, "layers");
    file.finish();
    write_out(file, items);
    report_repeated_names();
    report_early_heads();
    if (input_known) derive_chain();
    if (!problems_.empty()) return problems_;
    return std::move(network_);
  }

 private:
  void read_element(SectionReader& file) {
    const auto chosen = file.choice("dtype", "type of elements");
    for (std::size_t i = 0; chosen && i < kElementTypes.size(); ++i) {
      if (chosen->value == kElementTypes[i]) network_.element = static_cast<ElementType>(i);
    }
  }

  /// Whether the input of the first layer is known.
  bool read_input(SectionReader& file) {
    const std::size_t problems_before = problems_.size();
    auto section = file.section("input");
    if (!section) return false;
    input_line_ = file.mark_of("input").line;
    const bool of_ids = section->has("tokens") || section->has("vocabulary");
    input_is_numbers_ = section->has("shape") && !of_ids;
    if (of_ids && section->has("shape")) {
      section->error(section->mark_of("shape"), "input gives a shape beside token ids",
                     "numbers have a shape; ids have tokens and a vocabulary");
    } else if (of_ids) {
      section->require("tokens");
      section->require("vocabulary");
    } else if (section->is_map()) {
      section->require("shape", "or give tokens and vocabulary");
    }
    if (section->has("shape")) {
      if (auto extents = section->counts("shape")) read_shape(*section, *extents);
    }
    section->child("shape");
    if (auto tokens = section->count("tokens")) network_.input.shape.extents = {tokens->value};
    if (auto vocabulary = section->count("vocabulary"))
      network_.input.vocabulary = vocabulary->value;
    section->finish();
    return problems_.size() == problems_before;
  }

  void read_shape(SectionReader& section, const std::vector<std::int64_t>& extents) {
    network_.input.shape = {extents};
    const Mark mark = section.child("shape")->mark;
    if (extents.empty() || extents.size() > 3) {
      section.error(
          mark,
          fmt::format("input.shape has {} extents, which is not between 1 and 3", extents.size()),
          "[features], [tokens, features] or [channels, height, width]");
    } else if (!exact_elements(network_.input.shape).is_exact()) {
      section.error(mark, "input.shape holds more than 2^53 numbers");
    }
  }

  /// The elements of the list under `key`; none where it is absent, wrong or empty.
  std::vector<Item> read_items(SectionReader& section, std::string_view key) {
    std::vector<Item> items;
    if (!section.has(key)) {
      section.child(key);
      return items;
    }
    const std::vector<YamlNode>* nodes = section.list(key);
    if (!nodes) return items;
    if (nodes->empty()) {
      section.error(section.mark_of(key), fmt::format("{} is an empty list", section.path_of(key)));
    }
    items.reserve(nodes->size());
    for (std::size_t i = 0; i < nodes->size(); ++i) {
      items.push_back(read_item((*nodes)[i], fmt::format("{}[{}]", section.path_of(key), i)));
    }
    return items;
  }

  static bool holds(const YamlNode& node, std::string_view key) {
    return std::any_of(node.entries.begin(), node.entries.end(),
                       [&](const YamlNode::Entry& entry) { return entry.key == key; });
  }

  Item read_item(const YamlNode& node, const std::string& path) {
    const std::size_t problems_before = problems_.size();
    const bool is_group = holds(node, "repeat") || holds(node, "layers");
    SectionReader section(node, path, is_group ? layer_group_format() : network_layer_format(),
                          problems_);
    Item item;
    item.path = path;
    item.mark = section.mark();
    if (is_group) {
      section.require("repeat", "only layers that repeat are a list of their own");
      section.require("layers", "the layers that repeat");
      if (auto repeat = section.count("repeat")) item.repeat = repeat->value;
      item.broken = problems_.size() != problems_before;
      item.layers = read_items(section, "layers");  // these are broken or not by themselves
      item.broken = item.broken || item.layers.empty();
      section.finish();
    } else {
      read_layer(section, item);
      item.broken = problems_.size() != problems_before;
    }
    return item;
  }

  void read_layer(SectionReader& section, Item& item) {
    read_name(section, item);
    auto settings = read_layer_settings(section);
    if (!settings) return;  // the keys that it may have are unknown
    item.kind = kind_name(settings->value);
    item.mark = settings->mark;
    item.settings = settings->value;
    if (auto* head = std::get_if<Head>(&item.settings)) read_classes(section, *head);
    section.finish();
  }

  void read_name(SectionReader& section, Item& item) {
    auto name = section.text("name");
    if (!name) return;
    if (name->value.empty() || name->value.size() > kLongestName) {
      section.error(name->mark,
                    fmt::format("{} has {} bytes, which is not between 1 and {}",
                                section.path_of("name"), name->value.size(), kLongestName));
      return;
    }
    item.name = std::move(name);
  }

  void read_classes(SectionReader& section, Head& head) {
    if (section.has("classes")) return;
    if (network_.input.vocabulary) head.classes = *network_.input.vocabulary;
    if (input_is_numbers_) {
      section.require("classes", "it may be absent only where the input is token ids");
    }
  }

  /// Sets chain_ from the items, repeats written out.
  void write_out(SectionReader& file, const std::vector<Item>& items) {
    const SaturatingCount count = written_out(items);
    if (count.value() > kMaxNetworkLayers) {
      file.error(file.mark_of("layers"),
                 fmt::format("layers holds {} layers, repeats written out, which is more than {}",
                             count.is_exact() ? std::to_string(count.value()) : "over 2^53",
                             kMaxNetworkLayers));
      return;
    }
    chain_.reserve(static_cast<std::size_t>(count.value()));
    append(items, "");
  }

  /// `suffix` = the text that the enclosing repeats add to given names.
  void append(const std::vector<Item>& items, const std::string& suffix) {
    for (const Item& item : items) {
      if (item.layers.empty() || item.broken) {
        ChainLink link{&item, ""};
        if (!item.kind.empty()) link.name = fmt::format("{}_{}", item.kind, counts_[item.kind]++);
        if (item.name) link.name = item.name->value + suffix;
        chain_.push_back(std::move(link));
      }
      for (std::int64_t k = 0; k < item.repeat && !item.layers.empty(); ++k) {
        append(item.layers, fmt::format("{}_{}", suffix, k));
      }
    }
  }

  void report_repeated_names() {
    std::map<std::string, const ChainLink*> first_of;
    const Item* told = nullptr;  // reported once for all the repeats of a layer
    for (const ChainLink& link : chain_) {
      if (link.name.empty()) continue;
      const auto [first, is_new] = first_of.emplace(link.name, &link);
      if (is_new || told == link.item) continue;
      told = link.item;
      const ChainLink& other = *first->second;
      const bool both_given = link.item->name && other.item->name;
      problems_.push_back(
          input_error(link.mark(), fmt::format("a second layer is named '{}'", clipped(link.name)),
                      fmt::format("the first is on line {}{}", other.mark().line,
                                  both_given ? "" : "; a name that is absent is <kind>_<number>")));
    }
  }

  void report_early_heads() {
    const Item* told = nullptr;
    for (std::size_t i = 0; i + 1 < chain_.size(); ++i) {
      const ChainLink& link = chain_[i];
      if (link.item->kind != kind_name(Head{}) || told == link.item) continue;
      told = link.item;
      problems_.push_back(
          input_error(link.item->mark,
                      fmt::format("{} '{}' is a head, but {} follows it", link.item->path,
                                  clipped(link.name), in_line(chain_[i + 1])),
                      "a head makes the loss and ends a network"));
    }
  }

  /// Derives the layers up to the first one with an error. The inputs of later layers are not known
  /// then.
  void derive_chain() {
    NetworkInput input = network_.input;
    SaturatingCount parameters;
    network_.layers.reserve(chain_.size());
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      const ChainLink& link = chain_[i];
      if (link.item->broken) return;
      if (auto misfit = find_misfit(link.item->settings, input)) {
        problems_.push_back(
            input_error(link.item->mark,
                        fmt::format("{} '{}' takes {}, but {}", link.item->path, clipped(link.name),
                                    misfit->wanted, given(i, input)),
                        misfit->help));
        return;
      }
      auto layer = derive_layer(link.item->settings, input, link.item->mark);
      if (!layer) {
        Diagnostic problem = layer.problems().front();
        problem.message =
            fmt::format("{} '{}' {}", link.item->path, clipped(link.name), problem.message);
        problems_.push_back(std::move(problem));
        return;
      }
      layer->name = link.name;
      parameters += layer->parameter_count();
      input = {layer->output, std::nullopt};
      network_.layers.push_back(*std::move(layer));
      if (link.item->kind == kind_name(Head{})) break;
    }
    if (!parameters.is_exact()) {
      problems_.push_back(
          input_error(chain_.front().item->mark, "the layers have more than 2^53 parameters"));
    }
  }

  /// The input of the layer at `i` and its origin; follows "but" in a message.
  std::string given(std::size_t i, const NetworkInput& input) const {
    const std::string what = input.vocabulary ? "token ids" : to_text(input.shape);
    return i == 0 ? fmt::format("the input in line {} is {}", input_line_, what)
                  : fmt::format("{} makes {}", in_line(chain_[i - 1]), what);
  }

  Network network_;
  int input_line_ = 0;
  bool input_is_numbers_ = false;
  std::map<std::string, std::int64_t> counts_;  ///< Layers of each kind so far.
  std::vector<ChainLink> chain_;                ///< Points into the items of read().
  Diagnostics problems_;
};

}  // namespace

Result<Network> parse_network(const std::shared_ptr<const Source>& source) {
  auto root = parse_yaml(source);
  if (!root) return root.problems();
  return NetworkReader().read(*source, *root);
}

Result<Network> read_network(const std::string& path) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_network(*source);
}

}  // namespace plumbline
