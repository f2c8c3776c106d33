// The machine that measures: what it is, how busy, how fast and how large it is right now.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace plumbline {

// What the system's texts say. Nothing where they do not.

/// "Intel(R) Xeon(R) ...", the first processor's name in /proc/cpuinfo.
std::optional<std::string> processor_in(std::string_view cpuinfo);
/// The mean clock of the processors in /proc/cpuinfo, in MHz.
std::optional<double> clock_in(std::string_view cpuinfo);
/// The load average of the last minute in /proc/loadavg.
std::optional<double> load_in(std::string_view loadavg);
/// What programs can get without swapping (MemAvailable) in /proc/meminfo.
std::optional<Bytes> available_memory_in(std::string_view meminfo);
/// The distribution's name in /etc/os-release, without its quotes.
std::optional<std::string> distribution_in(std::string_view os_release);

// This machine.

/// The first processor's name, or "unknown processor".
std::string processor_name();
/// The name of the host.
std::string host_name();
/// "Linux 6.1.0 x86_64, Debian GNU/Linux 12 (bookworm)".
std::string system_name();
/// "gcc 12.2.0": what this program was built with.
std::string compiler_name();
/// What the processors run at now, in MHz: as cpufreq says, else as /proc/cpuinfo does.
std::optional<double> clock_now();
std::optional<double> load_now();
/// What this process may still get: the system's, or the limit of its control group where that is
/// less.
std::optional<Bytes> available_memory();

}  // namespace plumbline
