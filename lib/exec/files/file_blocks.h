#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "lib/exec/files/data_file.h"
#include "lib/exec/files/page_buffer.h"

namespace shardtool::exec {

inline constexpr i64 kBlockBytes = 1 << 20;
/// Room for one block at any offset in its page.
inline constexpr i64 kBlockBufferBytes = kBlockBytes + 2 * kPageBytes;

/// Reads the file's bytes [offset, offset + bytes) in order and passes them to `visit` in blocks.
/// Throws the errors of reading and of `visit`.
template <class Visit>
void read_blocks(const SourceFile& file, i64 offset, i64 bytes, const PageBuffer& buffer,
                 Visit visit) {
  for (const i64 end = offset + bytes; offset < end; offset += kBlockBytes) {
    const i64 part = std::min(kBlockBytes, end - offset);
    visit(std::span<const std::byte>(file.read(buffer.data(), part, offset),
                                     static_cast<size_t>(part)));
  }
}

}  // namespace shardtool::exec
