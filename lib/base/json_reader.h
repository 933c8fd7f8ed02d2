#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/error.h"

namespace shardtool {

enum class JsonKind { kObject, kArray, kString, kNumber, kBool, kNull };

std::string_view to_string(JsonKind kind);

/// Source of a JSON text, for error messages.
struct JsonOrigin {
  std::string file;
  ErrorCode code = ErrorCode::kInternal;  ///< code of every error
  i64 offset = 0;                         ///< byte offset of the text inside the file
};

/// Numbers that a text may contain.
enum class JsonNumbers {
  kFinite,  ///< numbers of RFC 8259
  kPython,  ///< also the words Infinity, -Infinity and NaN, which Python's json module writes
};

/// Reads JSON (RFC 8259) value by value, in the order of the text, without building a tree:
///
///     JsonReader in(text, origin, 16);
///     in.begin_array();
///     while (in.next_element()) sum += in.integer();
///     in.finish();
///
/// Strict: UTF-8 only, no byte order mark, no lone surrogates, no text after the document.
/// Violations throw an Error of the origin's code with place, byte offset, found and expected.
/// Memory grows with the depth, never with a number in the text. O(text).
///
/// Every call below that reads a value requires that one comes next: at the start, after next_key
/// or after next_element.
class JsonReader {
 public:
  /// `text` must outlive the reader. Containers nest at most `max_depth` deep.
  JsonReader(std::string_view text, JsonOrigin origin, int max_depth,
             JsonNumbers numbers = JsonNumbers::kFinite);

  /// Kind of the next value, which is not consumed.
  JsonKind kind();

  void begin_object();
  /// Reads the next key, unescaped. Returns false at the end of the object and consumes it. Does
  /// not check for duplicates.
  bool next_key(std::string& key);
  void begin_array();
  /// Returns true if another element follows; otherwise consumes the end of the array.
  bool next_element();

  std::string string();
  /// Reads a string into a buffer that is reused.
  void string(std::string& into);
  /// Reads a 64-bit integer. Refuses -0, fractions, exponents and values out of range.
  i64 integer();
  /// Reads any number that a double can hold.
  double number();
  bool boolean();
  void null();
  /// Skips any value, with the same checks.
  void skip();
  /// Skips any value and returns its text.
  std::string_view raw();
  /// Throws unless only whitespace follows.
  void finish();

  /// One field of an object and the function that reads its value.
  struct Field {
    std::string_view name;
    std::function<void()> read;
    bool required = true;
  };
  /// Reads a whole object: each field at most once, each required one exactly once. Skips other
  /// keys and passes them to `unknown` if given.
  void object(std::initializer_list<Field> fields,
              const std::function<void(const std::string&)>& unknown = nullptr);

  /// True if the next value is written as an integer. Requires kind() == kNumber.
  bool next_is_integer();
  /// True if the next value is a word for a number. Requires kind() == kNumber.
  bool next_is_word();
  /// Byte offset of the next token in the text.
  size_t offset();
  /// Text from the next token on, for a caller that reads a value by itself and consumes it.
  std::string_view rest() { return text_.substr(offset()); }
  /// Consumes the next value, whose valid text is the first `bytes` bytes of rest().
  void consume_value(size_t bytes) {
    value_at_ = at_;
    at_ += bytes;
  }
  /// Byte offset of the value or key read last.
  size_t last_offset() const { return value_at_; }
  /// Place of a byte of the text, with the pointer of the value being read.
  Place place_at(size_t offset) const;
  /// Error about the value read last (or being read): "message" at its place.
  Error error(const std::string& message, const std::string& found,
              const std::string& expected) const {
    return error(origin_.code, message, found, expected);
  }
  /// Same with another code, for valid JSON with an invalid meaning.
  Error error(ErrorCode code, const std::string& message, const std::string& found,
              const std::string& expected) const;

 private:
  struct Frame {
    bool is_object = false;
    i64 index = -1;        ///< index of the current key or element
    std::string_view key;  ///< key of the current value as written, with its quotes
  };

  /// Offset up to which lines were counted, so that later places continue there.
  struct CountedLines {
    size_t at = 0;
    size_t line_begin = 0;
    i64 line = 1;
  };

  [[noreturn]] void fail(size_t at, const std::string& expected) const;
  void skip_space();
  bool read_key(std::string* into);
  void expect_kind(JsonKind expected);
  void open(bool is_object);
  bool next_in_container(char close);
  void literal(std::string_view word);
  std::string_view word_here() const;
  std::string_view scan_number();
  void scan_string(std::string* into);
  void scan_escape(std::string* into);
  unsigned scan_hex4();
  void scan_utf8(std::string* into);
  std::string pointer() const;

  std::string_view text_;
  JsonOrigin origin_;
  size_t max_depth_;
  JsonNumbers numbers_;
  size_t at_ = 0;        ///< next byte
  size_t value_at_ = 0;  ///< offset of the value or key read last
  std::vector<Frame> stack_;
  mutable CountedLines counted_;
};

/// Escapes ~ and / of a key for use as a JSON pointer token (RFC 6901).
std::string pointer_token(std::string_view key);

}  // namespace shardtool
