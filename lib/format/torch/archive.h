#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/format/torch/pickle_tree.h"
#include "lib/format/torch/zip_directory.h"
#include "lib/store/reader.h"

namespace shardtool::format::torch {

/// Bytes of a storage in the file.
struct StoragePlace {
  i64 offset = 0;  ///< absolute
  i64 bytes = 0;
};

/// A file of torch.save: the saved object as a tree, and where its storages are. No data of a
/// storage is read.
struct Archive {
  PickleTree tree;
  std::map<std::string, StoragePlace, std::less<>> storages;  ///< by key
  i64 header_bytes = 0;     ///< bytes that were read to find the storages
  std::string header_xxh3;  ///< XXH3-128 of them, lowercase hex
};

/// Reads the legacy form (before torch 1.6, and with _use_new_zipfile_serialization=False): a whole
/// file. Throws kUnsupported for other pickles, kMalformed for contradictions, and the errors of
/// unpickle and storage_name.
Archive read_legacy_archive(const store::Reader& file, i64 size);

/// Returns the records of a whole file in the zip form that have a checksum, ascending by offset;
/// none for a file of another form. Throws the errors of read_zip_directory.
std::vector<ZipRecord> checksummed_records(const store::Reader& file);

/// Reads a whole file in the legacy form or the zip form (torch 1.6 and later). Throws kUnsupported
/// for files of neither form, TorchScript archives, big-endian data and zip archives of another
/// origin, and the errors of read_legacy_archive, read_zip_directory and unpickle.
Archive read_archive(const store::Reader& file);

}  // namespace shardtool::format::torch
