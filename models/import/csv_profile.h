// A model from a table: a CSV file with one layer per row.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/profile/profile.h"

namespace plumbline {

/// One row of the table.
struct CsvLayer {
  Layer layer;
  LayerCosts costs;
  Mark mark;  ///< The mark of its name.
};

/// The columns that a table must have.
enum class CsvTimes {
  required,  ///< forward, and backward or both of its parts.
  optional,  ///< No times; the table adds to a model that has its times.
};

/// Reads a header, then one layer per row, in the order of the file. The columns, in any order:
/// layer, kind, forward, backward, backward_input, backward_weight, update (times), output,
/// activation, parameters (sizes). A field holds a quantity with its unit, "1.25 ms" or "4 MiB". It
/// may be a bare number where the unit ends the column's name: _s, _ms, _us, _ns; _bytes, _kb, _mb,
/// _gb, _kib, _mib, _gib. An empty field of update or of a size is 0. Errors, all of them at once:
/// those of CsvReader; no header; an unknown, repeated or missing column; a row that is longer or
/// shorter than the header; a layer without a name or with the name of another; a field that is not
/// a quantity; no layer; more than kMaxLayers.
Result<std::vector<CsvLayer>> parse_csv_layers(const std::shared_ptr<const Source>& source,
                                               CsvTimes times);

/// The same from a file.
Result<std::vector<CsvLayer>> read_csv_layers(const std::string& path, CsvTimes times);

/// The table as a model: a chain in the order of the rows, named after the file. Its batch is
/// unknown.
Result<Model> parse_csv_profile(const std::shared_ptr<const Source>& source);

/// The same from a file.
Result<Model> read_csv_profile(const std::string& path);

}  // namespace plumbline
