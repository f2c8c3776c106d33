// A launch as a scenario.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/launch/launch.h"

namespace plumbline {

/// What a launcher's own configuration does not say.
struct LaunchSetting {
  std::string name;                 ///< The scenario's.
  std::string from;                 ///< What was read, for the comment at the top.
  std::string config;               ///< The path of the config.json as the scenario names it.
  std::string device = "h100-sxm";  ///< A preset.
  std::string network = "50 GB/s";  ///< Of each GPU's own card, between servers.
};

/// The scenario as YAML. Comments at its top tell what is not modelled and what was assumed.
std::string scenario_text(const ReadLaunch& read, const LaunchSetting& setting);

}  // namespace plumbline
