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
///     hf       errors: files without an index; warnings: files without "format"
///     vllm     errors: uneven cuts, partial overlaps (engines load equal shards); warnings:
///              misaligned tensors, blocks that limit the tensor-parallel sizes
///     dcp      errors: file names that are not portable; warnings: files without "format"
///     hub      errors: pickles, files and folders above the Hub's limits; warnings: names that are
///              not portable, files without "format", code that config.json asks loaders to run
///     strict   everything one step more severe
class Profile {
 public:
  /// Throws kUsage, with the known names, for another name. Empty: no profile.
  explicit Profile(const std::string& name);

  /// Turns rules off by id or id prefix: "ST0301", "ST04". Throws kUsage if no id has the prefix,
  /// or if it is shorter than a family's.
  void ignore(const std::string& id);
  void ignore(CheckRule rule) { severities_[static_cast<size_t>(rule)] = Severity::kOff; }

  Severity severity(CheckRule rule) const { return severities_[static_cast<size_t>(rule)]; }

 private:
  std::vector<Severity> severities_;  ///< by rule
};

/// Names that the constructor accepts.
const std::vector<std::string>& profile_names();

}  // namespace shardtool::check
