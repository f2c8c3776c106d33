// What a calibration has measured so far, kept in a file beside its output, so that it can go on.
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

/// What decides the times, by name: `network`, `device`, ... Two calibrations that differ in one of
/// them have no pass in common.
using CalibrationHead = std::vector<std::pair<std::string, std::string>>;

/// A pass through the stage of one device.
struct KeptPass {
  std::uint32_t device = 0;
  PassTimes times;
  int line = 0;  ///< Where it stands in the file; 0 = in none.
};

/// Passes that were measured without a pause.
struct KeptRound {
  std::int64_t batch = 1;
  Duration measured{};           ///< For how long; 0 where the file ends before that is said.
  std::vector<KeptPass> passes;  ///< Of each device in the order of time.
  /// So many other devices worked beside each; nothing = all of them.
  std::optional<std::uint32_t> neighbours;
  bool one_in_flight = false;  ///< With one micro-batch in flight; otherwise one more than devices.
  /// That libraries were given for the first time, by what they compute.
  std::map<std::string, std::string> algorithms;

  /// Whether all devices worked, as in a steady pipeline.
  bool is_of_all() const { return !neighbours && !one_in_flight; }
};

/// A file that was read.
struct KeptCalibration {
  std::shared_ptr<const Source> source;
  std::vector<std::pair<std::string, Marked<std::string>>> head;
  std::vector<KeptRound> rounds;
  int resumed = 0;              ///< How often it was gone on with.
  std::size_t sound_bytes = 0;  ///< Up to the end of the last whole line.
  int cut_line = 0;             ///< The last line, where it lacks its end; it is dropped. 0 = none.

  std::size_t passes() const;
  Duration measured() const;
  std::map<std::string, std::string> algorithms() const;  ///< Of all rounds.
};

// The text: a line that names the format, the head as `key: value`, a line that begins with
// `passes:`, then `BATCH DEVICE KIND NS NS ...` for a pass (a `-` for the times of one that was
// dropped), `round BATCH NS` after the passes of a round and `neighbours K` before them where only
// K other devices worked beside each, `one in flight` where that was so, `algorithm WHAT: WHICH`
// before the passes of the first round that used it, `resumed` where a calibration went on.

/// What a file begins with.
std::string calibration_head_text(const CalibrationHead& head);
std::string calibration_round_text(const KeptRound& round);

/// Errors: anything else than the above, save the last line where it lacks its end.
Result<KeptCalibration> parse_calibration_file(const std::shared_ptr<const Source>& source);

/// Where the head of the file is not `own`, if so: the first key that differs, with both values.
std::optional<Diagnostic> check_other_calibration(const KeptCalibration& kept,
                                                  const CalibrationHead& own);

/// The file beside an output. It is made with the first round, only appended to, and belongs to one
/// process at a time.
class CalibrationFile {
 public:
  /// Beside `output`: its name with `.partial` behind it.
  explicit CalibrationFile(const std::string& output);
  ~CalibrationFile();
  CalibrationFile(const CalibrationFile&) = delete;
  CalibrationFile& operator=(const CalibrationFile&) = delete;

  const std::string& path() const { return path_; }
  /// An error that names the two ways out, where there is a file already.
  std::optional<Diagnostic> check_existing() const;
  /// Reads what is there and goes on behind it; nothing where no file is. It changes nothing yet.
  /// Errors: those of parse_calibration_file, a file that cannot be written, one that another
  /// process has.
  Result<std::optional<KeptCalibration>> resume();

  /// Writes a round to the disk, the head before it where the file is new. Errors: it cannot be
  /// written; then the file is as it was before.
  std::optional<Diagnostic> append(const CalibrationHead& head, const KeptRound& round);
  /// Whether there is a file of this calibration.
  bool holds_something() const { return file_ >= 0; }
  /// Removes the file, where there is one: the calibration is done.
  void remove();

 private:
  std::optional<Diagnostic> open_new();

  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;     ///< What is to be kept of it.
  bool is_resumed_ = false;  ///< And nothing appended yet.
};

}  // namespace plumbline
