#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/checked.h"

namespace shardtool {

/// Text between values, and the form of strings.
struct JsonStyle {
  std::string_view comma;
  std::string_view colon;
  void (*append_quoted)(std::string& out, std::string_view text);
};

/// Texts in one line, as `--json` prints them: "\n" is short, and invalid UTF-8 (in paths) becomes
/// U+FFFD.
extern const JsonStyle kJsonDocument;
/// Like kJsonDocument, for strings that are valid UTF-8; control characters are \u00xx.
extern const JsonStyle kJsonSpaced;
/// Like kJsonSpaced, without spaces.
extern const JsonStyle kJsonCompact;

/// White space of an object or array that has several lines.
struct JsonLines {
  std::string_view before_first;
  std::string_view between;  ///< with the comma
  std::string_view after_last;
};

/// Streaming JSON writer: fields appear in call order, and a listing of 100,000 tensors is never
/// held in memory. A document ends with a line break.
class JsonWriter {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit JsonWriter(Sink sink, const JsonStyle& style = kJsonDocument)
      : sink_(std::move(sink)), style_(style) {}
  /// Appends to a text, which the caller may empty between calls.
  JsonWriter(std::string& text, const JsonStyle& style) : text_(&text), style_(style) {}
  /// Writes members of an object, or elements of an array, whose brackets the caller writes.
  static JsonWriter inside(std::string& text, const JsonStyle& style);

  JsonWriter& begin_object() { return open('{', one_line()); }
  JsonWriter& begin_object(const JsonLines& lines) { return open('{', lines); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('[', one_line()); }
  JsonWriter& begin_array(const JsonLines& lines) { return open('[', lines); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(i64 number);
  JsonWriter& value(int number) { return value(static_cast<i64>(number)); }
  /// Writes six significant digits, or null for a number that JSON does not have.
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  JsonWriter& null();
  /// Writes the shortest digits that read back as the same number.
  JsonWriter& exact(double number);
  /// Appends text that is already JSON: a value, or several members or elements with their commas.
  JsonWriter& raw(std::string_view json);

  template <class Value>
  JsonWriter& field(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  template <class List>
  JsonWriter& list(std::string_view name, const List& items) {
    key(name);
    return array(items);
  }
  template <class List>
  JsonWriter& array(const List& items) {
    begin_array();
    for (const auto& item : items) value(item);
    return end_array();
  }

 private:
  struct Open {
    JsonLines lines;
    bool filled = false;  ///< has an element
  };

  JsonLines one_line() const { return {"", style_.comma, ""}; }
  JsonWriter& open(char bracket, const JsonLines& lines);
  JsonWriter& close(char bracket);
  void separate();
  void put(std::string_view text) { text_ != nullptr ? void(text_->append(text)) : sink_(text); }
  void put_quoted(std::string_view text);

  Sink sink_;
  std::string* text_ = nullptr;  ///< instead of the sink
  JsonStyle style_;
  std::vector<Open> open_;
  bool after_key_ = false;
};

}  // namespace shardtool
