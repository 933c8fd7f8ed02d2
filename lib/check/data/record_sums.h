#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/check/data/data.h"
#include "lib/format/torch/zip_directory.h"

namespace shardtool::check {

/// ST0710: CRC-32 of records of torch's zip archives (whole files and chunks of DCP): of those with
/// tensors that are read. A record that is exactly one tensor is summed while the tensor is read;
/// any other is read once more for its sum.
class RecordSums {
 public:
  /// Reads the directories of those of the files that are such archives. Adds ST0101 for a file
  /// that cannot be opened any more.
  RecordSums(std::span<const DataFile> files, Findings& findings);

  /// Notes that a tensor's bytes [offset, offset + bytes) of a file are read. Returns true for the
  /// first call that names exactly the bytes of a record: its caller may sum them.
  bool touch(const std::string& tensor, int file, i64 offset, i64 bytes);
  /// Takes the sum of the record that begins there. May be called from several threads for distinct
  /// records that were all touched before.
  void take(int file, i64 offset, std::uint32_t crc32);
  /// Reads the touched records without a sum, and adds the findings. Throws kInterrupted, and the
  /// errors of reading.
  void judge();

 private:
  struct Record {
    format::torch::ZipRecord zip;
    bool is_touched = false;
    std::string tensor = {};  ///< the first that is read of it
    bool is_claimed = false;  ///< a caller may sum it
    bool is_summed = false;
    std::uint32_t found = 0;
  };

  Record* find(int file, i64 offset);
  void read(int file, std::vector<Record*> unread) const;

  std::span<const DataFile> files_;
  Findings& findings_;
  std::vector<std::vector<Record>> records_;  ///< by file, ascending by offset
};

}  // namespace shardtool::check
