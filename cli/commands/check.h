#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/args/mapping_args.h"
#include "cli/args/write_args.h"
#include "cli/command.h"
#include "lib/api/check.h"

namespace shardtool::cli {

/// Arguments of `shardtool check`, as typed.
struct CheckArgs {
  std::vector<std::string> sources = {};
  MappingArgs mapping = {};
  std::optional<std::string> format = {};
  std::optional<std::string> output = {};
  std::string fail_on = "error";
  bool exit_zero = false;
  std::optional<std::string> baseline = {};
  std::optional<std::string> write_baseline = {};
  std::vector<std::string> ignore = {};
  std::optional<std::string> profile = {};
  bool read_data = false;
  std::optional<std::string> read_data_subset = {};
  bool rules = false;
  std::optional<std::string> html = {};
  ResourceArgs resources = {};
};

/// Throws kUsage.
api::CheckOptions to_options(const CheckArgs& args);
/// Parses "1/10", "5%" or "20GiB". Throws kUsage.
check::DataSubset parse_subset(const std::string& text);
/// `args` must outlive the command.
Command check_command(CheckArgs& args);

}  // namespace shardtool::cli
