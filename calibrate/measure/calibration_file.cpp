// Lines of passes: writing, reading, appending.
//
// SPDX-License-Identifier: MIT
#include "calibrate/measure/calibration_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace plumbline {
namespace {

constexpr std::string_view kFormat = "plumbline calibration, version 1";
constexpr std::string_view kPasses = "passes:";
constexpr std::string_view kOneInFlight = "one in flight";
constexpr std::string_view kDelete = "delete the file and calibrate anew";
constexpr std::size_t kMaxBytes = std::size_t{1} << 32U;

/// A parser that goes through the lines of a file, and through the words of a line.
class Parser {
 public:
  explicit Parser(const std::shared_ptr<const Source>& source) : rest_(source->text) {
    kept_.source = source;
    const std::size_t end = rest_.rfind('\n');
    kept_.sound_bytes = end == std::string_view::npos ? 0 : end + 1;
    is_cut_ = kept_.sound_bytes < rest_.size();
    rest_ = rest_.substr(0, kept_.sound_bytes);
  }

  Result<KeptCalibration> parse() {
    if (!next_line() || line_ != kFormat)
      return error(0, fmt::format("the first line is not '{}'", kFormat), kDelete);
    for (;;) {
      if (!next_line()) {
        Diagnostic cut =
            input_error({kept_.source, 0, 0, 1},
                        fmt::format("it ends before '{}': nothing is kept in it", kPasses),
                        std::string(kDelete));
        return cut;
      }
      if (line_.starts_with(kPasses)) break;
      const std::size_t colon = line_.find(": ");
      if (colon == std::string_view::npos)
        return error(0, "this is neither 'key: value' nor 'passes:'", kDelete);
      kept_.head.push_back({std::string(line_.substr(0, colon)),
                            {std::string(line_.substr(colon + 2)), mark(colon + 2)}});
    }
    while (next_line()) {
      if (auto wrong = line_ == "resumed"                 ? resumed()
                       : line_.starts_with("round ")      ? round()
                       : line_.starts_with("neighbours ") ? neighbours()
                       : line_ == kOneInFlight            ? one_in_flight()
                       : line_.starts_with("algorithm ")  ? algorithm()
                                                          : pass()) {
        return *wrong;
      }
    }
    if (is_cut_) kept_.cut_line = number_ + 1;
    if (!open_.passes.empty()) kept_.rounds.push_back(std::move(open_));
    return std::move(kept_);
  }

 private:
  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    at_ = 0;
    ++number_;
    return true;
  }

  Mark mark(std::size_t column, std::size_t length = 0) const {
    if (length == 0) length = line_.size() - std::min(column, line_.size());
    return {kept_.source, number_, static_cast<int>(column) + 1,
            static_cast<int>(std::max<std::size_t>(length, 1))};
  }

  Diagnostic error(std::size_t column, std::string message, std::string_view help,
                   std::size_t length = 0) const {
    return input_error(mark(column, length), std::move(message), std::string(help));
  }

  /// The next word; "" at the end of the line.
  std::string_view word() {
    word_at_ = at_;
    const std::size_t end = std::min(line_.find(' ', at_), line_.size());
    const std::string_view found = line_.substr(at_, end - at_);
    at_ = std::min(end + 1, line_.size());
    return found;
  }

