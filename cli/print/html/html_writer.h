#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardtool::cli {

/// Attributes of an element, in order.
using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// Writes HTML and inline SVG. Texts and values of attributes are escaped; only names of elements
/// and of attributes are written as they are.
class HtmlWriter {
 public:
  HtmlWriter& open(std::string_view element, Attributes attributes = {});
  HtmlWriter& close();
  /// Writes an element without content, such as a rectangle.
  HtmlWriter& empty(std::string_view element, Attributes attributes);
  HtmlWriter& text(std::string_view text);
  HtmlWriter& element(std::string_view element, std::string_view text, Attributes attributes = {}) {
    return open(element, attributes).text(text).close();
  }
  HtmlWriter& line_break();

  /// Returns the text. Requires that every element is closed.
  std::string take();

 private:
  void begin(std::string_view element, Attributes attributes);

  std::string text_;
  std::vector<std::string> open_;
};

/// Text with &, <, > and quotes as entities, and other characters as append_escaped_character.
std::string escape_html(std::string_view text);

/// A coordinate with at most two decimals, "12", "0.5".
std::string coordinate(double number);

/// Writes a text of a picture whose start, middle or end, by `anchor`, is at a point.
void draw_text(HtmlWriter& html, std::string_view text, double x, double y,
               std::string_view anchor);
/// Writes a straight line of a picture, of a class.
void draw_line(HtmlWriter& html, std::string_view look, double x1, double y1, double x2, double y2);

/// Opens a figure with a picture of this size in pixels and these words for those who do not see
/// it. Both are left open.
HtmlWriter& open_picture(HtmlWriter& html, double width, double height, std::string_view words);

/// A chart is drawn twice: for paper and wide screens, and for narrow screens, where the first
/// would be too small to read. The second has the same marks, without titles and the document's
/// values.
enum class Screen { kWide, kNarrow };
inline constexpr double kNarrowWidth = 370;  ///< of the second drawing, in pixels

/// Opens a drawing of a chart in a figure that is open, and leaves it open.
HtmlWriter& open_drawing(HtmlWriter& html, Screen screen, double width, double height,
                         std::string_view words);

}  // namespace shardtool::cli
