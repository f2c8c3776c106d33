// Profiles that were measured on other devices than those of a run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>

#include "models/profile/profile.h"

namespace plumbline {

/// What a measured profile's provenance says otherwise than that of `here`, of what both tell:
/// "the profile was measured elsewhere: sms 64, here 32". Nothing where all agree, where the
/// profile's times are not measured, or where `here` is empty. Of another backend's profile nothing
/// else is compared.
std::optional<std::string> measured_elsewhere(const Profile& profile,
                                              const std::map<std::string, std::string>& here);

}  // namespace plumbline
