// Comparing file by file, and line by line.
//
// SPDX-License-Identifier: MIT
#include "cli/record/record_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "cli/record/sha256.h"

namespace plumbline {
namespace {

/// Whether a line of JSON tells how long the command took.
bool tells_runtime(const std::string& line) {
  return line.find("\"planning_time_s\":") != std::string::npos;
}

std::vector<std::string> comparable_lines(const RecordedText& text) {
  std::vector<std::string> lines = text.lines;
  std::erase_if(lines, tells_runtime);
  return lines;
}

/// The file of this path; null if there is none.
const RecordedFile* find_file(const std::vector<RecordedFile>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const RecordedFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

/// Adds what differs between two lists of files, each after `what`.
void add_files(const std::string& what, const std::vector<RecordedFile>& then,
               const std::vector<RecordedFile>& now, std::vector<std::string>& found) {
  for (const RecordedFile& file : then) {
    const RecordedFile* const same = find_file(now, file.path);
    if (!same || *same != file) found.push_back(what + file.path);
  }
  for (const RecordedFile& file : now) {
    if (!find_file(then, file.path)) found.push_back(what + file.path);
  }
}

std::string signed_line(char sign, const std::string& line) {
  return line.empty() ? std::string(1, sign) : fmt::format("{} {}", sign, line);
}

/// Each line that differs from the one in its place, and that one.
std::vector<std::string> pairs(const std::vector<std::string>& then,
                               const std::vector<std::string>& now) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < then.size(); ++i) {
    if (then[i] == now[i]) continue;
    lines.push_back(signed_line('-', then[i]));
    lines.push_back(signed_line('+', now[i]));
  }
  return lines;
}

/// The first `max` lines of the one, then those of the other.
std::vector<std::string> blocks(const std::vector<std::string>& then,
                                const std::vector<std::string>& now, std::size_t max) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(then.size(), max); ++i)
    lines.push_back(signed_line('-', then[i]));
  for (std::size_t i = 0; i < std::min(now.size(), max); ++i)
    lines.push_back(signed_line('+', now[i]));
  return lines;
}

}  // namespace

FileState state_of(const RecordedFile& file) {
  const auto digest = digest_of_file(file.path);
  if (!digest) return FileState::missing;
  return digest->sha256 == file.sha256 ? FileState::same : FileState::changed;
}

bool measures(const Record& record) {
  constexpr std::array<std::string_view, 3> measuring = {"calibrate", "run", "validate"};
  return std::find(measuring.begin(), measuring.end(), record.command.front()) != measuring.end();
}

bool RecordCheck::lacks_input() const {
  return std::find(inputs.begin(), inputs.end(), FileState::missing) != inputs.end();
}

std::vector<std::string> RecordCheck::differences() const {
  std::vector<std::string> found;
  if (!now && (version != then.version || commit != then.commit)) found.emplace_back("version");
  if (!now && (machine.processor != then.machine.processor || machine.cores != then.machine.cores ||
               machine.system != then.machine.system))
    found.emplace_back("machine");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != FileState::same) found.push_back("input " + then.inputs[i].path);
  }
  if (!now) return found;
  for (const RecordedFile& input : now->inputs) {
    if (!find_file(then.inputs, input.path)) found.push_back("input " + input.path);
  }
  if (now->exit_code != then.exit_code) found.emplace_back("exit code");
  if (!is_same_text(then.printed, now->printed)) found.emplace_back("stdout");
  if (!is_same_text(then.messages, now->messages)) found.emplace_back("stderr");
  add_files("file ", then.outputs, now->outputs, found);
  return found;
}

bool is_same_text(const RecordedText& one, const RecordedText& other) {
  if (one.sha256 == other.sha256) return true;
  if (!one.is_whole || !other.is_whole) return false;
  const bool any_runtime = std::any_of(one.lines.begin(), one.lines.end(), tells_runtime);
  return any_runtime && comparable_lines(one) == comparable_lines(other);
}

LineDifference first_difference(const RecordedText& then, const RecordedText& now,
                                std::size_t max) {
  const std::vector<std::string>& a = then.lines;
  const std::vector<std::string>& b = now.lines;
  const auto [from_a, from_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto [end_a, end_b] = std::mismatch(a.rbegin(), std::make_reverse_iterator(from_a),
                                            b.rbegin(), std::make_reverse_iterator(from_b));
  const std::vector<std::string> old_lines(from_a, end_a.base());
  const std::vector<std::string> new_lines(from_b, end_b.base());
  LineDifference found;
  found.first_line = static_cast<std::size_t>(from_a - a.begin()) + 1;
  found.lines = old_lines.size() == new_lines.size() ? pairs(old_lines, new_lines)
                                                     : blocks(old_lines, new_lines, max);
  const std::size_t shown = std::min(found.lines.size(), 2 * max);
  const std::size_t all = old_lines.size() == new_lines.size()
                              ? found.lines.size()
                              : old_lines.size() + new_lines.size();
  found.more = all - shown;
  found.lines.resize(shown);
  return found;
}

}  // namespace plumbline
