#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/base/dtype.h"
#include "lib/base/shape.h"
#include "lib/index/holder_set.h"
#include "lib/index/value_shift.h"
#include "lib/mesh/mesh.h"

namespace shardtool::format {

/// manifest.json: the self-description of every output folder. Written last; a folder without it is
/// not an output of shardtool. shardtool-manifest(5) describes it; fields are only ever added.

/// Format of the files of a manifest that names none.
inline constexpr std::string_view kSafetensors = "safetensors";
inline constexpr std::string_view kDcp = "dcp";

/// File of the output or of the source, without its path.
struct FileRecord {
  std::string name;
  i64 bytes = 0;
  std::string header_xxh3;
  std::string sha256 = {};  ///< of the whole file, lowercase hex; empty unless requested
  /// Hash of samples of a source file (exec::sampled_hashes); empty unless ranks were left out.
  std::string sampled_xxh3 = {};
};

/// File range of one rank's part of one tensor.
struct ShardRecord {
  i64 rank = 0;
  int file = 0;  ///< index into Manifest::files
  i64 offset = 0;
  i64 bytes = 0;
  std::optional<kernels::Hash128> xxh3 = {};  ///< of the shard's bytes; nullopt until known
};

/// Description of the cut of one axis.
struct AxisRecord {
  std::string logical;
  std::string expression;

  auto operator<=>(const AxisRecord&) const = default;
};

/// Description of the cut of a tensor, shared by many tensors.
struct CutRecord {
  std::string rule;
  std::vector<AxisRecord> axes = {};
  std::vector<std::string> transforms = {};
  std::string bias = {};  ///< for a row-parallel layer: "after_reduction", "first_device",
                          ///< "divided" or "first_and_zeros"; else empty

  auto operator<=>(const CutRecord&) const = default;
};

/// Change of a tensor's element type, by kernels::cast: rounded to nearest even.
struct CastRecord {
  Dtype from = Dtype::kF32;
  Dtype to = Dtype::kBF16;
  std::optional<std::uint64_t> digest = {};  ///< of the whole tensor before the cast, if known

  bool operator==(const CastRecord&) const = default;
};

/// Stored tensor from which a tensor was computed.
struct StoredRecord {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::optional<std::uint64_t> digest = {};  ///< of the whole tensor, if known

  bool operator==(const StoredRecord&) const = default;
};

/// Unpacking of a quantised weight to the tensor's first type, rounded to nearest even.
struct DequantizeRecord {
  std::string scheme;              ///< "fp8/block": what config.json said of the weights
  std::vector<StoredRecord> from;  ///< the codes, the scales, and others

  bool operator==(const DequantizeRecord&) const = default;
};

struct TensorRecord {
  std::string name;
  /// Name in the files' headers; null: `name`. Then the shard's bytes are a part of that tensor.
  std::shared_ptr<const std::string> stored = {};
  /// The same per shard, if their names differ; else empty. JSON: `stored` of a shard.
  std::vector<std::shared_ptr<const std::string>> stored_on = {};
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::shared_ptr<const CutRecord> cut;  ///< shared by tensors with the same cut
  /// Linear CRC-64 of the whole tensor. Of a tensor that is held in part by ranks that --ranks left
  /// out, that of the source's manifest; nullopt if it has none.
  std::optional<std::uint64_t> digest = {};
  /// The bytes were copied inside an object store, unread: shards have no hashes, and the digest is
  /// that of the source's manifest, if it has one. JSON: "unread".
  bool is_unread = false;
  std::optional<DequantizeRecord> dequantized = {};  ///< before all casts
  std::vector<CastRecord> casts = {};  ///< from the source to `dtype`, the first one first
  std::vector<ShardRecord> shards = {};
  /// Part of each shard; shared like `cut`. JSON: `shape` and `slices` of a shard.
  std::shared_ptr<const index::HolderSet> holders;
  /// Shift per shard; empty: all have plain values. JSON: `shift`, its addends, and `halvings`; the
  /// range of stored values is not recorded.
  std::vector<index::ValueShift> shifts = {};

  /// Name of a shard in its file's header.
  const std::string& stored_name(size_t shard) const {
    const auto& own = stored_on.empty() ? stored : stored_on[shard];
    return own ? *own : name;
  }
};

/// Tensor of the files that is not in the checkpoint: every element has one value. Its dtype is F32
/// or BF16, and it has at most kMaxConstantBytes.
struct ConstantRecord {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  double value = 0;

  bool operator==(const ConstantRecord&) const = default;
};

inline constexpr i64 kMaxConstantBytes = 1 << 20;

/// Bytes of a constant's data. The value is rounded to F32, and for BF16 then to nearest even.
std::string constant_bytes(const ConstantRecord& constant);

struct RankRecord {
  i64 rank = 0;
  std::vector<std::pair<std::string, i64>> coordinate;  ///< mesh axis -> index
  std::vector<int> files;
};

/// Manifest::layout of a merged checkpoint.
inline constexpr std::string_view kWholeLayout = "whole";

struct Manifest {
  std::string tool_version;
  std::vector<FileRecord> source;
  mesh::Mesh mesh;
  std::string layout;                ///< "plain", kWholeLayout, or an engine's, "vllm@0.32"
  std::string format{kSafetensors};  ///< of the files
  /// Shards are boxes that together hold each element once, in the files of any rank: a device's
  /// part may be several shards, in files of others. Ranks are those of the files.
  bool has_chunks = false;
  std::vector<RankRecord> ranks;  ///< written ranks only
  std::vector<FileRecord> files;
  std::vector<TensorRecord> tensors;  ///< sorted by name
  std::vector<ConstantRecord> constants;
  std::vector<std::vector<std::string>> tied;
  std::vector<std::string> dropped;
  std::vector<std::string> elsewhere;  ///< tensors that only ranks hold that were not written
  std::string axes;  ///< entry of the mapping's "layouts" that was chosen, or empty
  bool allows_empty_shards = false;
  std::string mapping;  ///< JSON text of the mapping documents, nearest first: [{name, document}]
};

/// Text of the document: deterministic, no timestamps, no paths. One tensor a line.
std::string to_json(const Manifest& manifest);
/// Writes the same document piece by piece, so that neither its text nor its records are ever held
/// whole: `record(t)` is tensor t of `count`, in name order; `manifest.tensors` is not read.
void write_json(const Manifest& manifest, size_t count,
                const std::function<TensorRecord(size_t)>& record,
                const std::function<void(std::string_view)>& write);
/// Parses strictly: throws kManifestInvalid with file, pointer, expected and found; for a
/// format_version other than 1.x the message names the version. Refuses file names with separators,
/// "..", or absolute paths.
Manifest parse_manifest(const std::string& text, const std::string& path);

/// Formats "slices" of one axis: [[begin, end], {"pad": n}, ...] in local order.
std::string slices_json(const index::AxisMap& map);

}  // namespace shardtool::format
