// What a recorder notes of a command.
//
// SPDX-License-Identifier: MIT
#include "cli/record/recorder.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/gzip_file.h"
#include "base/yaml.h"
#include "cli/record/sha256.h"
#include "tests/support/temporary_folder.h"

namespace plumbline::test {
namespace {

RecordedStart some_start() {
  return {"1.2.3", {"simulate", "a.yaml"}, std::nullopt, {80, true, false}};
}

TEST_CASE("files that are read are inputs, once each and as they were first") {
  const TemporaryFolder folder;
  const std::string whole = folder.file("b.yaml",
                                        "\xEF\xBB\xBF"
                                        "a: 1\n");
  const std::string chunks = folder.file("a.json", "{}");
  Recorder recorder(some_start(), Recorder::Outputs::written);
  CHECK(read_yaml(whole));
  folder.file("b.yaml", "a: 2\n");
  CHECK(read_yaml(whole));
  { const GzipFile file(chunks); }
  CHECK_FALSE(read_yaml(folder["none.yaml"]));
  CHECK_FALSE(read_yaml(folder.path()));
  const Record record = recorder.record(0);
  CHECK(record.inputs == std::vector<RecordedFile>{{chunks, 2, sha256("{}")},
                                                   {whole, 8,
                                                    sha256("\xEF\xBB\xBF"
                                                           "a: 1\n")}});
}

TEST_CASE("outputs are those of stdout and of files; a file that is written twice counts once") {
  Recorder recorder(some_start(), Recorder::Outputs::held);
  CHECK(recorder.holds_outputs());
  recorder.note_output("one\n", "");
  recorder.note_output("two\n", "");
  recorder.note_output("x", "f");
  recorder.note_output("yz", "f");
  recorder.note_message("note: \n");
  recorder.note_gpu("a GPU");
  const Record record = recorder.record(3);
  CHECK(record.printed == recorded_text("one\ntwo\n"));
  CHECK(record.messages == recorded_text("note: \n"));
  CHECK(record.outputs == std::vector<RecordedFile>{{"f", 2, sha256("yz")}});
  CHECK(record.exit_code == 3);
  CHECK(record.machine.gpu == "a GPU");
  CHECK(record.machine.cores > 0);
  CHECK(record.command == std::vector<std::string>{"simulate", "a.yaml"});
  CHECK(record.directory == std::filesystem::current_path().string());
  CHECK(record.started.size() == 20);
  CHECK(record.started.back() == 'Z');
  CHECK(record.runtime_s >= 0);
}

TEST_CASE("the last of nested recorders counts, and files may be read on several threads") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.yaml", "a: 1\n");
  CHECK(Recorder::active() == nullptr);
  CHECK(read_observer() == nullptr);
  {
    Recorder outer(some_start(), Recorder::Outputs::written);
    {
      Recorder inner(some_start(), Recorder::Outputs::held);
      CHECK(Recorder::active() == &inner);
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) threads.emplace_back([&] { CHECK(read_yaml(path)); });
      for (std::thread& thread : threads) thread.join();
      CHECK(inner.record(0).inputs.size() == 1);
    }
    CHECK(Recorder::active() == &outer);
    CHECK(outer.record(0).inputs.empty());
  }
  CHECK(Recorder::active() == nullptr);
  CHECK(read_observer() == nullptr);
}

}  // namespace
}  // namespace plumbline::test
