#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/checked.h"
#include "lib/store/reader.h"

namespace shardtool::format::torch {

/// A file inside a zip archive: its bytes stand in the archive as they are.
struct ZipRecord {
  std::string name;
  i64 offset = 0;  ///< of the first byte of its content, absolute in the file
  i64 bytes = 0;
  /// CRC-32 of the content, by the directory; 0 also stands for one that was not computed: torch
  /// writes it after set_crc32_options(False), and for the records of skip_data.
  std::uint32_t crc32 = 0;
};

struct ZipDirectory {
  std::vector<ZipRecord> records;  ///< ascending by offset
  std::string text;                ///< bytes of the central directory, for a hash
};

/// Reads the directory of the zip archive in bytes [begin, begin + size) of a file, and the header
/// of every record. Content is not read, and checksums are not compared with it.
///
/// Strict, because offsets into the file are what counts: records are stored and neither compressed
/// nor encrypted, their two headers agree, their ranges do not overlap, no name stands twice, and
/// the directory ends where the archive ends. Zip64 is read.
///
/// Throws kUnsupported for compression, encryption and archives in several parts, kMalformed for
/// contradictions, kLimit for a directory above 100 MB. Format: PKWARE APPNOTE.TXT 6.3.10.
ZipDirectory read_zip_directory(const store::Reader& file, i64 begin, i64 size);

}  // namespace shardtool::format::torch
