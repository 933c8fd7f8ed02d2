#include "lib/api/reading/map_window.h"

#include <algorithm>

namespace shardtool::api {
namespace {

constexpr i64 kWindowBytes = 1 << 30;

}  // namespace

MapWindow::View MapWindow::view(const exec::SourceFile& file, i64 offset, i64 bytes) {
  const std::lock_guard lock(mutex_);
  const i64 end = offset + bytes;
  if (file_ != &file || offset < begin_ || end > end_) {
    const i64 begin = offset - offset % kWindowBytes;
    const i64 last = std::max(std::min(begin + kWindowBytes, file.size()), end);
    pages_ = std::make_shared<const store::MappedRange>(file.file(), begin, last - begin,
                                                        store::MapAccess::kRead);
    file_ = &file;
    begin_ = begin;
    end_ = last;
  }
  return {pages_, pages_->data() + (offset - begin_)};
}

}  // namespace shardtool::api
