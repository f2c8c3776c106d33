// Tables of others: what becomes of their rows, and what of those that are wrong.
//
// SPDX-License-Identifier: MIT
#include "models/tables/imported_kernels.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>
#include <utility>

#include "models/kernels/kernel_table_reader.h"
#include "models/kernels/kernel_table_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_source.h"

namespace plumbline {
namespace {

using Import = std::optional<Diagnostics> (*)(const std::string&, ImportedKernels&);

ImportedKernels import(Import format, const std::string& text) {
  const test::TemporaryFolder folder;
  ImportedKernels imported;
  const auto problems = format(folder.file("file", text), imported);
  REQUIRE_MESSAGE(!problems, (problems ? to_text(*problems) : ""));
  imported.subtract_forwards();
  return imported;
}

std::string problem(Import format, const std::string& text) {
  const test::TemporaryFolder folder;
  ImportedKernels imported;
  const auto problems = format(folder.file("file", text), imported);
  REQUIRE(problems);
  const std::string all = to_text(*problems);
  return all.substr(all.find("file:") == std::string::npos ? 0 : all.find("file:"));
}

double seconds_of(const ImportedKernels& imported, const Kernel& kernel,
                  Accumulation accumulation = Accumulation::none) {
  const KernelRow* row = imported.find(*key_of(kernel, accumulation));
  REQUIRE(row);
  return seconds(row->time);
}

constexpr const char* kHeader = "kind,dtype,pass,a,b,c,d,e,f,us,spread,how,sm_mhz\n";

TEST_CASE("a CSV of our own columns becomes rows, and further columns provenance") {
  const ImportedKernels imported =
      import(&import_csv_kernels, std::string(kHeader) +
                                      "gemm,bf16,fwd,4096,8192,1024,,,,310.5,0.01,cublaslt,1755\n"
                                      "gemm,bf16,dgrad,4096,1024,8192,,,,300,,,1740\n"
                                      "sdpa-cudnn,bf16,fwd,2,4096,32,8,128,64,900,,,1980\n"
                                      "swiglu,bf16,bwd,4096,14336,,,,,120,,,1980\n"
                                      "all_gather,bf16,fwd,8,67108864,,,,,190,,,\n");
  CHECK(seconds_of(imported, ProductKernel{.m = 4096, .n = 8192, .k = 1024}) ==
        doctest::Approx(310.5e-6));
  CHECK(seconds_of(imported,
                   ProductKernel{.pass = KernelPass::input, .m = 4096, .n = 1024, .k = 8192}) ==
        doctest::Approx(300e-6));
  CHECK(seconds_of(imported, AttentionKernel{false, 2, 4096, 4096, 32, 8, 128, 64}) ==
        doctest::Approx(900e-6));
  CHECK(seconds_of(imported, MemoryKernel{.kind = MemoryKind::activation,
                                          .pass = KernelPass::input,
                                          .rows = 4096,
                                          .columns = 14336}) == doctest::Approx(120e-6));
  CHECK(seconds_of(imported, CollectiveKernel{.kind = CollectiveKind::all_gather,
                                              .devices = 8,
                                              .near = 8,
                                              .bytes = 67108864}) == doctest::Approx(190e-6));
  CHECK(ImportedKernels(imported).take().provenance.at("sm_mhz") == "1740 to 1980");
  CHECK(imported.left_out().empty());
}

TEST_CASE("a backward is what a time of both passes leaves beside the forward") {
  const ImportedKernels imported =
      import(&import_csv_kernels, std::string(kHeader) +
                                      "sdpa,bf16,fwd+bwd,1,4096,32,8,128,128,1500,,,\n"
                                      "sdpa,bf16,fwd,1,4096,32,8,128,128,400,,,\n"
                                      "norm,bf16,fwd+bwd,1024,1024,,,,,9,,,\n");
  CHECK(seconds_of(imported, AttentionKernel{true, 1, 4096, 4096, 32, 8, 128, 128}) ==
        doctest::Approx(1100e-6));
  CHECK(imported.left_out().at("forward and backward together, without the forward alone") == 1);
}

TEST_CASE("the forward of a time of both passes may be in any of the files") {
  const test::TemporaryFolder folder;
  const std::string both =
      folder.file("both", std::string(kHeader) + "sdpa,bf16,fwd+bwd,1,64,8,8,64,64,1500,,,\n");
  const std::string alone =
      folder.file("alone", std::string(kHeader) + "sdpa,bf16,fwd,1,64,8,8,64,64,400,,,\n");
  for (const auto& [first, second] : {std::pair{both, alone}, std::pair{alone, both}}) {
    ImportedKernels imported;
    REQUIRE_FALSE(import_csv_kernels(first, imported));
    REQUIRE_FALSE(import_csv_kernels(second, imported));
    const KernelTable table = imported.take();
    CHECK(imported.left_out().empty());
    REQUIRE(table.rows.size() == 2);
    CHECK(seconds(table.rows[1].time) == doctest::Approx(1100e-6));
  }
}

TEST_CASE("a backward is what is left beside the forward of the same library") {
  const std::string forwards =
      "sdpa-flash,bf16,fwd,1,64,8,8,64,64,300,,,\n"
      "sdpa-cudnn,bf16,fwd,1,64,8,8,64,64,200,,,\n";
  const std::string both = "sdpa-flash,bf16,fwd+bwd,1,64,8,8,64,64,1000,,,\n";
  const AttentionKernel backward{true, 1, 64, 64, 8, 8, 64, 64};
  for (const std::string& lines : {forwards + both, both + forwards}) {
    const ImportedKernels imported = import(&import_csv_kernels, kHeader + lines);
    CHECK(seconds_of(imported, backward) == doctest::Approx(700e-6));
    CHECK(imported.find(*key_of(backward, Accumulation::none))->how == "flash, less the forward");
  }
  const ImportedKernels other =
      import(&import_csv_kernels, kHeader + forwards.substr(forwards.find("sdpa-cudnn")) + both);
  CHECK(other.left_out().size() == 1);
  CHECK(other.left_out().at("forward and backward together, where the forward alone is of another "
                            "library") == 1);
}

TEST_CASE("times of both passes are left out for the reason that holds, and named by their rest") {
  const ImportedKernels imported = import(&import_csv_kernels,
                                          "kind,dtype,pass,a,b,c,d,e,f,us,causal\n"
                                          "norm,bf16,fwd,16,1024,,,,,9,\n"
                                          "norm,bf16,fwd+bwd,16,1024,,,,,9,\n"
                                          "norm,bf16,fwd,32,1024,,,,,9,\n"
                                          "norm,bf16,fwd+bwd,32,1024,,,,,9.001,\n"
                                          "sdpa,bf16,fwd,1,64,8,8,64,64,1,0\n"
                                          "sdpa,bf16,fwd+bwd,1,64,8,8,64,64,3,0\n");
  CHECK(imported.left_out().size() == 2);
  CHECK(imported.left_out().at(
            "forward and backward together, in no more time than the forward alone") == 1);
  CHECK(imported.left_out().at("no kernels of a layer: attention that is not causal") == 2);
  const MemoryKernel norm{
      .kind = MemoryKind::norm, .pass = KernelPass::input, .rows = 32, .columns = 1024};
  const KernelRow* rest = imported.find(*key_of(norm, Accumulation::none));
  REQUIRE(rest);
  CHECK(rest->time.count() == 1);
  CHECK(rest->how == "less the forward");
}

TEST_CASE("provenance has the smallest and largest values of all files, numbers by their value") {
  const test::TemporaryFolder folder;
  const auto csv = [&](const std::string& name, const std::string& rows) {
    return folder.file(name, "kind,dtype,pass,a,b,c,us,watts,driver,\n" + rows);
  };
  ImportedKernels imported;
  REQUIRE_FALSE(import_csv_kernels(csv("a",
                                       "gemm,bf16,fwd,1,2,3,1,9.75,v9,\n"
                                       "gemm,bf16,fwd,1,2,4,1,200,v9,a\n"),
                                   imported));
  REQUIRE_FALSE(import_csv_kernels(csv("b",
                                       "gemm,bf16,fwd,1,2,5,1,-5,580,\n"
                                       "gemm,bf16,fwd,1,2,6,1,,,\n"),
                                   imported));
  const KernelTable table = imported.take();
  CHECK(table.rows.size() == 4);
  CHECK(table.provenance.size() == 2);
  CHECK(table.provenance.at("watts") == "-5 to 200");
  CHECK(table.provenance.at("driver") == "580 to v9");
}

TEST_CASE("a column may say whether attention is causal, and no layer has what is not") {
  const std::string header = "kind,dtype,pass,a,b,c,d,e,f,us,causal,keys\n";
  const ImportedKernels imported =
      import(&import_csv_kernels, header +
                                      "sdpa,bf16,fwd,1,64,8,8,64,64,1,True,\n"
                                      "sdpa,bf16,fwd,2,64,8,8,64,64,1,1,\n"
                                      "sdpa,bf16,fwd,3,64,8,8,64,64,1,,128\n"
                                      "sdpa,bf16,fwd,4,64,8,8,64,64,1,0,\n"
                                      "sdpa,bf16,fwd,5,64,8,8,64,64,1,false,\n"
                                      "sdpa,bf16,fwd,6,64,8,8,64,64,1,,32\n");
  CHECK(imported.left_out().at("no kernels of a layer: attention that is not causal") == 2);
  CHECK(imported.left_out().at("no kernels of a layer: attention with fewer keys than queries") ==
        1);
  const KernelTable table = ImportedKernels(imported).take();
  CHECK(table.rows.size() == 3);
  CHECK(table.provenance.empty());
  CHECK(problem(&import_csv_kernels, header + "sdpa,bf16,fwd,1,64,8,8,64,64,1,maybe,\n")
            .find("file:2:32: error: causal is 'maybe'") == 0);
}

TEST_CASE("a CSV may begin with a byte-order mark, and has each column once") {
  const ImportedKernels imported = import(
      &import_csv_kernels, std::string("\xEF\xBB\xBF") + kHeader + "gemm,bf16,fwd,1,2,3,,,,1,,,\n");
  CHECK(ImportedKernels(imported).take().rows.size() == 1);
  CHECK(problem(&import_csv_kernels, "kind,dtype,pass,a,b,c,us,us\ngemm,bf16,fwd,1,2,3,1,2\n")
            .find("file:1:26: error: the column 'us' stands here a second time") == 0);
}

TEST_CASE("a column that is called as a key of tables is kept so that the table is read back") {
  const ImportedKernels imported = import(&import_csv_kernels,
                                          "kind,dtype,pass,a,b,c,d,e,f,us,clock,source\n"
                                          "gemm,bf16,fwd,1,2,3,,,,1,1980,here\n");
  KernelTable table = ImportedKernels(imported).take();
  table.device = "H100";
  CHECK(table.provenance.at("column clock") == "1980");
  CHECK(table.provenance.at("column source") == "here");
  const auto again =
      parse_kernel_table(test::text_source("again.kernels.yaml", kernel_table_yaml(table)));
  REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
  CHECK(again->provenance == table.provenance);
}

TEST_CASE("rows that no kernel of a layer has are left out and counted") {
  const ImportedKernels imported = import(&import_csv_kernels,
                                          "kind,dtype,pass,a,b,c,d,e,f,us,accumulate\n"
                                          "gemm,bf16,fwd,1,2,3,,,,1,fp32\n"
                                          "batched,bf16,fwd,1,1,2,3,,,1,\n"
                                          "norm,bf16,wgrad,1,2,,,,,1,\n"
                                          "gemm,bf16,wgrad,1,2,3,,,,1,fp32\n");
  CHECK(imported.left_out().size() == 3);
  CHECK(imported.left_out().at("no kernels of a layer: products that are added to a sum, but are "
                               "not for the weights") == 1);
  CHECK(ImportedKernels(imported).take().rows.size() == 1);
}

TEST_CASE("rows that the reader of tables would refuse are refused at their lines") {
  const auto said = [](const std::string& fields, const std::string& what) {
    const std::string text = problem(&import_csv_kernels, kHeader + fields);
    CAPTURE(text);
    CHECK(text.find("file:2:1: error: " + what) == 0);
  };
  said("gemm,bf16,fwd,1,2,3,,,,1e18,,,\n", "the time is 1000000000000 s");
  said("gemm,bf16,fwd,1,2,3,,,,1000000100000,,,\n", "the time is 1000000.1 s");
  said("gemm,bf16,fwd,1,2,3,,,,1e308,,,\n", "the time is 1e+302 s");
  said("gemm,bf16,fwd,1,2,3,,,,4e-4,,,\n", "the time is 4e-10 s");
  said("gemm,bf16,fwd,1,2,3,,,,5e-4,,,\n", "the time is 5e-10 s");
  said("gemm,bf16,fwd,1,2,3,,,,0.000999,,,\n", "the time is 9.99e-10 s");
  said("sdpa,bf16,fwd+bwd,1,2,3,3,4,5,1e18,,,\n", "the time is 1000000000000 s");
  said("gemm,bf16,fwd,1,2,1000000000001,,,,1,,,\n", "a size is 1000000000001");
  said("sdpa,bf16,fwd,1,2,3,3,4,1000000000001,1,,,\n", "a size is 1000000000001");
  said("gemm,bf16,fwd,1,2,3,,,,1,1001,,\n", "the spread is 1001");
  CHECK(problem(&import_aiconfigurator_kernels, "gemm_dtype,m,n,k,latency\nbfloat16,1,2,3,1e18\n")
            .find("file:2:1: error: the time is 1e+15 s") == 0);
}

TEST_CASE("what is read back has the largest sizes, times and spreads that are imported") {
  KernelTable table =
      import(&import_csv_kernels, std::string(kHeader) +
                                      "gemm,bf16,fwd,1,2,1000000000000,,,,1e12,1000,,\n"
                                      "all_gather,bf16,fwd,8,1000000000000000,,,,,1e-3,,,\n")
          .take();
  table.device = "H100";
  const auto again =
      parse_kernel_table(test::text_source("again.kernels.yaml", kernel_table_yaml(table)));
  REQUIRE_MESSAGE(again, (again ? "" : to_text(again.problems())));
  CHECK(again->rows == table.rows);
  CHECK(again->rows.back().time.count() == 1);
}

TEST_CASE("SimuMax without a rate is refused, at the op or the factor") {
  const auto said = [](const std::string& text, const std::string& what) {
    const std::string all = problem(&import_simumax_kernels, text);
    CAPTURE(all);
    CHECK(all.find(what) != std::string::npos);
  };
  const std::string shapes =
      "\"accurate_efficient_factor\": {\"b=1, m=1, k=2, n=3, layout=TN\": 0.5}";
  const auto products = [&](const std::string& tflops) {
    return "{\"accelerator\": {\"op\": {\"matmul\": {" + tflops + shapes + "}}}}";
  };
  said(products(""), "matmul has no tflops");
  said(products("\"tflops\": 0, "), "the tflops of matmul is '0'");
  said(products("\"tflops\": 1e-300, "), "the time is 2.4e+289 s");
  said(products("\"tflops\": 1e300, "), "the time is 0 s");
  const auto network = [](const std::string& gbps, const std::string& of_op) {
    return "{\"accelerator\": {\"op\": {}}, \"networks\": {\"high_intra_node\": {\"bandwidth\": "
           "{\"gbps\": " +
           gbps + "}, \"op\": {\"all2all\": {" + of_op + "}}}}}";
  };
  said(network("100", "\"efficient_factor\": 0"), "the efficient_factor of all2all is '0'");
  said(network("0", "\"efficient_factor\": 1"), "the gbps of high_intra_node is '0'");
  said(network("null", "\"efficient_factor\": 1"), "the gbps of high_intra_node is ''");
  said(network("1e-300", "\"efficient_factor\": 1"), "error: the time is ");
  said(network("100", "\"efficient_factor\": 1, \"scale\": 1e300"), "error: the time is ");
  said(network("100", "\"efficient_factor\": 1, \"scale\": 0, \"fixed_latency_us\": 1"),
       "a size is 0");
}

TEST_CASE("SimuMax's ops and networks of which nothing was measured are counted") {
  const ImportedKernels imported = import(&import_simumax_kernels, R"({
    "accelerator": {"op": {"matmul": {"tflops": 1000, "accurate_efficient_factor": 0.5},
                           "sdp_fwd": {"tflops": 1000, "accurate_efficient_factor": null}}},
    "networks": {"intra_with_pcie": true,
                 "high_intra_node": {"bandwidth": {"gbps": 0}, "op": {"all_reduce": {"scale": 2}}},
                 "intra_node_pcie_2x": {"bandwidth": {"gbps": 0}},
                 "inter_node": {"bandwidth": {"gbps": 200}, "op": {}}}})");
  CHECK(imported.left_out().size() == 2);
  CHECK(imported.left_out().at("ops whose accurate_efficient_factor is no map of shapes") == 1);
  CHECK(imported.left_out().at("networks of which nothing was measured, or twice") == 3);
}

TEST_CASE("rows that no table holds are counted by reason, and of doubled ones the fastest stays") {
  const ImportedKernels imported =
      import(&import_csv_kernels, std::string(kHeader) +
                                      "block-llama,bf16,fwd,1,4096,4096,32,8,14336,9000,,,\n"
                                      "copy,bf16,fwd,1000000,,,,,,12,,,\n"
                                      "gemm,bf16,fwd,1,2,3,,,,,,,\n"
                                      "gemm,bf16,fwd,4,5,6,,,,20,,a,\n"
                                      "gemm,bf16,fwd,4,5,6,,,,10,,b,\n"
                                      "gemm,bf16,fwd,4,5,6,,,,30,,c,\n");
  CHECK(imported.left_out().at("blocks, which are no kernels") == 1);
  CHECK(imported.left_out().at("no kernels of a layer: copy") == 1);
  CHECK(imported.left_out().at("without a time") == 1);
  CHECK(imported.left_out().at("slower, or not faster, than another row with the same sizes") == 2);
  CHECK(seconds_of(imported, ProductKernel{.m = 4, .n = 5, .k = 6}) == doctest::Approx(10e-6));
}

TEST_CASE("lines that are wrong are refused with their place and what is wanted") {
  const std::string line = std::string(kHeader);
  CHECK(problem(&import_csv_kernels, line + "gem,bf16,fwd,1,2,3,,,,1,,,\n")
            .find("file:2:1: error: kind is 'gem', which is no kernel that is known") == 0);
  CHECK(problem(&import_csv_kernels, line + "gemm,bf16,bwd,1,2,3,,,,1,,,\n")
            .find("one of fwd, dgrad, wgrad") != std::string::npos);
  CHECK(problem(&import_csv_kernels, line + "gemm,bf16,fwd,1,x,3,,,,1,,,\n")
            .find("file:2:17: error: b is 'x'") == 0);
  CHECK(problem(&import_csv_kernels, line + "gemm,bf16,fwd,1,2,3,,,,-1,,,\n").find("us is '-1'") !=
        std::string::npos);
  CHECK(problem(&import_csv_kernels, line + "gemm,bf16,fwd,1,2,3\n")
            .find("the line has 6 fields, and the header 13") != std::string::npos);
  CHECK(problem(&import_csv_kernels, "kind,dtype,us\n").find("the table has no column 'pass'") !=
        std::string::npos);
  CHECK(problem(&import_aiconfigurator_kernels, "a,b\n1,2\n")
            .find("the header is of no table of aiconfigurator") != std::string::npos);
}

TEST_CASE("aiconfigurator's tables, also gzip, become forwards with their times in ms") {
  const test::TemporaryFolder folder;
  const std::string text =
      "kernel_source,gemm_dtype,m,n,k,latency\n"
      "torch_flow,bfloat16,4096,8192,1024,0.3105\n"
      "deepgemm,fp8_block,4096,8192,1024,0.2\n";
  const std::string path = folder["gemm.csv.gz"];
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  ImportedKernels imported;
  REQUIRE_FALSE(import_aiconfigurator_kernels(path, imported));
  CHECK(seconds_of(imported, ProductKernel{.m = 4096, .n = 8192, .k = 1024}) ==
        doctest::Approx(310.5e-6));
  CHECK(imported.left_out().at("products in fp8_block") == 1);

  const ImportedKernels attention = import(
      &import_aiconfigurator_kernels,
      "batch_size,isl,num_heads,num_key_value_heads,head_dim,attn_dtype,kv_cache_dtype,latency_ms\n"
      "1,4096,32,8,64,bfloat16,bfloat16,0.4\n"
      "1,4096,32,8,64,bfloat16,fp8,0.3\n"
      "1,4096,32,8,64,fp8,fp8,0.2\n");
  CHECK(seconds_of(attention, AttentionKernel{false, 1, 4096, 4096, 32, 8, 64, 64}) ==
        doctest::Approx(400e-6));
  CHECK(attention.left_out().at("attention over keys in fp8") == 1);
  CHECK(attention.left_out().at("attention in fp8") == 1);

  const ImportedKernels nccl = import(&import_aiconfigurator_kernels,
                                      "op_name,nccl_dtype,num_gpus,message_size,latency_ms\n"
                                      "all_reduce,half,8,1024,0.02\n"
                                      "alltoall,int8,4,4096,0.03\n");
  CollectiveKernel sums{.kind = CollectiveKind::all_reduce, .devices = 8, .near = 8, .bytes = 2048};
  CHECK(seconds_of(nccl, sums) == doctest::Approx(20e-6));
  CollectiveKernel all{.kind = CollectiveKind::all_to_all, .devices = 4, .near = 4, .bytes = 3072};
  CHECK(seconds_of(nccl, all) == doctest::Approx(30e-6));
}

TEST_CASE("SimuMax's efficiencies become times with the peak beside them") {
  const ImportedKernels imported = import(&import_simumax_kernels, R"({
    "sys_name": "invented", "accelerator": {"op": {
      "matmul": {"tflops": 1000, "efficient_factor": 0.5, "accurate_efficient_factor": {
        "b=1, m=1000, k=2000, n=4000, layout=TN, accumulate=False, out_dtype=bf16": 0.5,
        "b=1, m=1000, k=4000, n=2000, layout=NN, accumulate=False, out_dtype=bf16": 0.4,
        "b=1, m=4000, k=1000, n=2000, layout=NT, accumulate=True, out_dtype=fp32": 0.25}},
      "group_matmul": {"tflops": 1000, "accurate_efficient_factor": {
        "ng=8, M=100, N=300, K=200, dtype=bf16, main_grad_dtype=fp32, stage=fwd, accumulate=False": 0.1,
        "ng=8, M=100, N=300, K=200, dtype=bf16, main_grad_dtype=fp32, stage=bwd_grad_act, accumulate=False": 0.2,
        "ng=8, M=100, N=300, K=200, dtype=bf16, main_grad_dtype=fp32, stage=bwd_grad_w, accumulate=True": 0.3}},
      "sdp_bwd": {"tflops": 1000, "accurate_efficient_factor": {
        "batch=1, seq_len=1000, head_num=10, kv_head_num=2, qk_head_dim=60, v_head_dim=40, qkv_contiguous=True": 0.5,
        "batch=1, seq_len=1000, head_num=10, kv_head_num=2, qk_head_dim=60, v_head_dim=40, qkv_contiguous=False": 0.4}}},
      "bandwidth": {"default": {"efficient_factor": 0.6, "gbps": 8000, "latency_us": 30}}},
    "networks": {"intra_with_pcie": false, "high_intra_node": {"bandwidth": {"gbps": 100}, "op": {
      "all_reduce": {"scale": 2, "offset": -1, "efficient_factor": 0.5, "latency_us": 5, "fixed_latency_us": 20}}}}})");
  CHECK(seconds_of(imported, ProductKernel{.m = 1000, .n = 4000, .k = 2000}) ==
        doctest::Approx(32e-6));
  CHECK(seconds_of(imported,
                   ProductKernel{.pass = KernelPass::input, .m = 1000, .n = 2000, .k = 4000}) ==
        doctest::Approx(40e-6));
  CHECK(seconds_of(imported,
                   ProductKernel{.pass = KernelPass::weights, .m = 4000, .n = 2000, .k = 1000},
                   Accumulation::fp32) == doctest::Approx(64e-6));
  const double grouped = 2.0 * 8 * 100 * 300 * 200 / 1e15;
  const auto experts = [](KernelPass pass, std::int64_t m, std::int64_t n, std::int64_t k) {
    return ProductKernel{.pass = pass, .m = m, .n = n, .k = k, .batch = 8, .grouped = true};
  };
  CHECK(seconds_of(imported, experts(KernelPass::forward, 100, 300, 200)) ==
        doctest::Approx(grouped / .1).epsilon(1e-3));
  CHECK(seconds_of(imported, experts(KernelPass::input, 100, 200, 300)) ==
        doctest::Approx(grouped / .2).epsilon(1e-3));
  CHECK(seconds_of(imported, experts(KernelPass::weights, 300, 200, 100), Accumulation::fp32) ==
        doctest::Approx(grouped / .3).epsilon(1e-3));
  CHECK(seconds_of(imported, AttentionKernel{true, 1, 1000, 1000, 10, 2, 60, 40}) ==
        doctest::Approx(5 * 1e6 * 10 * 100 / .5e15).epsilon(1e-3));
  const CollectiveKernel sums{
      .kind = CollectiveKind::all_reduce, .devices = 4, .near = 4, .bytes = 1 << 20};
  const double sent = 2 * 3.0 / 4 * (1 << 20);
  CHECK(seconds_of(imported, sums) ==
        doctest::Approx(sent / (50 * 1024.0 * 1024 * 1024) + (6 * 5 + 20) * 1e-6).epsilon(1e-3));
  CHECK(imported.left_out().at("attention over queries, keys and values in tensors apart") == 1);
  CHECK(imported.left_out().at("bandwidths of memory-bound kernels, without the sizes measured") ==
        1);
  CHECK(problem(&import_simumax_kernels, "{\"networks\": {}}").find("no accelerator with an op") !=
        std::string::npos);
}

}  // namespace
}  // namespace plumbline
