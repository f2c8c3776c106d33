// Models that mix tokens by attention in some blocks and by a state in others.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

/// Qwen3-Next, and the texts of Qwen3.5 and 3.6: gated delta nets, and attention behind a gate.
void read_qwen3_next(ConfigFile& file, TransformerShape& shape);
/// Nemotron-H and Nemotron 3: Mamba-2, attention, MLPs and experts, each a block of its own.
void read_nemotron_h(ConfigFile& file, TransformerShape& shape);
/// Kimi Linear and the text of Kimi K3: Kimi delta attention, and latent attention.
void read_kimi_linear(ConfigFile& file, TransformerShape& shape);

}  // namespace plumbline
