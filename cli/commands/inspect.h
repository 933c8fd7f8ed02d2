#pragma once

#include <optional>
#include <string>

#include "cli/args/mapping_args.h"
#include "cli/command.h"
#include "cli/print/inspect_text.h"
#include "lib/api/inspect.h"

namespace shardtool::cli {

/// Arguments of `shardtool inspect`, as typed.
struct InspectArgs {
  std::string source = {};
  MappingArgs mapping = {};
  std::optional<std::string> filter = {};
  std::optional<std::string> query = {};
  std::optional<std::string> format = {};
  std::optional<std::string> by = {};
  bool tensors = false;
  std::optional<std::string> html = {};
};

/// Throws kUsage.
api::InspectOptions to_options(const InspectArgs& args);
/// Selects the printed parts of the report: the summary, unless tensors are requested in a table
/// format. Throws kUsage for unknown columns and groups.
InspectView to_view(const InspectArgs& args);
/// `args` must outlive the command.
Command inspect_command(InspectArgs& args);

}  // namespace shardtool::cli
