#pragma once

#include "tests/arch/source_tree.h"

namespace shardtool::arch {

/// Paths of the repository: files, and the folders above them.
std::vector<std::string> repository_paths();

/// Links of a Markdown page to files that are not in `paths`, and names of sources in backticks,
/// such as `index/join.{h,cc}`, that are not the end of one of them. A name with a word of
/// capitals, such as `cli/commands/COMMAND.cc`, stands for any.
Findings dead_paths(const Source& page, const std::vector<std::string>& paths);

}  // namespace shardtool::arch
