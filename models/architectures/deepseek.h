// DeepSeek's models from V3.2 on and their kin: latent attention with an index, compressed
// attention.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// DeepSeek-V3.2 and GLM-5: latent attention over keys that an index has chosen, experts.
void read_deepseek_v32(ConfigFile& file, TransformerShape& shape);
/// DeepSeek-V4: a window and compressed keys, residual streams, experts in all blocks.
void read_deepseek_v4(ConfigFile& file, TransformerShape& shape);

}  // namespace plumbline
