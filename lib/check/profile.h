#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/check/rules.h"

namespace shardtool::check {

/// Severity of each rule.
///
///     (none)   as in the table
///     hf       violations that transformers refuses are errors
///     vllm     uneven and partial parts are errors: engines load equal ones
///     dcp      links and odd names are errors
///     hub      violations that the Hub refuses or warns about
///     strict   everything one step more severe
class Profile {
 public:
  /// Throws kUsage with near misses. Empty: no profile.
  explicit Profile(const std::string& name);

  /// Turns rules off by id or id prefix: "ST0301", "ST04". Throws kUsage if no id has the prefix.
  void ignore(const std::string& id);
  void ignore(CheckRule rule) { severities_[static_cast<size_t>(rule)] = Severity::kOff; }

  Severity severity(CheckRule rule) const { return severities_[static_cast<size_t>(rule)]; }

 private:
  std::vector<Severity> severities_;  ///< by rule
};

/// Names that the constructor accepts.
const std::vector<std::string>& profile_names();

}  // namespace shardtool::check
