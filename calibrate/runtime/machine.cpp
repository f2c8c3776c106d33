// Linux's files in /proc, /sys and /etc.
//
// SPDX-License-Identifier: MIT
#include "calibrate/runtime/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace plumbline {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The text after `separator` in a line that begins with `key`, without leading blanks.
std::optional<std::string_view> value_in(std::string_view line, std::string_view key,
                                         char separator) {
  const std::size_t at = line.find(separator);
  if (!line.starts_with(key) || at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(" \t", at + 1);
  if (begin == std::string_view::npos) return std::nullopt;
  return line.substr(begin);
}

/// The first line's value.
std::optional<std::string> first_value(std::string_view text, std::string_view key,
                                       char separator) {
  while (!text.empty()) {
    if (const auto value = value_in(next_line(text), key, separator)) return std::string(*value);
  }
  return std::nullopt;
}

/// A number >= 0 at the start of `text`.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0)) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::string> processor_in(std::string_view cpuinfo) {
  return first_value(cpuinfo, "model name", ':');
}

std::optional<double> clock_in(std::string_view cpuinfo) {
  double sum = 0;
  int count = 0;
  while (!cpuinfo.empty()) {
    const auto value = value_in(next_line(cpuinfo), "cpu MHz", ':');
    const auto clock = value ? number_in(std::string(*value)) : std::nullopt;
    if (!clock || *clock == 0) continue;
    sum += *clock;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::optional<double> load_in(std::string_view loadavg) { return number_in(std::string(loadavg)); }

std::optional<Bytes> available_memory_in(std::string_view meminfo) {
  const auto value = first_value(meminfo, "MemAvailable", ':');
  const auto kibibytes = value ? number_in(*value) : std::nullopt;
  if (!kibibytes) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(std::min(*kibibytes * 1024, 9e18))};
}

std::optional<std::string> distribution_in(std::string_view os_release) {
  auto name = first_value(os_release, "PRETTY_NAME", '=');
  if (name) std::erase(*name, '"');
  return name;
}

std::string processor_name() {
  return processor_in(text_of("/proc/cpuinfo")).value_or("unknown processor");
}

std::string host_name() {
  utsname system{};
  return uname(&system) == 0 ? system.nodename : "unknown host";
}

std::string system_name() {
  utsname system{};
  if (uname(&system) != 0) return "unknown system";
  std::string text = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  if (const auto distribution = distribution_in(text_of("/etc/os-release")))
    text += ", " + *distribution;
  return text;
}

std::string compiler_name() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::optional<double> clock_now() {
  const auto kilohertz =
      number_in(text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"));
  if (kilohertz && *kilohertz > 0) return *kilohertz / 1000;
  return clock_in(text_of("/proc/cpuinfo"));
}

std::optional<double> load_now() { return load_in(text_of("/proc/loadavg")); }

std::optional<Bytes> available_memory() {
  auto available = available_memory_in(text_of("/proc/meminfo"));
  // Control groups version 2, then version 1. Inside a container its own group is the root.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto limit = number_in(text_of(path));  // "max" is no number
    if (!limit) continue;
    const Bytes bytes{static_cast<std::int64_t>(std::min(*limit, 9e18))};
    available = std::min(available.value_or(bytes), bytes);
  }
  return available;
}

}  // namespace plumbline
