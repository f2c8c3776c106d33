// Kernels from a CSV of our own columns, as a calibration writes it.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tables/csv_table.h"
#include "models/tables/imported_kernels.h"

namespace plumbline {
namespace {

constexpr std::array<std::string_view, 4> kNeeded = {"kind", "dtype", "pass", "us"};
constexpr std::array<std::string_view, 12> kKnown = {
    "kind", "dtype", "pass", "a", "b", "c", "d", "e", "f", "us", "spread", "how"};

/// The names of kernels that move: a calibration's, and a table's.
constexpr std::array<std::pair<std::string_view, MemoryKind>, 8> kMemoryNames = {
    {{"swiglu", MemoryKind::activation},
     {"gelu", MemoryKind::activation},
     {"cross_entropy", MemoryKind::loss},
     {"rope", MemoryKind::rotation},
     {"embedding", MemoryKind::lookup},
     {"router", MemoryKind::routing},
     {"quantise", MemoryKind::cast},
     {"add", MemoryKind::sum}}};

/// Keys of a table's provenance that say something else than a column of these names.
constexpr std::array<std::string_view, 5> kOwnKeys = {"clock", "file", "format", "source", "tool"};

/// Kinds that are timed, but are no kernel of a layer.
constexpr std::array<std::string_view, 4> kNotOfLayers = {"copy", "adamw", "optimizer", "grad_add"};

constexpr std::string_view kKinds =
    "one of gemm, grouped, batched, sdpa-..., block-..., norm, swiglu, cross_entropy, copy, adamw, "
    "or a collective: all_reduce, all_gather, reduce_scatter, all_to_all";

template <std::size_t Count>
std::optional<std::size_t> index_in(const std::array<std::string_view, Count>& words,
                                    std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - words.begin());
}

std::optional<MemoryKind> memory_kind(const std::string& word) {
  for (const auto& [name, kind] : kMemoryNames) {
    if (word == name) return kind;
  }
  const auto at = index_in(kMemoryKinds, word);
  return at ? std::optional(static_cast<MemoryKind>(*at)) : std::nullopt;
}

/// One line after the other.
class LineReader {
 public:
  explicit LineReader(ImportedKernels& imported) : imported_(imported) {}

  void read(const CsvLine& line) {
    const std::string kind = line.text("kind");
    if (!line.has("us")) return imported_.leave_out("without a time");
    if (kind.starts_with("block-")) return imported_.leave_out("blocks, which are no kernels");
    if (index_in(kNotOfLayers, kind)) return imported_.leave_out("no kernels of a layer: " + kind);
    if (kind == "gemm") return read_product(line, KernelClass::gemm);
    if (kind == "grouped" || kind == "grouped_gemm")
      return read_product(line, KernelClass::grouped);
    if (kind == "batched") return read_product(line, KernelClass::batched);
    if (kind == "sdpa" || kind.starts_with("sdpa-")) return read_attention(line, kind);
    if (const auto at = index_in(kCollectiveKinds, kind))
      return read_collective(line, static_cast<CollectiveKind>(*at));
    if (const auto memory = memory_kind(kind)) return read_memory(line, *memory);
    line.error("kind", fmt::format("is '{}', which is no kernel that is known", clipped(kind)),
               std::string(kKinds));
  }

 private:
  static bool read_format(const CsvLine& line, KernelGroup& group) {
    const auto at = index_in(kNumberFormats, line.text("dtype"));
    if (!at) {
      line.error("dtype", fmt::format("is '{}'", clipped(line.text("dtype"))),
                 fmt::format("one of {}", fmt::join(kNumberFormats, ", ")));
      return false;
    }
    group.format = static_cast<NumberFormat>(*at);
    return true;
  }

  bool read_pass(const CsvLine& line, KernelGroup& group) {
    const bool of_product = is_product(group.kernels);
    const std::string word = line.text("pass");
    is_both_ = word == "fwd+bwd" && !of_product;
    if (word == "fwd" || is_both_) {
      group.pass = KernelPass::forward;
    } else if (word == (of_product ? "dgrad" : "bwd")) {
      group.pass = KernelPass::input;
    } else if (word == "wgrad" && group.kernels != KernelClass::sdpa) {
      group.pass = KernelPass::weights;
    } else {
      line.error("pass", fmt::format("is '{}'", clipped(word)),
                 of_product ? "one of fwd, dgrad, wgrad" : "one of fwd, bwd, fwd+bwd");
      return false;
    }
    return true;
  }

  /// Reads sizes of columns a, b, ...
  static bool read_sizes(const CsvLine& line, std::size_t count, KernelKey& key) {
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) {
      const auto size = line.count(std::string(1, static_cast<char>('a' + i)));
      all = all && size;
      if (size) key.sizes[i] = *size;
    }
    return all;
  }

  void add(const CsvLine& line, const KernelKey& key, std::string how) {
    const auto time = line.positive("us");
    const double spread = line.number_or_zero("spread");
    if (!time) return;
    TimedKernel kernel{key, *time * 1e-6, std::move(how), line.text("layout"), spread};
    if (!is_both_) return line.errors(imported_.add(kernel));
    line.errors(imported_.add_with_backward(kernel));
  }

