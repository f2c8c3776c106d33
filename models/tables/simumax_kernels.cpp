// Kernels from a system file of SimuMax: efficiencies by shape, and lines fitted to collectives.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_tree.h"
#include "base/quantity.h"
#include "models/tables/imported_kernels.h"

namespace plumbline {
namespace {

using Fields = std::map<std::string, std::string>;

/// "b=1, m=4096, layout=TN" by name.
Fields fields_of(const std::string& shape) {
  Fields fields;
  std::size_t begin = 0;
  while (begin < shape.size()) {
    const std::size_t end = std::min(shape.find(", ", begin), shape.size());
    const std::string field = shape.substr(begin, end - begin);
    const std::size_t equals = std::min(field.find('='), field.size());
    fields[field.substr(0, equals)] = equals < field.size() ? field.substr(equals + 1) : "";
    begin = end + 2;
  }
  return fields;
}

/// The collectives to which SimuMax fits lines, by its names.
constexpr std::array<std::pair<std::string_view, CollectiveKind>, 4> kFittedCollectives = {
    {{"all_reduce", CollectiveKind::all_reduce},
     {"all_gather", CollectiveKind::all_gather},
     {"reduce_scatter", CollectiveKind::reduce_scatter},
     {"all2all", CollectiveKind::all_to_all}}};

/// The GiB that SimuMax counts rates in: compute_net_op_time() of its core/config.py.
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

class SystemReader {
 public:
  explicit SystemReader(ImportedKernels& imported) : imported_(imported) {}

  std::optional<Diagnostics> read(YamlNode& root) {
    if (const YamlNode* name = child(root, "sys_name"))
      imported_.add_provenance("system", name->text);
    YamlNode* accelerator = child(root, "accelerator");
    YamlNode* ops = accelerator ? child(*accelerator, "op") : nullptr;
    if (!ops) {
      return Diagnostics{input_error(root.mark, "the file has no accelerator with an op",
                                     "a file of configs/system of SimuMax")};
    }
    read_shapes(*ops, "matmul", NumberFormat::bf16, &SystemReader::read_product);
    read_shapes(*ops, "fp8_matmul", NumberFormat::fp8, &SystemReader::read_product);
    read_shapes(*ops, "group_matmul", NumberFormat::bf16, &SystemReader::read_grouped);
    read_shapes(*ops, "fp8_group_matmul", NumberFormat::fp8, &SystemReader::read_grouped);
    read_shapes(*ops, "sdp_fwd", NumberFormat::bf16, &SystemReader::read_attention);
    is_backward_ = true;
    read_shapes(*ops, "sdp_bwd", NumberFormat::bf16, &SystemReader::read_attention);
    if (const YamlNode* rates = child(*accelerator, "bandwidth")) {
      for (std::size_t i = 0; i < rates->entries.size(); ++i)
        imported_.leave_out("bandwidths of memory-bound kernels, without the sizes measured");
    }
    if (YamlNode* networks = child(root, "networks")) read_networks(*networks);
    if (!problems_.empty()) return std::move(problems_);
    return std::nullopt;
  }

 private:
  using ReadShape = void (SystemReader::*)(const Fields& fields, const Mark& mark, double rate);

  static YamlNode* child(YamlNode& map, std::string_view key) {
    YamlNode::Entry* entry = entry_of(map, key);
    return entry ? &entry->value : nullptr;
  }

  void error(const Mark& mark, std::string message, std::string help) {
    problems_.push_back(input_error(mark, std::move(message), std::move(help)));
  }

  /// Adds a row. Returns whether a table can hold it.
  bool add(const Mark& mark, const TimedKernel& kernel) {
    Diagnostics wrong = located(imported_.add(kernel), mark);
    problems_.insert(problems_.end(), wrong.begin(), wrong.end());
    return wrong.empty();
  }

  /// A number above 0 that the map has to have.
  std::optional<double> positive(YamlNode& map, std::string_view key, std::string_view name) {
    const YamlNode* node = child(map, key);
    const auto parsed = parse_real(node ? node->text : "");
    if (parsed.value && *parsed.value > 0) return parsed.value;
    error(node ? node->mark : map.mark,
          node ? fmt::format("the {} of {} is '{}'", key, name, clipped(node->text))
               : fmt::format("{} has no {}", name, key),
          "a number above 0");
    return std::nullopt;
  }

  /// A number that the map may have.
  double number(YamlNode& map, std::string_view key, double otherwise) {
    const YamlNode* node = child(map, key);
    if (!node || node->kind == YamlNode::Kind::null) return otherwise;
    const auto parsed = parse_real(node->text);
    if (!parsed.value)
      error(node->mark, fmt::format("{} is '{}'", key, clipped(node->text)), "a number from 0 on");
    return parsed.value.value_or(otherwise);
  }

