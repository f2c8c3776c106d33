// Answers as people type them.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/quiz/quiz.h"

namespace plumbline {

/// A number in this unit: "18.75", "18,75", "18.75 %". In ms also other units of time. Errors: no
/// number, another unit.
Result<double> number_in_answer(const std::string& text, const std::string& unit);

/// A whole number in [min, max]. Errors: another number, another unit.
Result<std::int64_t> whole_in_answer(const std::string& text, const std::string& unit,
                                     std::int64_t min, std::int64_t max);

/// Whole numbers: "2 3 1", "2,3,1", "[2, 3, 1]". Errors: none, another word among them, not
/// `count` of them.
Result<std::vector<std::int64_t>> numbers_in_answer(const std::string& text, std::size_t count);

/// Ops in a row: "F0 F1 B0", "0F0,1F0", "f 0 b 0". Each becomes "F0", or "0F0" with a stage.
/// Errors: none, another word among them.
Result<std::vector<std::string>> ops_in_answer(const std::string& text);

/// The ops of each GPU, a line each; `;` or `|` parts lines, too, and a line may begin with "GPU
/// 0:". Errors: those of ops_in_answer(); not `lines` lines.
Result<std::vector<std::vector<std::string>>> order_in_answer(const std::string& text,
                                                              std::size_t lines);

/// The id of a choice, given by its id or its text. Errors: neither.
Result<std::string> choice_in_answer(const std::string& text,
                                     const std::vector<QuizChoice>& choices);

/// "F0 F1 B0".
std::string ops_text(const std::vector<std::string>& ops);

}  // namespace plumbline
