#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "lib/api/reports.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Names an engine and the GPUs that computed: of every process or rank; none: CPUs.
std::string engine_text(const std::string& engine, const std::vector<std::string>& accelerators);

/// Prints the tiers, faults with their places, collectives and coverage; last the verdict. With -q
/// only faults: the exit code has the answer.
void print_text(Session& session, const api::ValidateReport& report);
void write_fields(JsonWriter& json, const api::ValidateReport& report);
Status status_of(const api::ValidateReport& report);
/// Returns the same as a comment for a pull request, the verdict first.
std::string markdown(const api::ValidateReport& report);
/// Prints the report as "text", as a comment ("md") or as the document of `validate` ("json").
/// Returns the exit code.
ExitCode give_verdict(Session& session, const api::ValidateReport& report,
                      std::string_view format = "text");
/// The counterpart of a comparison of bytes, as a noun.
std::string_view byte_standard(const api::ValidateReport& report);

/// Prints every system with its gradients and collectives, then the planted faults; last the
/// verdict.
void print_text(Session& session, const api::DemoRunReport& report);
std::string markdown(const api::DemoRunReport& report);
void write_fields(JsonWriter& json, const api::DemoRunReport& report);

}  // namespace shardtool::cli
