// Readers of answers.
//
// SPDX-License-Identifier: MIT
#include "sim/quiz/answer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/quantity.h"

namespace plumbline {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// The answer with usual blanks in place of those that do not break.
std::string with_usual_blanks(std::string text) {
  for (const std::string_view mark : {"\u00a0", "\u202f"}) {
    for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at))
      text.replace(at, mark.size(), " ");
  }
  return text;
}

std::string trimmed_answer(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
}

bool is_digit_of_answer(char one) { return one >= '0' && one <= '9'; }

/// "in %", "such as 18.75 %".
std::string number_help(const std::string& unit) {
  if (unit == "%") return "write it in percent, such as 18.75";
  if (unit.empty()) return "write a number, such as 4";
  return fmt::format("write a number of {}, such as 4", unit);
}

/// The number without its unit behind it, in the plural or the singular: "4 GPUs", "1 GPU".
std::string without_unit_of_answer(const std::string& number, const std::string& unit) {
  std::vector<std::string> forms = {lower_case(unit)};
  if (unit.ends_with('s')) forms.push_back(forms.front().substr(0, unit.size() - 1));
  if (unit == "micro-batches") forms.emplace_back("micro-batch");
  if (unit == "%") forms.emplace_back("percent");
  for (const std::string& form : forms) {
    if (!form.empty() && number.size() > form.size() && lower_case(number).ends_with(form))
      return trimmed_answer(std::string_view(number).substr(0, number.size() - form.size()));
  }
  return number;
}

bool has_digit(std::string_view word) {
  return std::any_of(word.begin(), word.end(), is_digit_of_answer);
}

/// The GPU that a line of an order names before its colon: "GPU 1: ..."; nothing: another form.
std::optional<std::size_t> gpu_of_label(std::string_view label) {
  std::string text = lower_case(trimmed_answer(label));
  for (const std::string_view noun : {"gpu", "rank", "device"}) {
    if (text.starts_with(noun)) text = trimmed_answer(std::string_view(text).substr(noun.size()));
  }
  const auto number = parse_count(text);
  if (!number.value || *number.value < 0) return std::nullopt;
  return static_cast<std::size_t>(*number.value);
}

}  // namespace

Result<double> number_in_answer(const std::string& text, const std::string& unit) {
  std::string number = trimmed_answer(with_usual_blanks(text));
  if (std::count(number.begin(), number.end(), ',') == 1 && number.find('.') == number.npos)
    number[number.find(',')] = '.';
  if (unit == "ms") {
    if (const auto time = parse_duration(number); time.value) return seconds(*time.value) * 1e3;
  } else {
    number = without_unit_of_answer(number, unit);
  }
  const auto value = parse_real(number);
  if (!value.value)
    return input_error({},
                       fmt::format("'{}' {}", clipped(trimmed_answer(text)),
                                   has_digit(number) ? value.problem : "is no number"),
                       number_help(unit));
  return *value.value;
}

Result<std::int64_t> whole_in_answer(const std::string& text, const std::string& unit,
                                     std::int64_t min, std::int64_t max) {
  const auto number = number_in_answer(text, unit);
  if (!number) return number.problems();
  if (*number != std::floor(*number) || *number < static_cast<double>(min) ||
      *number > static_cast<double>(max))
    return input_error({},
                       fmt::format("'{}' is no whole number between {} and {}",
                                   clipped(trimmed_answer(text)), min, max),
                       number_help(unit));
  return static_cast<std::int64_t>(*number);
}

Result<std::vector<std::int64_t>> numbers_in_answer(const std::string& text, std::size_t count) {
  const std::string help = fmt::format("write {} whole numbers with blanks between them", count);
  std::vector<std::int64_t> numbers;
  constexpr std::string_view separators = " \t\r\n,;[](){}";
  for (std::size_t at = text.find_first_not_of(separators); at != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string word = text.substr(at, end - at);
    at = text.find_first_not_of(separators, end);
    if (!has_digit(word)) continue;  // "GPU", "and", "layers"
    const auto number = parse_count(word);
    if (!number.value)
      return input_error({}, fmt::format("'{}' is no whole number", clipped(word)), help);
    numbers.push_back(*number.value);
  }
  if (numbers.size() == count) return numbers;
  return input_error(
      {},
      fmt::format("the answer has {}, not {}",
                  counted(static_cast<std::int64_t>(numbers.size()), "number", "numbers"), count),
      help);
}

