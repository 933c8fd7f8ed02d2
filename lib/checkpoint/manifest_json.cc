#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "shardtool/base/json_reader.h"
#include "shardtool/checkpoint/manifest.h"

namespace shardtool::checkpoint {
namespace {

using index::AxisMap;
using index::Piece;

constexpr size_t kPieceBytes = 256 << 10;

/// A list's items with commas between them.
template <class Items, class Append>
void append_list(std::string& out, const Items& items, std::string_view separator, Append append) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    first = false;
    append(item);
  }
}

void append_strings(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  append_list(out, texts, ",", [&out](const std::string& text) { out += json_quote(text); });
  out += ']';
}

void append_files(std::string& out, const std::vector<FileRecord>& files) {
  out += '[';
  append_list(out, files, ",\n", [&out](const FileRecord& file) {
    out += fmt::format(R"({{"name":{},"bytes":{},"header_xxh3":{})", json_quote(file.name),
                       file.bytes, json_quote(file.header_xxh3));
    if (!file.sha256.empty()) out += fmt::format(R"(,"sha256":"{}")", file.sha256);
    out += '}';
  });
  out += ']';
}

void append_mesh(std::string& out, const mesh::Mesh& mesh) {
  out += '[';
  append_list(out, mesh.axes(), ",", [&out](const mesh::MeshAxis& axis) {
    out += fmt::format(R"({{"axis":{},"size":{}}})", json_quote(axis.name), axis.size);
  });
  out += ']';
}

void append_rank(std::string& out, const RankRecord& rank) {
  out += fmt::format(R"({{"rank":{},"coordinate":{{)", rank.rank);
  append_list(out, rank.coordinate, ",", [&out](const auto& axis) {
    out += fmt::format("{}:{}", json_quote(axis.first), axis.second);
  });
  out += fmt::format(R"(}},"files":[{}]}})", fmt::join(rank.files, ","));
}

void append_slices(std::string& out, const AxisMap& map) {
  const auto append_pad = [&](i64 n) {
    if (n > 0) fmt::format_to(std::back_inserter(out), R"({{"pad":{}}},)", n);
  };
  out += '[';
  i64 next = 0;
  for (const Piece& piece : map.pieces()) {
    append_pad(piece.local - next);
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("[{},{}],"), piece.global,
                   piece.global_end());
    next = piece.local_end();
  }
  append_pad(map.local_size() - next);
  if (out.back() == ',') out.pop_back();
  out += ']';
}

void append_shard(std::string& out, const ShardRecord& shard) {
  fmt::format_to(
      std::back_inserter(out),
      FMT_COMPILE(R"({{"rank":{},"file":{},"offset":{},"bytes":{},"shape":[{}],"slices":[)"),
      shard.rank, shard.file, shard.offset, shard.bytes, fmt::join(local_shape(shard.region), ","));
  append_list(out, shard.region, ",", [&out](const AxisMap& map) { append_slices(out, map); });
  out += "],\"xxh3\":";
  append_json_quoted(out, shard.xxh3);
  if (!shard.shift.addends.empty())
    fmt::format_to(std::back_inserter(out), ",\"shift\":[{}]", fmt::join(shard.shift.addends, ","));
  if (shard.shift.halvings != 0)
    fmt::format_to(std::back_inserter(out), ",\"halvings\":{}", shard.shift.halvings);
  out += '}';
}

void append_tensor(std::string& out, const TensorRecord& tensor) {
  fmt::format_to(std::back_inserter(out), R"({}:{{"dtype":"{}","shape":[{}],"rule":{},"axes":[)",
                 json_quote(tensor.name), to_string(tensor.dtype), fmt::join(tensor.shape, ","),
                 json_quote(tensor.rule));
  append_list(out, tensor.axes, ",", [&out](const AxisRecord& axis) {
    out += fmt::format(R"({{"logical":{},"expression":{}}})", json_quote(axis.logical),
                       json_quote(axis.expression));
  });
  out += ']';
  if (!tensor.digest.empty()) out += ",\"digest\":" + json_quote(tensor.digest);
  out += ",\"transforms\":";
  append_strings(out, tensor.transforms);
  if (!tensor.bias.empty()) out += ",\"bias\":" + json_quote(tensor.bias);
  out += ",\"shards\":[";
  append_list(out, tensor.shards, ",",
              [&out](const ShardRecord& shard) { append_shard(out, shard); });
  out += "]}";
}

std::vector<const TensorRecord*> sorted_by_name(const std::vector<TensorRecord>& tensors) {
  std::vector<const TensorRecord*> sorted;
  for (const TensorRecord& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const TensorRecord* a, const TensorRecord* b) { return a->name < b->name; });
  return sorted;
}

/// Everything before the tensors.
std::string head_json(const Manifest& manifest) {
  std::string out = R"({"format_version":"1.0",)";
  out += fmt::format("\n\"tool\":{{\"name\":\"shardtool\",\"version\":{}}},\n\"source\":",
                     json_quote(manifest.tool_version));
  append_files(out, manifest.source);
  out += ",\n\"mesh\":";
  append_mesh(out, manifest.mesh);
  out += ",\n\"layout\":" + json_quote(manifest.layout) + ",\n\"ranks\":[";
  append_list(out, manifest.ranks, ",\n",
              [&out](const RankRecord& rank) { append_rank(out, rank); });
  out += "],\n\"files\":";
  append_files(out, manifest.files);
  return out + ",\n\"tensors\":{\n";
}

/// Everything behind them.
std::string tail_json(const Manifest& manifest) {
  std::string out = "},\n\"tied\":[";
  append_list(out, manifest.tied, ",",
              [&out](const std::vector<std::string>& names) { append_strings(out, names); });
  out += "],\n\"dropped\":";
  append_strings(out, manifest.dropped);
  if (!manifest.mapping.empty()) out += ",\n\"mapping\":" + manifest.mapping;
  return out + "}\n";
}

}  // namespace

std::string slices_json(const AxisMap& map) {
  std::string out;
  append_slices(out, map);
  return out;
}

void write_json(const Manifest& manifest, size_t count,
                const std::function<TensorRecord(size_t)>& record,
                const std::function<void(std::string_view)>& write) {
  write(head_json(manifest));
  std::string text;
  for (size_t t = 0; t < count; ++t) {
    if (t > 0) text += ",\n";
    append_tensor(text, record(t));
    if (text.size() < kPieceBytes) continue;
    write(text);
    text.clear();
  }
  write(text);
  write(tail_json(manifest));
}

std::string to_json(const Manifest& manifest) {
  const auto sorted = sorted_by_name(manifest.tensors);
  std::string text;
  write_json(
      manifest, sorted.size(), [&](size_t t) { return *sorted[t]; },
      [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace shardtool::checkpoint
