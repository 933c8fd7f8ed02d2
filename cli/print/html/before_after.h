#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "cli/print/html/page.h"

namespace shardtool::cli {

/// A value of two documents; nullopt where a document lacks it.
struct BeforeAfter {
  std::optional<JsonView> before;
  std::optional<JsonView> after;

  bool is_absent() const { return !before && !after; }
  bool is_same() const;
};

/// Returns the value that both documents have at a path of keys.
BeforeAfter value_at(const BeforeAfter& documents, std::initializer_list<std::string_view> path);

/// "+12 %", "as before"; empty where a value is absent, is no number, or was 0.
std::string growth_text(const BeforeAfter& values);

/// Function of Page that shows a number, such as Page::bytes.
using ShowNumber = Page& (Page::*)(const JsonView&);

/// Writes the titles of a table of values before and after, and opens its body.
void begin_changes(Page& page, std::string_view title);
/// Writes a row of it; nothing if both values are absent.
void write_change(Page& page, std::string_view name, const BeforeAfter& values, ShowNumber show);

/// Writes "A instead of B (+12 %)", or "A as before".
void write_instead(Page& page, const BeforeAfter& values, ShowNumber show);

}  // namespace shardtool::cli
