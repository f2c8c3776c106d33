// A page as one HTML file: the shell that all reports share, around a body, its script and its
// data.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plumbline {

/// The parts of one kind of page.
struct PageParts {
  std::string_view body;                      ///< The asset between head and foot.
  std::span<const std::string_view> modules;  ///< In an order in which their code may run.
  std::string facts;                          ///< JSON that may stand in a <script> element.
  std::string data;                           ///< Binary data that is too large for the facts.
};

/// The file. Data of more than a few kilobytes are compressed. The same parts give the same bytes.
/// Requires: the body and the modules are assets.
std::string page_file(const PageParts& parts);

}  // namespace plumbline
