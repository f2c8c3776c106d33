// Temporary files, links, and paths that are no regular files.
//
// SPDX-License-Identifier: MIT
#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/quantity.h"
#include "base/yaml.h"
#include "cli/command.h"
#include "cli/record/recorder.h"
#include "sim/report/chrome_trace.h"
#include "sim/scenario/axes.h"
#include "sim/scenario/named_files.h"

namespace plumbline {

namespace {

namespace fs = std::filesystem;

/// What the variable COLUMNS says; nothing if it says nothing usable.
PageWidth given_columns() {
  const char* const given = std::getenv("COLUMNS");
  const auto columns = parse_count(given ? given : "").value;
  if (!columns || *columns < static_cast<std::int64_t>(kMinPageWidth)) return std::nullopt;
  return std::min(static_cast<std::size_t>(*columns), kMaxPageWidth);
}

int cannot_write(const std::string& path, int error) {
  say(fmt::format("{}: error: cannot be written: {}\n", path, std::strerror(error)));
  return ExitCode::file_trouble;
}

bool write_all(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

/// The target of a path.
struct Target {
  std::string path;            ///< The path after all links.
  bool is_file = true;         ///< A regular file, or nothing yet: it can be replaced.
  std::optional<mode_t> mode;  ///< The mode of an existing file.
};

/// The end of a chain of links; it need not exist. The path itself if the links form a circle;
/// opening it then reports that.
fs::path end_of_links(const fs::path& path) {
  constexpr int max = 40;  // as the kernel's
  fs::path end = path;
  for (int i = 0; i < max; ++i) {
    std::error_code error;
    const fs::path next = fs::read_symlink(end, error);
    if (error) return end;
    end = end.parent_path() / next;
  }
  return path;
}

/// The absolute path without links; the path as it is if that is unknown.
std::string spelled_out(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return path.string();
  const fs::path whole = fs::weakly_canonical(absolute, error);
  return error ? path.string() : whole.string();
}

Target target_of(const std::string& path) {
  // Such a name is an open file, not a place in a folder. Replacing it would not reach the process
  // that has it open.
  std::error_code ignored;
  const bool is_open_file = path.starts_with("/proc/") || path.starts_with("/dev/fd/") ||
                            fs::read_symlink(path, ignored).string().starts_with("/proc/");
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  const bool is_circle = !exists && errno == ELOOP;
  if (is_open_file || is_circle || (exists && !S_ISREG(status.st_mode)))
    return {path, false, std::nullopt};
  Target target;
  target.path = spelled_out(end_of_links(path));
  if (exists) target.mode = status.st_mode & 07777U;
  return target;
}

std::string temporary_name(const std::string& path) {
  return fmt::format("{}.{}.partial", path, getpid());
}

/// Appends to an existing path.
int write_through(const std::string& text, const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  std::FILE* const file = descriptor < 0 ? nullptr : fdopen(descriptor, "ab");
  if (file == nullptr) return cannot_write(path, errno);
  errno = 0;
  const bool written = write_all(file, text);
  const int error = errno;
  if (std::fclose(file) == 0 && written) return ExitCode::done;
  return cannot_write(path, written ? errno : error);
}

/// An output; `option` is its name in an error: "--report".
struct Output {
  std::string option;
  std::string path;
};

/// Whether the name's ending is never that of a scenario.
bool is_other(const std::string& path) {
  const char* const ends[] = {".json", ".csv", ".gz", ".html"};
  return std::any_of(std::begin(ends), std::end(ends),
                     [&](const char* end) { return path.ends_with(end); });
}

/// The files that this command reads and does not rewrite, with these arguments: the arguments that
/// are files, the files that scenarios among them name, and the files that keys are set to.
std::vector<std::string> inputs_of(const CLI::App& command,
                                   const std::vector<std::string>& arguments) {
  const bool makes_plan = command.get_name() == "plan";
  std::vector<std::string> inputs;
  const auto add = [&](const std::vector<NamedFile>& files) {
    for (const NamedFile& file : files) {
      if (!makes_plan || file.key != "plan.file") inputs.push_back(file.path);
    }
  };
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (fs::is_regular_file(argument, ignored)) {
      inputs.push_back(argument);
      if (is_other(argument)) continue;
      auto tree = read_yaml(argument);
      if (!tree) continue;  // its reader reports the error
      for (const std::string& other : arguments) {
        if (const auto change = parse_override(other)) apply_override(*tree, *change);
      }
      add(named_files(*tree));
    } else if (const auto axes = read_axes({argument})) {
      for (const Axis& axis : *axes) {
        for (const YamlOverride& change : axis.changes) add(named_files(axis.key, change.value));
      }
    }
  }
  return inputs;
}

bool is_same(const std::string& one, const std::string& other) {
  std::error_code error;
  if (fs::equivalent(one, other, error) && !error) return true;
  return spelled_out(one) == spelled_out(other);
}

/// Writes now, to stdout or to a file.
int put(const std::string& text, const std::string& path) {
  if (path.empty()) {
    errno = 0;
    return write_all(stdout, text) ? ExitCode::done : cannot_write("<stdout>", errno);
  }
  const Target target = target_of(path);
  if (!target.is_file) return write_through(text, path);
  if (target.mode && access(path.c_str(), W_OK) != 0) return cannot_write(path, errno);
  const std::string temporary = temporary_name(target.path);
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return cannot_write(path, errno);
  errno = 0;
  const bool written = (!target.mode || fchmod(fileno(file), *target.mode) == 0) &&
                       write_all(file, text) && fsync(fileno(file)) == 0;
  int error = errno;
  if (std::fclose(file) != 0 && written) error = errno;
  if (written && error == 0 && std::rename(temporary.c_str(), target.path.c_str()) == 0)
    return ExitCode::done;
  if (written && error == 0) error = errno;
  std::remove(temporary.c_str());
  return cannot_write(path, error);
}

/// The columns of the terminal that this is; nothing if it is none, or too narrow to be believed.
PageWidth columns_of(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) return std::nullopt;
  if (size.ws_col < kMinPageWidth) return std::nullopt;
  return size.ws_col;
}

/// The width of messages. Where there is neither a terminal nor COLUMNS a program reads them, and
/// each is one line.
PageWidth error_width() {
  const PageWidth width = columns_of(STDERR_FILENO);
  return width ? width : given_columns();
}

/// Records a message, and prints it as it fits.
void print_message(const std::string& text, const std::string& fitted) {
  if (Recorder* const recorder = Recorder::active()) recorder->note_message(text);
  if (!holds_outputs()) std::fputs(fitted.c_str(), stderr);
}

}  // namespace

