#include "lib/io/page_cache.h"

#include <fcntl.h>

namespace shardtool::io {

void drop_from_page_cache(const File& file) {
  // Advice: a file system that keeps its pages (tmpfs) may.
  static_cast<void>(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED));
}

}  // namespace shardtool::io
