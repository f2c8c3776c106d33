// Counting versions along a list.
// SPDX-License-Identifier: MIT
#include "schedules/weight_versions.h"

#include <algorithm>
#include <set>

#include "models/bug.h"

namespace plumbline {

StageVersions stage_versions(const std::vector<Op>& ops, std::uint32_t lag) {
  StageVersions versions;
  std::multiset<std::uint32_t> in_use;
  std::uint32_t newest = 0;
  std::uint32_t ended = 0;
  const auto count_kept = [&] {
    const std::uint32_t oldest = in_use.empty() ? newest : *in_use.begin();
    versions.kept = std::max(versions.kept, newest - oldest + 1);
  };
  for (const Op& op : ops) {
    const std::uint32_t m = op.micro_batch.value;
    if (op.kind == OpKind::forward) {
      const std::size_t known = std::max<std::size_t>(versions.used.size(), m + std::size_t{1});
      versions.used.resize(known, 0);
      versions.staleness.resize(known, 0);
      versions.used[m] = newest;
      in_use.insert(newest);
      count_kept();
    } else if (op.kind != OpKind::backward_input) {
      PLUMBLINE_CHECK(m < versions.used.size(), m, versions.used.size());
      versions.staleness[m] = ended - versions.used[m];  // its update is number `ended`
      in_use.erase(in_use.find(versions.used[m]));
      if (++ended > lag) ++newest;
      count_kept();
    }
  }
  return versions;
}

}  // namespace plumbline
