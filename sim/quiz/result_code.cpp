// Codes, written and read.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/result_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/base64.h"
#include "sim/quiz/figures.h"
#include "sim/quiz/quiz.h"

namespace plumbline {
namespace {

using CodeJson = nlohmann::json;

constexpr std::string_view kCodeBegin = "PL1-";
constexpr std::size_t kCheckDigits = 6;
constexpr std::size_t kLongestCode = 400'000;
constexpr std::size_t kMostAnswers = 100;
constexpr std::size_t kLongestId = 40;
constexpr std::int64_t kMostTries = 1'000'000;

/// 24 bits of the hash of all before the checksum.
std::string check_digits(std::string_view text) {
  const std::uint64_t hash = fnv_of(text);
  return fmt::format("{:06x}", (hash ^ hash >> 24U ^ hash >> 48U) & 0xffffffU);
}

/// The code without what mail programs and editors put into it.
std::string without_wrapping(std::string_view code) {
  constexpr std::array<std::string_view, 17> marks = {
      " ",      "\t",     "\r",     "\n",     "\"",     "'",      "`",      "\u00a0", "\u2018",
      "\u2019", "\u201a", "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb", "\ufeff"};
  std::string kept;
  while (!code.empty()) {
    const auto mark = std::find_if(marks.begin(), marks.end(),
                                   [&](std::string_view one) { return code.starts_with(one); });
    const std::size_t length = mark == marks.end() ? 1 : mark->size();
    if (mark == marks.end()) kept += code.front();
    code.remove_prefix(length);
  }
  return kept;
}

std::optional<Diagnostic> check_given(const std::string& id, const GivenAnswer& given) {
  if (id.empty() || id.size() > kLongestId)
    return input_error({}, fmt::format("'{}' is no id of a question", clipped(id)));
  if (given.answer.size() > kLongestAnswer)
    return input_error(
        {}, fmt::format("the answer to '{}' has more than {} bytes", clipped(id), kLongestAnswer));
  if (given.tries < 0 || given.tries > kMostTries)
    return input_error({}, fmt::format("the tries of '{}' are {}, not between 0 and {}",
                                       clipped(id), given.tries, kMostTries));
  return std::nullopt;
}

Diagnostic damaged(const std::string& why) {
  return input_error({}, "the code is damaged: " + why,
                     "copy all of it, from PL1- to the six characters behind the last hyphen");
}

}  // namespace

Result<std::string> code_of(const StudentAnswers& answers) {
  const auto student = student_number(answers.student);
  if (!student) return student.problems();
  if (answers.answers.size() > kMostAnswers)
    return input_error({}, fmt::format("a code has at most {} answers", kMostAnswers));
  CodeJson given = CodeJson::object();
  for (const auto& [id, one] : answers.answers) {
    if (const auto wrong = check_given(id, one)) return *wrong;
    given[id] = {one.answer, one.tries};
  }
  std::string payload;
  try {
    payload = CodeJson{{"s", *student}, {"a", std::move(given)}}.dump();
  } catch (const CodeJson::exception&) {
    return input_error({}, "an answer is no valid UTF-8");
  }
  const std::string text = std::string(kCodeBegin) + base64_url(payload);
  return text + '-' + check_digits(text);
}

Result<StudentAnswers> read_code(const std::string& code) {
  if (code.size() > kLongestCode) return damaged("it is too long");
  const std::string text = without_wrapping(code);
  if (!text.starts_with(kCodeBegin))
    return input_error({}, fmt::format("'{}' is no result code", clipped(text)),
                       "a code begins with PL1-, and the lesson shows it");
  const std::size_t end = text.rfind('-');
  if (end < kCodeBegin.size() || text.size() - end - 1 != kCheckDigits)
    return damaged("its end is missing, or something stands behind it");
  if (check_digits(std::string_view(text).substr(0, end)) != text.substr(end + 1))
    return damaged("the checksum does not fit");
  const auto payload =
      from_base64_url(std::string_view(text).substr(kCodeBegin.size(), end - kCodeBegin.size()));
  if (!payload) return damaged("a character in it is none of a code");
  const auto json = CodeJson::parse(*payload, nullptr, /*allow_exceptions=*/false);
  const auto other_form = [] { return damaged("what it holds is not of the form of a code"); };
  if (!json.is_object() || json.size() != 2 || !json.contains("s") || !json.contains("a") ||
      !json["s"].is_string() || !json["a"].is_object() || json["a"].size() > kMostAnswers)
    return other_form();
  auto student = student_number(json["s"].get<std::string>());
  if (!student) return student.problems();
  StudentAnswers answers{*std::move(student), {}};
  for (const auto& [id, one] : json["a"].items()) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_string() || !one[1].is_number_integer())
      return other_form();
    GivenAnswer given{one[0].get<std::string>(), one[1].get<std::int64_t>()};
    if (const auto wrong = check_given(id, given)) return *wrong;
    answers.answers.emplace(id, std::move(given));
  }
  return answers;
}

}  // namespace plumbline
