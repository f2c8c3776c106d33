// A check for profiles that were measured on other devices than those of a run.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>

#include "models/profile/profile.h"

namespace plumbline {

/// The differences between a measured profile's provenance and `here`, in the entries that both
/// have: "the profile was measured elsewhere: sms 64, here 32". Nothing where all agree, where the
/// profile's times are not measured, or where `here` is empty. For another backend's profile, only
/// the backend is compared.
std::optional<std::string> measured_elsewhere(const Profile& profile,
                                              const std::map<std::string, std::string>& here);

}  // namespace plumbline
