// Kernels from the tables of aiconfigurator: each file is of one kind, which its header tells.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "models/tables/csv_table.h"
#include "models/tables/imported_kernels.h"

namespace plumbline {
namespace {

/// A number format by aiconfigurator's name; nothing for those that no table holds.
std::optional<NumberFormat> format_of(const std::string& word) {
  if (word == "bfloat16") return NumberFormat::bf16;
  if (word == "float16" || word == "half") return NumberFormat::fp16;
  if (word == "fp8") return NumberFormat::fp8;
  return std::nullopt;
}

class TableReader {
 public:
  TableReader(const CsvTable& table, ImportedKernels& imported)
      : table_(table),
        imported_(imported),
        time_(table.has("latency_ms") ? "latency_ms" : "latency") {}

  std::optional<Diagnostics> read() {
    using Read = void (TableReader::*)(const CsvLine&);
    Read read_line = nullptr;
    if (table_.has("gemm_dtype") && has({"m", "n", "k"})) read_line = &TableReader::read_product;
    if (table_.has("attn_dtype") && has({"batch_size", "isl", "num_heads", "num_key_value_heads"}))
      read_line = &TableReader::read_attention;
    if (table_.has("nccl_dtype") && has({"op_name", "num_gpus", "message_size"}))
      read_line = &TableReader::read_collective;
    if (table_.has("moe_dtype")) read_line = &TableReader::leave_out_experts;
    if (table_.has("mla_dtype") || (table_.has("tp_size") && table_.has("isl")))
      read_line = &TableReader::leave_out_latent;
    if (!read_line || !table_.has(time_)) {
      return Diagnostics{input_error(
          table_.header_mark(), "the header is of no table of aiconfigurator that is known",
          "gemm_dtype,m,n,k,latency; batch_size,isl,num_heads,num_key_value_heads,attn_dtype,"
          "latency; or op_name,nccl_dtype,num_gpus,message_size,latency")};
    }
    Diagnostics problems = table_.each([&](const CsvLine& line) { (this->*read_line)(line); });
    if (!problems.empty()) return problems;
    return std::nullopt;
  }

 private:
  bool has(std::initializer_list<const char*> columns) const {
    for (const char* column : columns) {
      if (!table_.has(column)) return false;
    }
    return true;
  }

  /// Adds a row, unless its time is wrong. Times are in ms.
  void add(const CsvLine& line, const KernelKey& key) {
    const auto time = line.positive(time_);
    if (time)
      line.errors(
          imported_.add({.key = key, .seconds = *time * 1e-3, .how = line.text("kernel_source")}));
  }

  void read_product(const CsvLine& line) {
    const std::string dtype = line.text("gemm_dtype");
    const auto format = format_of(dtype);
    if (!format) return imported_.leave_out("products in " + dtype);
    const auto m = line.count("m"), n = line.count("n"), k = line.count("k");
    if (!m || !n || !k) return;
    KernelKey key;
    key.group.format = *format;
    key.sizes = {*m, *n, *k, 1, 1};
    add(line, key);
  }

  void read_attention(const CsvLine& line) {
    const std::string dtype = line.text("attn_dtype");
    const auto format = format_of(dtype);
    if (!format || *format == NumberFormat::fp8)
      return imported_.leave_out("attention in " + dtype);
    if (line.has("kv_cache_dtype") && line.text("kv_cache_dtype") != dtype)
      return imported_.leave_out("attention over keys in " + line.text("kv_cache_dtype"));
    if (line.number_or_zero("window_size") > 0) return imported_.leave_out("attention in a window");
    if (line.number_or_zero("step") > 0) return imported_.leave_out("attention behind a prefix");
    const auto batch = line.count("batch_size"), tokens = line.count("isl");
    const auto heads = line.count("num_heads");
    const bool shares = line.text("num_key_value_heads") != "0";  // 0 = as many as heads
    const auto key_heads = shares ? line.count("num_key_value_heads") : heads;
    constexpr std::int64_t usual_size = 128;  // of tables without the column
    const auto size = table_.has("head_dim") ? line.count("head_dim") : usual_size;
    if (!batch || !tokens || !heads || !key_heads || !size) return;
    KernelKey key;
    key.group = {
        .kernels = KernelClass::sdpa, .format = *format, .query_size = *size, .value_size = *size};
    key.sizes = {*batch, *tokens, *tokens, *heads, *key_heads};
    add(line, key);
  }

  /// Messages count numbers, not bytes: of the whole tensor, as nccl-tests count them.
  void read_collective(const CsvLine& line) {
    constexpr std::array<std::pair<std::string_view, CollectiveKind>, 4> names = {
        {{"all_reduce", CollectiveKind::all_reduce},
         {"all_gather", CollectiveKind::all_gather},
         {"reduce_scatter", CollectiveKind::reduce_scatter},
         {"alltoall", CollectiveKind::all_to_all}}};
    const std::string name = line.text("op_name");
    const auto devices = line.count("num_gpus"), numbers = line.count("message_size");
    if (!devices || !numbers) return;
    const std::string dtype = line.text("nccl_dtype");
    const std::int64_t width = dtype == "half" ? 2 : dtype == "int8" ? 1 : 0;
    if (width == 0) return imported_.leave_out("collectives in " + dtype);
    KernelKey key;
    key.group.kernels = KernelClass::collectives;
    key.group.devices = *devices;
    key.sizes[0] = *numbers * width;
    for (const auto& [known, kind] : names) {
      if (name != known) continue;
      key.group.collective = kind;
      // A device does not send its own part.
      if (kind == CollectiveKind::all_to_all)
        key.sizes[0] = std::max<std::int64_t>(1, key.sizes[0] / *devices * (*devices - 1));
      return add(line, key);
    }
    imported_.leave_out("collectives: " + name);
  }

  void leave_out_experts(const CsvLine&) {
    imported_.leave_out("layers of experts, which are several kernels in one time");
  }
  void leave_out_latent(const CsvLine&) {
    imported_.leave_out("latent attention, which is more than one kernel");
  }

  const CsvTable& table_;
  ImportedKernels& imported_;
  std::string time_;
};

}  // namespace

std::optional<Diagnostics> import_aiconfigurator_kernels(const std::string& path,
                                                         ImportedKernels& imported) {
  const auto table = CsvTable::open(path);
  if (!table) return table.problems();
  return TableReader(*table, imported).read();
}

}  // namespace plumbline
