#include "lib/format/gguf/cursor.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace shardtool::format::gguf {
namespace {

constexpr i64 kBufferBytes = 64 << 10;

}  // namespace

void Cursor::fail_at_end() const {
  hit_end_ = true;
  throw Error(ErrorCode::kMalformed, "the file ends inside its header")
      .at({input_.path, 0, 0, ""})
      .note("found", fmt::format("{} bytes", input_.size))
      .help("fetch the file again");
}

void Cursor::fail(const std::string& message) const {
  throw Error(ErrorCode::kMalformed, message)
      .at({input_.path, 0, 0, ""})
      .note("at", fmt::format("byte {}", offset_));
}

void Cursor::require(std::uint64_t bytes) const {
  if (bytes > static_cast<std::uint64_t>(left())) fail_at_end();
  if (offset_ + static_cast<i64>(bytes) <= kMaxHeaderBytes) return;
  throw Error(ErrorCode::kLimit, "the header is larger than 1 GiB").at({input_.path, 0, 0, ""});
}

void Cursor::read(std::span<std::byte> into) {
  require(into.size());
  while (!into.empty()) {
    const i64 at = offset_ - buffer_begin_;
    if (at < 0 || at >= std::ssize(buffer_)) {
      buffer_.resize(static_cast<size_t>(std::min(kBufferBytes, left())));
      buffer_begin_ = offset_;
      input_.read(offset_, buffer_);
      continue;
    }
    const auto count = std::min(into.size(), buffer_.size() - static_cast<size_t>(at));
    std::memcpy(into.data(), buffer_.data() + at, count);
    into = into.subspan(count);
    offset_ += static_cast<i64>(count);
  }
}

void Cursor::skip(std::uint64_t bytes) {
  require(bytes);
  offset_ += static_cast<i64>(bytes);
}

std::string Cursor::text(std::uint64_t longest, size_t kept) {
  const auto length = value<std::uint64_t>();
  require(length);
  if (length > longest) fail(fmt::format("a text of {} bytes is longer than {}", length, longest));
  std::string text(std::min<std::uint64_t>(length, kept), '\0');
  read(std::as_writable_bytes(std::span(text)));
  skip(length - text.size());
  return text;
}

}  // namespace shardtool::format::gguf
