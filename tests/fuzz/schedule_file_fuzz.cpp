// Any bytes as a schedule file; what can run is checked against a second reading of its own print.
//
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "schedules/files/schedule_file.h"
#include "schedules/order/check.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  auto file = parse_schedule_file(fuzz::source(fuzz::text(data, size)));
  if (!file) {
    fuzz::use(to_text(file.problems()));
    return 0;
  }
  if (file->is_sequence()) {
    StageRows rows(std::max(file->stages, 1U));
    for (std::uint32_t s = 0; s < rows.stages(); ++s) rows.of(s) = {s};
    if (place_sequence(*file, rows)) return 0;
  }
  Partition partition;
  for (std::uint32_t s = 0; s < file->stages; ++s) {
    partition.stages.push_back({{{s}}, {}});
    for (const std::uint32_t row : file->rows.of(s))
      partition.stages.back().devices.push_back({row});
  }
  const auto schedule = checked_schedule(
      file->name, false, pipeline_shape(partition, file->micro_batches), file->lists,
      [&](std::uint32_t slot, std::size_t index) { return mark_of(*file, slot, index); });
  if (!schedule) {
    fuzz::use(to_text(schedule.problems()));
    return 0;
  }
  const auto again = parse_schedule_file(fuzz::source(torch_csv(*schedule)));
  PLUMBLINE_CHECK(bool{again} && again->lists == schedule->lists(), torch_csv(*schedule));
  return 0;
}
