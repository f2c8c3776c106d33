// Recording a command, and running it again with its outputs held back.
//
// SPDX-License-Identifier: MIT
#include "cli/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/record/commit.h"
#include "cli/record/record_check.h"

namespace plumbline {
namespace {

/// The subcommands that compute.
constexpr std::array kRecorded = {"simulate", "plan",    "compare", "explain",   "sweep",
                                  "search",   "merge",   "import",  "calibrate", "run",
                                  "validate", "kernels", "memory",  "diagnose"};

void add_record_option(CLI::App& command) {
  const auto below = command.get_subcommands([](CLI::App*) { return true; });
  for (CLI::App* const one : below) add_record_option(*one);
  if (!below.empty()) return;
  command
      .add_option(
          "--record",
          "write here (JSON) what was read, written and printed, and by which version; plumbline "
          "check --record FILE says what differs now")
      ->type_name("FILE");
}

/// The words without --record and its file.
std::vector<std::string> without_record(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {  // no option stands behind it
      kept.insert(kept.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (words[i] == "--record") {
      ++i;
    } else if (!words[i].starts_with("--record=")) {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

std::optional<std::string> backend_of(const CLI::App& command) {
  const CLI::Option* const option = command.get_option_no_throw("--backend");
  if (option == nullptr || option->count() == 0) return std::nullopt;
  return option->results().front();
}

/// Enters a folder until the end of its life.
class FolderGuard {
 public:
  explicit FolderGuard(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::error_code error;
    std::filesystem::current_path(folder, error);
    is_there_ = !error;
  }
  ~FolderGuard() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }
  FolderGuard(const FolderGuard&) = delete;
  FolderGuard& operator=(const FolderGuard&) = delete;

  bool is_there() const { return is_there_; }

 private:
  std::filesystem::path before_;
  bool is_there_ = false;
};

/// Runs the recorded command; nothing that it puts out leaves this process.
Record run_again(const Record& then) {
  Recorder recorder({kVersion, then.command, then.backend, then.page}, Recorder::Outputs::held);
  return recorder.record(run_command(then.command));
}

RecordCheck checked(const RecordCheckArguments& arguments, Record then) {
  RecordCheck check;
  check.file = arguments.record;
  check.version = kVersion;
  check.commit = commit();
  check.machine = this_machine();
  const FolderGuard folder(then.directory);
  check.is_elsewhere = !folder.is_there();
  for (const RecordedFile& input : then.inputs) check.inputs.push_back(state_of(input));
  for (const RecordedFile& output : then.outputs) check.outputs.push_back(state_of(output));
  check.then = std::move(then);
  if (!check.lacks_input() && (arguments.rerun || !measures(check.then)))
    check.now = run_again(check.then);
  return check;
}

}  // namespace

void Recording::add_options(CLI::App& app) {
  for (const char* const name : kRecorded) add_record_option(*app.get_subcommand(name));
}

int Recording::start(const CLI::App& command, const std::vector<std::string>& words) {
  if (holds_outputs()) return ExitCode::done;  // a recorded command never writes a record
  const CLI::Option* const option = command.get_option_no_throw("--record");
  if (option == nullptr || option->count() == 0 || command.get_name() == "check")
    return ExitCode::done;
  path_ = option->results().front();
  if (const int trouble = try_output(path_); trouble != ExitCode::done) return trouble;
  recorder_ = std::make_unique<Recorder>(
      RecordedStart{kVersion, without_record(words), backend_of(command), page_of_stdout()},
      Recorder::Outputs::written);
  return ExitCode::done;
}

int Recording::finish(int exit_code) {
  if (!recorder_) return exit_code;
  const Record record = recorder_->record(exit_code);
  recorder_.reset();
  const int written = write_output(to_json(record), path_);
  return exit_code == ExitCode::done ? written : exit_code;
}

void add_record_check(CLI::App& command, RecordCheckArguments& arguments) {
  CLI::Option* const scenario = command.get_option("scenario");
  CLI::Option* const record =
      command
          .add_option_function<std::string>(
              "--record",
              [&arguments, scenario](const std::string& file) {
                arguments.record = file;
                scenario->required(false);
              },
              "check a record instead: compare its inputs, run its command again without writing "
              "files, and say what differs")
          ->type_name("FILE")
          ->excludes(scenario);
  for (const char* const other : {"overrides", "--graph", "--stages", "--batch"})
    record->excludes(command.get_option(other));
  command.add_flag("--rerun", arguments.rerun,
                   "with --record: also repeat measurements, though their figures will differ");
}

int check_record(const RecordCheckArguments& arguments, const PageArguments& page,
                 const std::string& output) {
  auto then = read_record(arguments.record);
  if (!then) return fail(then.problems());
  if (std::find(kRecorded.begin(), kRecorded.end(), then->command.front()) == kRecorded.end()) {
    return fail({input_error({},
                             fmt::format("{}: '{}' is no subcommand that is recorded",
                                         arguments.record, clipped(then->command.front())),
                             fmt::format("one of {}", fmt::join(kRecorded, ", ")))});
  }
  const RecordCheck check = checked(arguments, *std::move(then));
  const int written = write_output(to_document(check).print(page_width(page, output)), output);
  if (written != ExitCode::done) return written;
  return check.differences().empty() ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace plumbline
