#include "lib/exec/files/appender.h"

#include <algorithm>
#include <cstring>

namespace shardtool::exec {

void Appender::begin(const TargetFile& file) {
  file_ = &file;
  offset_ = 0;
}

void Appender::seek(i64 offset) {
  if (offset == offset_ + used_) return;
  finish();
  offset_ = offset;
}

void Appender::append(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, static_cast<size_t>(kBufferBytes - used_));
    std::memcpy(buffer_.data() + used_, part.data(), part.size());
    used_ += std::ssize(part);
    text.remove_prefix(part.size());
    if (used_ == kBufferBytes) finish();
  }
}

void Appender::finish() {
  if (used_ > 0) file_->write(buffer_.first(used_), offset_);
  offset_ += used_;
  used_ = 0;
}

}  // namespace shardtool::exec