Result<std::vector<std::string>> ops_in_answer(const std::string& text) {
  const std::string help = "write ops such as F0 F1 B0: F or B, and the micro-batch";
  constexpr std::string_view separators = " \t\r\n,;|.'\"[](){}";
  constexpr std::size_t digits_at_most = 6;
  std::vector<std::string> ops;
  for (std::size_t at = text.find_first_not_of(separators); at != text.npos;
       at = text.find_first_not_of(separators, at)) {
    const std::size_t begin = at;
    while (at < text.size() && is_digit_of_answer(text[at])) ++at;
    std::string op = text.substr(begin, at - begin);
    const char letter = at < text.size() ? text[at] : ' ';
    if (letter == 'F' || letter == 'f' || letter == 'B' || letter == 'b') {
      op += letter == 'F' || letter == 'f' ? 'F' : 'B';
      at = std::min(text.find_first_not_of(" _({[", at + 1), text.size());
      const std::size_t number = at;
      while (at < text.size() && is_digit_of_answer(text[at])) ++at;
      if (at > number && at - number <= digits_at_most && op.size() <= digits_at_most) {
        ops.push_back(op + std::to_string(std::stol(text.substr(number, at - number))));
        continue;
      }
    }
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    return input_error({}, fmt::format("'{}' is no op", clipped(text.substr(begin, end - begin))),
                       help);
  }
  if (ops.empty()) return input_error({}, "there is no op in the answer", help);
  return ops;
}

Result<std::vector<std::vector<std::string>>> order_in_answer(const std::string& text,
                                                              std::size_t lines) {
  std::vector<std::vector<std::string>> order(lines);
  std::size_t count = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n;|", at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    std::size_t gpu = count;
    if (const std::size_t colon = line.find(':'); colon != line.npos) {
      const std::string label = line.substr(0, colon);
      const auto named = gpu_of_label(label);
      if (!named || *named >= lines)
        return input_error({},
                           fmt::format("'{}:' names no GPU of 0 to {}", clipped(label), lines - 1),
                           "a line may begin with its GPU, such as 'GPU 0:'");
      gpu = *named;
      line.erase(0, colon + 1);
    }
    if (trimmed_answer(line).empty()) continue;
    auto ops = ops_in_answer(line);
    if (!ops) return ops.problems();
    if (gpu < lines && !order[gpu].empty())
      return input_error({}, fmt::format("there are two lines of GPU {}", gpu), "");
    if (gpu < lines) order[gpu] = *std::move(ops);
    ++count;
  }
  if (count == lines) return order;
  return input_error({},
                     fmt::format("there is an order of {} in the answer, not of {}",
                                 counted(static_cast<std::int64_t>(count), "GPU", "GPUs"), lines),
                     "write one line for each GPU, or ';' between them");
}

Result<std::string> choice_in_answer(const std::string& text,
                                     const std::vector<QuizChoice>& choices) {
  const std::string said = lower_case(trimmed_answer(text));
  std::vector<std::string> ids;
  for (const QuizChoice& one : choices) {
    if (said == lower_case(one.id) || said == lower_case(one.text)) return one.id;
    ids.push_back(one.id);
  }
  return input_error({}, fmt::format("'{}' is none of the answers", clipped(trimmed_answer(text))),
                     fmt::format("one of {}", fmt::join(ids, ", ")));
}

std::string ops_text(const std::vector<std::string>& ops) {
  return fmt::format("{}", fmt::join(ops, " "));
}

}  // namespace plumbline
