#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/checkpoint/manifest.h"
#include "lib/checkpoint/problem.h"
#include "lib/io/file.h"

namespace shardtool::checkpoint {

/// A tensor as it lies in a file.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  int file = 0;    ///< index into Checkpoint::files
  i64 offset = 0;  ///< absolute, bytes
  i64 bytes = 0;
};

/// How far a weights file could be opened. All are read, unless problems are reported.
enum class FileState { kRead, kMissing, kBroken };

/// An opened weights file.
struct SourceFile {
  std::string name;  ///< relative to Checkpoint::path
  std::string path;  ///< to open (symbolic links resolved)
  io::FileIdentity identity;
  std::string header_xxh3;  ///< XXH3-128 of the 8 length bytes and the header, lower-case hex
  std::string framework;    ///< "format" of its __metadata__, "pt" for most; or empty
  FileState state = FileState::kRead;
};

/// Something odd that does not stop reading: a stale shard beside the index, an unknown field.
enum class Oddity { kUnlistedFile, kTotalSize, kUnknownField, kOutsideLink, kNoIndex };

struct Warning {
  std::string message;
  std::string file;
  Oddity oddity;
};

/// A checkpoint whose headers were read and validated; no data was read.
///
/// K1 every tensor lies inside its file, and the tensors of a file tile its data exactly
/// K2 without a manifest, names are unique over all files
/// K3 tensors are in the order of (file, offset)
struct Checkpoint {
  std::string path;    ///< as resolved: a folder or a single file
  std::string format;  ///< "safetensors", "safetensors index", "shardtool output", ...
  std::vector<SourceFile> files;
  std::vector<StoredTensor> tensors;
  std::optional<Manifest> manifest;     ///< present for our own outputs
  std::string config_path;              ///< config.json beside the weights, or empty
  std::vector<std::string> side_files;  ///< names of other plain files (config, tokenizer, README)
  i64 header_bytes = 0;                 ///< of all files together
  std::vector<Warning> warnings;

  std::string folder() const;  ///< where files and side_files lie
};

inline constexpr std::string_view kManifestName = "manifest.json";

/// The text of the manifest.json in a folder; nothing where there is none, or one of another tool.
/// Throws what reading throws.
std::optional<std::string> manifest_text(const std::string& folder);

/// Opens what the user typed: a folder, a .safetensors file, an index.json, our own output folder,
/// or hf://org/name[@revision] (the local Hugging Face cache, never the network).
/// Throws the input errors (kFileMissing, kUnreadable, kMalformed, kHeaderJson, kTensorInvalid,
/// kIndexInvalid, kUnsupported, kManifestInvalid, kLimit).
Checkpoint open_checkpoint(const std::string& location);

/// The same, but tells `report` what is wrong and goes on with what can be read: the tensors of the
/// files that can be opened, without K1's tiling and without K2. Throws only where nothing can be
/// read at all.
Checkpoint survey_checkpoint(const std::string& location, const ProblemSink& report);

}  // namespace shardtool::checkpoint
