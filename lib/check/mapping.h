#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/check/findings.h"
#include "lib/mapping/propose/doubtful_cuts.h"
#include "lib/mapping/resolve/resolution.h"

namespace shardtool::check {

/// ST02: converts an error of a mapping into a finding. `folder` is the mapping file's folder,
/// empty for a preset; `file` applies to errors without a place. Rethrows other errors.
Finding mapping_finding(const Error& error, const std::string& folder, const std::string& file);

/// ST02: reports cuts that are probably wrong. `folder` is the mapping file's folder.
void check_doubts(const std::vector<mapping::DoubtfulCut>& doubts, const std::string& folder,
                  Findings& findings);

/// ST02: reports uneven cuts and warnings of a resolution. `file` is the mapping's.
void check_resolution(const mapping::Resolution& resolution, const std::string& file,
                      Findings& findings);

}  // namespace shardtool::check
