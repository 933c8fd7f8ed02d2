#include "tests/bench/page_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace shardtool::bench {
namespace {

template <class Visit>
void for_each_weights_file(const std::string& folder, Visit visit) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const int fd = open(entry.path().c_str(), O_RDONLY);
    visit(fd);
    close(fd);
  }
}

}  // namespace

void make_cold(const std::string& folder) {
  for_each_weights_file(folder, [](int fd) {
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  });
}

void make_warm(const std::string& folder) {
  std::vector<char> block(4 << 20);
  for_each_weights_file(folder, [&block](int fd) {
    while (read(fd, block.data(), block.size()) > 0) {
    }
  });
}

}  // namespace shardtool::bench
