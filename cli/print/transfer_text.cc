#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/print/text.h"
#include "lib/api/finish.h"
#include "lib/api/transform.h"
#include "lib/base/shell.h"
#include "lib/base/text.h"

/// Prints reports of split, merge, reshard and finish.
namespace shardtool::cli {
namespace {

std::string seconds_text(double seconds) {
  return seconds < 10 ? fmt::format("{:.2f} s", seconds) : fmt::format("{:.1f} s", seconds);
}

std::string plan_text(const api::TransformPlan& plan) {
  auto text = plural(plan.tensors, "tensor");
  if (plan.ranks > 0) {
    text += fmt::format(", {} split, {} replicated", format_count(plan.split),
                        format_count(plan.replicated));
  }
  if (plan.dropped > 0) text += fmt::format(", {} dropped", format_count(plan.dropped));
  if (plan.ranks > 0) text += fmt::format(", {} of {}", plural(plan.ranks, "rank"), plan.mesh);
  text += ", " + format_bytes(plan.bytes_out);
  if (plan.replicated_bytes > 0) {
    text += fmt::format(" (replication +{})", format_bytes(plan.replicated_bytes));
  }
  if (plan.padding_bytes > 0)
    text += fmt::format(" (padding +{})", format_bytes(plan.padding_bytes));
  return text;
}

std::string mapping_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + quote_for_message(name);
  return text;
}

std::string shares_text(const api::WorkShares& shares) {
  return fmt::format("in {}, each moves {} to {} of the source", plural(shares.shares, "share"),
                     format_bytes(shares.least), format_bytes(shares.most));
}

std::string requests_text(const api::SourceRequests& requests) {
  std::string text =
      fmt::format("{} for {}, read amplification {:.2f}", plural(requests.requests, "request"),
                  format_bytes(requests.bytes), requests.read_amplification);
  if (requests.copies == 0) return text;
  return text + fmt::format("; {} for {} that the store copies, unless it refuses",
                            plural(requests.copies, "request"),
                            format_bytes(requests.copied_bytes));
}

std::string alteration_text(const api::Alteration& alteration) {
  return fmt::format("{} ({}, e.g. {})", quote_for_message(alteration.what),
                     plural(alteration.tensors, "tensor"),
                     quote_for_message(alteration.example_tensor));
}

std::string not_boxes_text(const api::NotBoxes& not_boxes) {
  return fmt::format("not readable by torch's HuggingFaceStorageReader: {}, e.g. '{}'",
                     not_boxes.reason, quote_for_message(not_boxes.tensor));
}

/// ": 6,738 values, 6,001 rounded to nearest even, ..."
std::string counts_text(const kernels::CastCounts& counts) {
  std::string text = fmt::format(": {}", plural(counts.values, "value"));
  if (counts.is_exact()) text += ", all exact";
  const auto add = [&text](i64 count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", format_count(count), what);
  };
  add(counts.rounded, "rounded to nearest even");
  add(counts.overflowed, "became infinite");
  add(counts.underflowed, "became zero");
  add(counts.nan, "NaN");
  return text;
}

/// "fp8/block -> BF16, 201 weights: 6,738 values, 6,001 rounded to nearest even, ..."
std::string dequantized_text(const api::TransformDequantize& unpacked) {
  std::string text = fmt::format("{} -> {}, {}", quote_for_message(unpacked.scheme),
                                 to_string(unpacked.to), plural(unpacked.weights, "weight"));
  if (unpacked.counts) text += counts_text(*unpacked.counts);
  const auto left_out = static_cast<i64>(unpacked.left_out.size());
  if (left_out > 0) {
    text += fmt::format("; {} of activations left out, e.g. {}", plural(left_out, "scale"),
                        quote_for_message(unpacked.left_out.front()));
  }
  return text;
}

/// "F32 -> BF16, 201 tensors: 6,738 values, 6,001 rounded to nearest even, ..."
std::string cast_text(const api::TransformCast& cast) {
  std::vector<std::string_view> from;
  for (const Dtype dtype : cast.from) from.push_back(to_string(dtype));
  if (cast.tensors == 0) return fmt::format("no tensor: all floats are {}", to_string(cast.to));
  std::string text = fmt::format("{} -> {}, {}", fmt::join(from, ", "), to_string(cast.to),
                                 plural(cast.tensors, "tensor"));
  return cast.counts ? text + counts_text(*cast.counts) : text;
}

std::string resumed_text(const api::TransformResumed& resumed) {
  const auto found = fmt::format("{}, {} were finished", plural(resumed.tensors, "tensor"),
                                 format_bytes(resumed.bytes));
  if (resumed.damaged == 0) return found + " and are intact";
  return found +
         fmt::format("; {} damaged since, written again", plural(resumed.damaged, "tensor"));
}

/// Text about a cast, or about an unpacking.
template <class Change>
std::string overflow_text(const Change& change) {
  return fmt::format("{} {} too large for {} and became infinite, the first in '{}'",
                     plural(change.counts->overflowed, "value"),
                     change.counts->overflowed == 1 ? "is" : "are", to_string(change.to),
                     quote_for_message(change.overflow_example));
}

/// "448.50 KiB in 0.02 s (22.79 MiB/s), peak memory 13.48 MiB", of a run or of a share. The peak is
/// left out if the system did not tell it.
template <class Moved>
std::string moved_text(const Moved& moved) {
  std::string text =
      fmt::format("{} in {} ({}/s)", format_bytes(moved.bytes), seconds_text(moved.seconds),
                  format_bytes(static_cast<i64>(moved.bytes_per_second)));
  if (moved.peak_rss_bytes > 0)
    text += fmt::format(", peak memory {}", format_bytes(moved.peak_rss_bytes));
  return text;
}

/// Comparisons that were made while the data moved.
std::string compared_text(const api::TransformReport& report) {
  std::string text;
  if (report.bytes_verified) {
    text += fmt::format("; {} read back, all as written", format_bytes(*report.bytes_verified));
  }
  if (report.replicas_compared > 0) {
    text += fmt::format("; {} compared, all equal", plural(report.replicas_compared, "replica"));
  }
  return text;
}

std::string written_text(const api::TransformReport& report) {
  const auto& written = *report.written;
  auto text = fmt::format("{}, {}", plural(written.files, "file"), moved_text(written));
  if (written.copied_by_store > 0) {
    text += fmt::format("; {} copied by the object store", format_bytes(written.copied_by_store));
  }
  if (written.shared_bytes > 0) {
    text += fmt::format("; {} share the source's space", format_bytes(written.shared_bytes));
  }
  return text + compared_text(report);
}

std::string share_text(const api::TransformReport& report) {
  const auto& share = *report.share;
  return fmt::format("{}: {}, {}", api::format_share(share.share), plural(share.tensors, "tensor"),
                     moved_text(share)) +
         compared_text(report);
}

/// State of all shares, after one of them.
std::string shares_state(const api::TransformShare& share) {
  if (share.published)
    return fmt::format("all {} have ended: published", plural(share.share.of, "share"));
  if (share.missing.empty()) return "another process publishes the output";
  return unended_text(share.missing, share.share.of) + "; the last one publishes";
}

std::string done_text(const api::TransformReport& report) {
  if (report.was_complete && !report.bytes_verified) {
    return "the output is complete already: its manifest is this job's, with the digests of the "
           "source (--verify reads the output, too)";
  }
  if (report.was_complete) {
    return fmt::format("the output is complete already: {} read, every shard has its hash",
                       format_bytes(*report.bytes_verified));
  }
  if (report.share) return shares_state(*report.share);
  return report.written ? written_text(report) : "nothing written (dry run)";
}

}  // namespace

