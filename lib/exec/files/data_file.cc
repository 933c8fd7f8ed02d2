#include "lib/exec/files/data_file.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/store/local/file.h"
#include "lib/store/s3/object.h"
#include "lib/store/s3/parted_output.h"

namespace shardtool::exec {
namespace {

/// Below this size a direct write costs more than it saves.
constexpr i64 kMinDirectBytes = 64 << 10;
/// Larger buffered writes allocate large folios, which are slow to fault in on some machines.
constexpr i64 kBufferedWriteBytes = 256 << 10;

i64 to_number(const std::byte* address) {
  return static_cast<i64>(reinterpret_cast<std::uintptr_t>(address));
}

/// Opens a descriptor for direct I/O as the mode allows or demands; may return a closed file.
store::File opened(const std::string& path, IoMode mode, store::File (*open)(const std::string&)) {
  if (mode == IoMode::kBuffered) return {};
  store::File file = open(path);
  if (mode == IoMode::kAuto || file.is_open()) return file;
  throw Error(ErrorCode::kLimit, "the file system has no direct I/O")
      .at({path, 0, 0, {}})
      .help("leave --io out, or say --io buffered");
}

}  // namespace

SourceFile::SourceFile(const std::string& path, IoMode mode)
    : object_(store::is_remote(path) ? std::make_shared<const store::s3::Object>(path) : nullptr),
      file_(object_ ? store::File() : store::open_read(path)),
      direct_(object_ ? store::File() : opened(path, mode, store::open_read_direct)),
      memory_alignment_(store::memory_alignment(direct_)),
      identity_(object_ ? store::Reader(object_).identity() : identity(file_)),
      mode_(mode) {
  // The path was opened twice: both must be the same file. Its content may change meanwhile, when
  // an output is read back while other processes write to it.
  if (direct_.is_open() && !identity(direct_).is_of_same_file(identity_)) {
    throw Error(ErrorCode::kInputChanged, "the file was replaced while it was opened")
        .at({path, 0, 0, {}});
  }
}

bool SourceFile::wants_direct(i64 offset, i64 bytes) const {
  if (!direct_.is_open() || bytes < kMinDirectBytes) return false;
  return mode_ == IoMode::kDirect || !store::is_resident(file_, offset, bytes);
}

SourceFile::SourceFile(const SurveyedFile& surveyed, IoMode mode)
    : SourceFile(surveyed.path, mode) {
  if (identity_.has_same_content(surveyed.identity)) return;
  const bool is_same = identity_.is_of_same_file(surveyed.identity);
  throw Error(ErrorCode::kInputChanged, is_same ? "the file changed after its header was read"
                                                : "the file was replaced after its header was read")
      .at({surveyed.path, 0, 0, {}})
      .help("run again once nothing writes to the input");
}

std::vector<SourceFile> open_sources(std::span<const SurveyedFile> files, IoMode mode) {
  store::allow_many_files();
  std::vector<SourceFile> sources;
  sources.reserve(files.size());
  for (const SurveyedFile& file : files) sources.emplace_back(file, mode);
  return sources;
}

void SourceFile::read_exact(std::span<std::byte> into, i64 offset) const {
  if (!object_) return store::read_exact(file_, into, offset);
  const store::s3::RangeRead range{offset, into};
  object_->read({&range, 1});
}

void SourceFile::read_scattered(std::span<iovec> parts, i64 offset) const {
  if (!object_) return store::read_scattered(file_, parts, offset);
  std::vector<store::s3::RangeRead> ranges;
  ranges.reserve(parts.size());
  for (const iovec& part : parts) {
    ranges.push_back({offset, {static_cast<std::byte*>(part.iov_base), part.iov_len}});
    offset += static_cast<i64>(part.iov_len);
  }
  object_->read(ranges);
}

std::byte* SourceFile::read(std::byte* buffer, i64 bytes, i64 offset) const {
  if (!wants_direct(offset, bytes)) {
    read_exact({buffer, static_cast<size_t>(bytes)}, offset);
    return buffer;
  }
  return read_pages(buffer, bytes, offset);
}

bool SourceFile::is_readable_to(const std::byte* memory, i64 offset) const {
  return (to_number(memory) - offset % kPageBytes) % memory_alignment_ == 0;
}

std::byte* SourceFile::read_pages(std::byte* buffer, i64 bytes, i64 offset) const {
  // The rest after direct I/O (the end of the file, or all of it if the file system refuses) is
  // read through the cache.
  const i64 begin = offset / kPageBytes * kPageBytes;
  const i64 end =
      std::min(round_up(offset + bytes, kPageBytes), identity_.size / kPageBytes * kPageBytes);
  const i64 pages = std::max<i64>(end - begin, 0);
  const i64 done = store::read_direct(direct_, {buffer, static_cast<size_t>(pages)}, begin);
  const i64 rest = offset + bytes - (begin + done);
  if (rest > 0) store::read_exact(file_, {buffer + done, static_cast<size_t>(rest)}, begin + done);
  return buffer + (offset - begin);
}

void SourceFile::check_unchanged() const {
  if (object_) return object_->check_unchanged();
  if (identity(file_).has_same_content(identity_)) return;
  throw Error(ErrorCode::kInputChanged, "the file changed while it was read")
      .at({file_.path(), 0, 0, {}});
}

TargetFile::TargetFile(store::File& file, IoMode mode)
    : path_(file.path()),
      file_(&file),
      direct_(opened(file.path(), mode, store::open_write_direct)) {}

TargetFile::TargetFile(store::s3::PartedOutput& output, size_t number)
    : path_(output.object(number).url.text()), output_(&output), object_(number) {}

void TargetFile::write(std::span<const std::byte> bytes, i64 offset) const {
  const bool congruent = (to_number(bytes.data()) - offset) % kPageBytes == 0;
  const i64 end = offset + static_cast<i64>(bytes.size());
  const i64 first_page = round_up(offset, kPageBytes);
  const i64 last_page = end / kPageBytes * kPageBytes;
  if (!direct_.is_open() || !congruent || last_page - first_page < kMinDirectBytes) {
    return write_buffered(bytes, offset);
  }
  const auto head = static_cast<size_t>(first_page - offset);
  const auto pages = static_cast<size_t>(last_page - first_page);
  write_buffered(bytes.first(head), offset);
  const i64 done = store::write_direct(direct_, bytes.subspan(head, pages), first_page);
  write_buffered(bytes.subspan(head + static_cast<size_t>(done)), first_page + done);
}

void TargetFile::clear(i64 offset, i64 bytes) const {
  static constexpr std::array<std::byte, 64 << 10> kZeros{};
  for (const i64 end = offset + bytes; offset < end; offset += std::ssize(kZeros)) {
    write_buffered(std::span(kZeros).first(
                       static_cast<size_t>(std::min<i64>(end - offset, std::ssize(kZeros)))),
                   offset);
  }
}

bool TargetFile::share(const SourceFile& source, i64 source_offset,
                       std::span<const std::byte> bytes, i64 offset) const {
  const i64 end = offset + std::ssize(bytes);
  const i64 first_page = round_up(offset, kPageBytes);
  const i64 pages = end / kPageBytes * kPageBytes - first_page;
  const bool congruent = (source_offset - offset) % kPageBytes == 0;
  if (!may_share_ || source.is_remote() || !congruent || pages < kMinDirectBytes) return false;
  const i64 head = first_page - offset;
  if (!store::share_range(source.file(), source_offset + head, pages, *file_, first_page)) {
    return false;
  }
  write_buffered(bytes.first(static_cast<size_t>(head)), offset);
  write_buffered(bytes.subspan(static_cast<size_t>(head + pages)), first_page + pages);
  return true;
}

void TargetFile::write_buffered(std::span<const std::byte> bytes, i64 offset) const {
  if (output_ != nullptr) return output_->write(object_, bytes, offset);
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<size_t>(bytes.size(), kBufferedWriteBytes));
    store::write_exact(*file_, part, offset);
    offset += static_cast<i64>(part.size());
    bytes = bytes.subspan(part.size());
  }
}

}  // namespace shardtool::exec
