// Whether two commands were asked the same, of the same files.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/named_files.h"

namespace plumbline {

/// FNV-1a, 64 bits (Fowler, Noll, Vo): tells texts apart, and is no protection against anybody.
class Fingerprint {
 public:
  void add(std::string_view text);
  /// The texts of these files; one that cannot be read is told by its reader.
  void add(const std::vector<NamedFile>& files);
  std::string hex() const;

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }

  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace plumbline
