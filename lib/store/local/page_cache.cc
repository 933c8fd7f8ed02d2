#include "lib/store/local/page_cache.h"

#include <fcntl.h>

namespace shardtool::store {

void drop_from_page_cache(const File& file) {
  // The call is advice: file systems such as tmpfs may keep their pages.
  static_cast<void>(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED));
}

}  // namespace shardtool::store
