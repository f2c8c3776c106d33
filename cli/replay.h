// `--record FILE` of the commands that compute, and `plumbline check --record FILE`.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/record/recorder.h"

namespace CLI {
class App;
}

namespace plumbline {

/// Records the command of one command line, if it asks for that.
class Recording {
 public:
  /// Adds --record to each subcommand of `app` that computes.
  static void add_options(CLI::App& app);

  /// Starts to record if the command was called with --record. `words` is the command line.
  /// Returns ExitCode::done, or file_trouble after saying why the record cannot be written.
  int start(const CLI::App& command, const std::vector<std::string>& words);
  /// Writes the record, if there is one. Returns the exit code of the command, or, if it was done,
  /// that of writing the record.
  int finish(int exit_code);

 private:
  std::string path_;
  std::unique_ptr<Recorder> recorder_;
};

/// The arguments of `check --record`.
struct RecordCheckArguments {
  std::string record;  ///< "" = another check.
  bool rerun = false;  ///< Also what measures.
};

/// Adds --record and --rerun to `check`, whose scenario they replace.
void add_record_check(CLI::App& command, RecordCheckArguments& arguments);

/// Compares a record's inputs with the files that are there, runs its command again, and prints
/// what differs; nothing is written over. Returns ExitCode::done if all that counts is the same,
/// else check_failed.
int check_record(const RecordCheckArguments& arguments, const PageArguments& page,
                 const std::string& output);

}  // namespace plumbline
