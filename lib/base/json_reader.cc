#include "lib/base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>

#include "lib/base/text.h"

namespace shardtool {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Describes the byte at `at` for a message.
std::string found_at(std::string_view text, size_t at) {
  if (at >= text.size()) return "the end";
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte >= 0x7f) return fmt::format("byte 0x{:02x}", byte);
  return fmt::format("'{}'", text[at]);
}

/// A usual slip of the pen in JSON, with its place and its remedy.
struct Slip {
  std::string message;
  size_t at = 0;
  std::string help;
};

/// Recognises a comment, a trailing comma and a missing comma at the place where a reader fails.
std::optional<Slip> slip_at(std::string_view text, size_t at, std::string_view expected) {
  if (at >= text.size()) return std::nullopt;
  const char found = text[at];
  if (found == '#' || text.substr(at, 2) == "//" || text.substr(at, 2) == "/*") {
    return Slip{"a comment begins here, and JSON has no comments", at, "delete the comment"};
  }
  const size_t before = at == 0 ? text.npos : text.find_last_not_of(" \t\n\r", at - 1);
  if (before == text.npos) return std::nullopt;
  if ((found == '}' || found == ']') && text[before] == ',') {
    return Slip{fmt::format("a trailing comma: JSON allows none before '{}'", found), before,
                "delete the comma"};
  }
  const bool begins_value = found == '"' || found == '{' || found == '[' || is_digit(found);
  if (begins_value && expected.starts_with("','")) {
    return Slip{"a comma is missing after this value", before, "write a comma after it"};
  }
  return std::nullopt;
}

}  // namespace

/// Inline: most texts have no space before most tokens.
inline void JsonReader::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

std::string_view to_string(JsonKind kind) {
  switch (kind) {
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kBool:
      return "a boolean";
    case JsonKind::kNull:
      return "null";
  }
  return "";
}

JsonReader::JsonReader(std::string_view text, JsonOrigin origin, int max_depth, JsonNumbers numbers)
    : text_(text),
      origin_(std::move(origin)),
      max_depth_(static_cast<size_t>(max_depth)),
      numbers_(numbers) {
  if (text_.substr(0, 3) != "\xef\xbb\xbf") return;
  throw error("the text begins with a byte order mark", "the bytes EF BB BF", "a JSON value")
      .help("save the file as UTF-8 without a byte order mark");
}

JsonKind JsonReader::kind() {
  skip_space();
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  const auto require_word = [this](std::string_view word) {
    if (text_.substr(at_, word.size()) != word) fail(at_, "true, false or null");
  };
  switch (c) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
    case 'f':
      require_word(c == 't' ? "true" : "false");
      return JsonKind::kBool;
    case 'n':
      require_word("null");
      return JsonKind::kNull;
    default:
      break;
  }
  if (c != '-' && !is_digit(c) && word_here().empty()) fail(at_, "a JSON value");
  return JsonKind::kNumber;
}

/// Word for a number at the current offset if such words are allowed; otherwise empty.
std::string_view JsonReader::word_here() const {
  if (numbers_ == JsonNumbers::kFinite) return {};
  for (const std::string_view word : {"Infinity", "-Infinity", "NaN"}) {
    if (text_.substr(at_, word.size()) == word) return word;
  }
  return {};
}

void JsonReader::begin_object() {
  expect_kind(JsonKind::kObject);
  open(true);
}

bool JsonReader::next_key(std::string& key) {
  return read_key(&key);
}

bool JsonReader::read_key(std::string* into) {
  if (!next_in_container('}')) return false;
  if (offset() >= text_.size() || text_[at_] != '"') fail(at_, "a key in double quotes");
  value_at_ = at_;
  scan_string(into);
  stack_.back().key = text_.substr(value_at_, at_ - value_at_);
  if (offset() >= text_.size() || text_[at_] != ':') fail(at_, "':'");
  ++at_;
  return true;
}

void JsonReader::begin_array() {
  expect_kind(JsonKind::kArray);
  open(false);
}

bool JsonReader::next_element() {
  return next_in_container(']');
}

std::string JsonReader::string() {
  std::string text;
  string(text);
  return text;
}

void JsonReader::string(std::string& into) {
  expect_kind(JsonKind::kString);
  scan_string(&into);
}

i64 JsonReader::integer() {
  expect_kind(JsonKind::kNumber);
  const std::string_view digits = scan_number();
  i64 value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status == std::errc() && end == digits.data() + digits.size() && digits != "-0") return value;
  throw error("not an integer of 64 bits", quote_for_message(digits, 40), "an integer");
}

double JsonReader::number() {
  expect_kind(JsonKind::kNumber);
  const std::string_view digits = scan_number();
  double value = 0;
  const auto status = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  if (status == std::errc()) return value;
  throw error("the number is out of range", quote_for_message(digits, 40),
              "a number below 1.8e308");
}

