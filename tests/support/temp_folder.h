#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace shardtool::test {

/// A folder for one test, deleted at the end.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "shardtool-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// Writes a file, creates its parent folders, and returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }

 private:
  std::string path_;
};

/// Inverts these bits of one byte of a file; a negative position counts from the end. Throws if
/// there is no such byte.
inline void flip_bits(const std::string& path, std::streamoff at, int bits = 1) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto from = at < 0 ? std::ios::end : std::ios::beg;
  const int byte = file.seekg(at, from).get();
  if (!file.seekp(at, from).put(static_cast<char>(byte ^ bits)))
    throw std::runtime_error("no byte to change in " + path);
}

}  // namespace shardtool::test
