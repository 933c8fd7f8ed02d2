#include "cli/print/output.h"

#include <cerrno>
#include <system_error>

#include "shardtool/base/error.h"

namespace shardtool::cli {

void Output::write(std::string_view text) {
  constexpr size_t kFlushAt = 1 << 16;
  buffer_ += text;
  if (buffer_.size() >= kFlushAt) flush();
}

void Output::flush() {
  errno = 0;
  const size_t written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_);
  const bool complete = written == buffer_.size() && std::fflush(file_) == 0;
  buffer_.clear();
  if (complete || errno == EPIPE) return;
  throw Error(ErrorCode::kWriteFailed, "cannot write to standard output")
      .note("system", std::generic_category().message(errno));
}

}  // namespace shardtool::cli
