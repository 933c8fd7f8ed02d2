#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "lib/api/reports.h"
#include "lib/base/error.h"

namespace shardtool::model {
struct GraphHead;
}

namespace shardtool::cli {

// Reports for people on standard output. The last line answers the question.

/// Prints the plan, uneven cuts and written files; last the output's path, the only line with -q.
void print_text(Session& session, const api::TransformReport& report);
/// Prints what is published; last the output's path, the only line with -q.
void print_text(Session& session, const api::FinishReport& report);
/// Prints counts and the tensors that differ; last "same" or "differs". Empty with -q: the exit
/// code has the answer.
void print_text(Session& session, const api::DiffReport& report);
/// Prints the rule, the axes, and every device's slices.
void print_text(Session& session, const api::ExplainReport& report);
void print_text(Session& session, const api::AxisReport& report);
void print_text(Session& session, const ErrorInfo& info);
/// Prints the table of all errors.
void print_text(Session& session, std::span<const ErrorInfo> errors);
void print_text(Session& session, const api::PresetList& list);
void print_text(Session& session, const std::vector<model::GraphHead>& graphs);
void print_text(Session& session, const std::vector<api::LayoutInfo>& layouts);
void print_text(Session& session, const std::vector<api::DoctorCheck>& checks);
/// Prints rates, and the fraction of each that split reached; last the two most important lines,
/// the only ones with -q.
void print_text(Session& session, const api::BenchIoReport& report);

/// Returns a line of the form "label    text".
std::string labelled(const Style& style, std::string_view label, std::string_view text);

/// Returns the command line of the program with these words, for a POSIX shell.
std::string command_text(const std::vector<std::string>& words);

/// Counts the shares of a run that have not ended, and names the first of them.
std::string unended_text(const std::vector<int>& missing, int shares);

}  // namespace shardtool::cli
