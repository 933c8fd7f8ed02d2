#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/print/table.h"
#include "cli/session.h"
#include "lib/api/inspect.h"

namespace shardtool::cli {

/// A column of the tensor table, selected by --query.
struct InspectColumn {
  std::string_view name;
  bool right;
  std::string (*cell)(const api::InspectTensor& tensor);
};

/// Parts of a report to print.
struct InspectView {
  bool summary = true;
  bool by_dtype = true;
  bool by_module = true;
  bool tensors = false;
  std::vector<const InspectColumn*> columns = {};  ///< empty: chosen by the report's content
  TableFormat format = TableFormat::kText;
};

/// name, dtype, shape, bytes, file, offset, rule, strategy, axes.
const std::vector<InspectColumn>& inspect_columns();

void print_text(Session& session, const api::InspectReport& report, const InspectView& view);
/// Returns the summary, with the rules of a layout and the warnings, as a comment for a pull
/// request.
std::string markdown(const api::InspectReport& report, const InspectView& view);

}  // namespace shardtool::cli
