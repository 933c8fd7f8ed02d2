#include "lib/format/torch/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"

namespace shardtool::format::torch {
namespace {

constexpr i64 kMaxDirectoryBytes = 100'000'000;
constexpr i64 kEndBytes = 22;       // end of central directory record
constexpr i64 kLocatorBytes = 20;   // zip64 end of central directory locator
constexpr i64 kZip64EndBytes = 56;  // zip64 end of central directory record, version 1
constexpr i64 kEntryBytes = 46;     // central directory header, without name, extra and comment
constexpr i64 kLocalBytes = 30;     // local file header, without name and extra
constexpr std::uint64_t kFull16 = 0xffff;
constexpr std::uint64_t kFull32 = 0xffffffff;
constexpr std::uint64_t kZip64Extra = 0x0001;
constexpr std::uint64_t kEncrypted = 1 << 0;
constexpr std::uint64_t kSizesFollow = 1 << 3;  // in a descriptor after the data
constexpr std::uint64_t kUtf8Name = 1 << 11;

std::uint64_t number_at(std::string_view text, size_t at, size_t bytes) {
  std::uint64_t number = 0;
  for (size_t i = bytes; i-- > 0;) number = number << 8 | static_cast<unsigned char>(text[at + i]);
  return number;
}

/// The part of a file that is the archive.
struct ZipBytes {
  const store::Reader& file;
  i64 begin = 0;
  i64 size = 0;

