#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "lib/exec/files/data_file.h"
#include "lib/store/local/mapped_range.h"

namespace shardtool::api {

/// Keeps the part of a local file mapped that was read last: mapping a range takes longer than
/// copying some rows out of it. May be used by several threads at once.
class MapWindow {
 public:
  /// Bytes of the file, for as long as `pages` is held.
  struct View {
    std::shared_ptr<const store::MappedRange> pages;
    const std::byte* data = nullptr;
  };

  /// Maps [offset, offset + bytes), which must be inside the file and not empty, with what is near.
  /// The file must outlive the window. Throws the errors of MappedRange.
  View view(const exec::SourceFile& file, i64 offset, i64 bytes);

 private:
  std::mutex mutex_;
  const exec::SourceFile* file_ = nullptr;
  i64 begin_ = 0;
  i64 end_ = 0;
  std::shared_ptr<const store::MappedRange> pages_;
};

}  // namespace shardtool::api
