// The common parts of the fuzz targets.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "sim/engine/simulate.h"

namespace plumbline::fuzz {

inline std::string text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A source whose folder does not exist, so that the files that it names are not there.
inline std::shared_ptr<const Source> source(std::string text) {
  auto source = std::make_shared<Source>();
  source->name = "input";
  source->text = std::move(text);
  source->directory = "/nonexistent";
  return source;
}

/// Keeps the optimiser from leaving out what made `result`.
inline void use(const std::string& result) { asm volatile("" : : "r"(result.data()) : "memory"); }

}  // namespace plumbline::fuzz