  std::optional<std::int64_t> number(std::string_view word) const {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || failure != std::errc() || end != word.data() + word.size() || value < 0 ||
        value > kLargestQuantity) {
      return std::nullopt;
    }
    return value;
  }

  std::optional<Diagnostic> not_a_number(std::string_view word, std::string_view what) const {
    return error(word_at_, fmt::format("'{}' is no {}", clipped(word), what), kDelete, word.size());
  }

  /// Ends the open round. Passes of another batch, or of a later session, begin another round.
  void close_round() {
    if (!open_.passes.empty()) kept_.rounds.push_back(std::move(open_));
    open_ = {};
  }

  std::optional<Diagnostic> resumed() {
    close_round();
    ++kept_.resumed;
    return std::nullopt;
  }

  std::optional<Diagnostic> neighbours() {
    word();
    const std::string_view count_word = word();
    const auto count = number(count_word);
    if (!count || *count > 0xffff || at_ < line_.size())
      return not_a_number(line_.substr(word_at_), "number of neighbours");
    close_round();
    open_.neighbours = static_cast<std::uint32_t>(*count);
    return std::nullopt;
  }

  std::optional<Diagnostic> one_in_flight() {
    close_round();
    open_.one_in_flight = true;
    return std::nullopt;
  }

  std::optional<Diagnostic> algorithm() {
    word();
    const std::size_t colon = line_.find(": ", at_);
    if (colon == std::string_view::npos)
      return error(at_, "this is no 'algorithm WHAT: WHICH'", kDelete);
    open_.algorithms[std::string(line_.substr(at_, colon - at_))] = line_.substr(colon + 2);
    return std::nullopt;
  }

  std::optional<Diagnostic> round() {
    word();
    const std::string_view batch_word = word();
    const auto batch = number(batch_word);
    if (!batch || *batch == 0) return not_a_number(batch_word, "batch size");
    if (!open_.passes.empty() && open_.batch != *batch) {
      return error(word_at_,
                   fmt::format("a round of batch {} ends passes of batch {}", *batch, open_.batch),
                   kDelete, batch_word.size());
    }
    const std::string_view time_word = word();
    const auto time = number(time_word);
    if (!time || at_ < line_.size()) return not_a_number(line_.substr(word_at_), "time in ns");
    open_.batch = *batch;
    open_.measured = Duration{*time};
    kept_.rounds.push_back(std::move(open_));
    open_ = {};
    return std::nullopt;
  }

  std::optional<Diagnostic> pass() {
    const std::string_view batch_word = word();
    const auto batch = number(batch_word);
    if (!batch || *batch == 0) return not_a_number(batch_word, "batch size");
    const std::string_view device_word = word();
    const auto device = number(device_word);
    if (!device || *device > 0xffff) return not_a_number(device_word, "device");
    const std::string_view kind_word = word();
    const auto* const kind =
        std::find_if(kPassKinds.begin(), kPassKinds.end(), [&](Pass candidate) {
          return kind_word.size() == 1 && kind_word.front() == letter(candidate);
        });
    if (kind == kPassKinds.end())
      return not_a_number(kind_word, "kind of pass: F, B, I, W, U, A or T");
    if (at_ >= line_.size())
      return error(line_.size(), "the times of the pass are missing", kDelete, 1);
    KeptPass pass{static_cast<std::uint32_t>(*device), {*kind, {}}, number_};
    if (line_.substr(at_) != "-") {
      pass.times.layers.reserve(layers_);
      while (at_ < line_.size()) {
        const std::string_view time_word = word();
        const auto time = number(time_word);
        if (!time) return not_a_number(time_word, "time in ns");
        pass.times.layers.push_back(*time);
      }
      layers_ = pass.times.layers.size();
    }
    if (!open_.passes.empty() && open_.batch != *batch) close_round();
    open_.batch = *batch;
    open_.passes.push_back(std::move(pass));
    return std::nullopt;
  }

  KeptCalibration kept_;
  KeptRound open_;  ///< Passes whose round has not ended.
  std::string_view rest_;
  std::string_view line_;
  int number_ = 0;
  std::size_t at_ = 0;
  std::size_t word_at_ = 0;
  std::size_t layers_ = 0;  ///< The number of layers of the previous pass.
  bool is_cut_ = false;
};

Diagnostic cannot_write(const std::string& path, int error, std::string help = "") {
  Diagnostic trouble;
  trouble.mark.source = std::make_shared<const Source>(Source{path, "", ""});
  trouble.message = fmt::format("cannot be written: {}", std::strerror(error));
  trouble.help = std::move(help);
  trouble.fault = Fault::file;
  return trouble;
}

Diagnostic taken(const std::string& path) {
  Diagnostic trouble;
  trouble.mark.source = std::make_shared<const Source>(Source{path, "", ""});
  trouble.message = "another calibration is writing it";
  trouble.help = "wait for its end, or write elsewhere: -o";
  return trouble;
}

/// Whether all of it was written; errno says why not.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(file) == 0;
}

}  // namespace

std::size_t KeptCalibration::passes() const {
  std::size_t all = 0;
  for (const KeptRound& round : rounds) all += round.passes.size();
  return all;
}

Duration KeptCalibration::measured() const {
  Duration all{};
  for (const KeptRound& round : rounds) all += round.measured;
  return all;
}

std::map<std::string, std::string> KeptCalibration::algorithms() const {
  std::map<std::string, std::string> all;
  for (const KeptRound& round : rounds) {
    for (const auto& [what, which] : round.algorithms) all[what] = which;
  }
  return all;
}

std::string calibration_head_text(const CalibrationHead& head) {
  std::string text = fmt::format("{}\n", kFormat);
  for (const auto& [key, value] : head) text += fmt::format("{}: {}\n", key, value);
  return text + fmt::format("{} batch, device, kind, ns of each layer\n", kPasses);
}

