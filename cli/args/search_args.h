#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace shardtool::cli {

/// Flags of `plan search`, as typed.
struct SearchArgs {
  std::optional<std::string> devices = {};
  std::optional<std::string> output_len = {};
  std::optional<std::string> concurrency = {};
  std::optional<std::string> objective = {};
  std::optional<std::string> ttft = {};
  std::optional<std::string> tpot = {};
  std::optional<std::string> max_price = {};
  std::optional<std::string> survive = {};

  bool given() const {
    return devices || output_len || concurrency || objective || ttft || tpot || max_price ||
           survive;
  }
};

std::vector<Argument> search_arguments(SearchArgs& args);

}  // namespace shardtool::cli
