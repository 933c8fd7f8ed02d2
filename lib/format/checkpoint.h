#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/format/manifest/manifest.h"
#include "lib/format/problem.h"
#include "lib/store/reader.h"

namespace shardtool::format {

/// Place of a chunk in the tensor that it is a part of.
struct PartOf {
  std::optional<Shape> whole;  ///< shape of the tensor; absent: the chunks tell
  Shape begin;                 ///< global index at which the chunk begins on every axis
};

/// Tensor stored in a file.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  int file = 0;    ///< index into Checkpoint::files
  i64 offset = 0;  ///< absolute, bytes
  i64 bytes = 0;
  std::shared_ptr<const PartOf> part = {};  ///< null: the whole tensor
};

/// Result of opening a weights file. A checkpoint that open_checkpoint returns has kRead only.
enum class FileState {
  kRead,
  kMissing,
  kBroken,  ///< has no readable header, or ends before its data; tensors with all data are listed
};

/// Tensor of a checkpoint that is stored in parts of any shape, each in a place of its own.
///
/// C1 the holders together hold every element, and each of them is a stored tensor of this name,
///    with this dtype and the holder's local shape
struct ChunkedTensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::shared_ptr<const index::HolderSet> holders;
  std::vector<size_t> stored;  ///< per holder: its index in Checkpoint::tensors
};

/// An opened weights file.
struct SourceFile {
  std::string name;  ///< relative to Checkpoint::path
  std::string path;  ///< path to open (symbolic links resolved)
  store::FileIdentity identity;
  std::string header_xxh3;  ///< XXH3-128 of what says where the tensors are, lowercase hex
  std::string framework;    ///< "format" of its __metadata__, usually "pt"; may be empty
  FileState state = FileState::kRead;
};

/// Anomaly that does not stop reading: a stale shard in the index's folder, an unknown field.
enum class Oddity {
  kUnlistedFile,
  kTotalSize,
  kUnknownField,
  kOutsideLink,
  kNoIndex,
  kOtherEntry,
  kOverlap,
};

struct Warning {
  std::string message;
  std::string file;
  Oddity oddity;
};

/// "FILE: MESSAGE", or the message alone.
std::string text_of(const Warning& warning);

/// Part of what a trainer saved that has no tensor: a step number, the state of a random generator.
struct OtherEntry {
  std::string name;
  std::string what = {};  ///< such as "an integer" or "argparse.Namespace"; empty: not recorded
};

/// Checkpoint whose headers were read and validated, without reading data.
///
/// K1 every tensor is inside its file; those of a safetensors file tile its data exactly, those
///    of a torch file may share bytes
/// K2 without a manifest, names are unique over all files, except in chunked checkpoints
/// K3 tensors are ordered by (file, offset)
struct Checkpoint {
  std::string path;    ///< resolved path of a folder or a single file
  std::string format;  ///< "safetensors", "torch index", "shardtool output", ...
  std::vector<SourceFile> files;
  std::vector<StoredTensor> tensors;
  std::vector<ChunkedTensor> chunked;    ///< in chunked checkpoints without a manifest: all tensors
  std::optional<Manifest> manifest;      ///< present for outputs of shardtool
  std::string config_path;               ///< config.json in the weights' folder, or empty
  std::vector<std::string> other_files;  ///< names of other plain files (config, tokenizer, README)
  std::string other_folder;              ///< folder of other_files; empty: folder()
  i64 header_bytes = 0;                  ///< total of all files
  std::vector<Warning> warnings;
  std::vector<OtherEntry> others;  ///< of all files, in their order; no command carries them

  std::string folder() const;  ///< folder of files
  /// Path of a file in the folder of other_files.
  std::string other_path(const std::string& name) const;
};

inline constexpr const char* kManifestName = "manifest.json";

/// Text of the manifest.json in a folder; nullopt if it is missing or belongs to another tool.
/// Throws the errors of reading.
std::optional<std::string> manifest_text(const std::string& folder);

/// Opens a location given by the user: a folder, a .safetensors file, a file of torch.save (.bin,
/// .pt, .pth, .ckpt), an index.json, an output folder of shardtool, a folder of
/// torch.distributed.checkpoint, or hf://org/name[@revision] (the local Hugging Face cache, never
/// the network). LOCATION#PREFIX keeps only the tensors whose names begin with "PREFIX.", and
/// removes that from their names. FORMAT:LOCATION selects one of format_names(); otherwise the
/// first whose files a folder has is read, and a warning names the others. Throws the input errors
/// (kFileMissing, kUnreadable, kMalformed, kHeaderJson, kTensorInvalid, kIndexInvalid,
/// kUnsupported, kManifestInvalid, kLimit) and those of parse_location.
Checkpoint open_checkpoint(const std::string& location);

/// Opens an output that its run has not published: the files of this manifest in a folder, in which
/// the manifest need not be. `others` are the names of the files beside the weights, sorted. Throws
/// as open_checkpoint.
Checkpoint open_unpublished(const std::string& folder, std::string manifest,
                            const std::vector<std::string>& others);

/// Returns a checkpoint without files and tensors for a location where config.json stands alone: a
/// folder or hf://org/name without files of weights, or the file itself, whatever is beside it.
/// Returns nullopt for other locations. Throws the errors of parse_location and list_folder.
std::optional<Checkpoint> config_without_weights(const std::string& location);

/// Same as open_checkpoint, but reports problems to `report` and continues with the readable part:
/// the tensors of the files that can be opened, without K1's tiling and without K2. Throws only if
/// no part can be read.
Checkpoint survey_checkpoint(const std::string& location, const ProblemSink& report);

}  // namespace shardtool::format
