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

namespace shardtool::checkpoint {

/// manifest.json: what every output folder says about itself. Written last; a folder without it is
/// not an output of ours. The format is design/json.md's; fields are only ever added.

/// A file of the output or of the source, without its path.
struct FileRecord {
  std::string name;
  i64 bytes = 0;
  std::string header_xxh3;
  std::string sha256 = {};  ///< of the whole file, lower-case hex; empty when it was not asked for
};

/// Where one rank's part of one tensor lies.
struct ShardRecord {
  i64 rank = 0;
  int file = 0;  ///< index into Manifest::files
  i64 offset = 0;
  i64 bytes = 0;
  std::optional<kernels::Hash128> xxh3 =
      {};  ///< of the shard's bytes; nothing before they are known
};

/// How one axis was cut, in words.
struct AxisRecord {
  std::string logical;
  std::string expression;

  auto operator<=>(const AxisRecord&) const = default;
};

/// How a tensor was cut, in words: the same for many.
struct CutRecord {
  std::string rule;
  std::vector<AxisRecord> axes = {};
  std::vector<std::string> transforms = {};
  std::string bias = {};  ///< of a row-parallel layer: "after_reduction", "first_device" or
                          ///< "divided"; else empty

  auto operator<=>(const CutRecord&) const = default;
};

struct TensorRecord {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::shared_ptr<const CutRecord> cut;  ///< shared by the tensors with the same one
  /// Linear CRC-64 of the whole tensor; nothing only when --ranks left out ranks that hold some of
  /// its elements.
  std::optional<std::uint64_t> digest = {};
  std::vector<ShardRecord> shards = {};
  /// What each shard has; shared like `cut`. JSON: `shape` and `slices` of a shard.
  std::shared_ptr<const index::HolderSet> holders;
  /// Per shard; empty: all have plain values. JSON: `shift`, its addends, and `halvings`; the range
  /// of stored values is not recorded.
  std::vector<index::ValueShift> shifts = {};
};

struct RankRecord {
  i64 rank = 0;
  std::vector<std::pair<std::string, i64>> coordinate;  ///< mesh axis -> index
  std::vector<int> files;
};

struct Manifest {
  std::string tool_version;
  std::vector<FileRecord> source;
  mesh::Mesh mesh;
  std::string layout;             ///< "plain"
  std::vector<RankRecord> ranks;  ///< those that were written
  std::vector<FileRecord> files;
  std::vector<TensorRecord> tensors;  ///< sorted by name
  std::vector<std::vector<std::string>> tied;
  std::vector<std::string> dropped;
  std::string mapping;  ///< JSON text of the mapping documents, nearest first: [{name, document}]
};

/// The document's text: deterministic, no timestamps, no paths. One tensor a line.
std::string to_json(const Manifest& manifest);
/// The same document piece by piece, so that neither its text nor its records are ever held whole:
/// `record(t)` is tensor t of `count`, in the order of their names; `manifest.tensors` is not read.
void write_json(const Manifest& manifest, size_t count,
                const std::function<TensorRecord(size_t)>& record,
                const std::function<void(std::string_view)>& write);
/// Strict: throws kManifestInvalid with file, pointer, expected and found; a format_version above
/// 1.x says which version is needed. File names with separators, "..", or absolute are refused.
Manifest parse_manifest(const std::string& text, const std::string& path);

/// "slices" of one axis: [[begin, end], {"pad": n}, ...] in local order, and back.
std::string slices_json(const index::AxisMap& map);

}  // namespace shardtool::checkpoint
