#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace shardtool::cli