  std::string read(i64 at, i64 bytes) const {
    std::string text(static_cast<size_t>(bytes), '\0');
    store::read_exact(file, std::as_writable_bytes(std::span(text)), begin + at);
    return text;
  }
  Error error(ErrorCode code, const std::string& message, i64 at) const {
    return Error(code, message)
        .at({file.path(), 0, 0, ""})
        .note("byte offset", std::to_string(begin + at));
  }
  Error malformed(const std::string& message, i64 at) const {
    return error(ErrorCode::kMalformed, message, at)
        .help("the archive is damaged or incomplete: fetch the file again");
  }
};

/// Place of the central directory, as its end record says.
struct DirectoryPlace {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
  i64 end = 0;  ///< offset of the first record after the directory
};

/// Reads the zip64 end record that the locator at `locator_at` names.
DirectoryPlace read_zip64_end(const ZipBytes& archive, std::string_view locator, i64 locator_at) {
  const i64 at = locator_at - kZip64EndBytes;
  if (at < 0 || number_at(locator, 8, 8) != static_cast<std::uint64_t>(at)) {
    throw archive.malformed("the zip64 end record is not before its locator", locator_at);
  }
  const std::string end = archive.read(at, kZip64EndBytes);
  const bool is_one_part = number_at(locator, 4, 4) == 0 && number_at(locator, 16, 4) <= 1 &&
                           number_at(end, 16, 4) == 0 && number_at(end, 20, 4) == 0;
  if (!end.starts_with("PK\x06\x06") || number_at(end, 4, 8) != kZip64EndBytes - 12 ||
      number_at(end, 24, 8) != number_at(end, 32, 8) || !is_one_part) {
    throw archive.malformed("the zip64 end record is invalid", at);
  }
  return {number_at(end, 32, 8), number_at(end, 40, 8), number_at(end, 48, 8), at};
}

/// True if a field of the short end record agrees with the long one, or says "see there".
bool agrees(std::uint64_t short_field, std::uint64_t full, std::uint64_t field) {
  return short_field == full || short_field == field;
}

DirectoryPlace find_directory(const ZipBytes& archive) {
  const i64 end_at = archive.size - kEndBytes;
  if (end_at < 0) throw archive.malformed("the file is too short for a zip archive", 0);
  const std::string end = archive.read(end_at, kEndBytes);
  if (!end.starts_with("PK\x05\x06") || number_at(end, 20, 2) != 0) {
    throw archive.malformed("the file does not end with the directory of a zip archive", end_at);
  }
  if (number_at(end, 4, 2) != 0 || number_at(end, 6, 2) != 0 ||
      number_at(end, 8, 2) != number_at(end, 10, 2)) {
    throw archive.error(ErrorCode::kUnsupported, "the zip archive is one of several parts", end_at)
        .help("save the checkpoint again as one file");
  }
  const DirectoryPlace brief{number_at(end, 10, 2), number_at(end, 12, 4), number_at(end, 16, 4),
                             end_at};
  const i64 locator_at = end_at - kLocatorBytes;
  const std::string locator = locator_at < 0 ? "" : archive.read(locator_at, kLocatorBytes);
  if (!locator.starts_with("PK\x06\x07")) return brief;
  const DirectoryPlace full = read_zip64_end(archive, locator, locator_at);
  if (!agrees(brief.entries, kFull16, full.entries) || !agrees(brief.bytes, kFull32, full.bytes) ||
      !agrees(brief.offset, kFull32, full.offset)) {
    throw archive.malformed("the two end records of the zip archive differ", end_at);
  }
  return full;
}

std::string read_directory(const ZipBytes& archive, const DirectoryPlace& place) {
  const auto end = static_cast<std::uint64_t>(place.end);
  if (place.bytes > end || place.offset != end - place.bytes) {
    throw archive.malformed("the directory of the zip archive is not before its end record",
                            place.end);
  }
  if (place.bytes > kMaxDirectoryBytes) {
    throw archive
        .error(ErrorCode::kLimit, "the directory of the zip archive is too large",
               static_cast<i64>(place.offset))
        .note("found", format_bytes(static_cast<i64>(place.bytes)))
        .note("expected", "at most " + format_bytes(kMaxDirectoryBytes));
  }
  return archive.read(static_cast<i64>(place.offset), static_cast<i64>(place.bytes));
}

/// Sizes of a record and the offset of its header, with 64 bits where the short fields say so.
struct Extents {
  std::uint64_t bytes = 0;
  std::uint64_t packed = 0;
  std::uint64_t header = 0;
};

/// Replaces the short fields that are full by those of the zip64 extra field, in its fixed order.
/// Returns false if the extra fields are malformed, or lack a value.
bool widen(Extents& extents, std::string_view extra) {
  std::string_view wide;
  while (extra.size() >= 4) {
    const size_t bytes = number_at(extra, 2, 2);
    if (extra.size() - 4 < bytes) return false;
    if (number_at(extra, 0, 2) == kZip64Extra) wide = extra.substr(4, bytes);
    extra.remove_prefix(4 + bytes);
  }
  if (!extra.empty()) return false;
  for (std::uint64_t* field : {&extents.bytes, &extents.packed, &extents.header}) {
    if (*field != kFull32) continue;
    if (wide.size() < 8) return false;
    *field = number_at(wide, 0, 8);
    wide.remove_prefix(8);
  }
  return true;
}

/// One entry of the central directory.
struct Entry {
  std::string name;
  std::uint64_t flags = 0;
  std::uint32_t crc32 = 0;
  Extents extents;
  i64 at = 0;  ///< offset of the entry in the archive
};

/// Throws kUnsupported unless the bytes of a record are its content.
void refuse_coded(const ZipBytes& archive, const Entry& entry, std::uint64_t method) {
  if (method == 0 && (entry.flags & ~(kSizesFollow | kUtf8Name)) == 0) return;
  const bool is_encrypted = (entry.flags & kEncrypted) != 0;
  throw archive
      .error(ErrorCode::kUnsupported,
             is_encrypted  ? "a record of the zip archive is encrypted"
             : method != 0 ? "a record of the zip archive is compressed"
                           : "a record of the zip archive has flags that are not supported",
             entry.at)
      .note("record", quote_for_message(entry.name))
      .note("found", fmt::format("method {}, flags 0x{:04x}", method, entry.flags))
      .note("expected", "method 0 (stored), as torch.save writes it")
      .help(
          "load the file with torch and save it again with torch.save; of a TorchScript archive, "
          "which is a program, save the state_dict()");
}

/// Reads the entry at the front of `rest` and removes it.
Entry take_entry(const ZipBytes& archive, std::string_view& rest, i64 at) {
  if (rest.size() < kEntryBytes || !rest.starts_with("PK\x01\x02")) {
    throw archive.malformed("the directory of the zip archive has fewer entries than it says", at);
  }
  const size_t name_bytes = number_at(rest, 28, 2);
  const size_t extra_bytes = number_at(rest, 30, 2);
  const size_t bytes = kEntryBytes + name_bytes + extra_bytes + number_at(rest, 32, 2);
  if (rest.size() < bytes) {
    throw archive.malformed("an entry of the zip archive leaves its directory", at);
  }
  Entry entry{std::string(rest.substr(kEntryBytes, name_bytes)),
              number_at(rest, 8, 2),
              static_cast<std::uint32_t>(number_at(rest, 16, 4)),
              {number_at(rest, 24, 4), number_at(rest, 20, 4), number_at(rest, 42, 4)},
              at};
  refuse_coded(archive, entry, number_at(rest, 10, 2));
  if (number_at(rest, 34, 2) != 0 ||
      !widen(entry.extents, rest.substr(kEntryBytes + name_bytes, extra_bytes)) ||
      entry.extents.bytes != entry.extents.packed) {
    throw archive.malformed("an entry of the zip archive contradicts itself", at)
        .note("record", quote_for_message(entry.name));
  }
  rest.remove_prefix(bytes);
  return entry;
}

std::vector<Entry> parse_entries(const ZipBytes& archive, const DirectoryPlace& place,
                                 std::string_view text) {
  std::vector<Entry> entries;
  std::string_view rest = text;
  for (std::uint64_t i = 0; i < place.entries; ++i) {
    const auto parsed = static_cast<i64>(text.size() - rest.size());
    entries.push_back(take_entry(archive, rest, static_cast<i64>(place.offset) + parsed));
  }
  if (!rest.empty()) {
    throw archive.malformed("the directory of the zip archive has more bytes than its entries",
                            place.end);
  }
  return entries;
}

/// True if the sizes of a local header agree with the directory, or are left to a descriptor.
bool sizes_agree(const Entry& entry, std::string_view local, std::string_view extra) {
  Extents found{number_at(local, 22, 4), number_at(local, 18, 4), 0};
  const bool are_later = (entry.flags & kSizesFollow) != 0;
  if (are_later && found.bytes == 0 && found.packed == 0) return true;
  return widen(found, extra) && found.bytes == entry.extents.bytes &&
         found.packed == entry.extents.packed;
}

/// Reads the local header of an entry; `end` is the offset that the record must not pass.
ZipRecord read_record(const ZipBytes& archive, Entry entry, std::uint64_t end) {
  const auto named = kLocalBytes + static_cast<i64>(entry.name.size());
  const std::uint64_t header = entry.extents.header;
  const auto differs = [&](i64 at) {
    return archive.malformed("the two headers of a record of the zip archive differ", at)
        .note("record", quote_for_message(entry.name));
  };
  if (header > end || end - header < static_cast<std::uint64_t>(named)) {
    throw archive.malformed("records of the zip archive overlap or leave it", entry.at)
        .note("record", quote_for_message(entry.name));
  }
  const auto at = static_cast<i64>(header);
  const std::string local = archive.read(at, named);
  const i64 extra_bytes = static_cast<i64>(number_at(local, 28, 2));
  const std::uint64_t content = header + static_cast<std::uint64_t>(named + extra_bytes);
  if (!local.starts_with("PK\x03\x04") || number_at(local, 6, 2) != entry.flags ||
      number_at(local, 8, 2) != 0 || number_at(local, 26, 2) != entry.name.size() ||
      std::string_view(local).substr(kLocalBytes) != entry.name) {
    throw differs(at);
  }
  if (content > end || end - content < entry.extents.bytes) {
    throw archive.malformed("records of the zip archive overlap or leave it", at)
        .note("record", quote_for_message(entry.name));
  }
  if (!sizes_agree(entry, local, archive.read(at + named, extra_bytes))) throw differs(at);
  return {std::move(entry.name), archive.begin + static_cast<i64>(content),
          static_cast<i64>(entry.extents.bytes), entry.crc32};
}

void refuse_duplicates(const ZipBytes& archive, const std::vector<Entry>& entries) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(&entry.name);
  const std::string* twice = find_duplicate(std::move(names));
  if (twice == nullptr) return;
  throw archive.malformed("a name stands twice in the zip archive", entries.front().at)
      .note("record", quote_for_message(*twice));
}

}  // namespace

ZipDirectory read_zip_directory(const store::Reader& file, i64 begin, i64 size) {
  const ZipBytes archive{file, begin, size};
  const DirectoryPlace place = find_directory(archive);
  ZipDirectory directory;
  directory.text = read_directory(archive, place);
  std::vector<Entry> entries = parse_entries(archive, place, directory.text);
  refuse_duplicates(archive, entries);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.extents.header < b.extents.header; });
  if (!entries.empty() && entries.front().extents.header != 0) {
    throw archive.malformed("the zip archive does not begin with its first record", 0);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t end = i + 1 < entries.size() ? entries[i + 1].extents.header : place.offset;
    directory.records.push_back(read_record(archive, std::move(entries[i]), end));
  }
  return directory;
}

}  // namespace shardtool::format::torch
