#include <algorithm>
#include <memory>
#include <unordered_map>

#include "lib/base/json_writer.h"
#include "lib/base/text.h"
#include "lib/format/manifest/manifest.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::Piece;

constexpr size_t kPieceBytes = 256 << 10;

constexpr JsonLines kOneALine{"", ",\n", ""};

void write_files(JsonWriter& json, std::string_view key, const std::vector<FileRecord>& files) {
  json.key(key).begin_array(kOneALine);
  for (const FileRecord& file : files) {
    json.begin_object().field("name", file.name).field("bytes", file.bytes);
    json.field("header_xxh3", file.header_xxh3);
    if (!file.sha256.empty()) json.field("sha256", file.sha256);
    if (!file.sampled_xxh3.empty()) json.field("sampled_xxh3", file.sampled_xxh3);
    json.end_object();
  }
  json.end_array();
}

void write_rank(JsonWriter& json, const RankRecord& rank) {
  json.begin_object().field("rank", rank.rank).key("coordinate").begin_object();
  for (const auto& [axis, index] : rank.coordinate) json.field(axis, index);
  json.end_object().list("files", rank.files).end_object();
}

void write_slices(JsonWriter& json, const AxisMap& map) {
  const auto pad = [&json](i64 n) {
    if (n > 0) json.begin_object().field("pad", n).end_object();
  };
  json.begin_array();
  i64 next = 0;
  for (const Piece& piece : map.pieces()) {
    pad(piece.local - next);
    json.begin_array().value(piece.global).value(piece.global_end()).end_array();
    next = piece.local_end();
  }
  pad(map.local_size() - next);
  json.end_array();
}

/// "shape" and "slices" of a shard.
std::string region_json(const index::Region& region) {
  std::string text;
  JsonWriter json = JsonWriter::inside(text, kJsonCompact);
  json.list("shape", local_shape(region)).key("slices").begin_array();
  for (const AxisMap& map : region) write_slices(json, map);
  json.end_array();
  return text;
}

/// "rule" and "axes" of a tensor, and the fields after its digest.
struct CutText {
  std::string front;
  std::string back;

  explicit CutText(const CutRecord& cut) {
    JsonWriter before = JsonWriter::inside(front, kJsonCompact);
    before.field("rule", cut.rule).key("axes").begin_array();
    for (const AxisRecord& axis : cut.axes) {
      before.begin_object().field("logical", axis.logical);
      before.field("expression", axis.expression).end_object();
    }
    before.end_array();
    JsonWriter after = JsonWriter::inside(back, kJsonCompact);
    after.list("transforms", cut.transforms);
    if (!cut.bias.empty()) after.field("bias", cut.bias);
  }
};

/// Writes tensor after tensor; builds the text of shared parts once.
class TensorTexts {
 public:
  void write(JsonWriter& json, const TensorRecord& tensor) {
    json.key(tensor.name).begin_object();
    if (tensor.stored_on.empty() && tensor.stored) json.field("stored", *tensor.stored);
    json.field("dtype", to_string(tensor.dtype)).list("shape", tensor.shape);
    const CutText& cut = of(tensor.cut);
    json.raw(cut.front);
    write_digest(json, tensor.digest);
    if (tensor.is_unread) json.field("unread", true);
    if (tensor.dequantized) write_dequantized(json, *tensor.dequantized);
    if (!tensor.casts.empty()) write_casts(json, tensor.casts);
    json.raw(cut.back).key("shards").begin_array();
    const std::vector<std::string>& regions = of(tensor.holders);
    for (size_t s = 0; s < tensor.shards.size(); ++s) {
      json.begin_object();
      if (!tensor.stored_on.empty() && tensor.stored_on[s])
        json.field("stored", *tensor.stored_on[s]);
      write_shard(json, tensor.shards[s], regions[s]);
      if (!tensor.shifts.empty()) write_shift(json, tensor.shifts[s]);
      json.end_object();
    }
    json.end_array().end_object();
  }

 private:
  void write_digest(JsonWriter& json, const std::optional<std::uint64_t>& digest) {
    if (!digest) return;
    hash_.clear();
    append_hex(hash_, *digest);
    json.field("digest", hash_);
  }

  void write_dequantized(JsonWriter& json, const DequantizeRecord& record) {
    json.key("dequantized").begin_object().field("scheme", record.scheme);
    json.field("rounding", "nearest_even").key("from").begin_array();
    for (const StoredRecord& stored : record.from) {
      json.begin_object().field("name", stored.name).field("dtype", to_string(stored.dtype));
      json.list("shape", stored.shape);
      write_digest(json, stored.digest);
      json.end_object();
    }
    json.end_array().end_object();
  }

