// One object; unknown values are null.
//
// SPDX-License-Identifier: MIT
#include "sim/report/bubble_json.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json bubble_json(const BubbleTerms& terms) {
  Json list = Json::array();
  for (const BubbleTerm& term : terms.terms) {
    list.push_back({{"cause", name(term.cause)},
                    {"bubble_fraction", term.fraction},
                    {"time_s", seconds(term.time)}});
  }
  Json slowest = nullptr;
  if (terms.slowest) {
    slowest = {{"stage", terms.slowest->stage},
               {"device", terms.slowest->device},
               {"stages_of_device",
                terms.slowest->is_device ? Json(terms.slowest->stages) : Json(nullptr)},
               {"above_mean", terms.slowest->above_mean},
               {"why", terms.slowest->why.empty() ? Json(nullptr) : Json(terms.slowest->why)}};
  }
  return {{"of", terms.steady ? "steady_bubble_fraction" : "bubble_fraction"},
          {"base",
           {{"bubble_fraction", terms.base},
            {"time_s", seconds(terms.base_time)},
            {"formula", terms.formula ? Json(terms.formula->text) : Json(nullptr)}}},
          {"terms", std::move(list)},
          {"bubble_fraction", terms.whole},
          {"slowest", std::move(slowest)}};
}

}  // namespace plumbline
