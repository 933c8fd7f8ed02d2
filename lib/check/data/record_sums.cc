#include "lib/check/data/record_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "kernels/crc32/crc32.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/base/text.h"
#include "lib/check/container.h"
#include "lib/exec/files/file_blocks.h"
#include "lib/format/dcp/open.h"
#include "lib/format/names.h"
#include "lib/format/torch/archive.h"
#include "lib/store/reader.h"

namespace shardtool::check {

namespace {

using format::torch::ZipRecord;

/// Records of the chunks of DCP by their data file, by folder.
using ChunkRecords = std::map<std::string, std::map<std::string, format::dcp::FileRecords>>;

/// Returns the records with a checksum; none of a file that is not there, which is a finding
/// already. Reads each folder of DCP once, into `chunks`. Throws the errors of reading their
/// directories.
std::vector<ZipRecord> records_of(const DataFile& file, ChunkRecords& chunks) {
  const std::string& path = file.file.path;
  if (!store::is_file(path)) return {};
  if (format::is_torch_name(file.shown)) {
    return format::torch::checksummed_records(store::open_reader(path));
  }
  if (!format::is_dcp_data_name(file.shown)) return {};
  const std::string folder = std::filesystem::path(path).parent_path();
  if (!chunks.contains(folder)) {
    chunks[folder] = format::dcp::is_checkpoint(folder) ? format::dcp::checksummed_records(folder)
                                                        : ChunkRecords::mapped_type();
  }
  const auto of_file = std::exchange(chunks[folder][path], {});
  if (of_file.unreadable) throw Error(*of_file.unreadable);
  return of_file.records;
}

/// Tells if a record of torch.save has the bytes of a tensor: "archive/data/0". The others are the
/// pickle, which has names and shapes, and some words.
bool is_of_tensor(const ZipRecord& record) {
  return record.name.find("/data/") != std::string::npos;
}

}  // namespace

RecordSums::RecordSums(std::span<const DataFile> files, Findings& findings)
    : files_(files), findings_(findings), records_(files.size()) {
  if (!findings.wants(CheckRule::kRecordChecksum)) return;
  ChunkRecords chunks;
  for (size_t f = 0; f < files.size(); ++f) {
    try {
      for (auto& record : records_of(files[f], chunks)) {
        const bool is_always_read = !is_of_tensor(record);
        records_[f].push_back({.zip = std::move(record), .is_touched = is_always_read});
      }
    } catch (const Error& error) {
      findings.add(finding_of(CheckRule::kFileUnreadable, error, files[f].shown));
    }
  }
}

RecordSums::Record* RecordSums::find(int file, i64 offset) {
  std::vector<Record>& records = records_[static_cast<size_t>(file)];
  const auto after = std::ranges::upper_bound(
      records, offset, {}, [](const Record& record) { return record.zip.offset; });
  if (after == records.begin()) return nullptr;
  Record& record = *std::prev(after);
  return offset < record.zip.offset + record.zip.bytes ? &record : nullptr;
}

bool RecordSums::touch(const std::string& tensor, int file, i64 offset, i64 bytes) {
  Record* record = bytes == 0 ? nullptr : find(file, offset);
  if (record == nullptr) return false;
  if (!std::exchange(record->is_touched, true)) record->tensor = tensor;
  const bool is_all = record->zip.offset == offset && record->zip.bytes == bytes;
  return is_all && !std::exchange(record->is_claimed, true);
}

void RecordSums::take(int file, i64 offset, std::uint32_t crc32) {
  Record& record = *find(file, offset);
  record.found = crc32;
  record.is_summed = true;
}

void RecordSums::read(int file, std::vector<Record*> unread) const {
  if (unread.empty()) return;
  const exec::SourceFile source(files_[static_cast<size_t>(file)].file);
  const exec::PageBuffer buffer(exec::kBlockBufferBytes);
  for (Record* record : unread) {
    kernels::Crc32 crc;
    exec::read_blocks(source, record->zip.offset, record->zip.bytes, buffer,
                      [&](std::span<const std::byte> block) {
                        check_interrupted();
                        crc.update(block);
                      });
    record->found = crc.value();
  }
  source.check_unchanged();
}

void RecordSums::judge() {
  for (size_t f = 0; f < records_.size(); ++f) {
    std::vector<Record*> unread;
    for (Record& record : records_[f]) {
      if (record.is_touched && !record.is_summed) unread.push_back(&record);
    }
    read(static_cast<int>(f), std::move(unread));
    for (const Record& record : records_[f]) {
      if (!record.is_touched || record.found == record.zip.crc32) continue;
      findings_.add(
          {.rule = CheckRule::kRecordChecksum,
           .message = fmt::format("the bytes of record '{}' are not those that were saved",
                                  quote_for_message(record.zip.name)),
           .file = files_[f].shown,
           .tensor = record.tensor,
           .found = fmt::format("CRC-32 {:08x}", record.found),
           .expected = fmt::format("CRC-32 {:08x}", record.zip.crc32),
           .fix = "copy or download the file again"});
    }
  }
}

}  // namespace shardtool::check
