// The columns of a table of layers.
//
// SPDX-License-Identifier: MIT
#include "models/import/csv_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "base/csv.h"
#include "base/quantity.h"
#include "base/section_reader.h"
#include "models/profile/model_checks.h"

namespace plumbline {
namespace {

constexpr std::size_t kLargestTable = std::size_t{64} << 20U;
constexpr std::size_t kMaxProblems = 100;  // after that many, no further row is read
constexpr std::string_view kExample =
    "such as: layer,forward,backward,output,activation,parameters";

enum class Quantity { text, time, size };

enum Column : std::size_t {
  layer,
  kind,
  forward,
  backward,
  backward_input,
  backward_weight,
  update,
  output,
  activation,
  parameters,
  column_count
};

struct ColumnRule {
  std::string_view name;
  Quantity quantity;
};

constexpr std::array<ColumnRule, column_count> kColumns = {{{"layer", Quantity::text},
                                                            {"kind", Quantity::text},
                                                            {"forward", Quantity::time},
                                                            {"backward", Quantity::time},
                                                            {"backward_input", Quantity::time},
                                                            {"backward_weight", Quantity::time},
                                                            {"update", Quantity::time},
                                                            {"output", Quantity::size},
                                                            {"activation", Quantity::size},
                                                            {"parameters", Quantity::size}}};

/// The end of a column's name, and the unit that it gives to bare numbers.
struct UnitSuffix {
  std::string_view suffix;
  std::string_view unit;
};

constexpr std::array<UnitSuffix, 4> kTimeSuffixes = {
    {{"_s", "s"}, {"_ms", "ms"}, {"_us", "us"}, {"_ns", "ns"}}};
constexpr std::array<UnitSuffix, 7> kSizeSuffixes = {{{"_bytes", "B"},
                                                      {"_kb", "kB"},
                                                      {"_mb", "MB"},
                                                      {"_gb", "GB"},
                                                      {"_kib", "KiB"},
                                                      {"_mib", "MiB"},
                                                      {"_gib", "GiB"}}};

std::span<const UnitSuffix> suffixes_of(Quantity quantity) {
  if (quantity == Quantity::time) return kTimeSuffixes;
  if (quantity == Quantity::size) return kSizeSuffixes;
  return {};
}

/// The place of a column, and the unit of its bare numbers; "" = each field has its own unit.
struct Place {
  std::size_t index;
  std::string_view unit;
  Mark mark;
  std::string name;  ///< As the header writes it.
};

class TableReader {
 public:
  TableReader(const std::shared_ptr<const Source>& source, CsvTimes times)
      : source_(source), times_(times), rows_(source, problems_) {}

  Result<std::vector<CsvLayer>> read() {
    CsvRow row;
    if (!rows_.next(row)) {
      if (problems_.empty())
        problems_.push_back(
            input_error({source_}, "is empty, where a table of layers is wanted",
                        fmt::format("its first line names the columns, {}", kExample)));
      return problems_;
    }
    read_header(row);
    if (!problems_.empty()) return problems_;
    std::size_t known_problems = 0;
    while (problems_.size() < kMaxProblems && rows_.next(row)) {
      if (problems_.size() > known_problems) {  // an error in this row: no layer to read from it
        known_problems = problems_.size();
        continue;
      }
      if (layers_.size() == static_cast<std::size_t>(kMaxLayers)) {
        error(row.fields.front().mark,
              fmt::format("this is one layer more than the {} that are read", kMaxLayers));
        break;
      }
      read_row(row);
      known_problems = problems_.size();
    }
    if (problems_.empty() && layers_.empty())
      problems_.push_back(
          input_error({source_}, "has a header and no layer", "each further line is a layer"));
    if (!problems_.empty()) return problems_;
    return std::move(layers_);
  }

