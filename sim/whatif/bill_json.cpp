// Keys and figures.
//
// SPDX-License-Identifier: MIT
#include "sim/whatif/bill_json.h"

#include <nlohmann/json.hpp>

namespace plumbline {
namespace {

struct BillKey {
  const char* key;
  std::optional<double> Bill::*figure;
};

constexpr BillKey kBillKeys[] = {{"tokens_per_s", &Bill::tokens_per_s},
                                 {"tokens_per_device_per_s", &Bill::tokens_per_device_per_s},
                                 {"days", &Bill::days},
                                 {"gpu_hours", &Bill::gpu_hours},
                                 {"cost", &Bill::cost},
                                 {"energy_kwh", &Bill::energy_kwh},
                                 {"goodput", &Bill::goodput},
                                 {"goodput_samples_per_s", &Bill::goodput_samples_per_s},
                                 {"checkpoint_interval_s", &Bill::checkpoint_interval_s}};

}  // namespace

const std::vector<std::string>& bill_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> names;
    for (const BillKey& one : kBillKeys) names.emplace_back(one.key);
    names.emplace_back("currency");
    return names;
  }();
  return keys;
}

void add_bill(const Bill& bill, nlohmann::ordered_json& json) {
  for (const BillKey& one : kBillKeys) {
    if (bill.*one.figure) json[one.key] = *(bill.*one.figure);
  }
  if (!bill.currency.empty()) json["currency"] = bill.currency;
}

Bill read_bill(const nlohmann::ordered_json& json) {
  Bill bill;
  for (const BillKey& one : kBillKeys) {
    if (json.contains(one.key) && !json[one.key].is_null())
      bill.*one.figure = json[one.key].get<double>();
  }
  if (json.contains("currency")) bill.currency = json["currency"].get<std::string>();
  return bill;
}

}  // namespace plumbline
