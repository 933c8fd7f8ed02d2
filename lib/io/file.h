#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/checked.h"

namespace shardtool::io {

/// Owns a file descriptor. Closing errors of written files are reported by `close_checked`.
class File {
 public:
  File() = default;
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }
  /// Closes now; throws kWriteFailed when the system reports an error.
  void close_checked();

 private:
  int fd_ = -1;
  std::string path_;
};

/// What identifies a file's content for one run: a change of any field means that it changed.
struct FileIdentity {
  i64 size = 0;
  i64 mtime_ns = 0;
  i64 ctime_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
  /// Whether both are of one file, whatever was written to it in between.
  bool is_of_same_file(const FileIdentity& other) const {
    return device == other.device && inode == other.inode;
  }
};

/// Opens an existing regular file for reading, also through symbolic links (a model cache is made
/// of them). Throws kFileMissing when it is not there, kUnreadable otherwise (a directory, a
/// device, a pipe, no permission), with a hint for an unexpanded glob.
File open_read(const std::string& path);
/// What offsets and sizes of O_DIRECT transfers must be multiples of, and addresses where the
/// device does not say that it takes others. Some devices allow less for offsets, too, but then the
/// file system serialises the writes of a block.
inline constexpr i64 kDirectAlignment = 4096;
/// The same path opened for O_DIRECT reads, or a closed File where that cannot be.
File open_read_direct(const std::string& path);
/// What addresses of this File's O_DIRECT transfers must be multiples of: the device's own figure
/// (4 bytes on many), kDirectAlignment where the system does not say.
i64 memory_alignment(const File& direct);
/// Creates a file, never through a symbolic link; the mode follows the umask. Throws kOutputExists
/// when the name is taken, else as `write_exact`.
File create_new(const std::string& path);
/// The same after deleting what has the name.
File create_anew(const std::string& path);
/// Opens for reading and writing a file that an interrupted run of this user left, or creates it.
/// Throws as `open_own`, and as `create_new`.
File open_own_or_create(const std::string& path);
/// Opens for reading a file that an interrupted run of this user left. Throws kOtherRun when
/// another user could have made it: a symbolic link, no regular file, another owner, several names.
File open_own(const std::string& path);
/// Throws kOtherRun when the path names no real folder of this user.
void check_own_folder(const std::string& path);
/// A second descriptor of an own output for O_DIRECT writes, or a closed File where that cannot be.
File open_write_direct(const std::string& path);

/// Whether samples of [offset, offset + length) are all in the page cache, so that a buffered read
/// is a copy. True where the system cannot say. A miss makes the system read ahead a little.
bool is_resident(const File& file, i64 offset, i64 length);

FileIdentity identity(const File& file);
/// Whether the path names that file now, whatever was written to it since.
bool is_at(const std::string& path, const FileIdentity& file);
/// The identity of what has this name, of a symbolic link itself; nullopt when it cannot be had.
std::optional<FileIdentity> identity_at(const std::string& path);

/// Reads exactly into.size() bytes at `offset`, retrying short reads and EINTR. Throws kUnreadable
/// on an I/O error and kInputChanged at an unexpected end of file.
void read_exact(const File& file, std::span<std::byte> into, i64 offset);
/// The same, scattered over `parts` (changed while reading); any number of parts.
void read_scattered(const File& file, std::span<iovec> parts, i64 offset);
/// Writes all bytes at `offset`, retrying short writes and EINTR. Throws kNoSpace when the disk,
/// the quota or the largest file size is used up, else kWriteFailed.
void write_exact(const File& file, std::span<const std::byte> from, i64 offset);
/// The same past the page cache (a File of open_read_direct or open_write_direct), up to where the
/// file system refuses direct I/O after all (EINVAL) or moved a part of a page: the bytes moved.
/// The rest is for the buffered calls. Throw as those do for every other error.
i64 read_direct(const File& file, std::span<std::byte> into, i64 offset);
i64 write_direct(const File& file, std::span<const std::byte> from, i64 offset);
/// Gives the file its final size and reserves the space (early kNoSpace); where the file system
/// cannot reserve, only the size is set.
void allocate(const File& file, i64 size);
/// Cuts the file off, or extends it with zeros. Throws as `write_exact`.
void set_size(const File& file, i64 size);
/// Makes a range of a file share the disk space of another's, so that nothing is copied; offsets
/// and size are whole pages. False where that cannot be: another file system, or one that cannot
/// share. Throws as `write_exact` for other errors.
bool share_range(const File& from, i64 from_offset, i64 bytes, const File& to, i64 to_offset);
/// Whether new files in `folder` can share the space of this file. Tries it, without a trace.
bool can_share(const File& from, const std::string& folder);
/// fsync. Throws kWriteFailed: one failure means that the output is lost, it is never retried.
void sync(const File& file);
/// Makes the names in a folder durable. Throws kWriteFailed.
void sync_folder(const std::string& path);

/// Whole small files. Throw like open_read, and kLimit above `limit` bytes.
std::string read_text(const std::string& path, i64 limit);
std::string read_text(const File& file, i64 limit);
/// Creates, writes and syncs; throws like create_new, and then leaves nothing behind.
void write_new_file(const std::string& path, std::string_view text);

/// Raises the soft limit of open files to the hard one: layouts of many ranks need two per file.
void allow_many_files();

}  // namespace shardtool::io
