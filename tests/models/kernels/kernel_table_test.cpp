// Tables of kernels: read, written, and refused with what is wrong.
//
// SPDX-License-Identifier: MIT
#include "models/kernels/kernel_table.h"

#include <doctest/doctest.h>

#include <string>

#include "models/kernels/kernel_table_reader.h"
#include "models/kernels/kernel_table_writer.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

constexpr const char* kHead = "version: 1\nkind: kernels\ndevice: NVIDIA H100 80GB HBM3\n";

Result<KernelTable> parse(const std::string& rest) {
  return parse_kernel_table(test::text_source("h100.kernels.yaml", kHead + rest));
}

std::string first_problem(const std::string& rest) {
  const auto table = parse(rest);
  return table ? "" : to_text(table.problems().front());
}

constexpr const char* kWhole = R"(
provenance: {date: 2026-11-27, tool: plumbline, clock: {burst: 1980 MHz, sustained: 1500 MHz}}
closure: {gemm: 1.07, sdpa: 1.03, from: [two blocks]}
launch: {gap: 0.95 us, per_op: 1.9 us, host_per_op: 0 us}
gemm:
  - [bf16, forward, 4096, 57344, 8192, TN, none, 5.42 ms, 0.004, cublaslt]
  - [bf16, weights, 57344, 8192, 4096, NT, fp32, 5.9 ms]
grouped:
  - [bf16, input, 8, 512, 4096, 7168, NN, none, 640 us]
batched:
  - [fp16, forward, 96, 2048, 2048, 128, TN, none, 90 us]
sdpa:
  - [bf16, backward, 1, 4096, 8192, 32, 8, 128, 128, true, 1.2 ms, 0.01, cudnn]
memory:
  - [norm, backward, 8192, 4096, 61 us]
collectives:
  - [all_gather, 8, server, 64 MiB, 190 us, nccl]
)";

TEST_CASE("a table is read with all that it says") {
  const auto table = parse(kWhole);
  REQUIRE(table);
  CHECK(table->device == "NVIDIA H100 80GB HBM3");
  CHECK(table->provenance.at("tool") == "plumbline");
  CHECK(table->clock.at("sustained") == "1500 MHz");
  CHECK(table->closure.of(KernelClass::grouped) == 1.07);
  CHECK(table->closure.of(KernelClass::memory) == std::nullopt);
  REQUIRE(table->launch);
  CHECK(table->launch->seconds() == doctest::Approx(1.9e-6));
  REQUIRE(table->rows.size() == 7);
  const ProductKernel product{.m = 4096, .n = 57344, .k = 8192};
  CHECK(table->rows[0].key == key_of(product, Accumulation::fp32));
  CHECK(table->rows[0].how == "cublaslt");
  const ProductKernel gradient{.pass = KernelPass::weights, .m = 57344, .n = 8192, .k = 4096};
  CHECK(table->rows[1].key == key_of(gradient, Accumulation::fp32));
  const ProductKernel experts{
      .pass = KernelPass::input, .m = 512, .n = 4096, .k = 7168, .batch = 8, .grouped = true};
  CHECK(table->rows[2].key == key_of(experts, Accumulation::none));
  const AttentionKernel attention{true, 1, 4096, 8192, 32, 8, 128, 128};
  CHECK(table->rows[4].key == key_of(attention, Accumulation::none));
  const MemoryKernel norm{
      .kind = MemoryKind::norm, .pass = KernelPass::input, .rows = 8192, .columns = 4096};
  CHECK(table->rows[5].key == key_of(norm, Accumulation::none));
  const CollectiveKernel gather{.kind = CollectiveKind::all_gather,
                                .devices = 8,
                                .near = 8,
                                .bytes = std::int64_t{64} << 20U};
  CHECK(table->rows[6].key == key_of(gather, Accumulation::none));
}

TEST_CASE("a written table is read back as it was") {
  const auto table = parse(kWhole);
  REQUIRE(table);
  const std::string text = kernel_table_yaml(*table);
  const auto again = parse_kernel_table(test::text_source("again.yaml", text));
  REQUIRE(again);
  CHECK(again->rows == table->rows);
  CHECK(again->provenance == table->provenance);
  CHECK(again->clock == table->clock);
  CHECK(again->closure.from == table->closure.from);
  CHECK(kernel_table_yaml(*again) == text);
}

