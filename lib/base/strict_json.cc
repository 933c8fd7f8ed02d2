#include "lib/base/strict_json.h"

#include <charconv>
#include <limits>
#include <utility>

#include "lib/base/text.h"

namespace shardtool {
namespace {

using nlohmann::json;

json read_value(JsonReader& in, JsonNumbers numbers);

json read_object(JsonReader& in, JsonNumbers numbers) {
  json object = json::object();
  in.begin_object();
  for (std::string key; in.next_key(key);) {
    if (object.contains(key)) {
      throw in.error("a key occurs twice", quote_for_message(key), "each key once");
    }
    json& member = object[key];
    member = read_value(in, numbers);
  }
  return object;
}

json read_array(JsonReader& in, JsonNumbers numbers) {
  json array = json::array();
  in.begin_array();
  while (in.next_element()) array.push_back(read_value(in, numbers));
  return array;
}

/// Python's integers have no bounds: one beyond 64 bits becomes a double, which is no size.
json read_number(JsonReader& in, JsonNumbers numbers) {
  if (in.next_is_word()) return {{"__float__", std::string(in.raw())}};
  if (!in.next_is_integer()) return in.number();
  if (numbers != JsonNumbers::kPython) return in.integer();
  const std::string_view digits = in.raw();
  const char* const last = digits.data() + digits.size();
  i64 value = 0;
  if (std::from_chars(digits.data(), last, value).ec == std::errc()) return value;
  double rounded = 0;
  if (std::from_chars(digits.data(), last, rounded).ec == std::errc()) return rounded;
  return digits.front() == '-' ? std::numeric_limits<double>::lowest()
                               : std::numeric_limits<double>::max();
}

json read_value(JsonReader& in, JsonNumbers numbers) {
  switch (in.kind()) {
    case JsonKind::kObject:
      return read_object(in, numbers);
    case JsonKind::kArray:
      return read_array(in, numbers);
    case JsonKind::kString:
      return in.string();
    case JsonKind::kNumber:
      return read_number(in, numbers);
    case JsonKind::kBool:
      return in.boolean();
    case JsonKind::kNull:
      break;
  }
  in.null();
  return nullptr;
}

/// Splits a pointer into its first token, still escaped, and the rest.
std::pair<std::string, std::string> split_pointer(const std::string& pointer) {
  const size_t end = pointer.find('/', 1);
  if (end == std::string::npos) return {pointer.substr(1), ""};
  return {pointer.substr(1, end - 1), pointer.substr(end)};
}

/// Moves to the value of the member or element that `token` names. Returns false if it does not
/// exist.
bool descend(JsonReader& in, const std::string& token) {
  if (in.kind() == JsonKind::kObject) {
    in.begin_object();
    for (std::string key; in.next_key(key); in.skip()) {
      if (pointer_token(key) == token) return true;
    }
  } else if (in.kind() == JsonKind::kArray) {
    in.begin_array();
    for (i64 index = 0; in.next_element(); ++index, in.skip()) {
      if (std::to_string(index) == token) return true;
    }
  }
  return false;
}

}  // namespace

Place JsonDocument::place(const std::string& pointer) const {
  constexpr int kAlreadyChecked = 1 << 20;
  JsonReader in(text_, {file_}, kAlreadyChecked, numbers_);
  size_t value_offset = in.offset();
  for (std::string rest = pointer; !rest.empty();) {
    const auto [token, after] = split_pointer(rest);
    if (!descend(in, token)) break;
    value_offset = in.offset();
    rest = after;
  }
  Place place = in.place_at(value_offset);
  place.pointer = pointer;
  return place;
}

JsonDocument parse_strict_json(std::string_view text, const std::string& file,
                               ErrorCode code_for_errors, int max_depth, JsonNumbers numbers) {
  JsonDocument document;
  document.text_ = text;
  document.file_ = file;
  document.numbers_ = numbers;
  JsonReader in(document.text_, {file, code_for_errors}, max_depth, numbers);
  document.value = read_value(in, numbers);
  in.finish();
  return document;
}

}  // namespace shardtool
