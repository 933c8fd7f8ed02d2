#pragma once

#include "lib/api/validate.h"

namespace shardtool::api {

/// Returns the verdict of a report. A tier that failed, collectives other than the predicted ones,
/// and a coverage under the required percentage are kFail; a tier that is undecided and weights
/// that are no numbers are kUndecided.
engine::Outcome outcome_of(const ValidateReport& report, double require_coverage);

/// Percentage of the tensors that are not untested.
double coverage_of(const ValidateReport& report);

/// Adds a share to the report of those before it. Counts, bytes and digests add up; a tensor is
/// untested if it is in every share; seconds are those of the longest share.
void add_share(ValidateReport& all, const ValidateReport& share);
/// Computes the coverage and the verdict of all shares.
void judge_shares(ValidateReport& all, double require_coverage);

}  // namespace shardtool::api
