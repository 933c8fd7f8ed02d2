#include "lib/check/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lib/mapping/resolve/cut_checks.h"

namespace shardtool::check {
namespace {

struct CodeRule {
  ErrorCode code;
  CheckRule rule;
};

constexpr auto kCodeRules = std::to_array<CodeRule>({
    {ErrorCode::kMappingSyntax, CheckRule::kMappingSyntax},
    {ErrorCode::kMappingSchema, CheckRule::kMappingSchema},
    {ErrorCode::kNotDivisible, CheckRule::kNotDivisible},
    {ErrorCode::kUnknownName, CheckRule::kUnknownName},
    {ErrorCode::kNoRule, CheckRule::kNoRule},
    {ErrorCode::kAmbiguousRule, CheckRule::kAmbiguousRule},
    {ErrorCode::kUnusedRule, CheckRule::kUnusedRule},
    {ErrorCode::kShapeMismatch, CheckRule::kRuleShape},
    {ErrorCode::kMeshAxisReused, CheckRule::kMeshAxisReused},
    {ErrorCode::kEmptyShard, CheckRule::kEmptyShard},
    {ErrorCode::kBlockStraddle, CheckRule::kBlockStraddle},
    {ErrorCode::kSizeExpression, CheckRule::kSizeExpression},
    {ErrorCode::kExtends, CheckRule::kExtends},
    {ErrorCode::kGroups, CheckRule::kGroups},
    {ErrorCode::kMesh, CheckRule::kMesh},
    {ErrorCode::kAssertion, CheckRule::kAssertion},
    {ErrorCode::kStrategy, CheckRule::kStrategy},
    {ErrorCode::kSubByteCut, CheckRule::kSubByteCut},
    {ErrorCode::kTied, CheckRule::kTied},
    {ErrorCode::kConfig, CheckRule::kMappingConfig},
});

/// Returns the path of a mapping document as the user would type it. `folder` is that of the user's
/// file, which other documents' paths are relative to.
std::string placed_in(const std::string& folder, const std::string& file) {
  const bool is_file = file.front() != '/' && file.front() != '-';
  const bool is_placed = file.starts_with(folder + "/");
  return is_file && !folder.empty() && folder != "." && !is_placed ? folder + "/" + file : file;
}

}  // namespace

Finding mapping_finding(const Error& error, const std::string& folder, const std::string& file) {
  const auto* const row = std::find_if(kCodeRules.begin(), kCodeRules.end(),
                                       [&](const CodeRule& r) { return r.code == error.code(); });
  if (row == kCodeRules.end()) throw error;
  Finding finding = finding_of(row->rule, error);
  if (finding.file.empty()) {
    finding.file = file;
    return finding;
  }
  if (finding.file.starts_with("preset:")) {
    // The place is inside a preset, not in a file of the user: report the file that selects it.
    finding.message += fmt::format("; at {}:{}:{}", finding.file, finding.line, finding.column);
    finding.file = file;
    finding.line = finding.column = 0;
    return finding;
  }
  finding.file = placed_in(folder, finding.file);
  return finding;
}

void check_doubts(const std::vector<mapping::DoubtfulCut>& doubts, const std::string& folder,
                  Findings& findings) {
  for (const mapping::DoubtfulCut& cut : doubts) {
    findings.add({.rule = CheckRule::kDoubtfulCut,
                  .message = cut.message,
                  .file = placed_in(folder, cut.place.file),
                  .line = cut.place.line,
                  .column = cut.place.column,
                  .tensor = cut.tensor,
                  .fix = cut.fix});
  }
}

void check_resolution(const mapping::Resolution& resolution, const std::string& file,
                      Findings& findings) {
  for (const mapping::UnevenCut& cut : resolution.uneven) {
    findings.add({.rule = CheckRule::kUneven,
                  .message = fmt::format("axis '{}' does not divide over {} ranks ({} tensors)",
                                         cut.axis, cut.sizes.size(), cut.tensors),
                  .file = file,
                  .tensor = cut.example_tensor,
                  .found = "shards of " + mapping::sum_text(cut.sizes),
                  .fix = fmt::format("most engines need equal shards: {}; or pad the axis",
                                     mapping::even_counts(cut.units, std::ssize(cut.sizes)))});
  }
  for (const std::string& warning : resolution.warnings) {
    findings.add({.rule = CheckRule::kMappingWarning, .message = warning, .file = file});
  }
}

}  // namespace shardtool::check
