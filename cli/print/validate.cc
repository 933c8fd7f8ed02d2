#include "cli/print/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/print/table.h"
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

void print_fault(Output& out, const engine::Fault& fault) {
  out.write(fmt::format("fault    {} ({})\n", place_of(fault), to_text(fault.tier)));
  if (!fault.diagnosis.empty()) {
    out.write(fmt::format("         {}\n", fault.diagnosis));
    return;
  }
  for (size_t i = 0; i < fault.tensors.size() && i < kMostListed; ++i) {
    out.write(fmt::format("         reads {}\n", quote_for_message(fault.tensors[i])));
  }
}

bool is_of_bytes(const check::Finding& finding) {
  return finding.rule == check::CheckRule::kShardHash || finding.rule == check::CheckRule::kDigest;
}

void print_finding(Output& out, const check::Finding& finding) {
  const std::string& about = finding.tensor.empty() ? finding.file : finding.tensor;
  const std::string rank =
      is_of_bytes(finding) && finding.rank >= 0 ? fmt::format(" on rank {}", finding.rank) : "";
  out.write(fmt::format("{}   {}{}{}\n", is_of_bytes(finding) ? "hashes" : "header",
                        finding.message, about.empty() ? "" : ": " + quote_for_message(about),
                        rank));
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

/// The byte comparison's counterpart, as a noun.
std::string_view byte_standard(const api::ValidateReport& report) {
  return report.has_reference ? "reference" : "manifest";
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

void print_body(Session& session, const api::ValidateReport& report) {
  Output& out = session.out();
  const Style& style = session.out_style();
  const bool is_run = !report.digest.empty();
  if (is_run) {
    out.write(
        labelled(style, "model",
                 fmt::format("{}, {} on {} ({}), {}", report.family, plural(report.layers, "layer"),
                             report.mesh, plural(report.ranks, "rank"),
                             engine_text(report.engine, report.accelerators))));
  }
  if (report.share) {
    const std::string ran = report.ran.empty() ? "no layers" : report.ran;
    out.write(
        labelled(style, "share", fmt::format("{}: {}", api::format_share(*report.share), ran)));
  }
  print_table(out, tiers_table(report), TableFormat::kText);
  if (!report.collectives.empty()) {
    print_table(out, collectives_table(report), TableFormat::kText);
  }
  if (is_run) {
    out.write(labelled(style, "coverage", coverage_text(report)));
    if (report.bytes) out.write(labelled(style, "bytes", bytes_text(report)));
    out.write(labelled(style, "digest", digest_text(report)));
  }
  if (!report.libraries.empty()) out.write(labelled(style, "native", native_text(report)));
  for (const api::ValidateTier& tier : report.tiers) {
    if (is_run && is_ordered(tier.kind)) out.write(labelled(style, "ordered", ordered_text(tier)));
  }
  if (report.reordered > 0 && report.passes()) {
    out.write(labelled(style, "order",
                       fmt::format("{} inside layers differ while every result is the same: the "
                                   "shards compute the same function in another order",
                                   plural(report.reordered, "value"))));
  }
  if (report.undecidable_tokens > 0) {
    out.write(labelled(
        style, "choices",
        fmt::format("{} of experts or positions were too close to decide; the shards replayed them",
                    plural(report.undecidable_tokens, "choice"))));
  }
  for (const std::string& what : report.not_proved) {
    out.write(labelled(style, "unproved", what));
  }
  for (const std::string& note : report.notes) out.write(labelled(style, "note", note));
  if (report.joined > 0) {
    out.write(labelled(style, "shares", fmt::format("the verdict of all {}", report.joined)));
  }
  if (!report.missing.empty()) {
    out.write(labelled(style, "shares",
                       unended_text(report.missing, report.share->of) +
                           "; the last one gives the verdict on all"));
  }
}

void print_faults(Output& out, const std::vector<engine::Fault>& faults) {
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
  if (more > 0) out.write(fmt::format("fault    and {} more\n", more));
}

void print_problems(Output& out, const api::ValidateReport& report) {
  for (size_t i = 0; i < report.findings.size() && i < kMostFindings; ++i) {
    print_finding(out, report.findings[i]);
  }
  if (report.findings.size() > kMostFindings) {
    out.write(fmt::format("header   and {} more\n", report.findings.size() - kMostFindings));
  }
  for (size_t i = 0; i < report.odd_weights.size() && i < kMostFindings; ++i) {
    const engine::OddWeight& odd = report.odd_weights[i];
    out.write(fmt::format("numbers  {}{}: {} NaN, {} infinite\n", quote_for_message(odd.tensor),
                          odd.is_shard ? fmt::format(" on rank {}", odd.rank) : " of the reference",
                          format_count(odd.nan), format_count(odd.infinite)));
  }
  if (report.odd_weights.size() > kMostFindings) {
    out.write(fmt::format("numbers  and {} more\n", report.odd_weights.size() - kMostFindings));
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

}  // namespace

Status status_of(const api::ValidateReport& report) {
  return report.passes() ? Status::kOk : Status::kFindings;
}

std::string engine_text(const std::string& engine, const std::vector<std::string>& accelerators) {
  const std::set<std::string> names(accelerators.begin(), accelerators.end());
  return names.empty() ? engine : fmt::format("{} on {}", engine, fmt::join(names, ", "));
}

void print_text(Session& session, const api::ValidateReport& report) {
  if (!session.quiet()) print_body(session, report);
  print_problems(session.out(), report);
  if (session.quiet()) return;
  session.out().write(fmt::format("{}: {} in {:.2f} s, {} read\n", to_text(report.outcome),
                                  report.passes() ? proved_text(report) : "see above",
                                  report.seconds, format_bytes(report.bytes_read)));
}

namespace {

void write_fault(JsonWriter& json, const engine::Fault& fault) {
  json.begin_object()
      .field("tier", to_text(fault.tier))
      .field("layer", fault.layer)
      .field("op", fault.op);
  json.field("value", fault.value).field("rank", fault.rank).list("tensors", fault.tensors);
  if (!fault.tensor.empty()) json.field("tensor", fault.tensor);
  json.key("index").begin_object().field("token", fault.token).field("feature", fault.feature);
  json.end_object().field("mismatches", fault.mismatches);
  if (!fault.diagnosis.empty()) json.field("diagnosis", fault.diagnosis);
  json.end_object();
}

void write_order(JsonWriter& json, const api::ValidateTier& tier) {
  json.field("proof", tier.is_proof()).field("reordered", tier.reordered);
  if (!tier.first) return;
  json.key("first");
  write_fault(json, *tier.first);
}

void write_shares(JsonWriter& json, const api::ValidateReport& report) {
  if (report.joined > 0) json.field("joined_shares", report.joined);
  if (!report.share) return;
  json.key("share").begin_object().field("number", report.share->number);
  json.field("of", report.share->of).field("layers", report.ran);
  json.key("missing").begin_array();
  for (const int number : report.missing) json.value(number);
  json.end_array().end_object();
}

void write_tiers(JsonWriter& json, const api::ValidateReport& report) {
  json.key("tiers").begin_array();
  for (const api::ValidateTier& tier : report.tiers) {
    json.begin_object().field("tier", number_of(tier.kind)).field("name", to_text(tier.kind));
    json.field("verdict", to_text(tier.outcome)).field("checked", tier.checked);
    json.field("mismatches", tier.mismatches).field("worst", tier.worst);
    if (is_ordered(tier.kind)) write_order(json, tier);
    if (tier.kind == TierKind::kNative) {
      json.field("type", report.native_type).field("rounding", tier.rounding);
    }
    json.end_object();
  }
  json.end_array();
}

void write_collectives(JsonWriter& json, const api::ValidateReport& report) {
  json.key("collectives").begin_array();
  for (const engine::CollectiveRow& row : report.collectives) {
    json.begin_object().field("tier", to_text(row.tier)).field("op", plan::to_string(row.move));
    json.field("axis", row.axis);
    json.field("predicted_count", row.predicted_count).field("counted", row.counted);
    json.field("predicted_bytes", row.predicted_elements * row.element_bytes);
    json.field("counted_bytes", row.counted_elements * row.element_bytes).end_object();
  }
  json.end_array();
}

void write_bytes(JsonWriter& json, const api::ValidateReport& report) {
  json.key("bytes").begin_object().field("against", byte_standard(report));
  json.field("parts", report.parts);
  json.field("compared", report.bytes->parts).field("differing", report.bytes->differing);
  json.key("different").begin_array();
  for (const engine::ComparedBytes::Part& part : report.bytes->different) {
    json.begin_object().field("tensor", part.tensor).field("rank", part.rank).end_object();
  }
  json.end_array().end_object();
}

void write_native(JsonWriter& json, const api::ValidateReport& report) {
  json.key("native_products").begin_object().list("libraries", report.libraries);
  json.field("by_library", report.native.library).field("by_kernels", report.native.kernels);
  json.end_object();
}

void write_problems(JsonWriter& json, const api::ValidateReport& report) {
  json.key("findings").begin_array();
  for (const check::Finding& finding : report.findings) {
    json.begin_object().field("id", check::rule_info(finding.rule).id);
    json.field("message", finding.message).field("file", finding.file);
    json.field("tensor", finding.tensor).field("rank", finding.rank);
    json.field("found", finding.found).field("expected", finding.expected).end_object();
  }
  json.end_array();
  if (report.bytes) write_bytes(json, report);
  json.key("faults").begin_array();
  for (const engine::Fault& fault : report.faults) write_fault(json, fault);
  json.end_array().key("numbers").begin_array();
  for (const engine::OddWeight& odd : report.odd_weights) {
    json.begin_object().field("tensor", odd.tensor).field("rank", odd.is_shard ? odd.rank : -1);
    json.field("nan", odd.nan).field("infinite", odd.infinite).end_object();
  }
  json.end_array();
}

}  // namespace

void write_fields(JsonWriter& json, const api::ValidateReport& report) {
  json.field("verdict", to_text(report.outcome)).field("engine", report.engine);
  json.field("backend", report.backend).list("accelerators", report.accelerators);
  json.field("family", report.family).field("mesh", report.mesh).field("ranks", report.ranks);
  json.field("layers", report.layers).field("reference", report.has_reference);
  write_shares(json, report);
  write_tiers(json, report);
  write_problems(json, report);
  write_collectives(json, report);
  if (!report.libraries.empty()) write_native(json, report);
  json.key("coverage").begin_object().field("fraction", report.coverage / 100);
  json.list("untested", report.untested).end_object();
  json.field("undecidable_tokens", report.undecidable_tokens);
  json.field("reordered", report.reordered).field("digest", report.digest);
  json.list("not_proved", report.not_proved)
      .list("notes", report.notes)
      .field("bytes_read", report.bytes_read);
  json.field("seconds", report.seconds);
}

ExitCode give_verdict(Session& session, const api::ValidateReport& report) {
  if (session.json()) {
    session.document("validate", status_of(report),
                     [&report](JsonWriter& json) { write_fields(json, report); });
  } else {
    print_text(session, report);
  }
  return report.passes() ? ExitCode::kSuccess : ExitCode::kNegative;
}

}  // namespace shardtool::cli
