#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <unordered_map>

#include "lib/base/json_text.h"
#include "lib/base/text.h"
#include "lib/format/manifest/manifest.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::Piece;

constexpr size_t kPieceBytes = 256 << 10;

/// Appends a list's items with commas between them.
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

/// "shape" and "slices" of a shard.
std::string region_json(const index::Region& region) {
  std::string out = "\"shape\":";
  append_json_integers(out, local_shape(region));
  out += ",\"slices\":[";
  append_list(out, region, ",", [&out](const AxisMap& map) { append_slices(out, map); });
  return out + "]";
}

void append_field(std::string& out, std::string_view name, i64 number) {
  out += name;
  append_json_integer(out, number);
}

/// Text of ,"rule" and ,"axes" of a tensor, and of the fields after its digest.
struct CutText {
  std::string front;
  std::string back;

  explicit CutText(const CutRecord& cut) {
    front = fmt::format(R"(,"rule":{},"axes":[)", json_quote(cut.rule));
    append_list(front, cut.axes, ",", [this](const AxisRecord& axis) {
      front += fmt::format(R"({{"logical":{},"expression":{}}})", json_quote(axis.logical),
                           json_quote(axis.expression));
    });
    front += ']';
    back = ",\"transforms\":";
    append_strings(back, cut.transforms);
    if (!cut.bias.empty()) back += ",\"bias\":" + json_quote(cut.bias);
  }
};

/// Writes tensor after tensor; builds the text of shared parts once.
class TensorTexts {
 public:
  void append(std::string& out, const TensorRecord& tensor) {
    append_json_quoted(out, tensor.name);
    const CutText& cut = of(tensor.cut);
    out += ":{";
    if (tensor.stored && *tensor.stored != tensor.name) {
      out += "\"stored\":";
      append_json_quoted(out, *tensor.stored);
      out += ',';
    }
    out += "\"dtype\":\"";
    out += to_string(tensor.dtype);
    out += "\",\"shape\":";
    append_json_integers(out, tensor.shape);
    out += cut.front;
    if (tensor.digest) {
      out += ",\"digest\":\"";
      append_hex(out, *tensor.digest);
      out += '"';
    }
    out += cut.back;
    out += ",\"shards\":[";
    const std::vector<std::string>& regions = of(tensor.holders);
    for (size_t s = 0; s < tensor.shards.size(); ++s) {
      if (s > 0) out += ',';
      append_shard(out, tensor.shards[s], regions[s]);
      if (!tensor.shifts.empty()) append_shift(out, tensor.shifts[s]);
      out += '}';
    }
    out += "]}";
  }

 private:
  static void append_shard(std::string& out, const ShardRecord& shard, const std::string& region) {
    append_field(out, "{\"rank\":", shard.rank);
    append_field(out, ",\"file\":", shard.file);
    append_field(out, ",\"offset\":", shard.offset);
    append_field(out, ",\"bytes\":", shard.bytes);
    out += ',';
    out += region;
    out += ",\"xxh3\":\"";
    if (shard.xxh3) shard.xxh3->append_hex(out);
    out += '"';
  }

  static void append_shift(std::string& out, const index::ValueShift& shift) {
    if (!shift.addends.empty()) {
      out += ",\"shift\":";
      append_json_integers(out, shift.addends);
    }
    if (shift.halvings != 0) append_field(out, ",\"halvings\":", shift.halvings);
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

/// Text before the tensors.
std::string head_json(const Manifest& manifest) {
  std::string out = R"({"format_version":"1.0",)";
  out += fmt::format("\n\"tool\":{{\"name\":\"shardtool\",\"version\":{}}},\n\"source\":",
                     json_quote(manifest.tool_version));
  append_files(out, manifest.source);
  out += ",\n\"mesh\":";
  append_mesh(out, manifest.mesh);
  out += ",\n\"layout\":" + json_quote(manifest.layout);
  if (manifest.format != kSafetensors) out += ",\n\"format\":" + json_quote(manifest.format);
  if (manifest.has_chunks) out += ",\n\"chunks\":true";
  out += ",\n\"ranks\":[";
  append_list(out, manifest.ranks, ",\n",
              [&out](const RankRecord& rank) { append_rank(out, rank); });
  out += "],\n\"files\":";
  append_files(out, manifest.files);
  return out + ",\n\"tensors\":{\n";
}

/// Text after the tensors.
std::string tail_json(const Manifest& manifest) {
  std::string out = "},\n\"tied\":[";
  append_list(out, manifest.tied, ",",
              [&out](const std::vector<std::string>& names) { append_strings(out, names); });
  out += "],\n\"dropped\":";
  append_strings(out, manifest.dropped);
  if (!manifest.constants.empty()) {
    out += ",\n\"constants\":[";
    append_list(out, manifest.constants, ",\n", [&out](const ConstantRecord& constant) {
      out += fmt::format(R"({{"name":{},"dtype":"{}","shape":[{}],"value":{}}})",
                         json_quote(constant.name), to_string(constant.dtype),
                         fmt::join(constant.shape, ","), constant.value);
    });
    out += ']';
  }
  if (!manifest.axes.empty()) out += ",\n\"axes\":" + json_quote(manifest.axes);
  if (manifest.allows_empty_shards) out += ",\n\"allow_empty_shards\":true";
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
  TensorTexts texts;
  std::string text;
  for (size_t t = 0; t < count; ++t) {
    if (t > 0) text += ",\n";
    texts.append(text, record(t));
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

}  // namespace shardtool::format