void print_text(Session& session, const api::TransformReport& report) {
  const auto& style = session.out_style();
  for (const auto& warning : report.warnings) session.warn(warning);
  if (report.cast && !report.cast->overflow_example.empty()) {
    session.warn(overflow_text(*report.cast));
  }
  if (report.dequantized && !report.dequantized->overflow_example.empty()) {
    session.warn(overflow_text(*report.dequantized));
  }
  if (!session.quiet()) {
    session.out().write(labelled(style, "plan", plan_text(report.plan)));
    if (!report.plan.mapping.empty()) {
      session.out().write(labelled(style, "mapping", mapping_text(report.plan.mapping)));
    }
    if (const auto& shares = report.plan.shares) {
      session.out().write(labelled(style, "shared", shares_text(*shares)));
    }
    if (const auto& requests = report.plan.requests) {
      session.out().write(labelled(style, "store", requests_text(*requests)));
    }
    for (const auto& alteration : report.plan.alterations) {
      session.out().write(labelled(style, "alters", alteration_text(alteration)));
    }
    if (report.dequantized) {
      session.out().write(labelled(style, "unpacked", dequantized_text(*report.dequantized)));
    }
    if (report.cast) session.out().write(labelled(style, "cast", cast_text(*report.cast)));
    if (const auto& not_boxes = report.plan.not_boxes) {
      session.out().write(labelled(style, "dcp", not_boxes_text(*not_boxes)));
    }
    if (report.moved) {
      session.out().write(labelled(style, "moved",
                                   fmt::format("{} as planned, {} stayed on their rank",
                                               format_bytes(report.moved->bytes_moved),
                                               format_bytes(report.moved->bytes_kept))));
    }
    if (report.resumed) {
      session.out().write(labelled(style, "resumed", resumed_text(*report.resumed)));
    }
    if (report.share) session.out().write(labelled(style, "share", share_text(report)));
    session.out().write(labelled(style, "done", done_text(report)));
    if (report.written && report.plan.ranks > 0 && report.plan.has_all_ranks) {
      session.out().write(labelled(
          style, "",
          fmt::format("merge back: shardtool merge {} -o FOLDER", path_argument(report.output))));
    }
  }
  const bool is_complete =
      report.written || report.was_complete || (report.share && report.share->published);
  if (is_complete) session.out().write(report.output + "\n");
}

void print_text(Session& session, const api::FinishReport& report) {
  for (const auto& warning : report.warnings) session.warn(warning);
  if (!session.quiet()) {
    std::string text = report.was_complete
                           ? std::string("the output is complete already")
                           : fmt::format("published, from {}", plural(report.shares, "share"));
    text += fmt::format(": {}, {}, {}", plural(report.tensors, "tensor"),
                        plural(report.files, "file"), format_bytes(report.bytes));
    if (report.bytes_verified) {
      text += fmt::format("; {} read back, all as written", format_bytes(*report.bytes_verified));
    }
    session.out().write(labelled(session.out_style(), "done", text));
  }
  session.out().write(report.output + "\n");
}

}  // namespace shardtool::cli
