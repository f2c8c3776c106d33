// The subcommands of `plumbline import`, and the options of a transformer that other commands have,
// too.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/import/transformer_layers.h"

namespace CLI {
class App;
}

namespace plumbline {

/// The options of a transformer that are words on the command line.
struct TransformerWords {
  std::string dtype = "bf16";
  std::string dispatch{kDispatches[0]};
  std::string context_exchange{kContextExchanges[0]};
  std::string cross_entropy;  ///< "" = absent.

  /// Sets the options that the words name. `command` knows which of them were given.
  void apply(const CLI::App& command, TransformerOptions& options) const;
};

/// Each function adds the options of its name to a command.
void add_dtype(CLI::App& command, TransformerWords& words);
void add_flash_attention(CLI::App& command, TransformerOptions& options);
void add_fp8_linear(CLI::App& command, TransformerOptions& options);
void add_divided_experts(CLI::App& command, TransformerWords& words, TransformerOptions& options);
void add_context_exchange(CLI::App& command, TransformerWords& words);
void add_cross_entropy(CLI::App& command, TransformerWords& words);
void add_mtp(CLI::App& command, TransformerOptions& options);

/// Each function adds its subcommand to `import`. When the user calls the subcommand, its exit code
/// is stored in `exit_code`.
void add_import_huggingface(CLI::App& import, int& exit_code);
void add_import_kernels(CLI::App& import, int& exit_code);
void add_import_launch(CLI::App& import, int& exit_code);

}  // namespace plumbline