  void write_casts(JsonWriter& json, const std::vector<CastRecord>& casts) {
    json.key("cast").begin_array();
    for (const CastRecord& cast : casts) {
      json.begin_object().field("from", to_string(cast.from)).field("to", to_string(cast.to));
      json.field("rounding", "nearest_even");
      write_digest(json, cast.digest);
      json.end_object();
    }
    json.end_array();
  }

  void write_shard(JsonWriter& json, const ShardRecord& shard, const std::string& region) {
    json.field("rank", shard.rank).field("file", shard.file).field("offset", shard.offset);
    json.field("bytes", shard.bytes).raw(region);
    if (!shard.xxh3) return;
    hash_.clear();
    shard.xxh3->append_hex(hash_);
    json.field("xxh3", hash_);
  }

  static void write_shift(JsonWriter& json, const index::ValueShift& shift) {
    if (!shift.addends.empty()) json.list("shift", shift.addends);
    if (shift.halvings != 0) json.field("halvings", shift.halvings);
  }

  const CutText& of(const std::shared_ptr<const CutRecord>& cut) {
    return cuts_.try_emplace(cut, *cut).first->second;
  }

  /// Region texts per holder.
  const std::vector<std::string>& of(const std::shared_ptr<const index::HolderSet>& holders) {
    const auto [found, is_new] = regions_.try_emplace(holders);
    for (int h = 0; is_new && h < holders->size(); ++h) {
      found->second.push_back(region_json(holders->region(h)));
    }
    return found->second;
  }

  std::string hash_;  ///< scratch
  std::unordered_map<std::shared_ptr<const CutRecord>, CutText> cuts_;
  std::unordered_map<std::shared_ptr<const index::HolderSet>, std::vector<std::string>> regions_;
};

std::vector<const TensorRecord*> sorted_by_name(const std::vector<TensorRecord>& tensors) {
  std::vector<const TensorRecord*> sorted;
  for (const TensorRecord& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorRecord* a, const TensorRecord* b) { return a->name < b->name; });
  return sorted;
}

/// Writes the document up to its tensors.
void write_head(JsonWriter& json, const Manifest& manifest) {
  json.begin_object(kOneALine).field("format_version", "1.0");
  json.key("tool").begin_object().field("name", "shardtool");
  json.field("version", manifest.tool_version).end_object();
  write_files(json, "source", manifest.source);
  write_mesh(json, manifest.mesh);
  json.field("layout", manifest.layout);
  if (manifest.format != kSafetensors) json.field("format", manifest.format);
  if (manifest.has_chunks) json.field("chunks", true);
  json.key("ranks").begin_array(kOneALine);
  for (const RankRecord& rank : manifest.ranks) write_rank(json, rank);
  json.end_array();
  write_files(json, "files", manifest.files);
  json.key("tensors");
}

void write_constant(JsonWriter& json, const ConstantRecord& constant) {
  json.begin_object().field("name", constant.name).field("dtype", to_string(constant.dtype));
  json.list("shape", constant.shape).key("value").exact(constant.value).end_object();
}

/// Writes the keys after "tensors", and ends the document.
void write_tail(JsonWriter& json, const Manifest& manifest) {
  json.key("tied").begin_array();
  for (const std::vector<std::string>& names : manifest.tied) json.array(names);
  json.end_array().list("dropped", manifest.dropped);
  if (!manifest.elsewhere.empty()) json.list("elsewhere", manifest.elsewhere);
  if (!manifest.constants.empty()) {
    json.key("constants").begin_array(kOneALine);
    for (const ConstantRecord& constant : manifest.constants) write_constant(json, constant);
    json.end_array();
  }
  if (!manifest.axes.empty()) json.field("axes", manifest.axes);
  if (manifest.allows_empty_shards) json.field("allow_empty_shards", true);
  if (!manifest.mapping.empty()) json.key("mapping").raw(manifest.mapping);
  json.end_object();
}

}  // namespace

std::string slices_json(const AxisMap& map) {
  std::string text;
  JsonWriter json = JsonWriter::inside(text, kJsonCompact);
  write_slices(json, map);
  return text;
}

void write_json(const Manifest& manifest, size_t count,
                const std::function<TensorRecord(size_t)>& record,
                const std::function<void(std::string_view)>& write) {
  std::string text;
  JsonWriter json(text, kJsonCompact);
  write_head(json, manifest);
  json.begin_object({"\n", ",\n", ""});
  TensorTexts texts;
  for (size_t t = 0; t < count; ++t) {
    texts.write(json, record(t));
    if (text.size() < kPieceBytes) continue;
    write(text);
    text.clear();
  }
  json.end_object();
  write_tail(json, manifest);
  write(text);
}

std::string to_json(const Manifest& manifest) {
  const auto sorted = sorted_by_name(manifest.tensors);
  std::string text;
  write_json(
      manifest, sorted.size(), [&](size_t t) { return *sorted[t]; },
      [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace shardtool::format
