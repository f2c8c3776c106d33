// The machine that measures: its name, and its current load, clock and free memory.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace plumbline {

// Values read from the system's text files; nothing where a file does not have them.

/// "Intel(R) Xeon(R) ...", the first processor's name in /proc/cpuinfo.
std::optional<std::string> processor_in(std::string_view cpuinfo);
/// The mean clock of the processors in /proc/cpuinfo, in MHz.
std::optional<double> clock_in(std::string_view cpuinfo);
/// The load average of the last minute in /proc/loadavg.
std::optional<double> load_in(std::string_view loadavg);
/// The memory that programs can get without swapping: MemAvailable in /proc/meminfo.
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
/// "gcc 12.2.0": the compiler that built this program.
std::string compiler_name();
/// The processors' clock now, in MHz: from cpufreq, else from /proc/cpuinfo.
std::optional<double> clock_now();
std::optional<double> load_now();
/// The memory that this process can still get: the system's available memory, or its control
/// group's limit where that is less.
std::optional<Bytes> available_memory();

}  // namespace plumbline
