// The keys of a record's file.
//
// SPDX-License-Identifier: MIT
#include <utility>

#include "cli/record/record.h"

namespace plumbline {
namespace {

using namespace format;

constexpr std::int64_t kMaxExitCode = 255;
constexpr double kMaxRuntime = 1e9;

KeyFormat needed(std::string_view name, ValueFormat value, std::string_view meaning) {
  return {.name = name, .values = {std::move(value)}, .text = meaning, .required = true};
}

const SectionFormat& tool_format() {
  static const SectionFormat tool = {
      .name = "record_tool",
      .text = "The program that wrote the record.",
      .keys = {needed("name", word("plumbline"), "Its name."),
               needed("version", text(), "Its version."),
               needed("commit", text(), "The commit that it was built from, or unknown.")}};
  return tool;
}

const SectionFormat& machine_format() {
  static const SectionFormat machine = {
      .name = "record_machine",
      .text = "The machine on which the command ran.",
      .keys = {needed("processor", text(), "The name of its processor."),
               needed("cores", count(0), "The cores that the command could use."),
               needed("system", text(), "Its operating system."),
               {"gpu", {text(), nothing()}, "The GPU, where the command ran on one."}}};
  return machine;
}

const SectionFormat& page_format() {
  static const SectionFormat page = {
      .name = "record_page",
      .text = "The page on which the command printed.",
      .keys = {needed("columns", count(kMinPageWidth, kMaxPageWidth), "The width of stdout."),
               needed("unicode", boolean(), "Whether the locale was UTF-8."),
               needed("color", boolean(), "Whether stdout showed colours.")}};
  return page;
}

const SectionFormat& text_section() {
  static const SectionFormat printed = {
      .name = "record_text",
      .text = "What the command printed.",
      .keys = {needed("bytes", count(0), "Its size."), needed("sha256", text(), "Its SHA-256."),
               needed("whole", boolean(), "Whether lines has all of it, not only the first 4 MiB."),
               needed("lines", list({text()}), "Its lines.")}};
  return printed;
}

}  // namespace

const SectionFormat& recorded_file_format() {
  static const SectionFormat file = {
      .name = "record_file",
      .text = "A file, as it was then.",
      .keys = {needed("path", text(), "As the command named it, relative to its directory."),
               needed("bytes", count(0), "Its size."),
               needed("sha256", text(), "Its SHA-256; empty if it is no regular file.")}};
  return file;
}

const SectionFormat& record_format() {
  static const SectionFormat record = {
      .name = "record",
      .text = "What a command did: plumbline COMMAND --record FILE writes it.",
      .keys = {
          needed("schema_version", count(1, 1), "The version of the format."),
          needed("kind", word(kRecordKind), "That this is a record."),
          needed("tool", section(&tool_format), "The program."),
          needed("command", list({text()}, 1),
                 "The words of the command line, without plumbline and --record FILE."),
          needed("directory", text(), "The folder in which the command ran."),
          needed("started", text(), "The time at which it began, in UTC."),
          needed("runtime_s", real(kMaxRuntime), "How long it took, in seconds."),
          needed("machine", section(&machine_format), "Where it ran."),
          {"backend", {text(), nothing()}, "Its --backend."},
          needed("page", section(&page_format), "The page on which it printed."),
          needed("inputs", list({section(&recorded_file_format)}), "The files that it read."),
          needed("outputs", list({section(&recorded_file_format)}), "The files that it wrote."),
          needed("exit_code", count(0, kMaxExitCode), "Its exit code."),
          needed("stdout", section(&text_section), "What it printed."),
          needed("stderr", section(&text_section), "Its messages, without the progress.")}};
  return record;
}

}  // namespace plumbline
