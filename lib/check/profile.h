#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/check/rules.h"

namespace shardtool::check {

/// How much each rule matters.
///
///     (none)   as the table says
///     hf       what transformers refuses is an error
///     vllm     uneven and partial parts are errors: engines load equal ones
///     dcp      links and odd names are errors
///     hub      what the Hub refuses or warns of
///     strict   everything one step more severe
class Profile {
 public:
  /// Throws kUsage with near misses. Empty: no profile.
  explicit Profile(const std::string& name);

  /// Turns rules off, by their ids or the begin of one: "ST0301", "ST04". Throws kUsage for what
  /// begins no id.
  void ignore(const std::string& id);

  Severity severity(Rule rule) const { return severities_[static_cast<size_t>(rule)]; }

 private:
  std::vector<Severity> severities_;  ///< by rule
};

/// The names that the constructor takes.
const std::vector<std::string>& profile_names();

}  // namespace shardtool::check
