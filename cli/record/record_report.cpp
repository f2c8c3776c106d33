// A checked record in sentences, a table and lines.
//
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/table.h"
#include "cli/record/record_check.h"

namespace plumbline {
namespace {

std::string_view state_word(FileState state) {
  switch (state) {
    case FileState::same:
      return "same";
    case FileState::changed:
      return "changed";
    case FileState::missing:
      break;
  }
  return "missing";
}

std::string_view same_or_other(bool is_same) { return is_same ? "same" : "other"; }

std::string version_text(const std::string& version, const std::string& commit) {
  return fmt::format("plumbline {}, commit {}", version, commit);
}

std::string machine_text(const RecordedMachine& machine) {
  return fmt::format("{}, {}, {}", machine.processor, plural(machine.cores, "core"),
                     machine.system);
}

/// The verdict in a line.
std::string verdict(const RecordCheck& check) {
  const std::vector<std::string> different = check.differences();
  if (!different.empty())
    return fmt::format("differs: {}", printable(fmt::format("{}", fmt::join(different, ", "))));
  return check.now ? "the same: inputs and output" : "the same: inputs, version and machine";
}

/// Why the command was not run again; "" if it was.
std::string why_not(const RecordCheck& check) {
  if (check.now) return "";
  if (check.lacks_input()) return "not run again: an input is missing";
  return fmt::format(
      "not run again: {} measures, and its figures differ from run to run; --rerun runs it",
      printable(check.then.command.front()));
}

/// A row with what was, where it is not the same.
void add_row(Table& table, const std::string& what, std::string_view state,
             const std::string& remark = "") {
  table.row({printable(what), std::string(state)}, state == "same" ? "" : printable(remark));
}

void add_text(Table& table, const std::string& what, const RecordedText& then,
              const RecordedText& now) {
  const bool is_same = is_same_text(then, now);
  add_row(table, what, is_same ? "same" : "differs",
          fmt::format("{} bytes, now {}", then.bytes, now.bytes));
}

/// What has become of a file that the recorded command wrote; "" if nothing has.
std::string on_disk(FileState state) {
  if (state == FileState::same) return "";
  return state == FileState::changed ? "the file that is here has changed since"
                                     : "the file is not here";
}

void add_outputs(Table& table, const RecordCheck& check) {
  const Record& now = *check.now;
  for (std::size_t i = 0; i < check.then.outputs.size(); ++i) {
    const RecordedFile& file = check.then.outputs[i];
    const auto found =
        std::find_if(now.outputs.begin(), now.outputs.end(),
                     [&](const RecordedFile& other) { return other.path == file.path; });
    if (found == now.outputs.end()) {
      add_row(table, "file " + file.path, "missing", "it is not written any more");
    } else if (*found != file) {
      add_row(table, "file " + file.path, "differs",
              fmt::format("{} bytes, now {}", file.bytes, found->bytes));
    } else {
      table.row({printable("file " + file.path), "same"}, on_disk(check.outputs[i]));
    }
  }
}

Table table_of(const RecordCheck& check) {
  const Record& then = check.then;
  Table table;
  table.has_no_header();
  add_row(table, "version",
          same_or_other(check.version == then.version && check.commit == then.commit),
          "was " + version_text(then.version, then.commit));
  const bool same_machine = machine_text(check.machine) == machine_text(then.machine);
  add_row(table, "machine", same_or_other(same_machine), "was " + machine_text(then.machine));
  for (std::size_t i = 0; i < then.inputs.size(); ++i)
    add_row(table, "input " + then.inputs[i].path, state_word(check.inputs[i]));
  if (!check.now) return table;
  for (const RecordedFile& file : check.now->inputs) {
    if (std::none_of(then.inputs.begin(), then.inputs.end(),
                     [&](const RecordedFile& other) { return other.path == file.path; }))
      add_row(table, "input " + file.path, "new", "it was not read then");
  }
  add_row(table, "exit code", then.exit_code == check.now->exit_code ? "same" : "differs",
          fmt::format("{}, now {}", then.exit_code, check.now->exit_code));
  add_text(table, "stdout", then.printed, check.now->printed);
  add_text(table, "stderr", then.messages, check.now->messages);
  add_outputs(table, check);
  return table;
}

void add_lines(Document& document, const std::string& what, const RecordedText& then,
               const RecordedText& now) {
  if (is_same_text(then, now)) return;
  const LineDifference difference = first_difference(then, now);
  document.blank_line();
  if (difference.lines.empty()) {
    document.sentence(fmt::format(
        "{} differs in its last line end, or behind what the record keeps of it", what));
    return;
  }
  document.sentence(fmt::format("{} from line {} on, - then, + now:", what, difference.first_line));
  std::string lines;
  for (const std::string& line : difference.lines) lines += printable(line) + '\n';
  document.verbatim(lines);
  if (difference.more > 0)
    document.sentence(fmt::format("and {} more", plural(difference.more, "line")));
}

}  // namespace

Document to_document(const RecordCheck& check) {
  const Record& then = check.then;
  Document text;
  text.sentence(printable(
      fmt::format("{}: plumbline {}, {}", check.file, fmt::join(then.command, " "), then.started)));
  text.sentence("  " + verdict(check));
  if (const std::string why = why_not(check); !why.empty()) text.sentence("  " + why);
  if (check.is_elsewhere)
    text.sentence(fmt::format("  its folder {} is not here: the current one takes its place",
                              printable(then.directory)));
  text.blank_line();
  text.table(table_of(check));
  if (!check.now) return text;
  add_lines(text, "stdout", then.printed, check.now->printed);
  add_lines(text, "stderr", then.messages, check.now->messages);
  return text;
}

}  // namespace plumbline
