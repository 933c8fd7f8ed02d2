#pragma once

#include <cstddef>

#include "lib/store/local/file.h"

namespace shardtool::store {

/// Writes to mapped bytes stay in the process, and do not reach the file.
enum class MapAccess { kRead, kReadAndOwnWrites };

/// A range of a file in the address space of this process. If the file becomes shorter, access to
/// the lost part ends the process (SIGBUS).
class MappedRange {
 public:
  /// Requires bytes > 0 inside the file. Throws kUnreadable, and kLimit without address space.
  MappedRange(const File& file, i64 offset, i64 bytes, MapAccess access);
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&&) = delete;
  ~MappedRange();

  /// The byte at `offset`.
  std::byte* data() const { return data_; }

 private:
  std::byte* pages_ = nullptr;
  size_t size_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace shardtool::store
