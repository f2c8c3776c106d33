// Writing the ops of layers.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/profile/profile.h"

namespace plumbline {

/// The lists of ops of a model, each with a name. Equal lists have one name: the kind of the first
/// layer that has it, else that layer's name; a further list by a name gets a number.
class OpTexts {
 public:
  /// Requires: the profile has a dtype, that of all its ops; sizes in [1, kLargestQuantity], bytes
  /// in [0, kLargestQuantity].
  explicit OpTexts(const Model& model);

  /// The name of a list. Requires: it is one of the model's.
  const std::string& name_of(const LayerOps& ops) const { return names_.at(&ops); }

  /// `ops` of a profile; "" where no layer has any.
  std::string text() const;

 private:
  void add(const LayerOps& ops, const Layer& layer);
  std::string new_name(const Layer& layer);

  struct Named {
    std::string name;
    std::string text;
  };
  std::vector<Named> lists_;
  std::map<const LayerOps*, std::string> names_;
  std::map<std::string, std::string> by_text_;
  std::set<std::string> used_;
};

}  // namespace plumbline
