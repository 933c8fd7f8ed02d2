#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "lib/api/bench_io.h"
#include "lib/api/diff.h"
#include "lib/api/doctor.h"
#include "lib/api/explain.h"
#include "lib/api/graphs.h"
#include "lib/api/presets.h"
#include "lib/api/transform.h"
#include "lib/base/error.h"

namespace shardtool::cli {

// Reports for people, on standard output. The last line answers the question.

/// Plan, uneven cuts, what was written; last the output's path, which is all that -q leaves.
void print_text(Session& session, const api::TransformReport& report);
/// Counts, the tensors that differ; last "same" or "differs". With -q nothing: the exit code says
/// it.
void print_text(Session& session, const api::DiffReport& report);
/// The rule, the axes, and every device's slices.
void print_text(Session& session, const api::ExplainReport& report);
void print_text(Session& session, const ErrorInfo& info);
void print_text(Session& session, const api::PresetList& list);
void print_text(Session& session, const std::vector<model::GraphHead>& graphs);
void print_text(Session& session, const std::vector<api::DoctorCheck>& checks);
/// Rates, and the fraction of each that split reached; last the two that matter, all that -q
/// leaves.
void print_text(Session& session, const api::BenchIoReport& report);

/// A line of the form "label    text".
std::string labelled(const Style& style, std::string_view label, std::string_view text);

/// A word for a POSIX shell: as it is where that is safe, otherwise in single quotes.
std::string shell_quoted(std::string_view word);

}  // namespace shardtool::cli
