// Printing diagnostics, suggesting names, reading files.
//
// SPDX-License-Identifier: MIT
#include "base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/memory_files.h"
#include "base/read_observer.h"

namespace plumbline {
namespace {

/// Letters to insert, delete, replace or swap until `a` is `b` (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

/// A line as it may be shown: at most `max` bytes around `column`.
struct Excerpt {
  std::string text;
  int column;  ///< Of the caret in `text`, from 1.
};

Excerpt excerpt(std::string_view line, int column, PageWidth width) {
  constexpr std::size_t margin = 8;  // "  123 | "
  const std::size_t max = width ? std::max(*width, 3 * margin) - margin : 120;
  const auto at = static_cast<std::size_t>(std::max(column, 1)) - 1;
  std::size_t first = 0;
  if (line.size() > max && at > max / 2) first = std::min(at - max / 2, line.size() - max);
  const auto continues = [&](std::size_t i) {
    return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80;
  };
  while (first > 0 && continues(first)) --first;
  std::size_t end = std::min(line.size(), first + max);
  while (end > first && continues(end)) --end;
  return {printable(line.substr(first, end - first)),
          static_cast<int>(at - std::min(at, first)) + 1};
}

/// Terminal columns before byte `bytes` of `text`: bytes that continue a UTF-8 character take none.
std::size_t columns_before(std::string_view text, std::size_t bytes) {
  const std::string_view part = text.substr(0, std::min(bytes, text.size()));
  return static_cast<std::size_t>(std::count_if(part.begin(), part.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string_view Source::line(int number) const {
  std::string_view rest = text;
  for (int at = 1; at < number; ++at) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  std::string_view found = rest.substr(0, rest.find('\n'));
  if (!found.empty() && found.back() == '\r') found.remove_suffix(1);
  return found;
}

Diagnostic input_error(const Mark& mark, std::string message, std::string help) {
  return {.mark = mark,
          .message = std::move(message),
          .help = std::move(help),
          .detail = {},
          .fault = Fault::input};
}

std::string to_text(const Diagnostic& diagnostic, PageWidth width) {
  const Mark& mark = diagnostic.mark;
  std::string head = "error: " + diagnostic.message;
  if (mark.source && mark.line > 0) {
    head = fmt::format("{}:{}:{}: {}", printable(mark.source->name), mark.line, mark.column, head);
  } else if (mark.source) {
    head = fmt::format("{}: {}", printable(mark.source->name), head);
  }
  std::string text = wrapped(head, width) + '\n';
  if (mark.source && mark.line > 0) {
    const Excerpt shown = excerpt(mark.source->line(mark.line), mark.column, width);
    const auto at = static_cast<std::size_t>(shown.column) - 1;
    const std::size_t before = columns_before(shown.text, at);
    const std::size_t end = at + static_cast<std::size_t>(std::max(mark.length, 1));
    const std::size_t wide =
        columns_before(shown.text, end) - std::min(before, columns_before(shown.text, end));
    text += fmt::format("{:>5} | {}\n", mark.line, shown.text);
    text += fmt::format("      | {}^{}\n", std::string(before, ' '),
                        std::string(wide > 1 ? wide - 1 : 0, '~'));
  }
  text += diagnostic.detail;
  if (!diagnostic.help.empty()) text += wrapped("  help: " + diagnostic.help, width) + '\n';
  return text;
}

std::string to_text(const Diagnostics& diagnostics, PageWidth width) {
  constexpr std::size_t max = 50;
  // Sources in the order in which they were first named, then by place.
  std::vector<const Source*> sources;
  std::vector<std::tuple<std::size_t, int, int, const Diagnostic*>> sorted;
  for (const Diagnostic& d : diagnostics) {
    auto found = std::find(sources.begin(), sources.end(), d.mark.source.get());
    if (found == sources.end()) found = sources.insert(sources.end(), d.mark.source.get());
    sorted.emplace_back(found - sources.begin(), d.mark.line, d.mark.column, &d);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  std::string text;
  std::string last;
  std::size_t printed = 0;
  for (const auto& entry : sorted) {
    if (printed == max) {
      text += fmt::format("and {} more errors\n", sorted.size() - printed);
      break;
    }
    std::string one = to_text(*std::get<3>(entry), width);
    if (one == last) continue;
    text += one;
    last = std::move(one);
    ++printed;
  }
  return text;
}

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto between = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(at);
  if (at >= text.size() || first < 0x80) return at < text.size() ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (!between(at + 1, low, high)) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!between(at + i, 0x80, 0xBF)) return 0;
  }
  return length;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto c = static_cast<unsigned char>(text[at]);
    if (length == 1 && c == '\t') {
      shown += ' ';
    } else if (length == 0 || (length == 1 && (c < 0x20 || c == 0x7F))) {
      shown += '?';
    } else {
      shown += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return shown;
}

Diagnostics located(Diagnostics problems, const Mark& mark) {
  for (Diagnostic& problem : problems) {
    if (!problem.mark.source) problem.mark = mark;
  }
  return problems;
}

std::string clipped(std::string_view text) {
  constexpr std::size_t max = 60;
  if (text.size() <= max) return printable(text);
  std::size_t end = max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

std::string lower_case(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

namespace {

/// The parts of a name: "interleaved-1f1b" has two.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::erase(parts, "");
  return parts;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The candidates that are nearest to the word, if they are nearer than `limit` changes.
std::vector<std::string> nearest(const std::string& word, const std::vector<std::string>& offered,
                                 std::size_t limit) {
  std::vector<std::string> best;
  for (const std::string& candidate : offered) {
    const std::size_t distance = edit_distance(word, lower_case(candidate));
    if (distance >= limit) continue;
    limit = distance;
    best = {candidate};
  }
  return best;
}

template <class Test>
std::vector<std::string> those(const std::vector<std::string>& offered, Test&& test) {
  std::vector<std::string> found;
  for (const std::string& candidate : offered) {
    if (test(lower_case(candidate))) found.push_back(candidate);
  }
  return found;
}

/// `word` with what names abbreviate in short.
std::string abbreviated(std::string word, const Abbreviations& short_for) {
  for (const auto& [written, in_names] : short_for) {
    const std::size_t at = word.find(written);
    if (at != std::string::npos) word.replace(at, written.size(), in_names);
  }
  return word;
}

/// What somebody who wrote `word` may have meant, the surest reading that offers anything: one
/// letter is wrong; the word is the beginning; its parts are all there; few letters are wrong; the
/// first part is one of the word's.
std::vector<std::string> meant_by(const std::string& word,
                                  const std::vector<std::string>& offered) {
  if (auto found = nearest(word, offered, 2); !found.empty()) return found;
  if (word.size() < 2) return {};
  auto found = those(offered, [&](const std::string& name) { return name.starts_with(word); });
  if (!found.empty()) return found;
  const std::vector<std::string> parts = parts_of(word);
  found = those(offered, [&](const std::string& name) {
    const std::vector<std::string> of_name = parts_of(name);
    return std::all_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return contains(of_name, part); });
  });
  if (!found.empty() && !parts.empty()) return found;
  found = nearest(word, offered, std::max<std::size_t>(1, word.size() / 3) + 1);
  if (!found.empty() || parts.size() < 2) return found;
  return those(offered, [&](const std::string& name) {
    const std::vector<std::string> of_name = parts_of(name);
    return !of_name.empty() && of_name.front().size() > 2 && contains(parts, of_name.front());
  });
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& offered,
                         const Abbreviations& short_for) {
  constexpr std::size_t max_suggested = 4;
  if (word.size() > 64) return "";
  std::vector<std::string> meant = meant_by(abbreviated(lower_case(word), short_for), offered);
  if (meant.empty()) return "";
  if (meant.size() > max_suggested) meant.resize(max_suggested);
  std::string text = fmt::format("did you mean '{}'", meant.front());
  for (std::size_t i = 1; i < meant.size(); ++i)
    text += fmt::format("{}'{}'", i + 1 == meant.size() ? " or " : ", ", meant[i]);
  return text + '?';
}

Result<std::shared_ptr<const Source>> read_file(const std::string& path, std::size_t max_bytes) {
  auto source = std::make_shared<Source>();
  source->name = path;
  source->directory = std::filesystem::path(path).parent_path().string();
  const auto fail = [&](std::string message) {
    return Diagnostic{.mark = {source},
                      .message = std::move(message),
                      .help = {},
                      .detail = {},
                      .fault = Fault::file};
  };
  if (const std::string* const text = MemoryFiles::find(path)) {
    source->text = *text;
    return std::shared_ptr<const Source>(std::move(source));
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return fail("is a directory, not a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(fmt::format("cannot be read: {}", std::strerror(errno != 0 ? errno : EIO)));
  std::string chunk(std::size_t{1} << 16, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    source->text.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
    if (source->text.size() > max_bytes) {
      return fail(fmt::format("is larger than {} MiB, the most that is read", max_bytes >> 20U));
    }
  }
  if (file.bad()) return fail("cannot be read to its end");
  if (ReadObserver* const observer = read_observer()) observer->read_whole(path, source->text);
  if (source->text.compare(0, 3, "\xEF\xBB\xBF") == 0)
    source->text.erase(0, 3);  // a byte-order mark
  return std::shared_ptr<const Source>(std::move(source));
}

}  // namespace plumbline
