#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/format/reader.h"

namespace shardtool::format {

/// Outputs of shardtool: a manifest.json and the files that it lists.
extern const Reader kOutputReader;

/// Warns of the weights files in an output's folder that are none of the output's own: an engine
/// that loads every file of a pattern loads them, too.
std::vector<Warning> extra_files(const std::set<std::string>& own, const FolderListing& listing);

}  // namespace shardtool::format
