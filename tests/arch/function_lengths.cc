#include "tests/arch/function_lengths.h"

#include <algorithm>
#include <cctype>

namespace shardtool::arch {
namespace {

/// Replaces comments, literals and preprocessor lines by spaces; keeps line ends.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text) {}

  std::string blank() {
    while (position_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    if (at("//") || (at("#") && at_line_start())) return skip_to("\n", 0);
    if (at("/*")) return skip_to("*/", 2);
    if (at("R\"")) return skip_raw_string();
    if (at("\"")) return skip_quoted('"');
    if (at("'") && !is_digit_separator()) return skip_quoted('\'');
    out_ += text_[position_++];
  }

  bool at(std::string_view token) const { return text_.substr(position_).starts_with(token); }
  bool at_line_start() const { return position_ == 0 || text_[position_ - 1] == '\n'; }
  bool is_digit_separator() const {
    return position_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[position_ - 1])) != 0;
  }

  void skip(size_t end) {
    for (; position_ < std::min(end, text_.size()); ++position_) {
      out_ += text_[position_] == '\n' ? '\n' : ' ';
    }
  }
  void skip_to(std::string_view token, size_t and_then) {
    const size_t found = text_.find(token, position_);
    skip(found == std::string_view::npos ? text_.size() : found + and_then);
  }
  void skip_raw_string() {
    const size_t open = text_.find('(', position_);
    const std::string_view delimiter = text_.substr(position_ + 2, open - position_ - 2);
    skip_to(")" + std::string(delimiter) + "\"", delimiter.size() + 2);
  }
  void skip_quoted(char quote) {
    size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    skip(end + 1);
  }

  std::string_view text_;
  size_t position_ = 0;
  std::string out_;
};

bool has_word(std::string_view head, std::string_view word) {
  const size_t found = head.find(word);
  return found != std::string_view::npos && (found == 0 || head[found - 1] == ' ');
}

enum class Block { kScope, kFunction, kOther };

struct Open {
  Block block;
  size_t first_line;
};

/// True for "int f(int a = 1)", false for "constexpr auto kTable = to_array(" and "auto f = [](int
/// a)".
bool has_parameter_list(std::string_view head) {
  const size_t open = head.find('(');
  if (open == std::string_view::npos) return false;
  if (std::count(head.begin(), head.end(), '(') != std::count(head.begin(), head.end(), ')')) {
    return false;
  }
  return head.substr(0, open).find('=') == std::string_view::npos || has_word(head, "operator");
}

Block classify(std::string_view head, const std::vector<Open>& open) {
  const bool in_scope =
      std::all_of(open.begin(), open.end(), [](const Open& o) { return o.block == Block::kScope; });
  if (!in_scope) return Block::kOther;
  // A macro before a namespace has no terminator.
  if (has_word(head.substr(head.rfind(')') + 1), "namespace")) return Block::kScope;
  if (has_parameter_list(head)) return Block::kFunction;
  for (const std::string_view word : {"namespace", "class", "struct", "union"}) {
    if (has_word(head, word)) return Block::kScope;
  }
  return Block::kOther;
}

/// Walks the braces of blanked text; a head is the text since the last ; { or }.
class Scanner {
 public:
  void read(char c) {
    if (c == '\n') ++line_;
    if (c == '{') return enter();
    if (c == '}') return leave();
    if (c == ';') return head_.clear();
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (head_.empty() && is_space) return;
    if (head_.empty()) head_line_ = line_;
    head_ += is_space ? ' ' : c;
  }
  std::vector<Function> take() { return std::move(functions_); }

 private:
  void enter() {
    open_.push_back({classify(head_, open_), head_.empty() ? line_ : head_line_});
    head_.clear();
  }
  void leave() {
    head_.clear();
    if (open_.empty()) return;
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.block != Block::kFunction) return;
    functions_.push_back({closed.first_line, line_ - closed.first_line + 1});
  }

  size_t line_ = 1;
  size_t head_line_ = 1;
  std::string head_;
  std::vector<Open> open_;
  std::vector<Function> functions_;
};

}  // namespace

std::vector<Function> functions_of(std::string_view text) {
  Scanner scanner;
  for (const char c : Blanker(text).blank()) scanner.read(c);
  return scanner.take();
}

}  // namespace shardtool::arch
