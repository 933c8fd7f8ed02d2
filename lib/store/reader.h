#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/checked.h"
#include "lib/base/error.h"
#include "lib/store/local/file.h"

namespace shardtool::store {

namespace s3 {
class Object;
}

/// Object of a prefix whose output is being written. Readers refuse the prefix unless a line of the
/// object says that the output before is still there.
inline constexpr std::string_view kUnfinishedName = ".shardtool-unfinished";
inline constexpr std::string_view kStillThere = "\nthe output before is still there\n";

/// True for a path on an object store: "s3://...".
bool is_remote(const std::string& path);

/// A file or an object, opened for its header and for other small reads, by one thread at a time.
/// A small read of an object also fetches the bytes after it, for the reads that follow.
class Reader {
 public:
  /// Refers to an open file that outlives this.
  Reader(const File& file);
  Reader(File&& file);
  explicit Reader(std::shared_ptr<const s3::Object> object);

  const std::string& path() const;
  FileIdentity identity() const;
  /// Throws as read_exact for files, and kInputChanged, kStoreRefused or kStoreUnreachable.
  void read(std::span<std::byte> into, i64 offset) const;

 private:
  const File& file() const { return own_ ? *own_ : *viewed_; }

  const File* viewed_ = nullptr;
  std::optional<File> own_;
  std::shared_ptr<const s3::Object> object_;
  mutable std::vector<std::byte> window_;  ///< bytes of the object from window_begin_ on
  mutable i64 window_begin_ = 0;
};

/// Opens a file or an object. Throws as open_read, and kStoreRefused or kStoreUnreachable.
Reader open_reader(const std::string& path);
inline FileIdentity identity(const Reader& reader) {
  return reader.identity();
}
inline void read_exact(const Reader& reader, std::span<std::byte> into, i64 offset) {
  reader.read(into, offset);
}
/// Reads a whole small file or object. Throws as open_reader, and kLimit above `limit` bytes.
std::string read_source_text(const std::string& path, i64 limit);

/// True for an error of the store itself, or for an interruption, as opposed to an error of one
/// file.
bool is_of_store(const Error& error);

// For a place on an object store, the functions below throw kStoreRefused, kStoreUnreachable and
// kInterrupted. A local path that cannot be looked at counts as absent.

/// Drops what was remembered of a place on an object store; a run sees one state of it.
void forget_listing(const std::string& path);
/// True for a folder, or a prefix below which there are objects.
bool is_folder(const std::string& path);
/// Names of the folders directly in a folder or below a prefix, in no order; none if it cannot be
/// listed.
std::vector<std::string> folders_in(const std::string& path);
/// True for anything of this name.
bool exists(const std::string& path);
/// Path without symbolic links, so that later opens use the same file; the same for an object.
std::string resolved(const std::string& path);
/// Names of the objects directly below a prefix of an object store, sorted.
std::vector<std::string> names_below(const std::string& remote_path);
/// True for a regular file, also through links, or an object.
bool is_file(const std::string& path);
/// Size of a regular file or an object; nullopt if there is none.
std::optional<i64> size_of(const std::string& path);

}  // namespace shardtool::store
