// The subcommands of `plumbline import`.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace CLI {
class App;
}

namespace plumbline {

/// Each function adds its subcommand to `import`. When the user calls the subcommand, its exit code
/// is stored in `exit_code`.
void add_import_huggingface(CLI::App& import, int& exit_code);
void add_import_kernels(CLI::App& import, int& exit_code);

}  // namespace plumbline
