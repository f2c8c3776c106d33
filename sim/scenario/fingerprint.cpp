// Hashes bytes into a number.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/fingerprint.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/yaml.h"

namespace plumbline {

void Fingerprint::add(std::string_view text) {
  for (const char c : text) add_byte(static_cast<unsigned char>(c));
  add_byte(0);  // "ab" and "c" are not "a" and "bc"
}

void Fingerprint::add(const std::vector<NamedFile>& files) {
  for (const NamedFile& named : files) {
    if (const auto file = read_file(named.path, kLargestYaml)) add((*file)->text);
  }
}

std::string Fingerprint::hex() const { return fmt::format("{:016x}", value_); }

}  // namespace plumbline
