// Validation of YAML documents by JSON Schema (draft 7), for the keywords that our schemas use.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "base/quantity.h"
#include "base/yaml.h"

namespace plumbline::test {

using Json = nlohmann::ordered_json;

/// The document by YAML's core schema. Every scalar is read as if it had no quotes.
inline Json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::sequence: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case YamlNode::Kind::map: {
      Json map = Json::object();
      for (const YamlNode::Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
      return map;
    }
    case YamlNode::Kind::scalar:
      break;
  }
  static const std::regex whole("[-+]?[0-9]{1,18}");
  static const std::regex number(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?)");
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (std::regex_match(node.text, whole)) return std::stoll(node.text);
  if (std::regex_match(node.text, number)) return std::stod(node.text);
  return node.text;
}

/// Validates against one schema. Supports only the keywords that base/json_schema.cpp writes.
class SchemaValidator {
 public:
  explicit SchemaValidator(const std::string& schema) : root_(Json::parse(schema)) {}

  const Json& root() const { return root_; }
  bool accepts(const Json& document) const { return fits(document, root_); }

 private:
  static bool is_type(const Json& value, const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "null"    ? value.is_null()
           : type == "boolean" ? value.is_boolean()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
                               : throw std::runtime_error("type " + type);
  }

  bool any(const Json& value, const Json& schemas) const { return fitting(value, schemas) > 0; }
  std::int64_t fitting(const Json& value, const Json& schemas) const {
    return std::count_if(schemas.begin(), schemas.end(),
                         [&](const Json& schema) { return fits(value, schema); });
  }

  bool fits(const Json& value, const Json& schema) const {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& [word, rule] : schema.items()) {
      if (!obeys(value, schema, word, rule)) return false;
    }
    return true;
  }

  bool obeys(const Json& value, const Json& schema, const std::string& word,
             const Json& rule) const {
    if (word == "$schema" || word == "title" || word == "description" || word == "default" ||
        word == "examples" || word == "definitions" || word == "then")
      return true;
    if (word == "$ref")
      return fits(value, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))));
    if (word == "type" && rule.is_array())
      return std::any_of(rule.begin(), rule.end(),
                         [&](const Json& t) { return is_type(value, t); });
    if (word == "type") return is_type(value, rule);
    if (word == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
    if (word == "const") return value == rule;
    if (word == "anyOf") return any(value, rule);
    if (word == "oneOf") return fitting(value, rule) == 1;
    if (word == "allOf") return fitting(value, rule) == static_cast<std::int64_t>(rule.size());
    if (word == "not") return !fits(value, rule);
    if (word == "if") return !fits(value, rule) || fits(value, schema.at("then"));
    if (word == "pattern")
      return !value.is_string() ||
             std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()));
    if (word == "minimum") return !value.is_number() || value >= rule;
    if (word == "maximum") return !value.is_number() || value <= rule;
    if (word == "minItems") return !value.is_array() || value.size() >= rule.get<std::size_t>();
    if (word == "maxItems") return !value.is_array() || value.size() <= rule.get<std::size_t>();
    if (word == "items") return !value.is_array() || items_fit(value, rule);
    if (!value.is_object()) return true;
    return members_obey(value, schema, word, rule);
  }

  bool items_fit(const Json& value, const Json& rule) const {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (rule.is_array() && i >= rule.size()) return true;
      if (!fits(value[i], rule.is_array() ? rule[i] : rule)) return false;
    }
    return true;
  }

  /// Checks the keywords of maps.
  bool members_obey(const Json& value, const Json& schema, const std::string& word,
                    const Json& rule) const {
    const auto has_all = [&](const Json& keys) {
      return std::all_of(keys.begin(), keys.end(),
                         [&](const Json& key) { return value.contains(key.get<std::string>()); });
    };
    if (word == "required") return has_all(rule);
    if (word == "dependencies") {
      for (const auto& [key, needed] : rule.items()) {
        if (value.contains(key) && !has_all(needed)) return false;
      }
      return true;
    }
    for (const auto& [key, member] : value.items()) {
      if (word == "propertyNames") {
        if (!fits(Json(key), rule)) return false;
      } else if (word == "properties") {
        if (rule.contains(key) && !fits(member, rule[key])) return false;
      } else if (word == "additionalProperties") {
        if (!schema["properties"].contains(key) && !fits(member, rule)) return false;
      } else {
        throw std::runtime_error("the keyword " + word);
      }
    }
    return true;
  }

  Json root_;
};

}  // namespace plumbline::test
