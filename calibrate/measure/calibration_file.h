// A file beside the output of a calibration, with what it has measured so far, so that it can
// resume.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "calibrate/measure/pass_samples.h"

namespace plumbline {

/// The facts that decide the times, by name: `network`, `device`, ... Two calibrations that differ
/// in one of them have no pass in common.
using CalibrationHead = std::vector<std::pair<std::string, std::string>>;

/// A pass through the stage of one device.
struct KeptPass {
  std::uint32_t device = 0;
  PassTimes times;
  int line = 0;  ///< Its line in the file; 0 = in none.
};

/// Passes that were measured without a pause.
struct KeptRound {
  std::int64_t batch = 1;
  Duration measured{};           ///< The measured time; 0 where the file ends before it.
  std::vector<KeptPass> passes;  ///< Per device in the order of time.
  /// The number of other devices at work beside each; nothing = all of them.
  std::optional<std::uint32_t> neighbours;
  bool one_in_flight = false;  ///< One micro-batch in flight; otherwise one more than devices.
  /// Library algorithms first used in this round, by what they compute.
  std::map<std::string, std::string> algorithms;

  /// Whether all devices worked, as in a steady pipeline.
  bool is_of_all() const { return !neighbours && !one_in_flight; }
};

/// The content of a file that was read.
struct KeptCalibration {
  std::shared_ptr<const Source> source;
  std::vector<std::pair<std::string, Marked<std::string>>> head;
  std::vector<KeptRound> rounds;
  int resumed = 0;              ///< How often it was resumed.
  std::size_t sound_bytes = 0;  ///< The size up to the end of the last whole line.
  int cut_line = 0;             ///< The last line if it is incomplete; it is dropped. 0 = none.

  std::size_t passes() const;
  Duration measured() const;
  std::map<std::string, std::string> algorithms() const;  ///< Of all rounds.
};

// The text: a line that names the format, the head as `key: value`, a line that begins with
// `passes:`, then the rounds. A pass is `BATCH DEVICE KIND NS NS ...`; a dropped pass has `-` in
// place of its times. `round BATCH NS` follows the passes of a round. `neighbours K` comes before
// them if only K other devices worked beside each, and `one in flight` if only one micro-batch was
// in flight. `algorithm WHAT: WHICH` comes before the passes of the first round that used it.
// `resumed` marks where a calibration was resumed.

/// The first lines of a file: format and head.
std::string calibration_head_text(const CalibrationHead& head);
std::string calibration_round_text(const KeptRound& round);

/// Errors: anything else than the above, except an incomplete last line.
Result<KeptCalibration> parse_calibration_file(const std::shared_ptr<const Source>& source);

/// An error if the head of the file is not `own`: the first key that differs, with both values.
std::optional<Diagnostic> check_other_calibration(const KeptCalibration& kept,
                                                  const CalibrationHead& own);

/// The file beside an output. It is made with the first round, only appended to, and belongs to one
/// process at a time.
class CalibrationFile {
 public:
  /// The file beside `output`: its name plus `.partial`.
  explicit CalibrationFile(const std::string& output);
  ~CalibrationFile();
  CalibrationFile(const CalibrationFile&) = delete;
  CalibrationFile& operator=(const CalibrationFile&) = delete;

  const std::string& path() const { return path_; }
  /// An error if there is a file already; it names the two ways out.
  std::optional<Diagnostic> check_existing() const;
  /// Reads an existing file, and appends to it later; nothing where there is none. It changes
  /// nothing yet. Errors: those of parse_calibration_file, a file that cannot be written, or that
  /// another process uses.
  Result<std::optional<KeptCalibration>> resume();

  /// Writes a round to the disk, after the head where the file is new. Errors: it cannot be
  /// written; then the file is as before.
  std::optional<Diagnostic> append(const CalibrationHead& head, const KeptRound& round);
  /// Whether there is a file of this calibration.
  bool holds_something() const { return file_ >= 0; }
  /// Removes the file, where there is one: the calibration is done.
  void remove();

 private:
  std::optional<Diagnostic> open_new();

  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;     ///< The size to keep, in bytes.
  bool is_resumed_ = false;  ///< Resumed, and nothing appended yet.
};

}  // namespace plumbline
