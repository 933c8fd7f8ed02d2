#include "lib/check/finding.h"

#include <utility>

namespace shardtool::check {

Finding finding_of(CheckRule rule, const Error& error, std::string file) {
  Finding finding{.rule = rule, .message = error.message(), .file = std::move(file)};
  if (error.place()) {
    if (finding.file.empty()) finding.file = error.place()->file;
    finding.line = error.place()->line;
    finding.column = error.place()->column;
  }
  finding.tensor = error.tensor_name();
  for (const auto& [label, text] : error.notes()) {
    if (label == "found") {
      finding.found = text;
    } else if (label == "expected") {
      finding.expected = text;
    } else if (label != "tensor") {
      finding.message += "; " + label + ": " + text;
    }
  }
  for (const std::string& help : error.help_lines()) {
    finding.fix += (finding.fix.empty() ? "" : "; ") + help;
  }
  return finding;
}

}  // namespace shardtool::check
