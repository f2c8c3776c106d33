// Scripts as lists of words.
//
// SPDX-License-Identifier: MIT
#include "sim/launch/shell_words.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/launch/launch_arguments.h"
#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

/// The words, with a bar between them.
std::string words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const ShellWord& word : shell_words(text_source("run.sh", text)).words)
    words.push_back(word.text);
  return fmt::format("{}", fmt::join(words, "|"));
}

TEST_CASE("quotes, escapes, comments and lines that go on are those of a shell") {
  CHECK(words_of("a 'b c' \"d e\" f\\ g # no more\nh") == "a|b c|d e|f g|h");
  CHECK(words_of("a \\\n b") == "a|b");
  CHECK(words_of("a#b") == "a#b");
  CHECK(words_of("torchrun a.py; echo b | cat && c") == "torchrun|a.py|echo|b|cat|c");
}

TEST_CASE("variables that the text sets are put in") {
  CHECK(words_of("N=4\n--layers $N ${N} \"$N\"") == "--layers|4|4|4");
  CHECK(words_of("export N=4\n--layers $N") == "export|--layers|4");
  CHECK(words_of("--layers ${N:-8}") == "--layers|8");
  CHECK(words_of("N=4\n--layers ${N:-8}") == "--layers|4");
  CHECK(words_of("M=2\nN=${M}\n--layers ${L:-$N}") == "--layers|2");
  CHECK(words_of("A=8\nB=4\nW=$(($A*$B))\n--gpus $W $((A*B+1)) $(( (A-2)/3 ))") ==
        "--gpus|32|33|2");
  CHECK(words_of("--tag x-${N}-y") == "--tag|x--y");
  CHECK(shell_words(text_source("run.sh", "--a $X ${Y} $1")).unknown ==
        std::vector<std::string>{"$X", "$Y", "$1"});
}

TEST_CASE("nothing is run, and arrays are read where they stand") {
  CHECK(words_of("--a $(date +%s) b") == "--a||b");
  CHECK(words_of("ARGS=(\n  --a 1 # one\n  --b\n)\nrun ${ARGS[@]}") == "--a|1|--b|run|");
  CHECK(words_of("ARGS+=(\"--fp8-format hybrid\" \"--x 'y'\")") == "--fp8-format|hybrid|--x|y");
  CHECK(words_of("--moe-layer-freq ([0]*3+[1]*58) --b") == "--moe-layer-freq|([0]*3+[1]*58)|--b");
  CHECK(shell_words(text_source("run.sh", "if [ x ]; then\n--a 1\nfi")).has_branches);
}

TEST_CASE("arguments have the words behind them as values, up to the end of their command") {
  Diagnostics problems;
  LaunchArguments arguments(problems);
  arguments.add_command(text_source(
      "run.sh",
      "ARGS=(\n --modules mlp moe\n --num_layers 4 --bf16)\ntorchrun --nnodes=2 \\\n x.py\n"
      "--num-layers 8"));
  CHECK(arguments.words("modules") == std::vector<std::string>{"mlp", "moe"});
  CHECK(arguments.count("num-layers") == 8);  // the last counts
  CHECK(arguments.count("nnodes") == 2);
  CHECK(arguments.flag("bf16"));
  CHECK_FALSE(arguments.flag("fp16"));
  CHECK(arguments.unread().empty());
  CHECK(problems.empty());
  arguments.add_command(text_source("more", "--num-layers many --hidden-size"));
  CHECK_FALSE(arguments.count("num-layers"));
  CHECK_FALSE(arguments.count("hidden-size"));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].message == "--num-layers is 'many', which is no whole number");
  CHECK(problems[1].message == "--hidden-size has no value");
}

}  // namespace
}  // namespace plumbline::test
