// The algorithms that libraries were found to be fastest with.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace plumbline {

/// By what is computed, both as the library's wrapper writes them. An algorithm that is there is
/// taken instead of timing those that could be; what is chosen is added.
using CudaChoices = std::map<std::string, std::string>;

/// What the name of a library's products or convolutions ends in where one of them has come to a
/// kernel of our own.
inline constexpr std::string_view kAndPlainKernels = " and plain kernels";

}  // namespace plumbline
