// The subcommands of `plumbline import`.
//
// SPDX-License-Identifier: MIT
#pragma once

namespace CLI {
class App;
}

namespace plumbline {

/// Each adds its subcommand to `import`; when the user calls it, its exit code is put into
/// `exit_code`.
void add_import_huggingface(CLI::App& import, int& exit_code);

}  // namespace plumbline