  /// Reads the shapes of an op: efficiency x peak is the rate, in FLOP/s.
  void read_shapes(YamlNode& ops, std::string_view name, NumberFormat format, ReadShape read_one) {
    YamlNode* op = child(ops, name);
    YamlNode* shapes = op ? child(*op, "accurate_efficient_factor") : nullptr;
    if (!shapes || shapes->kind == YamlNode::Kind::null) return;
    if (shapes->kind != YamlNode::Kind::map)
      return imported_.leave_out("ops whose accurate_efficient_factor is no map of shapes");
    const auto tflops = positive(*op, "tflops", name);
    if (!tflops) return;
    format_ = format;
    for (const YamlNode::Entry& entry : shapes->entries) {
      const auto efficiency = parse_real(entry.value.text);
      if (!efficiency.value || *efficiency.value <= 0) {
        error(entry.value.mark, fmt::format("the efficiency is '{}'", clipped(entry.value.text)),
              "the share of tflops that the shape reaches, above 0");
      } else {
        (this->*read_one)(fields_of(entry.key), entry.mark, 1e12 * *tflops * *efficiency.value);
      }
    }
  }

  std::optional<std::int64_t> size(const Fields& fields, const std::string& name,
                                   const Mark& mark) {
    const auto found = fields.find(name);
    const auto parsed = parse_count(found == fields.end() ? "" : found->second);
    if (parsed.value && *parsed.value >= 1) return parsed.value;
    error(mark, fmt::format("the shape has no {} that is a whole number from 1 on", name),
          "as in \"b=1, m=4096, k=8192, n=10240, layout=TN, ...\"");
    return std::nullopt;
  }

  static std::string text(const Fields& fields, const std::string& name) {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }

  static Accumulation sum_of(const Fields& fields, const std::string& width) {
    if (text(fields, "accumulate") != "True") return Accumulation::none;
    return text(fields, width) == "fp32" ? Accumulation::fp32 : Accumulation::bf16;
  }

  /// TN is the forward, NN the gradient of the input, NT that of the weights: the layouts of
  /// Transformer Engine's general_gemm. In each, out[m, n] has depth k.
  void read_product(const Fields& fields, const Mark& mark, double rate) {
    const auto batch = size(fields, "b", mark), m = size(fields, "m", mark);
    const auto n = size(fields, "n", mark), k = size(fields, "k", mark);
    if (!batch || !m || !n || !k) return;
    const std::string layout = text(fields, "layout");
    KernelKey key;
    key.group.format = format_;
    if (layout == "NN") {
      key.group.pass = KernelPass::input;
    } else if (layout == "NT") {
      key.group.pass = KernelPass::weights;
    } else if (layout != "TN") {
      return error(mark, fmt::format("the layout is '{}'", clipped(layout)), "TN, NN or NT");
    }
    key.group.accumulation = sum_of(fields, "out_dtype");
    key.sizes = {*m, *n, *k, 1, 1};
    if (*batch > 1) {
      key.group.kernels = KernelClass::batched;
      key.sizes = {*batch, *m, *n, *k, 1};
    }
    add(mark, {key, flops(*batch, *m, *n, *k) / rate, "transformer-engine", layout});
  }

  /// M rows of each of ng experts, with matrices of N x K: all three passes are named by the
  /// forward's sizes.
  void read_grouped(const Fields& fields, const Mark& mark, double rate) {
    const auto groups = size(fields, "ng", mark), rows = size(fields, "M", mark);
    const auto outputs = size(fields, "N", mark), inputs = size(fields, "K", mark);
    if (!groups || !rows || !outputs || !inputs) return;
    const std::string stage = text(fields, "stage");
    KernelKey key;
    key.group.kernels = KernelClass::grouped;
    key.group.format = format_;
    if (stage == "fwd") {
      key.sizes = {*groups, *rows, *outputs, *inputs, 1};
    } else if (stage == "bwd_grad_act") {
      key.group.pass = KernelPass::input;
      key.sizes = {*groups, *rows, *inputs, *outputs, 1};
    } else if (stage == "bwd_grad_w") {
      key.group.pass = KernelPass::weights;
      key.group.accumulation = sum_of(fields, "main_grad_dtype");
      key.sizes = {*groups, *outputs, *inputs, *rows, 1};
    } else {
      return error(mark, fmt::format("the stage is '{}'", clipped(stage)),
                   "fwd, bwd_grad_act or bwd_grad_w");
    }
    add(mark, {key, flops(*groups, *rows, *outputs, *inputs) / rate, "transformer-engine"});
  }

  /// Causal attention, but its FLOPs count all pairs: 2 products forward, 5 backward. Queries, keys
  /// and values in one tensor are what SimuMax takes; apart they are left out.
  void read_attention(const Fields& fields, const Mark& mark, double rate) {
    const auto batch = size(fields, "batch", mark), tokens = size(fields, "seq_len", mark);
    const auto heads = size(fields, "head_num", mark);
    const auto key_heads = size(fields, "kv_head_num", mark);
    const auto query = size(fields, "qk_head_dim", mark), value = size(fields, "v_head_dim", mark);
    if (!batch || !tokens || !heads || !key_heads || !query || !value) return;
    if (text(fields, "qkv_contiguous") == "False")
      return imported_.leave_out("attention over queries, keys and values in tensors apart");
    KernelKey key;
    key.group = {.kernels = KernelClass::sdpa,
                 .format = format_,
                 .pass = is_backward_ ? KernelPass::input : KernelPass::forward,
                 .query_size = *query,
                 .value_size = *value};
    key.sizes = {*batch, *tokens, *tokens, *heads, *key_heads};
    const double products = is_backward_ ? 5 : 2;
    const double all = products * static_cast<double>(*batch) * static_cast<double>(*tokens) *
                       static_cast<double>(*tokens) * static_cast<double>(*heads) *
                       static_cast<double>(*query + *value);
    add(mark, {key, all / rate, "transformer-engine"});
  }

