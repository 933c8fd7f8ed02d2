#include "lib/mapping/document/json_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/json_reader.h"
#include "lib/base/schema_key.h"
#include "lib/base/text.h"
#include "lib/mapping/document/identifier.h"

namespace shardtool::mapping {
namespace {

constexpr int kAlreadyChecked = 1 << 20;

std::string what_it_is(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  return quote_for_message(value.dump(), 60);
}

/// Calls visit(pointer, key offset, value offset) for every value inside the next one.
template <class Visit>
void walk(JsonReader& in, const std::string& pointer, const Visit& visit) {
  if (in.kind() == JsonKind::kObject) {
    in.begin_object();
    for (std::string key; in.next_key(key);) {
      const std::string below = pointer + "/" + pointer_token(key);
      visit(below, in.last_offset(), in.offset());
      walk(in, below, visit);
    }
  } else if (in.kind() == JsonKind::kArray) {
    in.begin_array();
    for (i64 i = 0; in.next_element(); ++i) {
      const std::string below = fmt::format("{}/{}", pointer, i);
      visit(below, in.offset(), in.offset());
      walk(in, below, visit);
    }
  } else {
    in.skip();
  }
}

}  // namespace

PlaceIndex::PlaceIndex(std::string_view text, std::string file)
    : file_(std::move(file)), line_starts_{0} {
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1)) {
    line_starts_.push_back(at + 1);
  }
  JsonReader in(text, {file_}, kAlreadyChecked);
  offsets_[""].value = in.offset();
  walk(in, "", [this](const std::string& pointer, size_t key_at, size_t value_at) {
    offsets_[pointer] = {key_at, value_at};
  });
}

Place PlaceIndex::find(const std::string& pointer, size_t Offsets::*which) const {
  const auto found = offsets_.find(pointer);
  if (found == offsets_.end()) return {file_, 0, 0, pointer};
  const size_t offset = found->second.*which;
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const size_t line = static_cast<size_t>(after - line_starts_.begin());
  return {file_, static_cast<int>(line), static_cast<int>(offset - line_starts_[line - 1]) + 1,
          pointer};
}

std::string JsonValue::name() const {
  return pointer_.empty() ? "the document" : "\"" + pointer_.substr(1) + "\"";
}

Error JsonValue::error(ErrorCode code, const std::string& message) const {
  return Error(code, message).at(place());
}

void JsonValue::refuse(const std::string& expected) const {
  throw error(ErrorCode::kMappingSchema, fmt::format("{} must be {}", name(), expected))
      .note("found", what_it_is(*value_))
      .note("expected", expected);
}

void JsonValue::refuse_word(const std::string& word, const std::vector<std::string>& known) const {
  Error e = error(ErrorCode::kMappingSchema,
                  fmt::format("{} cannot be '{}'", name(), quote_for_message(word, 60)));
  e.note("expected", fmt::format("one of {}", fmt::join(known, ", ")));
  const std::string hint = did_you_mean(word, known);
  if (!hint.empty()) e.help(hint);
  throw e;
}

void JsonValue::refuse_key(const std::string& key, const std::vector<Field>& fields) const {
  std::vector<std::string> known;
  for (const Field& field : fields) known.emplace_back(field.key);
  const std::string pointer = pointer_ + "/" + pointer_token(key);
  Error e(ErrorCode::kMappingSchema,
          fmt::format("{} has an unknown key '{}'", name(), quote_for_message(key, 60)));
  e.at(places_->key(pointer)).note("known keys", fmt::format("{}", fmt::join(known, ", ")));
  const std::string hint = did_you_mean(key, known);
  if (!hint.empty()) e.help(hint);
  throw e;
}

std::string JsonValue::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

std::string JsonValue::scalar() const {
  const bool scalar = value_->is_null() || value_->is_boolean() || value_->is_number_integer() ||
                      value_->is_string();
  if (!scalar) refuse("null, true, false, an integer or a string");
  return value_->dump();
}

std::string JsonValue::nonempty_text() const {
  std::string word = text();
  if (word.empty()) refuse("a string that is not empty");
  return word;
}

std::string JsonValue::identifier() const {
  std::string word = text();
  if (!is_identifier(word))
    refuse("a name of letters, digits and _ that does not begin with a digit");
  return word;
}

i64 JsonValue::integer(i64 min) const {
  const bool any = min == std::numeric_limits<i64>::min();
  const std::string expected = any ? "an integer" : fmt::format("an integer of {} or more", min);
  if (!value_->is_number_integer() || value_->get<i64>() < min) refuse(expected);
  return value_->get<i64>();
}

double JsonValue::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

bool JsonValue::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::vector<JsonValue> JsonValue::elements(size_t at_least) const {
  if (!value_->is_array() || value_->size() < at_least) {
    refuse(at_least == 0 ? "a list" : fmt::format("a list of {} or more", at_least));
  }
  std::vector<JsonValue> found;
  for (size_t i = 0; i < value_->size(); ++i) {
    found.emplace_back((*value_)[i], fmt::format("{}/{}", pointer_, i), *places_);
  }
  return found;
}

JsonValue JsonValue::member(const std::string& key) const {
  return {(*value_)[key], pointer_ + "/" + pointer_token(key), *places_};
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonValue>> found;
  for (const auto& [key, value] : value_->items()) found.emplace_back(key, member(key));
  return found;
}

void JsonValue::object(const std::vector<Field>& fields) const {
  for (const auto& member : members()) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& f) { return f.key == member.first; });
    if (field == fields.end()) refuse_key(member.first, fields);
    field->read(member.second);
  }
  for (const Field& field : fields) {
    if (!field.required || value_->contains(std::string(field.key))) continue;
    throw error(ErrorCode::kMappingSchema, fmt::format("{} lacks the key '{}'", name(), field.key));
  }
}

void JsonValue::document(std::vector<Field> fields) const {
  fields.push_back({kSchemaKey, [](const JsonValue& v) { v.text(); }});
  object(fields);
}

}  // namespace shardtool::mapping
