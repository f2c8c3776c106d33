// The table of keys as a schema, with one definition per section.
//
// SPDX-License-Identifier: MIT
#include "base/json_schema.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/quantity.h"

namespace plumbline {
namespace {

using Json = nlohmann::ordered_json;
using Type = ValueFormat::Type;

/// The units of a value; nothing where it has none.
std::optional<QuantityUnits> units_of(Type type) {
  switch (type) {
    case Type::duration:
      return duration_units();
    case Type::bytes:
      return bytes_units();
    case Type::bandwidth:
      return bandwidth_units();
    case Type::flops:
      return flops_units();
    case Type::flops_per_second:
      return flops_per_second_units();
    case Type::power:
      return power_units();
    case Type::long_time:
      return long_time_units();
    default:
      return std::nullopt;
  }
}

Json quantity(const QuantityUnits& known) {
  return {{"type", "string"},
          {"pattern", fmt::format(R"(^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *({})$)",
                                  fmt::join(known.units, "|"))},
          {"examples", {known.example}}};
}

class SchemaWriter {
 public:
  std::string write(const SectionFormat& root) {
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"title", fmt::format("plumbline {}", root.name)}};
    schema.update(section(root));
    if (!definitions_.empty()) schema["definitions"] = definitions_;
    return schema.dump(2) + '\n';
  }

 private:
  Json section(const SectionFormat& format) {
    Json schema = {{"description", format.text}, {"type", "object"}};
    Json properties = Json::object();
    Json required = Json::array();
    for (const KeyFormat& known : format.keys) {
      properties[std::string(known.name)] = key(known);
      if (known.required) required.push_back(known.name);
    }
    schema["properties"] = std::move(properties);
    schema["additionalProperties"] =
        format.other_keys.empty() ? Json(false) : any(format.other_keys);
    if (!required.empty()) schema["required"] = std::move(required);
    add_rules(format, schema);
    return schema;
  }

  /// Adds the rules about several keys.
  static void add_rules(const SectionFormat& format, Json& schema) {
    for (const std::string_view one : format.exactly_one)
      schema["oneOf"].push_back({{"required", {one}}});
    for (const auto& group : format.some_group) schema["anyOf"].push_back({{"required", group}});
    for (const auto& keys : format.needs)
      schema["dependencies"][std::string(keys.front())] =
          std::vector<std::string_view>(keys.begin() + 1, keys.end());
    for (const auto& keys : format.excludes) {
      Json others = Json::array();
      for (std::size_t i = 1; i < keys.size(); ++i) others.push_back({{"required", {keys[i]}}});
      schema["allOf"].push_back(
          {{"not", {{"required", {keys.front()}}, {"anyOf", std::move(others)}}}});
    }
    for (const FormatCase& one : format.cases) {
      Json then = {{"propertyNames", {{"enum", one.keys}}}};
      if (!one.required.empty()) then["required"] = one.required;
      const std::string name(one.key);
      schema["allOf"].push_back(
          {{"if", {{"properties", {{name, {{"const", one.word}}}}}, {"required", {name}}}},
           {"then", std::move(then)}});
    }
  }

  Json key(const KeyFormat& known) {
    Json schema = {{"description", described(known)}};
    schema.update(any(known.values));
    if (!known.otherwise.empty()) schema["default"] = literal(known);
    return schema;
  }

  static std::string described(const KeyFormat& known) {
    std::string text(known.text);
    for (const ValueFormat& value : known.values) {
      if (const auto units = units_of(value.type))
        text +=
            fmt::format(" Such as {}; units: {}.", units->example, fmt::join(units->units, ", "));
    }
    if (!known.otherwise.empty()) text += fmt::format(" Absent: {}.", known.otherwise);
    return text;
  }

  /// The default value of a key, as YAML reads it.
  static Json literal(const KeyFormat& known) {
    const Type type = known.values.front().type;
    const bool is_bare = type == Type::count || type == Type::real || type == Type::boolean;
    return is_bare ? Json::parse(known.otherwise) : Json(known.otherwise);
  }

  Json any(const std::vector<ValueFormat>& values) {
    if (values.size() == 1) return value_schema(values.front());
    Json alternatives = Json::array();
    for (const ValueFormat& value : values) alternatives.push_back(value_schema(value));
    return {{"anyOf", std::move(alternatives)}};
  }

  Json value_schema(const ValueFormat& value) {
    if (const auto units = units_of(value.type)) return quantity(*units);
    switch (value.type) {
      case Type::text:  // YAML reads a bare 3 or true as something else
        return {{"type", {"string", "number", "boolean"}}};
      case Type::word:
        return {{"type", "string"}, {"enum", value.words}};
      case Type::tokens:
        return {{"type", {"string", "number"}},
                {"minimum", 1},
                {"pattern", R"(^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *[kMBT]?$)"},
                {"examples", {"15T"}}};
      case Type::price:
        return {{"type", "string"},
                {"pattern", R"(^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *[A-Za-z]{1,8}/h$)"},
                {"examples", {"2.5 USD/h"}}};
      case Type::boolean:
        return {{"type", "boolean"}};
      case Type::count:
        return {{"type", "integer"}, {"minimum", value.min}, {"maximum", value.max}};
      case Type::real:
        return {{"type", "number"}, {"minimum", value.min}, {"maximum", value.max_real}};
      case Type::range:
        return {{"type", "string"}, {"pattern", R"(^range\(.*\)$)"}};
      case Type::nothing:
        return {{"type", "null"}};
      case Type::list:
        return list(value);
      case Type::section:
        return reference(value.section);
      default:
        return {{"type", "string"}};
    }
  }

  Json list(const ValueFormat& value) {
    Json schema = {{"type", "array"}};
    const bool is_pair = value.min == value.max && value.items.size() > 1;
    if (is_pair) {
      schema["items"] = Json::array();
      for (const ValueFormat& item : value.items) schema["items"].push_back(value_schema(item));
    } else if (!value.items.empty()) {
      schema["items"] = any(value.items);
    }
    if (value.min > 0) schema["minItems"] = value.min;
    if (value.max < kLargestQuantity) schema["maxItems"] = value.max;
    return schema;
  }

  Json reference(SectionFormatFunction format) {
    const std::string name((*format)().name);
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;  // a section may contain itself
      definitions_[name] = section((*format)());
    }
    return {{"$ref", "#/definitions/" + name}};
  }

  Json definitions_ = Json::object();
};

}  // namespace

std::string json_schema(const SectionFormat& root) { return SchemaWriter().write(root); }

}  // namespace plumbline
