#pragma once

#include <string>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/check/rules.h"

namespace shardtool::check {

/// One result of a check, with its place.
struct Finding {
  CheckRule rule = CheckRule::kFileUnreadable;
  std::string message = {};  ///< one sentence
  std::string file = {};     ///< path as the user would type it; may be empty
  int line = 0;              ///< from 1; 0 if unknown
  int column = 0;
  std::string tensor = {};
  int axis = -1;
  i64 rank = -1;
  std::string found = {};
  std::string expected = {};
  std::string fix = {};
  Severity severity = Severity::kOff;  ///< set by Findings, from the profile

  bool operator==(const Finding&) const = default;
};

/// Finding for an error that did not end the check. Its place names the file unless `file` does.
Finding finding_of(CheckRule rule, const Error& error, std::string file = "");

}  // namespace shardtool::check
