// The algorithms that libraries were found to be fastest with. SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

namespace plumbline {

/// By what is computed, both as the library's wrapper writes them. An algorithm that is there is
/// taken instead of timing those that could be; what is chosen is added.
using CudaChoices = std::map<std::string, std::string>;

}  // namespace plumbline
