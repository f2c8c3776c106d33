// OpenSSL's digest.
//
// SPDX-License-Identifier: MIT
#include "cli/record/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace plumbline {
namespace {

void require(int succeeded) {
  if (succeeded != 1) throw std::runtime_error("OpenSSL has no SHA-256");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::add(std::string_view bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), &size));
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

std::optional<FileDigest> digest_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Sha256 digest;
  std::uint64_t bytes = 0;
  std::string chunk(std::size_t{1} << 18U, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    const auto count = static_cast<std::size_t>(file.gcount());
    digest.add(std::string_view(chunk).substr(0, count));
    bytes += count;
  }
  if (file.bad()) return std::nullopt;
  return FileDigest{bytes, digest.hex()};
}

}  // namespace plumbline
