// A student's answers as one word to copy.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/diagnostic.h"

namespace plumbline {

/// The last answer to a question.
struct GivenAnswer {
  std::string answer;
  std::int64_t tries = 1;  ///< How often an answer to the question was checked.

  friend bool operator==(const GivenAnswer&, const GivenAnswer&) = default;
};

/// All answers of a student.
struct StudentAnswers {
  std::string student;                         ///< As student_number() gives it.
  std::map<std::string, GivenAnswer> answers;  ///< By the id of the question.

  friend bool operator==(const StudentAnswers&, const StudentAnswers&) = default;
};

/// `PL1-`, base64url of JSON, `-`, and 6 hexadecimal digits of a checksum. The checksum shows
/// damage. It proves nothing about who wrote the code: anybody can write one. Errors: those of
/// student_number(); an id, an answer or a number of tries beyond the bounds of read_code().
Result<std::string> code_of(const StudentAnswers& answers);

/// Reads a code. Blanks, line ends and quotation marks in it are ignored. Errors: no code; a
/// checksum that does not fit; JSON of another form; more than 100 answers, an id of more than 40
/// or an answer of more than 2000 bytes, tries outside of 0 to 1,000,000.
Result<StudentAnswers> read_code(const std::string& code);

}  // namespace plumbline
