// The fastest algorithms of the libraries, as they were found.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace plumbline {

/// Maps a computation to its algorithm, both as the library's wrapper writes them. An algorithm in
/// the map is used without timing. A newly chosen algorithm is added.
using CudaChoices = std::map<std::string, std::string>;

/// The end of a library's name where a kernel of our own computes some of its products or
/// convolutions.
inline constexpr std::string_view kAndPlainKernels = " and plain kernels";

}  // namespace plumbline
