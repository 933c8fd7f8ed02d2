#include "cli/print/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/print/report/markdown.h"
#include "cli/print/text.h"
#include "lib/api/validate.h"
#include "lib/base/text.h"

namespace shardtool::cli {
namespace {

using engine::Outcome;
using engine::TierKind;

/// Limits of listed items.
constexpr size_t kMostListed = 5;
constexpr size_t kMostFindings = 12;
constexpr i64 kMostFaults = 8;

std::string worst_text(const api::ValidateTier& tier) {
  if (tier.outcome == Outcome::kNotRun) return "";
  const bool has_worst = tier.kind == TierKind::kF64 || tier.kind == TierKind::kGolden ||
                         tier.outcome == Outcome::kDiffers;
  if (has_worst) return fmt::format("{:.1e} of the RMS", tier.worst);
  if (tier.kind == TierKind::kNative) {
    return fmt::format("{:.1e} of the RMS, unsharded {:.1e}", tier.worst * tier.rounding,
                       tier.rounding);
  }
  if (is_ordered(tier.kind)) return tier.outcome == Outcome::kPass ? "same bits" : "";
  return tier.kind == TierKind::kField && tier.outcome == Outcome::kPass ? "exact" : "";
}

Table tiers_table(const api::ValidateReport& report) {
  Table table{
      {{"tier"}, {"compares"}, {"checked", true}, {"different", true}, {"worst"}, {"verdict"}}, {}};
  for (const api::ValidateTier& tier : report.tiers) {
    const std::string type = tier.kind == TierKind::kNative ? " " + report.native_type : "";
    table.rows.push_back({std::string(number_of(tier.kind)),
                          fmt::format("{}{}", to_text(tier.kind), type), format_count(tier.checked),
                          format_count(tier.mismatches), worst_text(tier),
                          std::string(to_text(tier.outcome))});
  }
  return table;
}

/// Collectives of the first tier, and those of other tiers that differ from the prediction.
Table collectives_table(const api::ValidateReport& report) {
  Table table{{{"collective"},
               {"over"},
               {"calls", true},
               {"predicted", true},
               {"bytes", true},
               {"predicted", true}},
              {}};
  for (const engine::CollectiveRow& row : report.collectives) {
    const bool is_first_tier = row.tier == report.collectives.front().tier;
    if (!is_first_tier && row.agrees()) continue;
    std::string name(plan::to_string(row.move));
    if (!is_first_tier) name += fmt::format(" ({})", to_text(row.tier));
    table.rows.push_back({std::move(name), row.axis, format_count(row.counted),
                          format_count(row.predicted_count),
                          format_count(row.counted_elements * row.element_bytes),
                          format_count(row.predicted_elements * row.element_bytes)});
  }
  return table;
}

std::string place_of(const engine::Fault& fault) {
  std::string text = fmt::format("{}, {} '{}'", fault.layer, fault.op, fault.value);
  if (fault.rank >= 0) {
    text += fmt::format(", rank {}, token {}, feature {}", fault.rank, fault.token, fault.feature);
  }
  return text;
}

/// Result of an order-matched run: a proof, or the first differing bits.
std::string ordered_text(const api::ValidateTier& tier) {
  const std::string of = fmt::format("{} {}: ", number_of(tier.kind), to_text(tier.kind));
  if (tier.is_proof()) return of + "every bit equal (proof)";
  if (tier.outcome == Outcome::kPass) {
    return of + fmt::format("every bit of the results equal, {} inside layers in another order",
                            plural(tier.reordered, "value"));
  }
  if (!tier.first) return of + std::string(to_text(tier.outcome));
  return of + fmt::format("{} of {} values differ, first at {}; informational",
                          format_count(tier.mismatches), format_count(tier.checked),
                          place_of(*tier.first));
}

void print_fault(ReportWriter& out, const engine::Fault& fault) {
  out.fact("fault", fmt::format("{} ({})", place_of(fault), to_text(fault.tier)));
  if (!fault.diagnosis.empty()) {
    out.fact("", fault.diagnosis);
    return;
  }
  for (size_t i = 0; i < fault.tensors.size() && i < kMostListed; ++i) {
    out.fact("", "reads " + quote_for_message(fault.tensors[i]));
  }
}

bool is_of_bytes(const check::Finding& finding) {
  return finding.rule == check::CheckRule::kShardHash || finding.rule == check::CheckRule::kDigest;
}

void print_finding(ReportWriter& out, const check::Finding& finding) {
  const std::string& about = finding.tensor.empty() ? finding.file : finding.tensor;
  const std::string rank =
      is_of_bytes(finding) && finding.rank >= 0 ? fmt::format(" on rank {}", finding.rank) : "";
  out.fact(is_of_bytes(finding) ? "hashes" : "header",
           fmt::format("{}{}{}", finding.message,
                       about.empty() ? "" : ": " + quote_for_message(about), rank));
  if (!finding.fix.empty()) out.fact("", finding.fix);
}

std::string coverage_text(const api::ValidateReport& report) {
  std::string text = fmt::format("{:.1f} % of the tensors", report.coverage);
  if (report.untested.empty() || report.share) return text;
  text += fmt::format("; nothing depends on {}", plural(std::ssize(report.untested), "tensor"));
  for (size_t i = 0; i < report.untested.size() && i < kMostListed; ++i) {
    text += (i == 0 ? ": " : ", ") + quote_for_message(report.untested[i]);
  }
  return text + (report.untested.size() > kMostListed ? ", ..." : "");
}

/// Reports how many parts have the same bytes as the reference, or as the manifest if there is no
/// reference. Does not affect the verdict.
std::string bytes_text(const api::ValidateReport& report) {
  const engine::ComparedBytes& bytes = *report.bytes;
  std::string text;
  if (bytes.differing == 0) {
    const bool is_all = bytes.parts == report.parts;
    text = fmt::format("those of the {} in {}{}", byte_standard(report), is_all ? "all " : "",
                       plural(bytes.parts, "shard"));
  } else {
    text = fmt::format("other than the {}'s in {} of {}", byte_standard(report),
                       format_count(bytes.differing), plural(bytes.parts, "shard"));
  }
  for (size_t i = 0; i < bytes.different.size() && i < kMostListed; ++i) {
    const engine::ComparedBytes::Part& part = bytes.different[i];
    text += (i == 0 ? ": " : ", ") + quote_for_message(part.tensor);
    text += part.rank < 0 ? " on all ranks together" : fmt::format(" on rank {}", part.rank);
  }
  if (bytes.different.size() > kMostListed) text += ", ...";
  const i64 rest = report.parts - bytes.parts;
  if (rest > 0 && !report.share) text += fmt::format("; {} not compared", plural(rest, "shard"));
  return text;
}

/// The libraries and kernels that multiplied in V4.
std::string native_text(const api::ValidateReport& report) {
  const std::set<std::string> names(report.libraries.begin(), report.libraries.end());
  return fmt::format("{} by a library ({}), {} by shardtool's kernels",
                     plural(report.native.library, "GEMM"), fmt::join(names, ", "),
                     format_count(report.native.kernels));
}

/// The digest is that of the unsharded model, which is also the shards' unless their field run
/// fails.
std::string digest_text(const api::ValidateReport& report) {
  const bool differs = std::ranges::any_of(report.tiers, [](const api::ValidateTier& tier) {
    return tier.kind == TierKind::kField && tier.outcome == Outcome::kFail;
  });
  return differs ? report.digest + ", of what the unsharded model computes" : report.digest;
}

void print_body(ReportWriter& out, const api::ValidateReport& report) {
  const bool is_run = !report.digest.empty();
  if (is_run) {
    out.fact("model",
             fmt::format("{}, {} on {} ({}), {}", report.family, plural(report.layers, "layer"),
                         report.mesh, plural(report.ranks, "rank"),
                         engine_text(report.engine, report.accelerators)));
  }
  if (report.share) {
    const std::string ran = report.ran.empty() ? "no layers" : report.ran;
    out.fact("share", fmt::format("{}: {}", api::format_share(*report.share), ran));
  }
  out.table(tiers_table(report));
  if (!report.collectives.empty()) {
    out.table(collectives_table(report));
  }
  if (is_run) {
    out.fact("field", "integers modulo 2^61 - 1, in which sums are exact in any order");
    out.fact("coverage", coverage_text(report));
    if (report.bytes) out.fact("bytes", bytes_text(report));
    out.fact("digest", digest_text(report));
  }
  if (!report.libraries.empty()) out.fact("native", native_text(report));
  for (const api::ValidateTier& tier : report.tiers) {
    if (is_run && is_ordered(tier.kind)) out.fact("ordered", ordered_text(tier));
  }
  if (report.reordered > 0 && report.passes()) {
    out.fact("order", fmt::format("{} inside layers differ while every result is the same: the "
                                  "shards compute the same function in another order",
                                  plural(report.reordered, "value")));
  }
  if (report.undecidable_tokens > 0) {
    out.fact(
        "choices",
        fmt::format("{} of experts or positions were too close to decide; the shards replayed them",
                    plural(report.undecidable_tokens, "choice")));
  }
  for (const std::string& what : report.not_proved) {
    out.fact("unproved", what);
  }
  for (const std::string& note : report.notes) out.fact("note", note);
  if (report.joined > 0) {
    out.fact("shares", fmt::format("the verdict of all {}", report.joined));
  }
  if (!report.missing.empty()) {
    out.fact("shares", unended_text(report.missing, report.share->of) +
                           "; the last one gives the verdict on all");
  }
}

void print_faults(ReportWriter& out, const std::vector<engine::Fault>& faults) {
  std::set<std::string> told;  // each diagnosis is printed once, not per number system
  i64 more = 0;
  for (const engine::Fault& fault : faults) {
    if (!fault.diagnosis.empty() && !told.insert(fault.diagnosis).second) continue;
    if (&fault - faults.data() >= kMostFaults) {
      ++more;
      continue;
    }
    print_fault(out, fault);
  }
  if (more > 0) out.fact("fault", fmt::format("and {} more", more));
}

void print_problems(ReportWriter& out, const api::ValidateReport& report) {
  for (size_t i = 0; i < report.findings.size() && i < kMostFindings; ++i) {
    print_finding(out, report.findings[i]);
  }
  if (report.findings.size() > kMostFindings) {
    out.fact("header", fmt::format("and {} more", report.findings.size() - kMostFindings));
  }
  for (size_t i = 0; i < report.odd_weights.size() && i < kMostFindings; ++i) {
    const engine::OddWeight& odd = report.odd_weights[i];
    out.fact("numbers",
             fmt::format("{}{}: {} NaN, {} infinite", quote_for_message(odd.tensor),
                         odd.is_shard ? fmt::format(" on rank {}", odd.rank) : " of the reference",
                         format_count(odd.nan), format_count(odd.infinite)));
  }
  if (report.odd_weights.size() > kMostFindings) {
    out.fact("numbers", fmt::format("and {} more", report.odd_weights.size() - kMostFindings));
  }
  print_faults(out, report.faults);
}

std::string_view proved_text(const api::ValidateReport& report) {
  if (report.share) return "in the layers of this share";
  return report.has_reference
             ? "the shards compute what the unsharded model computes"
             : "the shards have their manifest's bytes and compute what they compute merged (not "
               "compared with the original)";
}

/// The verdict; of one that fails, `where` says where the reasons are.
std::string verdict_text(const api::ValidateReport& report, std::string_view where) {
  const std::string_view result = report.passes() ? proved_text(report) : where;
  return fmt::format("{}: {} in {:.2f} s, {} read", to_text(report.outcome), result, report.seconds,
                     format_bytes(report.bytes_read));
}

}  // namespace

std::string_view byte_standard(const api::ValidateReport& report) {
  return report.has_reference ? "reference" : "manifest";
}

Status status_of(const api::ValidateReport& report) {
  return report.passes() ? Status::kOk : Status::kFindings;
}

std::string engine_text(const std::string& engine, const std::vector<std::string>& accelerators) {
  const std::set<std::string> names(accelerators.begin(), accelerators.end());
  return names.empty() ? engine : fmt::format("{} on {}", engine, fmt::join(names, ", "));
}

void print_text(Session& session, const api::ValidateReport& report) {
  TextReport out(session.out(), session.out_style());
  if (!session.quiet()) print_body(out, report);
  print_problems(out, report);
  if (!session.quiet()) session.out().write(verdict_text(report, "see above") + "\n");
}

std::string markdown(const api::ValidateReport& report) {
  MarkdownReport out("shardtool validate: " + verdict_text(report, "see below"));
  print_problems(out, report);
  print_body(out, report);
  return out.take();
}

ExitCode give_verdict(Session& session, const api::ValidateReport& report,
                      std::string_view format) {
  if (session.json() || format == "json") {
    session.document("validate", status_of(report),
                     [&report](JsonWriter& json) { write_fields(json, report); });
  } else if (format == "md") {
    session.out().write(markdown(report));
  } else {
    print_text(session, report);
  }
  return report.passes() ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace shardtool::cli
