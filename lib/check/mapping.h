#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/check/findings.h"
#include "lib/mapping/resolve/resolve.h"

namespace shardtool::check {

/// ST02: the finding that an error of a mapping is. `folder` is where the mapping file lies, empty
/// for a preset; `file` is what an error without a place is about. Throws other errors again.
Finding mapping_finding(const Error& error, const std::string& folder, const std::string& file);

/// ST02: what a resolution announces: uneven cuts and warnings. `file` is the mapping's.
void check_resolution(const mapping::Resolution& resolution, const std::string& file,
                      Findings& findings);

}  // namespace shardtool::check
