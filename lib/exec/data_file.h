#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/io_mode.h"
#include "lib/io/file.h"

namespace shardtool::exec {

/// Direct I/O moves whole pages of files: offsets and sizes are multiples of this, and addresses
/// where nothing better is known.
inline constexpr i64 kPageBytes = 4096;

/// A file whose header was read: where it is, and its content's identity at that time.
struct SurveyedFile {
  std::string path;
  io::FileIdentity identity;
};

/// A weights file that is read. Bytes that the page cache holds are read through it; others are
/// read past it (O_DIRECT), where the file system can: on a cold source that is faster, and it
/// leaves the cache to others.
class SourceFile {
 public:
  /// Throws what io::open_read throws; kLimit when kDirect is asked of a file system without it.
  explicit SourceFile(const std::string& path, IoMode mode = IoMode::kAuto);
  /// Throws kInputChanged, too, when the path names another file now or the content changed.
  explicit SourceFile(const SurveyedFile& surveyed, IoMode mode = IoMode::kAuto);

  /// Its bytes when it was opened.
  i64 size() const { return identity_.size; }
  /// Whether [offset, offset + bytes) is better read past the page cache.
  bool wants_direct(i64 offset, i64 bytes) const;
  /// Reads straight into scattered memory, through the page cache.
  void read_scattered(std::span<iovec> parts, i64 offset) const;
  /// Reads into one buffer by the better way and returns where the first byte is: `buffer` is
  /// page-aligned and has room for `bytes` and two pages more.
  std::byte* read(std::byte* buffer, i64 bytes, i64 offset) const;
  /// Whether the device takes the address that the file's page around `offset` begins at when the
  /// byte at `offset` comes to `memory`. Any address is near enough for some devices.
  bool is_readable_to(const std::byte* memory, i64 offset) const;
  /// The same past the page cache: whole pages around the bytes, so that the first of them is
  /// `offset % kPageBytes` into the buffer, which is_readable_to says is well placed.
  std::byte* read_pages(std::byte* buffer, i64 bytes, i64 offset) const;
  const io::File& file() const { return file_; }
  /// Throws kInputChanged when the file is no longer what it was when it was opened.
  void check_unchanged() const;

 private:
  io::File file_;
  io::File direct_;
  i64 memory_alignment_;
  io::FileIdentity identity_;
  IoMode mode_;
};

/// Opens every file, in this order. Throws what SourceFile throws.
std::vector<SourceFile> open_sources(std::span<const SurveyedFile> files,
                                     IoMode mode = IoMode::kAuto);

/// A file that is written: whole pages past the page cache where memory and offset are congruent
/// modulo the page, edges and everything else through it.
class TargetFile {
 public:
  /// `file` belongs to the output folder and outlives this. Throws kLimit when kDirect is asked of
  /// a file system without it.
  explicit TargetFile(io::File& file, IoMode mode = IoMode::kAuto);

  const std::string& path() const { return file_->path(); }
  void write(std::span<const std::byte> bytes, i64 offset) const;

  /// Writes zeros over [offset, offset + bytes).
  void clear(i64 offset, i64 bytes) const;

  /// From now on, space is shared with the source where that can be.
  void allow_sharing() { may_share_ = true; }
  /// Writes bytes that are those of the source at `source_offset`: whole pages share its space, the
  /// edges are written. False, and nothing is done, where they cannot: sharing is not allowed, the
  /// two offsets differ inside a page, or the file system refuses.
  bool share(const SourceFile& source, i64 source_offset, std::span<const std::byte> bytes,
             i64 offset) const;

 private:
  void write_buffered(std::span<const std::byte> bytes, i64 offset) const;

  io::File* file_;
  io::File direct_;
  bool may_share_ = false;
};

}  // namespace shardtool::exec
