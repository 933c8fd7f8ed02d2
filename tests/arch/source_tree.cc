#include "tests/arch/source_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace shardtool::arch {
namespace fs = std::filesystem;

std::vector<Source> load_sources(const std::vector<std::string>& folders,
                                 const std::vector<std::string>& endings) {
  const fs::path root = SHARDTOOL_SOURCE_DIR;
  std::vector<Source> sources;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string name = entry.path().filename().string();
      const bool wanted = std::any_of(endings.begin(), endings.end(),
                                      [&](const std::string& end) { return name.ends_with(end); });
      if (!entry.is_regular_file() || !wanted) continue;
      sources.push_back(load_source(entry.path().lexically_relative(root).generic_string()));
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

Source load_source(const std::string& path) {
  std::ifstream in(fs::path(SHARDTOOL_SOURCE_DIR) / path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {path, {std::istreambuf_iterator<char>(in), {}}};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string at_line(const Source& source, size_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", source.path, line, what);
}

}  // namespace shardtool::arch
