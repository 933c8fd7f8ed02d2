#include "lib/store/local/mapped_range.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/store/local/failure.h"

namespace shardtool::store {

MappedRange::MappedRange(const File& file, i64 offset, i64 bytes, MapAccess access) {
  const i64 skipped = offset % sysconf(_SC_PAGESIZE);
  size_ = static_cast<size_t>(skipped + bytes);
  // Pages that can be written count as memory of the process.
  const int protection = access == MapAccess::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const pages = mmap(nullptr, size_, protection, MAP_PRIVATE, file.fd(), offset - skipped);
  if (pages == MAP_FAILED) throw read_failure("map the file", file.path(), errno);
  pages_ = static_cast<std::byte*>(pages);
  data_ = pages_ + skipped;
}

MappedRange::MappedRange(MappedRange&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), size_(other.size_), data_(other.data_) {}

MappedRange::~MappedRange() {
  if (pages_ != nullptr) munmap(pages_, size_);
}

}  // namespace shardtool::store
