#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardtool/base/dtype.h"
#include "shardtool/base/shape.h"
#include "shardtool/index/region.h"
#include "shardtool/index/value_shift.h"
#include "shardtool/mesh/mesh.h"

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

/// One rank's part of one tensor.
struct ShardRecord {
  i64 rank = 0;
  int file = 0;  ///< index into Manifest::files
  i64 offset = 0;
  i64 bytes = 0;
  index::Region region;  ///< JSON: `shape` and `slices`
  std::string xxh3;      ///< XXH3-128 of the shard's bytes, lower-case hex
  /// JSON: `shift`, its addends, and `halvings`; the range of stored values is not recorded.
  index::ValueShift shift = {};
};

/// How one axis was cut, in words.
struct AxisRecord {
  std::string logical;
  std::string expression;
};

struct TensorRecord {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::string rule;
  std::vector<AxisRecord> axes;
  std::string digest;  ///< linear CRC-64 of the whole tensor, 16 hex digits; empty when only some
                       ///< ranks were written
  std::vector<std::string> transforms;
  std::string bias;  ///< of a row-parallel layer: "after_reduction", "first_device" or "divided";
                     ///< else empty
  std::vector<ShardRecord> shards;
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