TEST_CASE("memory-bound kernels are told apart by the bytes of a number") {
  const auto key = [](NumberFormat format) {
    return key_of(MemoryKernel{.kind = MemoryKind::norm, .rows = 2, .columns = 3, .format = format},
                  Accumulation::none);
  };
  REQUIRE(key(NumberFormat::bf16));
  CHECK(key(NumberFormat::fp16) == key(NumberFormat::bf16));
  REQUIRE(key(NumberFormat::fp32));
  CHECK(key(NumberFormat::fp32) != key(NumberFormat::bf16));
  CHECK_FALSE(key(NumberFormat::fp8));
  const auto table = parse(
      "memory:\n"
      "  - [norm, forward, 2, 3, 1 us, 0.1, own]\n"
      "  - [norm, forward, 2, 3, 2 us, 0, \"\", fp32]\n"
      "  - [norm, forward, 2, 4, 2 us, 0, own, fp16]\n");
  REQUIRE(table);
  CHECK(table->rows[0].key == key(NumberFormat::bf16));
  CHECK(table->rows[1].key == key(NumberFormat::fp32));
  CHECK(table->rows[2].key.group.format == NumberFormat::bf16);
  // Only what is not usual is written.
  const std::string text = kernel_table_yaml(*table);
  CHECK(text.find("  - [norm, forward, 2, 3, 1 us, 0.1, own]\n") != std::string::npos);
  CHECK(text.find("  - [norm, forward, 2, 3, 2 us, 0, \"\", fp32]\n") != std::string::npos);
  const auto again = parse_kernel_table(test::text_source("again.yaml", text));
  REQUIRE(again);
  CHECK(again->rows == table->rows);
}

TEST_CASE("rows that no kernel of a layer has are known as such") {
  const auto reason = [](const std::string& row) {
    const auto table = parse(row);
    REQUIRE_MESSAGE(table, (table ? "" : to_text(table.problems())));
    return std::string(why_never_launched(table->rows.front().key));
  };
  CHECK(reason("gemm: [[bf16, forward, 1, 2, 3, TN, fp32, 1 us]]") ==
        "products that are added to a sum, but are not for the weights");
  CHECK(reason("batched: [[bf16, forward, 1, 1, 2, 3, TN, none, 1 us]]") ==
        "batched products of which there is one: gemm has those");
  CHECK(reason("sdpa: [[bf16, forward, 1, 2, 2, 1, 1, 64, 64, false, 1 us]]") ==
        "attention that is not causal");
  CHECK(reason("sdpa: [[bf16, forward, 1, 4, 2, 1, 1, 64, 64, true, 1 us]]") ==
        "attention with fewer keys than queries");
  CHECK(reason("memory: [[norm, weights, 1, 2, 1 us]]") ==
        "memory-bound kernels for the weights, other than lookup");
  CHECK(reason("collectives: [[all_reduce, 1, server, 1 MiB, 1 us]]") ==
        "collectives of one device");
  const auto whole = parse(kWhole);
  REQUIRE(whole);
  for (const KernelRow& row : whole->rows) CHECK(why_never_launched(row.key).empty());
  CHECK(reason("memory: [[lookup, weights, 1, 2, 1 us]]").empty());
  CHECK(reason("memory: [[norm, forward, 1, 2, 1 us, 0, own, fp8]]") ==
        "memory-bound kernels over numbers of a byte");
  CHECK(reason("memory: [[norm, forward, 1, 2, 1 us, 0, own, fp32]]").empty());
  CHECK(reason("sdpa: [[fp8, forward, 1, 2, 2, 1, 1, 64, 64, true, 1 us]]").empty());  // dtype: fp8
}

TEST_CASE("rows that are wrong are refused with their place and what is wanted") {
  CHECK(first_problem("gemm:\n  - [bf16, forward, 1, 2, 3, TN, none]\n") ==
        "h100.kernels.yaml:5:5: error: gemm[0] has 7 fields, where 8 to 10 are wanted\n"
        "    5 |   - [bf16, forward, 1, 2, 3, TN, none]\n"
        "      |     ^\n"
        "  help: dtype, pass, m, n, k, layout, accumulate, time, spread, how\n");
  const auto said = [](const std::string& rest, const std::string& what) {
    const std::string text = first_problem(rest);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
  };
  said("gemm: [[bf17, forward, 1, 2, 3, TN, none, 1 us]]", "did you mean 'bf16'");
  said("gemm: [[bf16, dgrad, 1, 2, 3, TN, none, 1 us]]", "did you mean 'input'?");
  said("sdpa: [[bf16, input, 1, 2, 2, 1, 1, 64, 64, true, 1 us]]", "one of forward, backward");
  said("memory: [[nrom, forward, 1, 2, 1 us]]", "did you mean 'norm'?");
  said("collectives: [[all_reduce, 8, rack, 1 MiB, 1 us]]", "one of server, network");
  said("gemm: [[bf16, forward, 0, 2, 3, TN, none, 1 us]]", "gemm[0].m is 0");
  said("gemm: [[bf16, forward, 1, 2, 3, TN, none, 0 us]]", "gemm[0].time is 0");
  said("gemm: [[bf16, forward, 1, 2, 3, TN, none, 12]]", "gemm[0].time is '12'");
  said("closure: {gemm: 0}", "closure.gemm is 0");
  said("gem: []", "did you mean 'gemm'?");
  said("gemm: {m: 1}", "gemm is no list of rows");
}

TEST_CASE("a second row with the same key is refused") {
  const std::string text = first_problem(
      "gemm:\n"
      "  - [bf16, forward, 1, 2, 3, TN, none, 1 us]\n"
      "  - [bf16, forward, 1, 2, 3, NN, none, 2 us]\n");
  CAPTURE(text);
  CHECK(text.find("gemm[1] has the sizes of another row") != std::string::npos);
  CHECK(text.find("the first is on line 5") != std::string::npos);
}

}  // namespace
}  // namespace plumbline
