# Writes a C++ file that holds other files byte for byte: -D OUTPUT=FILE -D FOLDER=DIR -D NAMES="a b c".
# SPDX-License-Identifier: MIT
separate_arguments(names UNIX_COMMAND "${NAMES}")
set(arrays "")
set(cases "")
set(number 0)
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char k${number}[] = {\n${bytes}};\n")
  string(APPEND cases "  if (name == \"${name}\") return {reinterpret_cast<const char*>(k${number}), sizeof k${number}};\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Written by embed.cmake.
#include \"sim/report/report_assets.h\"

#include \"base/bug.h\"

namespace plumbline {
namespace {
${arrays}}  // namespace

std::string_view report_asset(std::string_view name) {
${cases}  PLUMBLINE_CHECK(false, name);
}

}  // namespace plumbline
")
