// From a file to its architecture's reader, and the facts beside the shape.
//
// SPDX-License-Identifier: MIT
#include "models/architectures/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/json_tree.h"
#include "base/saturating_count.h"
#include "models/architectures/architectures.h"
#include "models/import/config_facts.h"

namespace plumbline {
namespace {

/// `name` with only its letters and digits, in lower case.
std::string spelling(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// A name with another letter or digit is another architecture; other punctuation is a misspelling.
std::string help_on(std::string_view name, bool is_like) {
  for (const Architecture& known : architectures()) {
    if (spelling(known.name) == spelling(name))
      return fmt::format("did you mean '{}'?", known.name);
  }
  if (is_like) return "docs/how-to/huggingface.md has all that are read";
  return "needed: what its blocks hold; --like llama (model.like in a scenario) reads it as if it "
         "were a llama, and docs/how-to/huggingface.md has all that are read";
}

/// The keys of a model around its text that count for the text, where it has none of its own.
constexpr std::string_view kInherited[] = {"tie_word_embeddings", "torch_dtype", "dtype",
                                           "quantization_config"};

/// The text's part of a file for text and images, with what the file says for both; null where the
/// file is all text.
YamlNode* text_part(YamlNode& root) {
  YamlNode::Entry* text = entry_of(root, "text_config");
  if (!text || text->value.kind != YamlNode::Kind::map) return nullptr;
  std::vector<YamlNode::Entry> inherited;
  for (const std::string_view key : kInherited) {
    const YamlNode::Entry* outer = entry_of(root, key);
    if (outer && !entry_of(text->value, key)) inherited.push_back(*outer);
  }
  std::vector<YamlNode::Entry>& entries = text->value.entries;
  entries.insert(entries.end(), inherited.begin(), inherited.end());
  return &text->value;
}

/// What of a file for text and images is not read: its towers.
std::vector<std::string> notes_on_towers(ConfigFile& file) {
  std::vector<std::string> notes;
  for (const std::string_view key : {"vision_config", "audio_config"}) {
    auto tower = file.map(key);
    if (!tower) continue;
    const auto first = [&](std::initializer_list<std::string_view> names) -> std::int64_t {
      for (const std::string_view name : names) {
        if (tower->has(name)) return tower->count_or(name, 0);
      }
      return 0;
    };
    const std::int64_t blocks = first({"num_hidden_layers", "depth", "vt_num_hidden_layers"});
    const std::int64_t hidden = first({"hidden_size", "vt_hidden_size"});
    const std::int64_t inner = first({"intermediate_size", "vt_intermediate_size"});
    if (blocks == 0 || hidden == 0 || inner == 0) {
      notes.push_back(fmt::format("{} is not counted: the model is its text alone", key));
      continue;
    }
    const SaturatingCount matrices =
        SaturatingCount{blocks} *
        (4 * SaturatingCount{hidden} * hidden + 2 * SaturatingCount{hidden} * inner);
    notes.push_back(fmt::format(
        "{} is not counted: the model is its text alone. Beside it stand {} blocks of {} numbers "
        "with MLPs of {}: at least {} parameters, and {} FLOP for each patch and forward",
        key, blocks, hidden, inner, matrices.value(), 2 * matrices.value()));
  }
  return notes;
}

class FileReader {
 public:
  explicit FileReader(std::string_view like) : like_(like) {}

  Result<TransformerShape> read(YamlNode root) && {
    ConfigFile whole(root, "", problems_);
    if (!whole.section().is_map()) return problems_;
    YamlNode* const text = text_part(root);
    const std::string outer = name_of(whole, text == nullptr || like_.empty());
    if (!problems_.empty()) return problems_;
    if (!text) return read_as(whole, outer, outer);
    std::vector<std::string> towers = notes_on_towers(whole);
    ConfigFile inner(*text, "", problems_);
    const std::string own = inner.word("model_type");
    auto shape = read_as(inner, find_architecture(own) ? own : outer, outer);
    if (!shape) return shape;
    for (std::string& note : towers) shape->facts.notes.push_back(std::move(note));
    return shape;
  }

 private:
  std::string name_of(ConfigFile& file, bool is_needed) {
    if (is_needed && like_.empty())
      file.section().require("model_type", "the name of the model's architecture");
    return file.word("model_type");
  }

  /// Reads the file as one of architecture `name`, or of the one that it is said to be like.
  Result<TransformerShape> read_as(ConfigFile& file, const std::string& name,
                                   const std::string& shown) {
    const std::string& read_name = like_.empty() ? name : like_;
    const Architecture* const architecture = find_architecture(read_name);
    if (!architecture) {
      const auto written = file.section().text("model_type");
      file.section().error(written ? written->mark : file.section().mark(),
                           fmt::format("{} is '{}', which is no architecture that is read",
                                       like_.empty() ? "model_type" : "--like", clipped(read_name)),
                           help_on(read_name, !like_.empty()));
      return problems_;
    }
    file.pass_over({"model_type"});
    TransformerShape shape;
    if (architecture->read) {
      architecture->read(file, shape);
    } else {
      read_first_family(
          file.section(),
          architecture->as_family.empty() ? architecture->name : architecture->as_family,
          file.nulls(), shape, problems_);
    }
    const std::string family = shape.family.empty() ? std::string(read_name) : shape.family;
    std::vector<std::string> notes = std::move(shape.facts.notes);
    shape.facts = read_config_facts(file.section(), family, problems_);
    shape.facts.notes = std::move(notes);
    if (!problems_.empty()) return problems_;
    shape.family = shown.empty() ? family : shown;
    if (!like_.empty() && name != like_)
      shape.facts.notes.insert(
          shape.facts.notes.begin(),
          fmt::format(
              "model_type is '{}', read like {}: its blocks are taken to have what those of "
              "{} have, by keys of the same names",
              clipped(shown), like_, like_));
    return shape;
  }

  std::string like_;
  Diagnostics problems_;
};

}  // namespace

Result<TransformerShape> parse_huggingface(const std::shared_ptr<const Source>& source,
                                           std::string_view like) {
  auto root = parse_json(source);
  if (!root) return root.problems();
  return FileReader(like).read(*std::move(root));
}

Result<TransformerShape> read_huggingface(const std::string& path, std::string_view like) {
  auto source = read_file(path, kLargestYaml);
  if (!source) return source.problems();
  return parse_huggingface(*source, like);
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  names.reserve(architectures().size());
  for (const Architecture& known : architectures()) names.emplace_back(known.name);
  return names;
}

}  // namespace plumbline
