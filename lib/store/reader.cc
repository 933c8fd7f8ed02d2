#include "lib/store/reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "lib/base/text.h"
#include "lib/store/s3/object.h"
#include "lib/store/s3/url.h"

namespace shardtool::store {
namespace {

namespace fs = std::filesystem;

/// Fetched at once for small reads: most headers fit.
constexpr i64 kWindowBytes = 512 << 10;

}  // namespace

bool is_remote(const std::string& path) {
  return s3::is_url(path);
}

Reader::Reader(const File& file) : viewed_(&file) {}
Reader::Reader(File&& file) : own_(std::move(file)) {}
Reader::Reader(std::shared_ptr<const s3::Object> object) : object_(std::move(object)) {}

const std::string& Reader::path() const {
  return object_ ? object_->path() : file().path();
}

FileIdentity Reader::identity() const {
  if (!object_) return store::identity(file());
  FileIdentity identity;
  identity.size = object_->info().bytes;
  identity.version = object_->info().etag;
  constexpr i64 kNsPerSecond = 1'000'000'000;
  if (identity.version.empty()) identity.mtime_ns = object_->info().modified_s * kNsPerSecond;
  return identity;
}

void Reader::read(std::span<std::byte> into, i64 offset) const {
  if (!object_) return store::read_exact(file(), into, offset);
  if (into.empty()) return;
  const i64 bytes = std::ssize(into);
  const i64 rest = object_->info().bytes - offset;
  const s3::RangeRead whole{offset, into};
  if (bytes > kWindowBytes || bytes > rest || offset < 0) return object_->read({&whole, 1});
  const bool has_it =
      offset >= window_begin_ && offset + bytes <= window_begin_ + std::ssize(window_);
  if (!has_it) {
    std::vector<std::byte> fetched(static_cast<size_t>(std::min(kWindowBytes, rest)));
    const s3::RangeRead window{offset, fetched};
    object_->read({&window, 1});
    window_ = std::move(fetched);
    window_begin_ = offset;
  }
  std::memcpy(into.data(), window_.data() + (offset - window_begin_), into.size());
}

Reader open_reader(const std::string& path) {
  if (!is_remote(path)) return Reader(open_read(path));
  return Reader(std::make_shared<const s3::Object>(path));
}

std::string read_source_text(const std::string& path, i64 limit) {
  if (!is_remote(path)) return read_text(path, limit);
  const Reader reader = open_reader(path);
  const i64 bytes = reader.identity().size;
  if (bytes > limit) {
    throw Error(ErrorCode::kLimit, "the object is too large")
        .at({path, 0, 0, ""})
        .note("found", format_bytes(bytes))
        .note("expected", "at most " + format_bytes(limit));
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  reader.read(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

bool is_of_store(const Error& error) {
  return error.code() == ErrorCode::kStoreRefused || error.code() == ErrorCode::kStoreUnreachable ||
         error.code() == ErrorCode::kInterrupted;
}

void forget_listing(const std::string& path) {
  if (is_remote(path)) s3::forget(path);
}

bool is_folder(const std::string& path) {
  if (is_remote(path)) {
    const s3::Listed listed = s3::listing_of(path);
    return !listed.objects.empty() || !listed.folders.empty();
  }
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> folders_in(const std::string& path) {
  if (is_remote(path)) return s3::listing_of(path).folders;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(path, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code gone;
    if (at->is_directory(gone)) names.push_back(at->path().filename().string());
  }
  return names;
}

bool exists(const std::string& path) {
  if (is_remote(path)) return is_file(path) || is_folder(path);
  std::error_code error;
  return fs::exists(path, error);
}

std::string resolved(const std::string& path) {
  if (is_remote(path)) return path;
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

std::vector<std::string> names_below(const std::string& remote_path) {
  std::vector<std::string> names;
  for (const s3::ListedObject& object : s3::listing_of(remote_path).objects) {
    names.push_back(object.name);
  }
  return names;
}

bool is_file(const std::string& path) {
  if (is_remote(path)) return s3::info_of(path).has_value();
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::optional<i64> size_of(const std::string& path) {
  if (is_remote(path)) {
    const auto info = s3::info_of(path);
    return info ? std::optional(info->bytes) : std::nullopt;
  }
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? std::nullopt : std::optional(static_cast<i64>(size));
}

}  // namespace shardtool::store
