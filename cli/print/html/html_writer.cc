#include "cli/print/html/html_writer.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

constexpr std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    if (const std::string_view entity = entity_of(text[at]); !entity.empty()) {
      escaped += entity;
      ++at;
    } else {
      at += append_escaped_character(escaped, text.substr(at));
    }
  }
  return escaped;
}

std::string coordinate(double number) {
  std::string text = fmt::format("{:.2f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

void HtmlWriter::begin(std::string_view element, Attributes attributes) {
  text_ += '<';
  text_ += element;
  for (const auto& [name, value] : attributes) {
    if (value.empty()) continue;
    text_ += fmt::format(" {}=\"{}\"", name, escape_html(value));
  }
}

HtmlWriter& HtmlWriter::open(std::string_view element, Attributes attributes) {
  begin(element, attributes);
  text_ += '>';
  open_.emplace_back(element);
  return *this;
}

HtmlWriter& HtmlWriter::close() {
  if (open_.empty()) throw Error(ErrorCode::kInternal, "an element of HTML is closed twice");
  text_ += "</" + open_.back() + ">";
  open_.pop_back();
  return *this;
}

HtmlWriter& HtmlWriter::empty(std::string_view element, Attributes attributes) {
  begin(element, attributes);
  text_ += "/>";
  return *this;
}

HtmlWriter& HtmlWriter::text(std::string_view text) {
  text_ += escape_html(text);
  return *this;
}

HtmlWriter& HtmlWriter::line_break() {
  text_ += '\n';
  return *this;
}

std::string HtmlWriter::take() {
  if (!open_.empty()) throw Error(ErrorCode::kInternal, "an element of HTML is not closed");
  return std::move(text_);
}

namespace {

HtmlWriter& open_svg(HtmlWriter& html, double width, double height, std::string_view words,
                     std::string_view kind) {
  const std::string across = coordinate(width);
  const std::string down = coordinate(height);
  return html.open("svg", {{"viewBox", fmt::format("0 0 {} {}", across, down)},
                           {"width", across},
                           {"height", down},
                           {"class", kind},
                           {"role", "img"},
                           {"aria-label", words}});
}

}  // namespace

void draw_text(HtmlWriter& html, std::string_view text, double x, double y,
               std::string_view anchor) {
  html.element("text", text, {{"x", coordinate(x)}, {"y", coordinate(y)}, {"text-anchor", anchor}});
}

void draw_line(HtmlWriter& html, std::string_view look, double x1, double y1, double x2,
               double y2) {
  html.empty("line", {{"class", look},
                      {"x1", coordinate(x1)},
                      {"y1", coordinate(y1)},
                      {"x2", coordinate(x2)},
                      {"y2", coordinate(y2)}});
}

HtmlWriter& open_picture(HtmlWriter& html, double width, double height, std::string_view words) {
  return open_svg(html.line_break().open("figure"), width, height, words, "");
}

HtmlWriter& open_drawing(HtmlWriter& html, Screen screen, double width, double height,
                         std::string_view words) {
  return open_svg(html.line_break(), width, height, words,
                  screen == Screen::kNarrow ? "narrow" : "wide-screen");
}

}  // namespace shardtool::cli
