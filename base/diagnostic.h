// What is wrong in an input, and where; and Result<T>, a value or all that is wrong.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bug.h"
#include "base/wrap.h"

namespace plumbline {

/// A text that was read: a file, or an argument of the command line. Marks point into it.
struct Source {
  std::string name;       ///< As the user wrote the path; `<command line>` for an argument.
  std::string text;       ///< The whole text, for the quoted line under a message.
  std::string directory;  ///< What relative paths in this text are relative to; "" = here.

  /// The line with this number, counted from 1, without its end; "" past the last.
  std::string_view line(int number) const;
};

/// A place in a source. Lines and columns count from 1; line 0 = the source as a whole.
struct Mark {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
  int length = 1;  ///< Bytes to underline.
};

/// A value with the place that it was read from.
template <class T>
struct Marked {
  T value{};
  Mark mark;
};

/// What kind of fault a diagnostic tells of; it decides the exit code (2, 3, 4 or 5).
enum class Fault {
  input,       ///< Wrong usage, a wrong scenario.
  file,        ///< A file cannot be read or written.
  infeasible,  ///< The input is well formed, but cannot run: deadlock, out of memory.
  no_device,   ///< What it asks for is not on this machine, or not in this build.
};

/// One thing that is wrong. Invariant: `message` is one sentence, lower case, without a full stop.
struct Diagnostic {
  Mark mark;
  std::string message;
  std::string help;    ///< What to do; "" = nothing to add.
  std::string detail;  ///< A picture below the message, such as the grid of a schedule; "" = none.
  Fault fault = Fault::input;
};

using Diagnostics = std::vector<Diagnostic>;

/// The common case: something is wrong with the input at `mark`.
Diagnostic input_error(const Mark& mark, std::string message, std::string help = "");

/// The diagnostic as people read it: place, message, the line with a caret, help. Ends in a
/// newline.
std::string to_text(const Diagnostic& diagnostic, PageWidth width = std::nullopt);

/// All of them, in the order of their places within one source, each once.
std::string to_text(const Diagnostics& diagnostics, PageWidth width = std::nullopt);

/// The length of the valid UTF-8 character at `at`, or 0 where there is none.
/// Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// `text` with '?' for every byte that is no printable character.
std::string printable(std::string_view text);

/// `text` as a message may quote it: at most 60 bytes, cut between characters and ended with "...".
std::string clipped(std::string_view text);

/// The problems with `mark` on those that have no place in a file.
Diagnostics located(Diagnostics problems, const Mark& mark);

/// ASCII letters in lower case, all else as it is.
std::string lower_case(std::string_view text);

/// What people write in full, in lower case, and what stands for it in the names that are offered.
using Abbreviations = std::vector<std::pair<std::string_view, std::string_view>>;

/// "did you mean 'x'?" for `help`, or "" where nothing offered is near to `word`, nor to what is
/// short for it.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& offered,
                         const Abbreviations& short_for = {});

/// A value of T, or all the diagnostics that were found on the way to it.
/// Invariant: exactly one of the two; the diagnostics are not empty.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostics problems) : state_(std::in_place_index<1>, std::move(problems)) {
    PLUMBLINE_CHECK(!std::get<1>(state_).empty(), "a failed result without a diagnostic");
  }
  Result(Diagnostic problem) : Result(Diagnostics{std::move(problem)}) {}

  explicit operator bool() const { return state_.index() == 0; }
  /// Requires: the result holds a value.
  const T& operator*() const& { return std::get<0>(state_); }
  T& operator*() & { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  const T* operator->() const { return &std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  /// Requires: the result holds diagnostics.
  const Diagnostics& problems() const { return std::get<1>(state_); }

 private:
  std::variant<T, Diagnostics> state_;
};

/// Appends what is wrong in `result`, if anything, and says whether it holds a value.
template <class T>
bool keep(const Result<T>& result, Diagnostics& problems) {
  if (result) return true;
  problems.insert(problems.end(), result.problems().begin(), result.problems().end());
  return false;
}

/// Reads a file whole. Errors: missing, a directory, unreadable, larger than `max_bytes`.
Result<std::shared_ptr<const Source>> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace plumbline
