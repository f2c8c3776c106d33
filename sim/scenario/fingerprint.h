// A fingerprint of a command and its files, to recognize the same question.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/named_files.h"

namespace plumbline {

/// FNV-1a, 64 bits (Fowler, Noll, Vo). It distinguishes texts; it gives no security.
class Fingerprint {
 public:
  void add(std::string_view text);
  /// Adds the texts of these files. A file that cannot be read is reported by its reader.
  void add(const std::vector<NamedFile>& files);
  std::string hex() const;

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }

  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace plumbline
