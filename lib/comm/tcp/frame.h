#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/base/checked.h"

namespace shardtool::comm {

/// What processes send each other: a kind, a channel, a length, and so many bytes.
enum class FrameKind : char {
  kData = 'D',
  kStop = 'S',
  kAbort = 'A',
  kEnd = 'E',
  kAsk = '?',    ///< asks for a sign of a process that is long awaited
  kAlive = '!',  ///< the answer: it waits itself
};

struct Frame {
  FrameKind kind = FrameKind::kData;
  std::uint64_t channel = 0;
  std::string bytes;
};

/// The frame as it is sent, but for its bytes.
std::string frame_head(FrameKind kind, std::uint64_t channel, std::uint64_t bytes);

/// Frames out of a stream that arrives in pieces of any size.
///
///     while (bytes can be had)
///       reader.filled(read(reader.room()))
///       while (auto frame = reader.take()) ...
class FrameReader {
 public:
  /// Where the next bytes go, after take() had nothing more; never empty. They are of one frame
  /// only, so that a large one is not copied twice.
  std::span<char> room();
  /// That many bytes are there now.
  void filled(size_t bytes);
  /// A frame that is complete, or nothing.
  std::optional<Frame> take();

 private:
  bool knows_length() const { return length_.has_value(); }

  // 1. While length_ is not known, have_ counts bytes of the head, afterwards those of
  // frame_.bytes.
  // 2. frame_.bytes grows with what arrives, never at once to a length that the other side claims.
  std::string head_;
  std::optional<std::uint64_t> length_;
  Frame frame_;
  size_t have_ = 0;
};

}  // namespace shardtool::comm
