#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/print/table.h"

namespace shardtool::cli {

/// A temporary text file.
class TextFile {
 public:
  explicit TextFile(const std::string& text, const std::string& ending = "")
      : path_(std::filesystem::temp_directory_path() /
              ("shardtool-error-" + std::to_string(getpid()) + ending)) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string printed(const Table& table, TableFormat format) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  {
    Output output(file);
    print_table(output, table, format);
    output.flush();
  }
  std::fclose(file);
  std::string copy(text, size);
  std::free(text);
  return copy;
}

/// Splits a text into lines.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace shardtool::cli
