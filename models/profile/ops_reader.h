// Reading the ops of layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/section_reader.h"
#include "models/profile/profile.h"

namespace plumbline {

/// The lists of ops of a file, by name.
class NamedOps {
 public:
  /// Reads `ops` of `section`, whose dtype has been read. Errors: ops without a dtype, an empty
  /// list, and all that an op cannot be.
  NamedOps(SectionReader& section, std::optional<NumberFormat> dtype, Diagnostics& problems);

  /// Reads `ops` of a layer and gives it to `costs`, whose work has been read; layers that name the
  /// same list share it. Errors: a name that is no list; ops with other FLOPs than the layer's work
  /// has; ops that send where the work has no such traffic.
  /// Work in which an error was found is compared with nothing.
  void give_ops(SectionReader& layer, LayerCosts& costs, bool is_sound);

  /// Adds an error for every list that no layer has named.
  void report_unused();

 private:
  /// The sums over a list of ops, which the work of its layer states, too.
  struct Sums {
    OpFlops flops;
    OpFlops fp8_flops;
    double last_digits = 0;   ///< How far sums beyond 2^53 may be off, as a share.
    bool on_link = false;     ///< Whether it sends to devices in its server,
    bool on_network = false;  ///< or in other ones.
  };
  struct Named {
    std::shared_ptr<const LayerOps> ops;  ///< Null where the list has an error.
    Sums sums;
    Mark mark;
    bool is_used = false;
  };

  static Sums sums_of(const LayerOps& ops);
  static void check_work(SectionReader& layer, const Sums& ops, const LayerWork& work);
  void read_list(SectionReader& lists, const YamlNode::Entry& entry, NumberFormat dtype);

  std::map<std::string, Named, std::less<>> lists_;
  std::string path_;
  Diagnostics& problems_;
};

}  // namespace plumbline
