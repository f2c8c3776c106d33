// The facts about a machine in Linux's texts.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/machine.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/text_source.h"

namespace plumbline::test {
namespace {

TEST_CASE("processor and clock are read from /proc/cpuinfo") {
  const std::string text =
      "processor\t: 0\nmodel name\t: A CPU @ 2.00GHz\ncpu MHz\t\t: 2000.500\n\n"
      "processor\t: 1\nmodel name\t: A CPU @ 2.00GHz\ncpu MHz\t\t: 3000.500\n";
  CHECK(processor_in(text) == "A CPU @ 2.00GHz");
  CHECK(clock_in(text) == doctest::Approx(2500.5));
  const std::string arm = "processor\t: 0\nBogoMIPS\t: 50.00\nmodel name\t:\n";
  CHECK_FALSE(processor_in(arm));
  CHECK_FALSE(clock_in(arm));
  CHECK_FALSE(clock_in("cpu MHz : unknown\n"));
}

TEST_CASE("load, memory and distribution are read from their files") {
  CHECK(load_in("0.23 0.37 0.83 2/94 28192\n") == doctest::Approx(0.23));
  CHECK_FALSE(load_in(""));
  CHECK(available_memory_in("MemTotal: 9 kB\nMemAvailable:    2048 kB\n") == Bytes{2048 * 1024});
  CHECK_FALSE(available_memory_in("MemTotal: 9 kB\n"));
  CHECK(distribution_in("ID=x\nPRETTY_NAME=\"A Linux 12\"\n") == "A Linux 12");
  CHECK_FALSE(distribution_in("ID=x\n"));
}

TEST_CASE("this machine has a name, a system and memory") {
  CHECK_FALSE(processor_name().empty());
  CHECK_FALSE(host_name().empty());
  CHECK(system_name().starts_with("Linux "));
  REQUIRE(available_memory());
  CHECK(available_memory()->count > 0);
}

}  // namespace
}  // namespace plumbline::test
