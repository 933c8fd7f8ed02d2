#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// Numbers of the errors whose advice no test follows, each with its name: "E0302 kMalformed".
/// tests/cli/cases/help_followed follows advice as a user would; tests/mapping/advice_test follows
/// that of the errors of mappings, E0201 to E0299, and sees to it that there are no others.
Findings advice_not_followed(const std::vector<Source>& sources);

/// Names of the error codes ("kCoverage") that a source throws with `.help(...)` in one statement.
std::set<std::string> codes_with_advice(const Source& source);

}  // namespace shardtool::arch