  static double flops(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
    return 2 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }

  /// The networks within a server; those between servers are data sheets.
  void read_networks(YamlNode& networks) {
    for (YamlNode::Entry& entry : networks.entries) {
      std::vector<std::int64_t> devices;
      if (entry.key == "high_intra_node") devices = {2, 4, 8};
      for (const std::int64_t count : {2, 4, 8}) {
        if (entry.key == fmt::format("intra_node_pcie_{}x", count)) devices = {count};
      }
      if (entry.value.kind != YamlNode::Kind::map) continue;
      YamlNode* ops = devices.empty() ? nullptr : measured_ops(entry.value);
      if (!ops) {
        imported_.leave_out("networks of which nothing was measured, or twice");
        continue;
      }
      const auto rate = network_rate(entry);
      if (!rate) continue;
      for (const std::int64_t count : devices) read_network(*ops, *rate, count);
    }
  }

  /// The ops of a network, if a line was fitted to one of them.
  static YamlNode* measured_ops(YamlNode& network) {
    YamlNode* ops = child(network, "op");
    if (!ops) return nullptr;
    for (const auto& [name, kind] : kFittedCollectives) {
      YamlNode* op = child(*ops, name);
      if (op && child(*op, "efficient_factor")) return ops;
    }
    return nullptr;
  }

  /// In bytes/s.
  std::optional<double> network_rate(YamlNode::Entry& network) {
    YamlNode* bandwidth = child(network.value, "bandwidth");
    if (!bandwidth) {
      error(network.mark, fmt::format("{} has no bandwidth", clipped(network.key)),
            "a map with its gbps");
      return std::nullopt;
    }
    const auto gbps = positive(*bandwidth, "gbps", network.key);
    if (!gbps) return std::nullopt;
    return *gbps * kGib;
  }

  /// Times at powers of two on the lines that were fitted: bytes that a device sends over the
  /// bandwidth, a time for each step, and a start (compute_net_op_time() of SimuMax's
  /// core/config.py).
  void read_network(YamlNode& ops, double rate, std::int64_t devices) {
    for (const auto& [name, kind] : kFittedCollectives) {
      YamlNode* op = child(ops, name);
      if (!op || !child(*op, "efficient_factor")) continue;
      const auto factor = positive(*op, "efficient_factor", name);
      if (!factor) continue;
      const double rounds = number(*op, "scale", 1);
      const double steps = rounds * static_cast<double>(devices - 1);
      const double start = steps * number(*op, "latency_us", 0) + fixed_us(*op, devices);
      const Line line{.kind = kind,
                      .devices = devices,
                      .sent = steps / static_cast<double>(devices),
                      .rate = rate * *factor,
                      .start_s = start * 1e-6};
      add_points(op->mark, line);
    }
  }

  /// The line that was fitted to a collective.
  struct Line {
    CollectiveKind kind;
    std::int64_t devices;
    double sent;  ///< Bytes that a device sends for each one of the whole tensor.
    double rate;  ///< Bytes/s.
    double start_s;
  };

  /// Adds times at powers of two, up to the first that no table holds.
  void add_points(const Mark& mark, const Line& line) {
    for (std::int64_t bytes = std::int64_t{1} << 16U; bytes <= std::int64_t{1} << 31U; bytes *= 2) {
      constexpr auto too_many = static_cast<double>(2 * kLargestQuantity);
      const double sent = static_cast<double>(bytes) * line.sent;
      KernelKey key;
      key.group.kernels = KernelClass::collectives;
      key.group.collective = line.kind;
      key.group.devices = line.devices;
      key.sizes[0] = line.kind == CollectiveKind::all_to_all
                         ? static_cast<std::int64_t>(std::min(too_many, sent))
                         : bytes;
      if (!add(mark, {key, sent / line.rate + line.start_s, "a fitted line"})) return;
    }
  }

  double fixed_us(YamlNode& op, std::int64_t devices) {
    const double all = number(op, "fixed_latency_us", 0);
    YamlNode* by_number = child(op, "fixed_latency_us_by_comm_num");
    return by_number ? number(*by_number, std::to_string(devices), all) : all;
  }

  ImportedKernels& imported_;
  NumberFormat format_ = NumberFormat::bf16;
  bool is_backward_ = false;
  Diagnostics problems_;
};

}  // namespace

std::optional<Diagnostics> import_simumax_kernels(const std::string& path,
                                                  ImportedKernels& imported) {
  auto root = read_json(path);
  if (!root) return root.problems();
  return SystemReader(imported).read(*root);
}

}  // namespace plumbline
