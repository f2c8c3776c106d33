// `plumbline import`: profiles out of what others write.
// SPDX-License-Identifier: MIT
#include "cli/import.h"

#include <CLI/App.hpp>

#include "cli/command.h"

namespace plumbline {

void add_import(CLI::App& app, int& exit_code) {
  CLI::App* import = app.add_subcommand("import", "make a profile out of what others write");
  import->require_subcommand(1);
  add_import_huggingface(*import, exit_code);
}

}  // namespace plumbline
