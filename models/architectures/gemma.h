// Google's Gemma 2, 3 and 4: norms in front and behind, windows in most blocks.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

void read_gemma2(ConfigFile& file, TransformerShape& shape);
void read_gemma3(ConfigFile& file, TransformerShape& shape);
void read_gemma4(ConfigFile& file, TransformerShape& shape);

}  // namespace plumbline
