#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardtool::cli {

/// A page of section 5 of the manual in cli/man, compiled in by the build: an installation by pip
/// has no man pages.
struct FormatPage {
  std::string_view file;   ///< "shardtool-mapping.5"
  std::string_view scdoc;  ///< its source

  /// Word for it after `shardtool help`: "mapping".
  std::string_view name() const;
};

/// All pages, sorted by name.
std::span<const FormatPage> format_pages();

/// Returns the text of a page as a terminal shows it: without marks, literal blocks indented.
std::string plain_text(const FormatPage& page);

}  // namespace shardtool::cli
