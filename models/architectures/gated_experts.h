// Families of grouped-query attention with experts in most blocks.
//
// SPDX-License-Identifier: MIT
#pragma once

#include "models/architectures/config_file.h"
#include "models/import/transformer_shape.h"

namespace plumbline {

void read_gpt_oss(ConfigFile& file, TransformerShape& shape);
void read_llama4(ConfigFile& file, TransformerShape& shape);
void read_glm4_moe(ConfigFile& file, TransformerShape& shape);
void read_minimax_m2(ConfigFile& file, TransformerShape& shape);
void read_minimax_m3(ConfigFile& file, TransformerShape& shape);
void read_mimo_v2_flash(ConfigFile& file, TransformerShape& shape);
void read_granite_moe(ConfigFile& file, TransformerShape& shape);
void read_hunyuan_moe(ConfigFile& file, TransformerShape& shape);
void read_ernie_moe(ConfigFile& file, TransformerShape& shape);
void read_bailing_moe(ConfigFile& file, TransformerShape& shape);
void read_step3p7(ConfigFile& file, TransformerShape& shape);
void read_qwen2_moe(ConfigFile& file, TransformerShape& shape);
void read_olmoe(ConfigFile& file, TransformerShape& shape);

}  // namespace plumbline