  void read_product(const CsvLine& line, KernelClass kernels) {
    KernelKey key;
    key.group.kernels = kernels;
    bool good = read_format(line, key.group);
    good = read_pass(line, key.group) && good;
    good = read_sizes(line, size_count(kernels), key) && good;
    if (line.has("accumulate")) {
      const auto at = index_in(kAccumulations, line.text("accumulate"));
      if (!at)
        line.error("accumulate", fmt::format("is '{}'", clipped(line.text("accumulate"))),
                   fmt::format("one of {}", fmt::join(kAccumulations, ", ")));
      good = good && at;
      if (at) key.group.accumulation = static_cast<Accumulation>(*at);
    }
    if (good) add(line, key, line.text("how"));
  }

  /// Reads whether attention is causal, as it is where nothing is said.
  static bool read_causal(const CsvLine& line, KernelGroup& group) {
    const std::string word = lower_case(line.text("causal"));
    group.is_causal = word.empty() || word == "1" || word == "true";
    if (group.is_causal || word == "0" || word == "false") return true;
    line.error("causal", fmt::format("is '{}'", clipped(line.text("causal"))),
               "1 or true, 0 or false");
    return false;
  }

  /// a to f: batch, queries, heads, heads of keys, sizes of heads. A column `keys`, if it is there
  /// and filled, has the keys of a sample whose queries are shared; a column `causal` may say
  /// false.
  void read_attention(const CsvLine& line, const std::string& kind) {
    KernelKey key;
    key.group.kernels = KernelClass::sdpa;
    bool good = read_format(line, key.group);
    good = read_pass(line, key.group) && good;
    good = read_causal(line, key.group) && good;
    std::array<std::optional<std::int64_t>, 6> sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = line.count(std::string(1, static_cast<char>('a' + i)));
      good = good && sizes[i];
    }
    const auto keys = line.has("keys") ? line.count("keys") : sizes[1];
    if (!good || !keys) return;
    key.sizes = {*sizes[0], *sizes[1], *keys, *sizes[2], *sizes[3]};
    key.group.query_size = *sizes[4];
    key.group.value_size = *sizes[5];
    std::string how = line.text("how");
    if (kind.size() > 5) how = how.empty() ? kind.substr(5) : kind.substr(5) + ' ' + how;
    add(line, key, std::move(how));
  }

  void read_memory(const CsvLine& line, MemoryKind kind) {
    KernelKey key;
    key.group.kernels = KernelClass::memory;
    key.group.memory = kind;
    KernelGroup of_line;
    bool good = read_format(line, of_line);
    good = read_pass(line, key.group) && good;
    good = read_sizes(line, 2, key) && good;
    if (!good) return;
    const auto format = memory_format(of_line.format);
    if (!format) return imported_.leave_out("memory-bound, over numbers of a byte");
    key.group.format = *format;
    add(line, key, line.text("how"));
  }

  /// a devices, b bytes; a column `scope` may say network.
  void read_collective(const CsvLine& line, CollectiveKind kind) {
    KernelKey key;
    key.group.kernels = KernelClass::collectives;
    key.group.collective = kind;
    const auto devices = line.count("a");
    const auto bytes = line.count("b");
    const std::string scope = line.text("scope");
    if (!scope.empty() && scope != "server" && scope != "network")
      return line.error("scope", fmt::format("is '{}'", clipped(scope)), "server or network");
    if (!devices || !bytes) return;
    key.group.devices = *devices;
    key.group.is_on_network = scope == "network";
    key.sizes[0] = *bytes;
    is_both_ = false;
    add(line, key, line.text("how"));
  }

  ImportedKernels& imported_;
  bool is_both_ = false;  ///< Whether the line is of a forward with its backward.
};

/// The columns that no row of a table holds.
class FurtherColumns {
 public:
  explicit FurtherColumns(const CsvTable& table) {
    constexpr std::array<std::string_view, 7> of_rows = {
        "keys", "causal", "layout", "accumulate", "scope", "per_layer", "modelled_us"};
    for (const std::string& column : table.header()) {
      if (!column.empty() && !index_in(kKnown, column) && !index_in(of_rows, column))
        names_.push_back(column);
    }
  }

  void keep(const CsvLine& line, ImportedKernels& imported) const {
    for (const std::string& name : names_)
      imported.add_provenance(index_in(kOwnKeys, name) ? "column " + name : name, line.text(name));
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::optional<Diagnostics> import_csv_kernels(const std::string& path, ImportedKernels& imported) {
  const auto table = CsvTable::open(path);
  if (!table) return table.problems();
  for (const std::string_view column : kNeeded) {
    if (!table->has(std::string(column)))
      return Diagnostics{input_error(table->header_mark(),
                                     fmt::format("the table has no column '{}'", column),
                                     "kind,dtype,pass,a,b,c,d,e,f,us,spread,how")};
  }
  LineReader reader(imported);
  const FurtherColumns further(*table);
  Diagnostics problems = table->each([&](const CsvLine& line) {
    reader.read(line);
    further.keep(line, imported);
  });
  if (!problems.empty()) return problems;
  return std::nullopt;
}

}  // namespace plumbline
