#include "lib/format/torch/archive.h"

#include <algorithm>
#include <span>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/safetensors/foreign_format.h"
#include "lib/format/torch/unpickle.h"

namespace shardtool::format::torch {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
constexpr std::string_view kStorageFolder = "data/";

std::string read_record(const store::Reader& file, const ZipRecord& record) {
  std::string text(static_cast<size_t>(record.bytes), '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(text)), record.offset);
  return text;
}

Error unsupported(const store::Reader& file, const std::string& message) {
  return Error(ErrorCode::kUnsupported, message).at({file.path(), 0, 0, ""});
}

/// The folder that holds all records, such as "archive/".
std::string top_folder(const store::Reader& file, const ZipDirectory& directory) {
  for (const ZipRecord& record : directory.records) {
    if (!record.name.ends_with("/data.pkl")) continue;
    const std::string folder = record.name.substr(0, record.name.find('/') + 1);
    if (folder.size() + std::string_view("data.pkl").size() == record.name.size()) return folder;
  }
  throw unsupported(file, "the zip archive was not made by torch.save")
      .note("found", plural(static_cast<i64>(directory.records.size()), "record"))
      .note("expected", "a record data.pkl in the only folder");
}

void check_byte_order(const store::Reader& file, const ZipRecord& record) {
  constexpr i64 kLongest = 16;
  const std::string order = record.bytes > kLongest ? "" : read_record(file, record);
  if (order == "little") return;
  throw unsupported(file, "the byte order of the file is not supported")
      .note("found", quote_for_message(order))
      .note("expected", "little")
      .help("save the checkpoint again on a little-endian machine");
}

void refuse_script(const store::Reader& file, std::string_view name) {
  if (name != "constants.pkl" && !name.starts_with("code/")) return;
  throw unsupported(file, "the file is a TorchScript archive, a program and no checkpoint")
      .note("record", quote_for_message(name))
      .help("save the state dict: torch.save(torch.jit.load(path).state_dict(), \"model.pt\")");
}

const ZipRecord& pickle_record(const store::Reader& file, const ZipRecord& record) {
  if (record.bytes <= kMaxPickleBytes) return record;
  throw Error(ErrorCode::kLimit, "the pickle is too large")
      .at({file.path(), 0, 0, ""})
      .note("found", format_bytes(record.bytes))
      .note("expected", "at most " + format_bytes(kMaxPickleBytes));
}

/// The first bytes of a file, which tell its format.
std::string head_of(const store::Reader& file) {
  constexpr i64 kHeadBytes = 64;
  std::string head(static_cast<size_t>(std::min(store::identity(file).size, kHeadBytes)), '\0');
  store::read_exact(file, std::as_writable_bytes(std::span(head)), 0);
  return head;
}

/// Reads the zip form (torch 1.6 and later).
Archive read_zip_archive(const store::Reader& file, i64 size) {
  const ZipDirectory directory = read_zip_directory(file, 0, size);
  const std::string folder = top_folder(file, directory);
  Archive archive;
  kernels::Xxh3 hash;
  hash.update(std::as_bytes(std::span(directory.text)));
  archive.header_bytes = static_cast<i64>(directory.text.size());
  for (const ZipRecord& record : directory.records) {
    if (!record.name.starts_with(folder)) {
      throw unsupported(file, "the zip archive has records outside of its folder")
          .note("record", quote_for_message(record.name));
    }
    const std::string_view name = std::string_view(record.name).substr(folder.size());
    refuse_script(file, name);
    if (name == "byteorder") check_byte_order(file, record);
    if (name.starts_with(kStorageFolder)) {
      archive.storages.emplace(name.substr(kStorageFolder.size()),
                               StoragePlace{record.offset, record.bytes});
    }
    if (name != "data.pkl") continue;
    std::string pickle = read_record(file, pickle_record(file, record));
    hash.update(std::as_bytes(std::span(pickle)));
    archive.header_bytes += record.bytes;
    archive.tree = unpickle(std::move(pickle), {file.path(), record.name, record.offset});
  }
  archive.header_xxh3 = hash.hex();
  return archive;
}

}  // namespace

std::vector<ZipRecord> checksummed_records(const store::Reader& file) {
  if (!head_of(file).starts_with(kZip)) return {};
  auto records = read_zip_directory(file, 0, store::identity(file).size).records;
  std::erase_if(records, [](const ZipRecord& record) { return record.crc32 == 0; });
  return records;
}

Archive read_archive(const store::Reader& file) {
  const i64 size = store::identity(file).size;
  const std::string head = head_of(file);
  if (head.starts_with(kZip)) return read_zip_archive(file, size);
  const bool is_pickle = head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  if (is_pickle) return read_legacy_archive(file, size);
  safetensors::refuse_foreign_format(head, file.path());
  throw unsupported(file, "the file is not one of torch.save")
      .note("expected", "a zip archive, or pickles of protocol 2 to 5")
      .help("a file that is truncated or of another format: fetch it again");
}

}  // namespace shardtool::format::torch