bool JsonReader::boolean() {
  expect_kind(JsonKind::kBool);
  const bool value = text_[at_] == 't';
  literal(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  expect_kind(JsonKind::kNull);
  literal("null");
}

void JsonReader::skip() {
  switch (kind()) {
    case JsonKind::kObject:
      for (begin_object(); read_key(nullptr);) skip();
      return;
    case JsonKind::kArray:
      for (begin_array(); next_element();) skip();
      return;
    case JsonKind::kString:
      scan_string(nullptr);
      return;
    case JsonKind::kNumber:
      scan_number();
      return;
    case JsonKind::kBool:
      boolean();
      return;
    case JsonKind::kNull:
      null();
      return;
  }
}

std::string_view JsonReader::raw() {
  const size_t begin = offset();
  skip();
  return text_.substr(begin, at_ - begin);
}

void JsonReader::finish() {
  if (offset() < text_.size()) fail(at_, "the end of the document");
}

void JsonReader::object(std::initializer_list<Field> fields,
                        const std::function<void(const std::string&)>& unknown) {
  begin_object();
  const size_t begin = value_at_;
  std::uint32_t seen = 0;
  std::set<std::string> others;
  std::string key;
  while (next_key(key)) {
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&key](const Field& f) { return f.name == key; });
    const auto bit = std::uint32_t{1} << (field - fields.begin());
    const bool known = field != fields.end();
    const bool twice = known ? (seen & bit) != 0 : !others.insert(key).second;
    if (twice) throw error("a key occurs twice", quote_for_message(key), "each key once");
    if (known) {
      seen |= bit;
      field->read();
      continue;
    }
    if (unknown) unknown(key);
    skip();
  }
  for (const Field& field : fields) {
    const auto bit = std::uint32_t{1} << (&field - fields.begin());
    if (!field.required || (seen & bit) != 0) continue;
    value_at_ = begin;
    throw error(fmt::format("'{}' is missing", field.name), "an object without it",
                fmt::format("the field '{}'", field.name));
  }
}

bool JsonReader::next_is_word() {
  skip_space();
  return !word_here().empty();
}

bool JsonReader::next_is_integer() {
  if (next_is_word()) return false;
  const size_t begin = offset();
  const size_t end = text_.find_first_not_of("-0123456789", begin);
  return end == std::string_view::npos ||
         std::string_view(".eE").find(text_[end]) == std::string_view::npos;
}

size_t JsonReader::offset() {
  skip_space();
  return at_;
}

Place JsonReader::place_at(size_t offset) const {
  const size_t at = std::min(offset, text_.size());
  if (at < counted_.at) counted_ = {};
  const std::string_view rest = text_.substr(counted_.at, at - counted_.at);
  if (const size_t last = rest.rfind('\n'); last != std::string_view::npos) {
    counted_.line += std::count(rest.begin(), rest.end(), '\n');
    counted_.line_begin = counted_.at + last + 1;
  }
  counted_.at = at;
  return {origin_.file, static_cast<int>(counted_.line),
          static_cast<int>(at - counted_.line_begin + 1), pointer()};
}

Error JsonReader::error(ErrorCode code, const std::string& message, const std::string& found,
                        const std::string& expected) const {
  Error error(code, message);
  error.at(place_at(value_at_));
  error.note("byte offset", std::to_string(origin_.offset + static_cast<i64>(value_at_)));
  error.note("found", found);
  error.note("expected", expected);
  return error;
}

void JsonReader::fail(size_t at, const std::string& expected) const {
  if (const auto slip = slip_at(text_, at, expected)) {
    throw Error(origin_.code, slip->message)
        .at(place_at(slip->at))
        .note("byte offset", std::to_string(origin_.offset + static_cast<i64>(slip->at)))
        .help(slip->help);
  }
  const auto offset = origin_.offset + static_cast<i64>(at);
  throw Error(origin_.code, fmt::format("expected {} but found {}", expected, found_at(text_, at)))
      .at(place_at(at))
      .note("byte offset", std::to_string(offset));
}

void JsonReader::expect_kind(JsonKind expected) {
  const JsonKind found = kind();
  value_at_ = at_;
  if (found == expected) return;
  throw error("a value has the wrong type", std::string(to_string(found)),
              std::string(to_string(expected)));
}

void JsonReader::open(bool is_object) {
  if (stack_.size() >= max_depth_) {
    throw error("the nesting is too deep", "one level more",
                fmt::format("at most {} levels", max_depth_));
  }
  stack_.push_back({is_object, -1, {}});
  ++at_;
}

bool JsonReader::next_in_container(char close) {
  Frame& frame = stack_.back();
  const bool first = frame.index < 0;
  const char c = offset() < text_.size() ? text_[at_] : '\0';
  if (c == close) {
    ++at_;
    stack_.pop_back();
    return false;
  }
  ++frame.index;
  if (first) return true;
  if (c != ',') fail(at_, fmt::format("',' or '{}'", close));
  ++at_;
  return true;
}

/// Consumes a word that kind() has found.
void JsonReader::literal(std::string_view word) {
  at_ += word.size();
}

/// number = [ "-" ] ( "0" / 1-9 *DIGIT ) [ "." 1*DIGIT ] [ ( "e" / "E" ) [ "+" / "-" ] 1*DIGIT ]
std::string_view JsonReader::scan_number() {
  if (const std::string_view word = word_here(); !word.empty()) {
    at_ += word.size();
    return word;
  }
  const size_t begin = at_;
  const auto peek = [this] { return at_ < text_.size() ? text_[at_] : '\0'; };
  const auto digits = [&] {
    if (!is_digit(peek())) fail(at_, "a digit");
    while (is_digit(peek())) ++at_;
  };
  if (peek() == '-') ++at_;
  if (peek() == '0') {
    ++at_;
    if (is_digit(peek())) fail(at_, "no digit after a leading zero");
  } else {
    digits();
  }
  if (peek() == '.') {
    ++at_;
    digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

std::string JsonReader::pointer() const {
  std::string out;
  for (const Frame& frame : stack_) {
    if (!frame.is_object) {
      if (frame.index >= 0) out += fmt::format("/{}", frame.index);
      continue;
    }
    if (frame.key.empty()) continue;
    const std::string key = JsonReader(frame.key, {}, 0).string();
    out += "/" + pointer_token(quote_for_message(key));
  }
  return out;
}

std::string pointer_token(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace shardtool
