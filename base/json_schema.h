// A format of ours as a JSON Schema, for editors and other programs.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/file_format.h"

namespace plumbline {

/// The JSON Schema (draft 7) of a file whose root is `root`, indented, with a newline at its end.
/// It refuses nothing that the reader accepts, except a quoted number, true or false. Rules that it
/// cannot express, such as the layers that an edge names, are left to the reader.
std::string json_schema(const SectionFormat& root);

}  // namespace plumbline
