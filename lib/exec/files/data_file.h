#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/exec/files/io_mode.h"
#include "lib/store/reader.h"

namespace shardtool::store::s3 {
class PartedOutput;
}

namespace shardtool::exec {

/// Direct I/O moves whole pages of files: offsets and sizes are multiples of this, and addresses as
/// well if the device reports no other alignment.
inline constexpr i64 kPageBytes = 4096;

/// File whose header was read: its path and its identity at that time.
struct SurveyedFile {
  std::string path;
  store::FileIdentity identity;
};

/// Weights file opened for reading. Cached bytes are read through the page cache, others past it
/// (O_DIRECT) if the file system supports that: on a cold source that is faster, and it leaves the
/// cache to others.
class SourceFile {
 public:
  /// Throws the errors of store::open_read; kLimit when kDirect is requested of a file system
  /// without it.
  explicit SourceFile(const std::string& path, IoMode mode = IoMode::kAuto);
  /// Also throws kInputChanged when the path now names another file or the content changed.
  explicit SourceFile(const SurveyedFile& surveyed, IoMode mode = IoMode::kAuto);

  /// Size in bytes at opening.
  i64 size() const { return identity_.size; }
  /// True if [offset, offset + bytes) is better read past the page cache.
  bool wants_direct(i64 offset, i64 bytes) const;
  /// Reads through the page cache.
  void read_exact(std::span<std::byte> into, i64 offset) const;
  /// Same, straight into scattered memory.
  void read_scattered(std::span<iovec> parts, i64 offset) const;
  /// Reads into one buffer by the better way and returns the address of the first byte: `buffer` is
  /// page-aligned and has room for `bytes` and two pages more.
  std::byte* read(std::byte* buffer, i64 bytes, i64 offset) const;
  /// True if the device accepts the memory address of the page around `offset` when the byte at
  /// `offset` goes to `memory`. Some devices accept almost any address.
  bool is_readable_to(const std::byte* memory, i64 offset) const;
  /// Like read, but always past the page cache: reads whole pages around the bytes, so that the
  /// first of them is `offset % kPageBytes` into the buffer. is_readable_to checks the alignment of
  /// the buffer.
  std::byte* read_pages(std::byte* buffer, i64 bytes, i64 offset) const;
  /// The file itself; not open for an object of a store.
  const store::File& file() const { return file_; }
  /// True for an object, whose requests are worth joining and running at once.
  bool is_remote() const { return object_ != nullptr; }
  /// Throws kInputChanged if the file differs from its state at opening.
  void check_unchanged() const;

 private:
  std::shared_ptr<const store::s3::Object> object_;  ///< null for a file
  store::File file_;
  store::File direct_;
  i64 memory_alignment_;
  store::FileIdentity identity_;
  IoMode mode_;
};

/// Raises the limit of open files and opens every file, in this order. Throws the errors of
/// SourceFile.
std::vector<SourceFile> open_sources(std::span<const SurveyedFile> files,
                                     IoMode mode = IoMode::kAuto);

/// File opened for writing: whole pages past the page cache if memory and offset are congruent
/// modulo the page, edges and all other bytes through it. Or an object of a store that is sent in
/// parts; it can be read only after all of its bytes are there.
class TargetFile {
 public:
  /// Takes a `file` of the output folder, which outlives this object. Throws kLimit when kDirect is
  /// requested of a file system without it.
  explicit TargetFile(store::File& file, IoMode mode = IoMode::kAuto);

  /// Object `number` of an output, which outlives this.
  TargetFile(store::s3::PartedOutput& output, size_t number);

  const std::string& path() const { return path_; }
  /// True for an object, which cannot be read back before the output is complete.
  bool is_remote() const { return output_ != nullptr; }
  void write(std::span<const std::byte> bytes, i64 offset) const;

  /// Writes zeros over [offset, offset + bytes).
  void clear(i64 offset, i64 bytes) const;

  /// Allows share() to share space with the source from now on.
  void allow_sharing() { may_share_ = true; }
  /// Writes bytes that equal those of the source at `source_offset`: whole pages share its space,
  /// the edges are written. Returns false and writes no bytes if sharing is not allowed, the two
  /// offsets differ inside a page, or the file system refuses.
  bool share(const SourceFile& source, i64 source_offset, std::span<const std::byte> bytes,
             i64 offset) const;

 private:
  void write_buffered(std::span<const std::byte> bytes, i64 offset) const;

  std::string path_;
  store::File* file_ = nullptr;  ///< null for an object
  store::File direct_;
  store::s3::PartedOutput* output_ = nullptr;  ///< null for a file
  size_t object_ = 0;
  bool may_share_ = false;
};

}  // namespace shardtool::exec