bool holds_outputs() {
  const Recorder* const recorder = Recorder::active();
  return recorder != nullptr && recorder->holds_outputs();
}

std::size_t stdout_columns() {
  return columns_of(STDOUT_FILENO).value_or(given_columns().value_or(kUsualColumns));
}

void say(const std::string& text) {
  Document lines;
  lines.sentence(text);
  print_message(text, lines.print(error_width()));
}

void say(const Diagnostics& problems) {
  print_message(to_text(problems), to_text(problems, error_width()));
}

int try_output(const std::string& path) {
  if (path.empty() || holds_outputs()) return ExitCode::done;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return cannot_write(path, EISDIR);
  const Target target = target_of(path);
  if ((!target.is_file || target.mode) && access(path.c_str(), W_OK) != 0)
    return cannot_write(path, errno);
  if (!target.is_file) return ExitCode::done;
  const std::string temporary = temporary_name(target.path);
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return cannot_write(path, errno);
  std::fclose(file);
  std::remove(temporary.c_str());
  return ExitCode::done;
}

int write_output(const std::string& text, const std::string& path) {
  const int written = holds_outputs() ? ExitCode::done : put(text, path);
  Recorder* const recorder = Recorder::active();
  if (recorder != nullptr && written == ExitCode::done) recorder->note_output(text, path);
  return written;
}

int write_trace(const std::string& text, const std::string& path) {
  return write_output(path.ends_with(".gz") ? gzip(text) : text, path);
}

namespace {

/// Adds an argument; a folder of traces stands for the files in it.
void add_argument(const std::string& value, std::vector<std::string>& arguments) {
  arguments.push_back(value);
  std::error_code failed;
  if (!fs::is_directory(value, failed)) return;
  for (fs::directory_iterator at(value, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->is_regular_file(failed)) arguments.push_back(at->path().string());
  }
}

}  // namespace

std::optional<Diagnostic> check_outputs(const CLI::App& command) {
  std::vector<Output> outputs;
  std::vector<std::string> arguments;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    const bool is_output = option->check_name("--output") || option->check_name("--report") ||
                           option->check_name("--trace") || option->check_name("--missing") ||
                           (command.get_name() == "diagnose" &&
                            (option->check_name("--csv") || option->check_name("--order"))) ||
                           (command.get_name() == "memory" && option->check_name("--csv")) ||
                           (option->check_name("--record") && command.get_name() != "check");
    for (const std::string& value : option->results()) {
      if (value.empty()) continue;
      if (is_output) {
        outputs.push_back({option->get_name(), value});
        continue;
      }
      add_argument(value, arguments);
    }
  }
  if (outputs.empty()) return std::nullopt;
  const std::vector<std::string> inputs = inputs_of(command, arguments);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (!target_of(path).is_file) continue;
    for (const std::string& input : inputs) {
      if (!is_same(path, input)) continue;
      return input_error({}, fmt::format("{} is '{}', which is read", option, clipped(path)),
                         "name another file: this one would be overwritten");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!is_same(path, outputs[j].path)) continue;
      return input_error(
          {}, fmt::format("{} and {} are both '{}'", outputs[j].option, option, clipped(path)),
          "name two files");
    }
  }
  return std::nullopt;
}

}  // namespace plumbline
