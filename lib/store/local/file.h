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

namespace shardtool::store {

/// Owns a file descriptor. `close_checked` reports errors of closing written files.
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

/// Identifies a file and its content for one run.
struct FileIdentity {
  i64 size = 0;
  i64 mtime_ns = 0;
  i64 ctime_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  /// ETag of an object. Its other fields are 0, except the size, and mtime_ns if it has no ETag.
  std::string version = {};
  std::uint32_t mode = 0;
  std::uint32_t owner = 0;
  std::uint32_t group = 0;
  std::uint64_t links = 0;

  bool operator==(const FileIdentity&) const = default;
  /// True unless the content may have changed in between. The change time shows writes whose mtime
  /// was set back. A new link, mode or owner also changes it: it is then ignored.
  bool has_same_content(const FileIdentity& other) const {
    const bool has_new_attributes =
        mode != other.mode || owner != other.owner || group != other.group || links != other.links;
    return size == other.size && mtime_ns == other.mtime_ns && version == other.version &&
           is_of_same_file(other) && (ctime_ns == other.ctime_ns || has_new_attributes);
  }
  /// False for an object of which a store tells neither ETag nor time: a change could not be seen.
  bool is_known() const { return !version.empty() || mtime_ns != 0 || ctime_ns != 0; }
  /// True if both describe the same file, even if it was written in between.
  bool is_of_same_file(const FileIdentity& other) const {
    return device == other.device && inode == other.inode;
  }
};

/// Opens an existing regular file for reading, also through symbolic links (model caches consist of
/// them). Throws kFileMissing if it does not exist, kUnreadable otherwise (a directory, a device, a
/// pipe, no permission), with a hint for an unexpanded glob.
File open_read(const std::string& path);
/// Alignment of offsets and sizes of O_DIRECT transfers, and of addresses unless the device reports
/// a smaller one. Some devices allow smaller offsets, too, but then the file system serialises the
/// writes of a block.
inline constexpr i64 kDirectAlignment = 4096;
/// Opens the same path for O_DIRECT reads; returns a closed File if that is not possible.
File open_read_direct(const std::string& path);
/// Required alignment of memory addresses for this File's O_DIRECT transfers: the device's own
/// figure (4 bytes on many), or kDirectAlignment if the system does not report one.
i64 memory_alignment(const File& direct);
/// Creates a file, never through a symbolic link; the mode follows the umask. Throws kOutputExists
/// if the name is taken, else as `write_exact`.
File create_new(const std::string& path);
/// Deletes any file of that name first, then creates it as above.
File create_anew(const std::string& path);
/// Opens for reading and writing a file that an interrupted run of this user left, or creates it.
/// Throws as `open_own` and `create_new` do.
File open_own_or_create(const std::string& path);
/// Opens for reading a file that an interrupted run of this user left. Throws kOtherRun if another
/// user could have made it: a symbolic link, no regular file, another owner, several names.
File open_own(const std::string& path);
/// Throws kOtherRun unless the path is a real folder of this user.
void check_own_folder(const std::string& path);
/// Opens a second descriptor of an own output for O_DIRECT writes; returns a closed File if that is
/// not possible.
File open_write_direct(const std::string& path);

/// True if samples of [offset, offset + length) are all in the page cache, so that a buffered read
/// is a copy. True if the system cannot report it. A miss makes the system read ahead a little.
bool is_resident(const File& file, i64 offset, i64 length);

FileIdentity identity(const File& file);
/// True if the path names that file now, even if it was written to since.
bool is_at(const std::string& path, const FileIdentity& file);
/// Identity of the path, of the link itself for a symbolic link; nullopt if lstat fails.
std::optional<FileIdentity> identity_at(const std::string& path);

/// Reads exactly into.size() bytes at `offset`, retrying short reads and EINTR. Throws kUnreadable
/// on an I/O error and kInputChanged at an unexpected end of file.
void read_exact(const File& file, std::span<std::byte> into, i64 offset);
/// Same, scattered over any number of `parts`, which are modified while reading.
void read_scattered(const File& file, std::span<iovec> parts, i64 offset);
/// Writes all bytes at `offset`, retrying short writes and EINTR. Throws kNoSpace when the disk,
/// the quota or the largest file size is used up, else kWriteFailed.
void write_exact(const File& file, std::span<const std::byte> from, i64 offset);
/// Read and write past the page cache (a File of open_read_direct or open_write_direct). Stop when
/// the file system refuses direct I/O (EINVAL) or transfers part of a page, and return the bytes
/// transferred; use the buffered calls for the rest. Throw as those do for every other error.
i64 read_direct(const File& file, std::span<std::byte> into, i64 offset);
i64 write_direct(const File& file, std::span<const std::byte> from, i64 offset);
/// Gives the file its final size and reserves the space (early kNoSpace). Only sets the size if the
/// file system cannot reserve.
void allocate(const File& file, i64 size);
/// Truncates the file, or extends it with zeros. Throws as `write_exact`.
void set_size(const File& file, i64 size);
/// Makes a range of a file share the disk space of another's without copying; offsets and size are
/// whole pages. Returns false if that is not possible: another file system, or one that cannot
/// share. Throws as `write_exact` for other errors.
bool share_range(const File& from, i64 from_offset, i64 bytes, const File& to, i64 to_offset);
/// True if new files in `folder` can share the space of this file. Tries it with a nameless file.
bool can_share(const File& from, const std::string& folder);
/// fsync. Throws kWriteFailed and never retries: one failure means that the output is lost.
void sync(const File& file);
/// Makes the names in a folder durable. Throws kWriteFailed.
void sync_folder(const std::string& path);

/// Reads a whole small file. Throws like open_read, and kLimit above `limit` bytes.
std::string read_text(const std::string& path, i64 limit);
std::string read_text(const File& file, i64 limit);
/// Creates, writes and syncs. Throws like create_new and deletes the file on failure.
void write_new_file(const std::string& path, std::string_view text);

/// Raises the soft limit of open files to the hard limit: layouts of many ranks need two per file.
void allow_many_files();

}  // namespace shardtool::store
