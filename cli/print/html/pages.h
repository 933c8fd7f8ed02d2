#pragma once

#include <string>
#include <string_view>

namespace shardtool::cli {

/// Returns the HTML file that shows a JSON document of `plan`, `plan search`, `inspect`, `check` or
/// `validate`, as `--json` prints it with what pictures need. Throws kInternal for another
/// document, and kPlanInvalid for the difference of two plans that `plan` did not write.
std::string html_page(std::string_view document);

/// Returns the text with which every page of html_page begins, and no page of another program.
std::string page_beginning();

}  // namespace shardtool::cli
