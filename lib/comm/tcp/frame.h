#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/base/checked.h"

namespace shardtool::comm {

/// Frames between processes: a kind, a channel, a length, and that many bytes.
enum class FrameKind : char {
  kData = 'D',
  kStop = 'S',
  kAbort = 'A',
  kEnd = 'E',
  kAsk = '?',    ///< asks for a sign of life after a long wait
  kAlive = '!',  ///< the answer: it is waiting, too
  kBusy = '+',   ///< the answer: it computes
};

struct Frame {
  FrameKind kind = FrameKind::kData;
  std::uint64_t channel = 0;
  std::string bytes;
};

/// Encoded frame without its bytes.
std::string frame_head(FrameKind kind, std::uint64_t channel, std::uint64_t bytes);

/// Parses frames from a stream that arrives in pieces of any size.
///
///     while (bytes can be had)
///       reader.filled(read(reader.room()))
///       while (auto frame = reader.take()) ...
class FrameReader {
 public:
  /// Buffer for the next bytes, after take() returned nullopt; never empty. It belongs to a single
  /// frame, so that a large one is not copied twice.
  std::span<char> room();
  /// Reports that this many bytes have arrived in room().
  void filled(size_t bytes);
  /// Returns a complete frame, or nullopt.
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
