// SHA-256 of texts and files.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace plumbline {

/// The digest of bytes that come in pieces (FIPS 180-4), by OpenSSL.
class Sha256 {
 public:
  /// Errors: std::runtime_error if OpenSSL does not have it.
  Sha256();

  void add(std::string_view bytes);
  /// The digest as 64 hexadecimal digits. Call it once, after the last piece.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256(std::string_view bytes);

/// A file's size and digest.
struct FileDigest {
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// Nothing if it is no regular file, or cannot be read to its end.
std::optional<FileDigest> digest_of_file(const std::string& path);

}  // namespace plumbline