std::string calibration_round_text(const KeptRound& round) {
  std::string text;
  if (round.neighbours) text = fmt::format("neighbours {}\n", *round.neighbours);
  if (round.one_in_flight) text += fmt::format("{}\n", kOneInFlight);
  for (const auto& [what, which] : round.algorithms)
    text += fmt::format("algorithm {}: {}\n", what, which);
  for (const KeptPass& pass : round.passes) {
    text += fmt::format("{} {} {}", round.batch, pass.device, letter(pass.times.pass));
    if (pass.times.layers.empty()) text += " -";
    for (const std::int64_t time : pass.times.layers) {
      text += ' ';
      text += std::to_string(time);
    }
    text += '\n';
  }
  return text + fmt::format("round {} {}\n", round.batch, round.measured.count());
}

Result<KeptCalibration> parse_calibration_file(const std::shared_ptr<const Source>& source) {
  return Parser(source).parse();
}

std::optional<Diagnostic> check_other_calibration(const KeptCalibration& kept,
                                                  const CalibrationHead& own) {
  for (std::size_t i = 0; i < std::max(own.size(), kept.head.size()); ++i) {
    if (i >= own.size()) {
      return input_error(
          kept.head[i].second.mark,
          fmt::format("'{}' is no key of a calibration", clipped(kept.head[i].first)),
          std::string(kDelete));
    }
    const auto& [key, value] = own[i];
    if (i >= kept.head.size() || kept.head[i].first != key) {
      const int line = static_cast<int>(i) + 2;
      return input_error({kept.source, line, 1, 1}, fmt::format("here '{}' is missing", key),
                         std::string(kDelete));
    }
    const Marked<std::string>& theirs = kept.head[i].second;
    if (theirs.value != value) {
      return input_error(theirs.mark,
                         fmt::format("this was measured with '{}: {}', and now it is '{}'", key,
                                     clipped(theirs.value), clipped(value)),
                         "go on as it began, or delete the file and calibrate anew");
    }
  }
  return std::nullopt;
}

CalibrationFile::CalibrationFile(const std::string& output) : path_(output + ".partial") {}

CalibrationFile::~CalibrationFile() {
  if (file_ >= 0) close(file_);
}

std::optional<Diagnostic> CalibrationFile::check_existing() const {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return std::nullopt;
  return input_error({std::make_shared<const Source>(Source{path_, "", ""}), 0, 0, 1},
                     "holds what an interrupted calibration has measured",
                     "go on with it by --resume, or delete it and calibrate anew");
}

Result<std::optional<KeptCalibration>> CalibrationFile::resume() {
  const int file = open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::optional<KeptCalibration>();
  if (file < 0) return cannot_write(path_, errno);
  file_ = file;
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) return taken(path_);
  const auto source = read_file(path_, kMaxBytes);
  if (!source) return source.problems();
  auto kept = parse_calibration_file(*source);
  if (!kept) return kept.problems();
  size_ = kept->sound_bytes;
  is_resumed_ = true;
  return std::optional(*std::move(kept));
}

std::optional<Diagnostic> CalibrationFile::open_new() {
  file_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) return errno == EEXIST ? taken(path_) : cannot_write(path_, errno);
  flock(file_, LOCK_EX | LOCK_NB);  // it is new, so no other process uses it
  return std::nullopt;
}

std::optional<Diagnostic> CalibrationFile::append(const CalibrationHead& head,
                                                  const KeptRound& round) {
  std::string text = calibration_round_text(round);
  if (file_ < 0) {
    if (auto trouble = open_new()) return trouble;
    text.insert(0, calibration_head_text(head));
  } else if (is_resumed_) {
    text.insert(0, "resumed\n");
  }
  // Removes an incomplete line of an earlier process now; later also text that cannot be written
  // whole.
  if (ftruncate(file_, static_cast<off_t>(size_)) != 0) return cannot_write(path_, errno);
  if (!write_all(file_, text)) {
    const int error = errno;
    const bool is_empty = size_ == 0;
    // If even that fails, the next reader drops the incomplete line.
    [[maybe_unused]] const int failed = ftruncate(file_, static_cast<off_t>(size_));
    if (is_empty) remove();
    return cannot_write(path_, error,
                        is_empty ? "nothing is kept"
                                 : "what was measured before this round is kept: --resume goes on");
  }
  is_resumed_ = false;
  size_ += text.size();
  return std::nullopt;
}

void CalibrationFile::remove() {
  if (file_ < 0) return;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  close(file_);
  file_ = -1;
}

}  // namespace plumbline
