// The keys that name files.
//
// SPDX-License-Identifier: MIT
#include "sim/scenario/named_files.h"

#include <filesystem>
#include <utility>

#include "base/yaml.h"

namespace plumbline {
namespace {

bool names_file(std::string_view key) {
  return key == "model.profile" || key == "model.pipedream" || key == "model.network" ||
         key == "model.huggingface" || key == "schedule.file" || key == "plan.file" ||
         key == "cluster.device.kernels";
}

void add(std::vector<NamedFile> more, std::vector<NamedFile>& files) {
  for (NamedFile& file : more) files.push_back(std::move(file));
}

}  // namespace

std::vector<NamedFile> named_files(const std::string& key, const YamlNode& value) {
  std::vector<NamedFile> files;
  for (const YamlNode::Entry& entry : value.entries)
    add(named_files(key + '.' + entry.key, entry.value), files);
  for (const YamlNode& item : value.items) add(named_files(key, item), files);
  if (!names_file(key) || value.kind != YamlNode::Kind::scalar || !value.mark.source) return files;
  std::filesystem::path path(value.text);
  if (path.is_relative()) path = std::filesystem::path(value.mark.source->directory) / path;
  files.push_back({key, path.string()});
  return files;
}

std::vector<NamedFile> named_files(const YamlNode& scenario) {
  std::vector<NamedFile> files;
  for (const YamlNode::Entry& section : scenario.entries) {
    if (section.key != "sweep") {
      add(named_files(section.key, section.value), files);
      continue;
    }
    for (const YamlNode::Entry& axis : section.value.entries)
      add(named_files(axis.key, axis.value), files);
  }
  return files;
}

}  // namespace plumbline
