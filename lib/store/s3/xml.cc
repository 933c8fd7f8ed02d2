#include "lib/store/s3/xml.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::store::s3 {
namespace {

constexpr int kMaxDepth = 16;
constexpr std::string_view kSpace = " \t\r\n";

[[noreturn]] void throw_malformed(std::string_view at) {
  throw Error(ErrorCode::kMalformed, "the store's answer is not well-formed XML")
      .note("found", quote_for_message(at.substr(0, 40)));
}

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : rest_(text) {}

  XmlElement document() {
    skip_between();
    XmlElement root = element(0);
    skip_between();
    if (!rest_.empty()) throw_malformed(rest_);
    return root;
  }

 private:
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::string_view until(std::string_view token) {
    const size_t end = rest_.find(token);
    if (end == std::string_view::npos) throw_malformed(rest_);
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end + token.size());
    return found;
  }

  bool skip_aside() {
    if (take("<!--")) return until("-->"), true;
    if (take("<?")) return until("?>"), true;
    return false;
  }

  void skip_between() {
    do {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpace), rest_.size()));
    } while (skip_aside());
  }

  XmlElement element(int depth) {
    if (depth > kMaxDepth || !rest_.starts_with('<')) throw_malformed(rest_);
    rest_.remove_prefix(1);
    std::string_view tag = until(">");
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    XmlElement read;
    read.name = tag.substr(0, tag.find_first_of(kSpace));
    if (read.name.empty() || read.name.find_first_of("<&/!") != std::string::npos)
      throw_malformed(tag);
    if (!is_empty) content(read, depth);
    return read;
  }

  void content(XmlElement& into, int depth) {
    while (!take("</")) {
      if (rest_.empty()) throw_malformed(rest_);
      if (take("<![CDATA[")) {
        into.text += until("]]>");
      } else if (skip_aside()) {
        continue;
      } else if (rest_.front() == '<') {
        into.children.push_back(element(depth + 1));
      } else {
        character(into.text);
      }
    }
    std::string_view name = until(">");
    name = name.substr(0, name.find_first_of(kSpace));
    if (name != into.name) throw_malformed(name);
  }

  void character(std::string& text) {
    if (rest_.front() != '&') {
      const size_t end = std::min(rest_.find_first_of("&<"), rest_.size());
      text += rest_.substr(0, end);
      rest_.remove_prefix(end);
      return;
    }
    rest_.remove_prefix(1);
    reference(until(";"), text);
  }

  static void reference(std::string_view name, std::string& text) {
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kNamed) {
      if (name == known) return void(text += c);
    }
    if (!name.starts_with('#')) throw_malformed(name);
    const bool is_hex = name.starts_with("#x");
    name.remove_prefix(is_hex ? 2 : 1);
    std::uint32_t c = 0;
    const auto [end, error] =
        std::from_chars(name.data(), name.data() + name.size(), c, is_hex ? 16 : 10);
    const bool is_surrogate = c >= 0xd800 && c < 0xe000;
    if (error != std::errc() || end != name.data() + name.size() || c == 0 || c > 0x10ffff ||
        is_surrogate) {
      throw_malformed(name);
    }
    append_utf8(text, c);
  }

  std::string_view rest_;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  for (const XmlElement& one : children) {
    if (one.name == child) return &one;
  }
  return nullptr;
}

std::string XmlElement::value(std::string_view child) const {
  const XmlElement* found = find(child);
  return found == nullptr ? "" : found->text;
}

XmlElement parse_xml(std::string_view text) {
  return XmlParser(text).document();
}

i64 number_of(std::string_view text) {
  i64 value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace shardtool::store::s3
