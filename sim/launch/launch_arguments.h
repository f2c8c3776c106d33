// The arguments of a launcher by their names, wherever they were written: a command line, YAML,
// JSON, TOML.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace plumbline {

struct YamlNode;

/// One argument. A name has no dashes in front, and dashes within.
struct LaunchArgument {
  std::string name;
  std::vector<std::string> values;
  Mark mark;
  std::string told;  ///< As it was written: "--num-layers", "model.num_layers".
};

/// Arguments by name; of those that stand several times the last counts. Each read marks its name
/// as read, so that what nobody has read can be told.
class LaunchArguments {
 public:
  explicit LaunchArguments(Diagnostics& problems) : problems_(&problems) {}

  void add(LaunchArgument argument);
  /// Adds the options of a command line or a script: what begins with --, and the words behind it.
  /// Returns remarks on what a script does that reading it does not.
  std::vector<std::string> add_command(const std::shared_ptr<const Source>& source);
  /// Adds the leaves of a tree. Each is named by its own key, in lower case, with dashes for
  /// underscores, or by the whole path where `by_path`. A null is left out.
  void add_tree(const YamlNode& root, bool by_path);

  bool empty() const { return all_.empty(); }
  bool has(std::string_view name) const { return all_.find(name) != all_.end(); }
  /// Whether it stands there and is not false.
  bool flag(std::string_view name);
  /// A flag; `otherwise` where it is absent.
  bool flag_or(std::string_view name, bool otherwise);
  std::optional<std::int64_t> count(std::string_view name, std::int64_t min = 0,
                                    std::int64_t max = 1'000'000'000'000);
  std::int64_t count_or(std::string_view name, std::int64_t otherwise);
  std::optional<double> real(std::string_view name);
  /// Its first value; "" where it is absent.
  std::string word(std::string_view name);
  /// All its values; commas separate some, too.
  std::vector<std::string> words(std::string_view name);
  /// The first of several names that stands there, else the first.
  std::string_view either(std::initializer_list<std::string_view> names) const;
  /// Marks a name as read.
  void pass_over(std::string_view name);
  /// How the argument was written, for messages; the name with -- where it is absent.
  std::string told(std::string_view name) const;
  Mark mark(std::string_view name) const;
  void error(std::string_view name, std::string message, std::string help = "");

  /// The names that nobody has read, in the order of writing.
  std::vector<const LaunchArgument*> unread() const;

 private:
  const LaunchArgument* take(std::string_view name);
  void add_node(const YamlNode& node, const std::string& key, const std::string& path,
                bool by_path);

  std::map<std::string, LaunchArgument, std::less<>> all_;
  std::vector<std::string> order_;
  std::map<std::string, bool, std::less<>> read_;
  Diagnostics* problems_;
};

}  // namespace plumbline
