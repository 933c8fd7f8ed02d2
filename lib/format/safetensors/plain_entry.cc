#include "lib/format/safetensors/plain_entry.h"

#include <limits>

namespace shardtool::format::safetensors {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_dtype(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Consumes a text from its begin. Calls that return bool return false where it has something else.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool literal(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  /// Returns the capital letters, digits and underscores that come next.
  std::string_view dtype() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_of_dtype(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Reads up to 18 digits; more may not fit.
  bool integer(i64& value) {
    const size_t begin = at_;
    const size_t limit = begin + std::numeric_limits<i64>::digits10;
    for (value = 0; at_ < limit && at_ < text_.size() && is_digit(text_[at_]); ++at_)
      value = 10 * value + (text_[at_] - '0');
    return at_ > begin && (text_[begin] != '0' || at_ == begin + 1);
  }

  size_t consumed() const { return at_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

size_t read_plain_entry(std::string_view text, Entry& entry) {
  Cursor in(text);
  if (!in.literal(R"({"dtype":")")) return 0;
  const auto dtype = parse_dtype(in.dtype());
  if (!dtype || !in.literal(R"(","shape":[)")) return 0;
  entry.dtype = *dtype;
  while (!in.literal("]")) {
    if (!entry.shape.empty() && !in.literal(",")) return 0;
    if (!in.integer(entry.shape.emplace_back())) return 0;
  }
  const bool has_offsets = in.literal(R"(,"data_offsets":[)") && in.integer(entry.begin) &&
                           in.literal(",") && in.integer(entry.end) && in.literal("]}");
  if (!has_offsets || byte_size(entry.dtype, entry.shape) != entry.end - entry.begin) return 0;
  return in.consumed();
}

}  // namespace shardtool::format::safetensors
