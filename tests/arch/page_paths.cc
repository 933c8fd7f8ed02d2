#include "tests/arch/page_paths.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace shardtool::arch {
namespace {

namespace fs = std::filesystem;

std::string without_slash(std::string path) {
  if (path.ends_with('/')) path.pop_back();
  return path;
}

/// Returns the names that "join.{h,cc}" stands for.
std::vector<std::string> expanded(const std::string& name) {
  const size_t open = name.find('{');
  const size_t close = name.find('}');
  if (open == name.npos || close == name.npos) return {name};
  std::vector<std::string> names;
  for (size_t begin = open + 1; begin <= close;) {
    const size_t end = std::min(name.find(',', begin), close);
    names.push_back(name.substr(0, open) + name.substr(begin, end - begin) +
                    name.substr(close + 1));
    begin = end + 1;
  }
  return names;
}

bool is_end_of_one(const std::string& name, const std::vector<std::string>& paths) {
  return std::ranges::any_of(
      paths, [&](const std::string& path) { return path == name || path.ends_with("/" + name); });
}

/// Target of a link on a page, as a path of the repository.
std::string linked(const Source& page, const std::string& target) {
  const fs::path folder = fs::path(page.path).parent_path();
  return without_slash((folder / target).lexically_normal().string());
}

}  // namespace

std::vector<std::string> repository_paths() {
  const fs::path root = SHARDTOOL_SOURCE_DIR;
  std::set<std::string> paths{"."};
  for (const auto& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename().string();
    if (name == ".git" || name == "build") continue;
    paths.insert(name);
    if (!top.is_directory()) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top.path()))
      paths.insert(entry.path().lexically_relative(root).string());
  }
  return {paths.begin(), paths.end()};
}

Findings dead_paths(const Source& page, const std::vector<std::string>& paths) {
  static const RE2 link(R"(\]\(([^)#\s]+))");
  static const RE2 name(
      R"(([\w.-]+(?:/[\w.-]+)*/[\w.-]*(?:\{[\w,]+\}|\.(?:h|cc|cuh|cu|py|sh|cmake|scd)\b)))");
  static const RE2 any_word("(?:^|/)[A-Z]+(?:[./]|$)");
  static const RE2 quoted("`([^`]+)`");
  Findings findings;
  size_t number = 0;
  for (const std::string_view line : lines_of(page.text)) {
    ++number;
    std::string found;
    for (re2::StringPiece rest(line.data(), line.size());
         RE2::FindAndConsume(&rest, link, &found);) {
      if (found.find("://") != found.npos || is_end_of_one(linked(page, found), paths)) continue;
      findings.push_back(at_line(page, number, fmt::format("no file '{}'", found)));
    }
    std::string text;
    for (re2::StringPiece rest(line.data(), line.size());
         RE2::FindAndConsume(&rest, quoted, &text);) {
      for (re2::StringPiece words = text; RE2::FindAndConsume(&words, name, &found);) {
        if (RE2::PartialMatch(found, any_word) || found.starts_with("build/")) continue;
        for (const std::string& one : expanded(found)) {
          if (is_end_of_one(one, paths)) continue;
          findings.push_back(at_line(page, number, fmt::format("no file '{}'", one)));
        }
      }
    }
  }
  return findings;
}

}  // namespace shardtool::arch
