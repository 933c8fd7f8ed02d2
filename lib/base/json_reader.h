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

/// Where a JSON text comes from, for its errors.
struct JsonOrigin {
  std::string file;
  ErrorCode code = ErrorCode::kInternal;  ///< of every error
  i64 offset = 0;                         ///< of the text inside the file, bytes
};

/// Which numbers a text may have.
enum class JsonNumbers {
  kFinite,  ///< JSON's
  kPython,  ///< also the words Infinity, -Infinity and NaN, as Python's json module writes
};

/// Reads JSON (RFC 8259) value by value, in the order of the text, without building a tree:
///
///     JsonReader in(text, origin, 16);
///     in.begin_array();
///     while (in.next_element()) sum += in.integer();
///     in.finish();
///
/// Strict: UTF-8 only, no byte order mark, no lone surrogates, nothing after the document. Whatever
/// is not so throws an Error of the origin's code with place, byte offset, found and expected.
/// Memory is the depth, never a number in the text. O(text).
///
/// Every call below that reads a value requires that one comes next: at the start, after next_key
/// or after next_element.
class JsonReader {
 public:
  /// `text` must outlive the reader. Containers nest at most `max_depth` deep.
  JsonReader(std::string_view text, JsonOrigin origin, int max_depth,
             JsonNumbers numbers = JsonNumbers::kFinite);

  /// The kind of the next value; does not consume it.
  JsonKind kind();

  void begin_object();
  /// The next key, unescaped; false consumes the end of the object. Does not look for duplicates.
  bool next_key(std::string& key);
  void begin_array();
  /// Whether another element follows; false consumes the end of the array.
  bool next_element();

  std::string string();
  /// The same, into a buffer that is reused.
  void string(std::string& into);
  /// An integer of 64 bits. Refuses -0, fractions, exponents and what does not fit.
  i64 integer();
  /// Any number that a double can hold.
  double number();
  bool boolean();
  void null();
  /// Any value; checks it like the others.
  void skip();
  /// The same, and its text.
  std::string_view raw();
  /// Requires that only whitespace follows.
  void finish();

  /// One field of an object, and what to do when it comes.
  struct Field {
    std::string_view name;
    std::function<void()> read;
    bool required = true;
  };
  /// Reads a whole object: each field at most once, each required one exactly once. Other keys are
  /// skipped, and reported to `unknown` when it is given.
  void object(std::initializer_list<Field> fields,
              const std::function<void(const std::string&)>& unknown = nullptr);

  /// Whether the next value is written as an integer. Requires kind() == kNumber.
  bool next_is_integer();
  /// Whether it is a word for a number. Requires kind() == kNumber.
  bool next_is_word();
  /// The byte offset in the text where the next token begins.
  size_t offset();
  /// Where the value or key began that was read last.
  size_t last_offset() const { return value_at_; }
  /// The place of a byte of the text, and the pointer of the value that is being read.
  Place place_at(size_t offset) const;
  /// An error about the value that was read last (or is being read): "message" at that place.
  Error error(const std::string& message, const std::string& found,
              const std::string& expected) const {
    return error(origin_.code, message, found, expected);
  }
  /// The same with another code, for what is JSON but means nothing sensible.
  Error error(ErrorCode code, const std::string& message, const std::string& found,
              const std::string& expected) const;

 private:
  struct Frame {
    bool is_object = false;
    i64 index = -1;        ///< of the current key or element
    std::string_view key;  ///< of the current value, as written, with its quotes
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
  size_t value_at_ = 0;  ///< begin of the value or key that was read last
  std::vector<Frame> stack_;
};

/// A key as a token of a JSON pointer: ~ and / escaped (RFC 6901).
std::string pointer_token(std::string_view key);

}  // namespace shardtool
