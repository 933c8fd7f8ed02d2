#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardtool::arch {

/// A text file of the repository; `path` is relative to its root, "lib/index/join.cc".
struct Source {
  std::string path;
  std::string text;
};

/// A broken rule: "lib/index/join.cc:12: includes ...".
using Findings = std::vector<std::string>;

/// Loads the text files below these folders of the repository whose names end in one of `endings`,
/// sorted by path.
std::vector<Source> load_sources(const std::vector<std::string>& folders,
                                 const std::vector<std::string>& endings);

/// Loads one text file of the repository.
Source load_source(const std::string& path);

/// Splits a text into lines without line ends.
std::vector<std::string_view> lines_of(std::string_view text);

/// "path:line: what", lines counted from 1.
std::string at_line(const Source& source, size_t line, std::string_view what);

}  // namespace shardtool::arch
