#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/layouts/engine_layout.h"

namespace shardtool::layouts {

/// Regular expression of a pattern of file names, with a number for every field.
std::string regex_of(std::string_view pattern);

/// Numbers in the name of a rank's file.
struct FileNumbers {
  std::map<std::string, i64> on;  ///< index on each mesh axis that the pattern has
  i64 part = 0;
};

/// Files that are named by the ranks whose tensors they have.
struct NumberedFiles {
  const FileNames* names = nullptr;  ///< the pattern of all
  std::vector<FileNumbers> files;    ///< in the order of the names
};

/// Numbers of the files by the first pattern of a layout that all of their names have. A pattern
/// counts if its fields are mesh axes and the part. Returns nullopt without files, if none fits,
/// and for numbers of more than six digits.
std::optional<NumberedFiles> numbered_files(const EngineLayout& layout,
                                            std::span<const std::string> files);

}  // namespace shardtool::layouts
