#include "lib/comm/tcp/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardtool::comm {
namespace {

constexpr size_t kHeadBytes = 1 + 2 * sizeof(std::uint64_t);
constexpr size_t kFramePieceBytes = 1 << 20;
/// Address space reserved for a frame at once, so that it is not copied as it grows; untouched
/// pages take no memory.
constexpr size_t kReservedBytes = 1 << 30;

std::uint64_t number_at(const std::string& head, size_t at) {
  std::uint64_t number = 0;
  std::memcpy(&number, head.data() + at, sizeof number);
  return number;
}

}  // namespace

std::string frame_head(FrameKind kind, std::uint64_t channel, std::uint64_t bytes) {
  std::string head(kHeadBytes, static_cast<char>(kind));
  std::memcpy(head.data() + 1, &channel, sizeof channel);
  std::memcpy(head.data() + 1 + sizeof channel, &bytes, sizeof bytes);
  return head;
}

std::span<char> FrameReader::room() {
  if (!knows_length()) {
    head_.resize(kHeadBytes);
    return std::span(head_).subspan(have_);
  }
  const size_t wanted = std::min<size_t>(*length_ - have_, kFramePieceBytes);
  frame_.bytes.resize(have_ + wanted);
  return std::span(frame_.bytes).subspan(have_);
}

void FrameReader::filled(size_t bytes) {
  have_ += bytes;
  if (knows_length() || have_ < kHeadBytes) return;
  frame_.kind = static_cast<FrameKind>(head_.front());
  frame_.channel = number_at(head_, 1);
  length_ = number_at(head_, 1 + sizeof(std::uint64_t));
  frame_.bytes.reserve(std::min<size_t>(*length_, kReservedBytes));
  have_ = 0;
}

std::optional<Frame> FrameReader::take() {
  if (!knows_length() || have_ < *length_) return std::nullopt;
  frame_.bytes.resize(have_);
  length_.reset();
  have_ = 0;
  return std::exchange(frame_, Frame{});
}

}  // namespace shardtool::comm