 private:
  void error(const Mark& mark, std::string message, std::string help = "") {
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  bool has(Column column) const { return places_[column].has_value(); }

  void read_header(const CsvRow& header) {
    for (const std::string_view other : {"\t", ";"}) {
      const CsvField& first = header.fields.front();
      if (header.count != 1 || first.text.find(other) == std::string::npos) continue;
      return error(first.mark,
                   fmt::format("the columns are parted by {}, where commas are wanted",
                               other == ";" ? "semicolons" : "tabs"),
                   "export the table with commas between columns and a point in 1.25");
    }
    if (header.count > kMaxCsvFields)
      return error(header.fields.back().mark,
                   fmt::format("there are {} columns, and no more than {} are read", header.count,
                               kMaxCsvFields));
    width_ = header.count;
    for (std::size_t i = 0; i < header.fields.size(); ++i) read_column(header.fields[i], i);
    if (!problems_.empty()) return;
    require_columns(header.fields.front().mark);
  }

  void read_column(const CsvField& field, std::size_t index) {
    std::vector<std::string> offered;
    for (std::size_t c = 0; c < column_count; ++c) {
      const auto& [name, quantity] = kColumns[c];
      if (field.text == name)
        return place(static_cast<Column>(c), {index, "", field.mark, {}}, field);
      offered.emplace_back(name);
      for (const UnitSuffix& unit : suffixes_of(quantity)) {
        offered.push_back(fmt::format("{}{}", name, unit.suffix));
        if (field.text == offered.back())
          return place(static_cast<Column>(c), {index, unit.unit, field.mark, {}}, field);
      }
    }
    if (check_suffix(field)) return;
    std::string help = did_you_mean(field.text, offered);
    if (help.empty())
      help =
          "the columns are layer, kind, forward, backward, backward_input, backward_weight, "
          "update, "
          "output, activation, parameters; a unit may follow, as in forward_ms or output_mib";
    error(field.mark, fmt::format("'{}' is no column", clipped(field.text)), std::move(help));
  }

  /// Whether the name is a column's name with a unit that does not fit it; adds an error then.
  bool check_suffix(const CsvField& field) {
    const std::size_t end = field.text.rfind('_');
    if (end == std::string::npos) return false;
    const std::string_view front = std::string_view(field.text).substr(0, end);
    for (const auto& [name, quantity] : kColumns) {
      if (name != front) continue;
      std::string units;
      for (const UnitSuffix& unit : suffixes_of(quantity))
        units += fmt::format("{}{}{}", units.empty() ? "" : ", ", name, unit.suffix);
      error(field.mark,
            fmt::format("'{}' is no column: {} is a {}", clipped(field.text), name,
                        quantity == Quantity::time   ? "time"
                        : quantity == Quantity::size ? "size"
                                                     : "name, without a unit"),
            units.empty() ? std::string(name) : fmt::format("{}, or one of {}", name, units));
      return true;
    }
    return false;
  }

  void place(Column column, Place at, const CsvField& field) {
    at.name = field.text;
    if (has(column)) {
      return error(field.mark,
                   fmt::format("the column {} is given a second time", kColumns[column].name),
                   fmt::format("the first is '{}'", places_[column]->name));
    }
    places_[column] = std::move(at);
  }

  void require(const Mark& mark, Column column, std::string help) {
    if (has(column)) return;
    error(mark, fmt::format("there is no column {}", kColumns[column].name), std::move(help));
  }

  void require_columns(const Mark& mark) {
    require(mark, layer, std::string(kExample));
    if (times_ == CsvTimes::optional) return;
    require(mark, forward, "or forward_ms, where the fields are bare numbers");
    if (has(backward_input) || has(backward_weight)) {
      require(mark, backward_input, "a split backward needs both of its parts");
      require(mark, backward_weight, "a split backward needs both of its parts");
    } else {
      require(mark, backward, "or give backward_input and backward_weight");
    }
  }

  void read_row(const CsvRow& row) {
    if (row.count != width_) {
      const CsvField& at = row.count > width_ ? row.fields[std::min(width_, row.fields.size() - 1)]
                                              : row.fields.back();
      return error(at.mark,
                   fmt::format("this row has {} field{}, and the header {}", row.count,
                               row.count == 1 ? "" : "s", width_),
                   "a field that holds a comma stands in quotes");
    }
    row_ = &row;
    CsvLayer read;
    read.mark = row.fields[places_[layer]->index].mark;
    read.layer.name = text(layer);
    read.layer.kind = text(kind);
    check_name(read);
    read_times(read.costs);
    read.costs.output = size(output);
    read.costs.activation = size(activation);
    read.layer.parameters = size(parameters);
    layers_.push_back(std::move(read));
  }

  void check_name(const CsvLayer& read) {
    if (read.layer.name.empty()) return error(read.mark, "the layer of this row has no name");
    const auto [first, is_new] = lines_.emplace(read.layer.name, read.mark.line);
    if (!is_new)
      error(read.mark, fmt::format("a second layer is named '{}'", clipped(read.layer.name)),
            fmt::format("the first is on line {}", first->second));
  }

  void read_times(LayerCosts& costs) {
    costs.forward.mean = time(forward, times_ == CsvTimes::required);
    const bool split = !is_empty(backward_input) || !is_empty(backward_weight);
    if (split) {
      costs.split = SplitBackward{};
      costs.split->input.mean = time(backward_input, true);
      costs.split->weight.mean = time(backward_weight, true);
      costs.backward.mean = costs.split->input.mean + costs.split->weight.mean;
    }
    if (!split || !is_empty(backward))
      costs.backward.mean = time(backward, times_ == CsvTimes::required);
    costs.update.mean = time(update, false);
  }

  const CsvField* field(Column column) const {
    return has(column) ? &row_->fields[places_[column]->index] : nullptr;
  }

  bool is_empty(Column column) const { return !field(column) || field(column)->text.empty(); }

  std::string text(Column column) {
    if (is_empty(column)) return "";
    if (field(column)->text.size() > kLongestText) {
      error(field(column)->mark,
            fmt::format("{} is longer than 10,000 bytes", kColumns[column].name));
      return "";
    }
    return field(column)->text;
  }

  Duration time(Column column, bool required) {
    return quantity<Duration>(column, required, parse_duration);
  }

  Bytes size(Column column) { return quantity<Bytes>(column, false, parse_bytes); }

  /// The quantity of this row in `column`; 0 where the field is absent. Adds an error where it is
  /// required but absent, or wrong.
  template <class T, class Parse>
  T quantity(Column column, bool required, Parse parse) {
    const CsvField* given = field(column);
    if (!given || given->text.empty()) {
      if (required && given) {
        error(given->mark, fmt::format("{} is empty", places_[column]->name));
      } else if (required) {  // no such column; only some rows need it
        error(row_->fields[places_[layer]->index].mark,
              fmt::format("this layer has no {}", kColumns[column].name));
      }
      return {};
    }
    const Place& at = *places_[column];
    const Parsed<T> parsed =
        parse(at.unit.empty() ? given->text : fmt::format("{} {}", given->text, at.unit));
    if (parsed.value) return *parsed.value;
    if (!at.unit.empty() && parse(given->text).value) {
      error(given->mark,
            fmt::format("{} is '{}', and the column's name gives the unit", at.name,
                        clipped(given->text)),
            fmt::format("a bare number, or a column named {}", kColumns[column].name));
      return {};
    }
    std::string help;
    if (at.unit.empty() && parse_real(given->text).value)
      help = fmt::format("or a unit in the header: {}{}", kColumns[column].name,
                         kColumns[column].quantity == Quantity::time ? "_ms" : "_bytes");
    error(given->mark,
          fmt::format("{} is '{}', which {}", at.name, clipped(given->text), parsed.problem),
          std::move(help));
    return {};
  }

  std::shared_ptr<const Source> source_;
  CsvTimes times_;
  Diagnostics problems_;
  CsvReader rows_;
  std::size_t width_ = 0;
  std::array<std::optional<Place>, column_count> places_;
  const CsvRow* row_ = nullptr;
  std::map<std::string, int> lines_;
  std::vector<CsvLayer> layers_;
};

}  // namespace

Result<std::vector<CsvLayer>> parse_csv_layers(const std::shared_ptr<const Source>& source,
                                               CsvTimes times) {
  return TableReader(source, times).read();
}

Result<std::vector<CsvLayer>> read_csv_layers(const std::string& path, CsvTimes times) {
  const auto source = read_file(path, kLargestTable);
  if (!source) return source.problems();
  return parse_csv_layers(*source, times);
}

Result<Model> parse_csv_profile(const std::shared_ptr<const Source>& source) {
  auto table = parse_csv_layers(source, CsvTimes::required);
  if (!table) return table.problems();
  Model model;
  model.name = std::filesystem::path(source->name).stem().string();
  Measurement measurement;
  measurement.layers.reserve(table->size());
  std::vector<Layer> layers;
  layers.reserve(table->size());
  for (CsvLayer& row : *table) {
    layers.push_back(std::move(row.layer));
    measurement.layers.push_back(row.costs);
  }
  model.graph = LayerGraph::chain(std::move(layers));
  model.profile.measurements.push_back(std::move(measurement));
  return model;
}

Result<Model> read_csv_profile(const std::string& path) {
  const auto source = read_file(path, kLargestTable);
  if (!source) return source.problems();
  return parse_csv_profile(*source);
}

}  // namespace plumbline
