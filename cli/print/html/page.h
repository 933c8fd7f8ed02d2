#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "cli/print/html/html_writer.h"
#include "cli/print/html/json_view.h"

namespace shardtool::cli {

/// Beginning of every page, up to its title.
inline constexpr std::string_view kPageHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width,initial-scale=1\"><title>";

/// Formats a number of milliseconds, "12 ms".
std::string milliseconds_text(const JsonView& value);

/// One offline HTML file: style, sections, and the command's JSON document as an island
/// (`<script type="application/json" id="document">`). It needs no script and no network, follows
/// the reader's light or dark theme, and prints. Its bytes are a function of the document.
///
/// P1 every number from the document stands in an element with its JSON pointer as `data-at` and
///    its JSON text as `data-value`
class Page {
 public:
  explicit Page(std::string_view title);

  HtmlWriter& html() { return html_; }

  Page& begin_section(std::string_view heading);
  Page& end_section();
  /// Writes a paragraph of the kind "good", "bad" or "plain" that tells the result.
  Page& begin_verdict(std::string_view kind);
  Page& end_verdict();
  Page& note(std::string_view text);
  /// Says that a table with `shown` of `all` things leaves the other ones to the document.
  Page& note_rest(size_t all, size_t shown, std::string_view things = "");

  // Values of the document, as readers want them, with P1.
  Page& bytes(const JsonView& value);
  Page& count(const JsonView& value);
  Page& microseconds(const JsonView& value);
  Page& milliseconds(const JsonView& value);  ///< as "-" for null
  Page& fraction(const JsonView& value);      ///< as "12 %"
  Page& tokens_per_second(const JsonView& value);
  /// Writes a value as `text`, which says the same.
  Page& shown(const JsonView& value, const std::string& text);
  Page& text(std::string_view text);

  /// Writes the titles of a table and opens its body. Titles that begin with '#' are of numbers.
  Page& begin_table(std::initializer_list<std::string_view> titles);
  Page& begin_table(std::span<const std::string> titles);
  Page& end_table();
  Page& begin_row() { return open("tr"); }
  Page& end_row() { return close(); }
  /// Writes a cell by calling `fill`.
  template <class Fill>
  Page& cell(Fill fill, bool is_number = false) {
    html_.open("td", {{"class", is_number ? "n" : ""}});
    fill();
    html_.close();
    return *this;
  }
  Page& text_cell(std::string_view text);
  Page& name_cell(std::string_view text);  ///< wraps less than text
  Page& bytes_cell(const JsonView& value);
  Page& count_cell(const JsonView& value);
  Page& time_cell(const JsonView& value);
  Page& milliseconds_cell(const JsonView& value);
  Page& tokens_cell(const JsonView& value);

  /// Returns the file.
  std::string take(std::string_view document);

 private:
  void write_title(std::string_view title);
  Page& begin_head();
  Page& begin_body();
  Page& open(std::string_view element);
  Page& close();

  std::string title_;
  HtmlWriter html_;
};

}  // namespace shardtool::cli
