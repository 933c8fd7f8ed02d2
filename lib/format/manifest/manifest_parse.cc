#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/json_reader.h"
#include "lib/base/text.h"
#include "lib/format/manifest/manifest.h"
#include "lib/format/manifest/manifest_rules.h"
#include "lib/format/names.h"
#include "lib/index/holder_set_pool.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::Piece;

constexpr int kMaxManifestDepth = 64;

/// Parses with one function per record of the document. check_manifest checks rules across records.
class ManifestParser {
 public:
  ManifestParser(std::string_view text, const std::string& path)
      : in_(text, {path, ErrorCode::kManifestInvalid}, kMaxManifestDepth) {}

  Manifest read() && {
    in_.object(
        {{"format_version", [this] { check_version(in_.string()); }},
         {"tool", [this] { read_tool(); }},
         {"source", [this] { manifest_.source = read_files(is_inside_path); }},
         {"mesh", [this] { read_mesh(); }},
         {"device_order",
          [this] { each_element([this] { device_order_.push_back(in_.integer()); }); }, false},
         {"layout", [this] { manifest_.layout = in_.string(); }},
         {"format", [this] { manifest_.format = in_.string(); }, false},
         {"chunks", [this] { manifest_.has_chunks = in_.boolean(); }, false},
         {"ranks", [this] { read_ranks(); }},
         {"files", [this] { manifest_.files = read_files(is_plain_file_name); }},
         {"tensors", [this] { read_tensors(); }},
         {"tied", [this] { read_tied(); }},
         {"dropped", [this] { manifest_.dropped = read_strings(); }},
         {"elsewhere", [this] { manifest_.elsewhere = read_strings(); }, false},
         {"constants", [this] { read_constants(); }, false},
         {"axes", [this] { manifest_.axes = in_.string(); }, false},
         {"allow_empty_shards", [this] { manifest_.allows_empty_shards = in_.boolean(); }, false},
         {"mapping", [this] { manifest_.mapping = in_.raw(); }, false}});
    set_mesh();
    in_.finish();
    return std::move(manifest_);
  }

 private:
  template <class Read>
  void each_element(Read read) {
    in_.begin_array();
    while (in_.next_element()) read();
  }

  /// Fields may be added within 1.x; another major version changes their meaning.
  void check_version(const std::string& version) {
    if (version.starts_with("1.") && version.size() > 2) return;
    throw in_
        .error("the manifest has another format", "format_version " + quote_for_message(version),
               "format_version 1.x")
        .help(fmt::format("use the version of shardtool that writes format_version {}",
                          quote_for_message(version)));
  }

  void read_tool() {
    const auto check_name = [this] {
      const std::string name = in_.string();
      if (name != "shardtool") {
        throw in_.error("the manifest is another tool's", quote_for_message(name), "shardtool");
      }
    };
    in_.object(
        {{"name", check_name}, {"version", [this] { manifest_.tool_version = in_.string(); }}});
  }

  i64 read_size() {
    const i64 value = in_.integer();
    if (value < 0) throw in_.error("a size is negative", std::to_string(value), "0 or more");
    return value;
  }

  int read_file_number() {
    const i64 value = in_.integer();
    if (value >= 0 && value <= INT32_MAX) return static_cast<int>(value);
    throw in_.error("no file number", std::to_string(value), "an index into 'files'");
  }

  Shape read_shape() {
    Shape shape;
    each_element([&] { shape.push_back(read_size()); });
    return shape;
  }

  std::vector<std::string> read_strings() {
    std::vector<std::string> texts;
    each_element([&] { texts.push_back(in_.string()); });
    return texts;
  }

  std::string read_hex(size_t digits) {
    std::string text = in_.string();
    const bool is_hex = text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_hex && text.size() == digits) return text;
    throw damaged(text, digits);
  }
  std::uint64_t read_digest() { return std::stoull(read_hex(16), nullptr, 16); }
  kernels::Hash128 read_xxh3() {
    const std::string text = in_.string();
    if (const auto hash = kernels::parse_hash128(text)) return *hash;
    throw damaged(text, 32);
  }
  Error damaged(const std::string& text, size_t digits) const {
    return in_.error("a digest is damaged", quote_for_message(text),
                     fmt::format("{} lower-case hexadecimal digits", digits));
  }

  std::string read_name(bool (*may_be)(std::string_view)) {
    std::string name = in_.string();
    if (may_be(name)) return name;
    throw in_.error("a file name leaves the folder or is hidden", quote_for_message(name),
                    "a plain name such as model-rank-0-part-0.safetensors");
  }

  /// Files of the output have plain names; those of the source may lie in folders of ranks.
  std::vector<FileRecord> read_files(bool (*may_be)(std::string_view)) {
    std::vector<FileRecord> files;
    each_element([&] {
      FileRecord& file = files.emplace_back();
      in_.object({{"name", [&] { file.name = read_name(may_be); }},
                  {"bytes", [&] { file.bytes = read_size(); }},
                  {"header_xxh3", [&] { file.header_xxh3 = read_hex(32); }},
                  {"sha256", [&] { file.sha256 = read_hex(64); }, false},
                  {"sampled_xxh3", [&] { file.sampled_xxh3 = read_hex(32); }, false}});
    });
    return files;
  }

  void read_mesh() {
    each_element([this] {
      mesh::MeshAxis& axis = axes_.emplace_back();
      in_.object({{"axis", [&] { axis.name = in_.string(); }},
                  {"size", [&] { axis.size = in_.integer(); }}});
    });
  }

  void set_mesh() {
    try {
      manifest_.mesh = mesh::Mesh(std::move(axes_), std::move(device_order_));
    } catch (const Error& error) {
      throw in_.error("the mesh is not valid", quote_for_message(error.message()), "a valid mesh");
    }
  }

  void read_ranks() {
    each_element([&] {
      RankRecord& rank = manifest_.ranks.emplace_back();
      in_.object(
          {{"rank", [&] { rank.rank = in_.integer(); }},
           {"coordinate", [&] { read_coordinate(rank); }},
           {"files", [&] { each_element([&] { rank.files.push_back(read_file_number()); }); }}});
    });
  }

  void read_coordinate(RankRecord& rank) {
    in_.begin_object();
    for (std::string axis; in_.next_key(axis);) rank.coordinate.emplace_back(axis, in_.integer());
  }

  void read_tied() {
    each_element([&] { manifest_.tied.push_back(read_strings()); });
  }

  void read_constants() {
    each_element([&] {
      ConstantRecord& constant = manifest_.constants.emplace_back();
      in_.object({{"name", [&] { constant.name = in_.string(); }},
                  {"dtype", [&] { constant.dtype = read_dtype(); }},
                  {"shape", [&] { constant.shape = read_shape(); }},
                  {"value", [&] { constant.value = in_.number(); }}});
      const auto bytes = byte_size(constant.dtype, constant.shape);
      const bool is_float = constant.dtype == Dtype::kF32 || constant.dtype == Dtype::kBF16;
      if (is_float && bytes && *bytes <= kMaxConstantBytes) return;
      throw in_.error("a constant is not valid",
                      fmt::format("{} {}", to_string(constant.dtype), to_string(constant.shape)),
                      fmt::format("F32 or BF16 of at most {} bytes", kMaxConstantBytes));
    });
  }

  void read_tensors() {
    in_.begin_object();
    for (std::string name; in_.next_key(name);) {
      TensorRecord& tensor = manifest_.tensors.emplace_back();
      tensor.name = name;
      try {
        read_tensor(tensor);
      } catch (Error& error) {
        error.tensor(quote_for_message(name));
        throw;
      }
    }
    std::sort(manifest_.tensors.begin(), manifest_.tensors.end(),
              [](const TensorRecord& a, const TensorRecord& b) { return a.name < b.name; });
  }

  void read_tensor(TensorRecord& tensor) {
    CutRecord cut;
    regions_.clear();
    bool has_shape = false;
    const auto read_shards = [&] {
      if (!has_shape)
        throw in_.error("'shards' stand before 'shape'", "no shape yet", "'shape' first");
      each_element([&] { read_shard(tensor); });
    };
    const auto read_whole_shape = [&] {
      tensor.shape = read_shape();
      has_shape = true;
    };
    in_.object({{"stored", [&] { tensor.stored = shared_name(in_.string()); }, false},
                {"dtype", [&] { tensor.dtype = read_dtype(); }},
                {"shape", read_whole_shape},
                {"rule", [&] { cut.rule = in_.string(); }},
                {"axes", [&] { read_axes(cut); }},
                {"digest", [&] { tensor.digest = read_digest(); }, false},
                {"unread", [&] { tensor.is_unread = in_.boolean(); }, false},
                {"dequantized", [&] { read_dequantized(tensor.dequantized.emplace()); }, false},
                {"cast", [&] { read_casts(tensor); }, false},
                {"transforms", [&] { cut.transforms = read_strings(); }},
                {"bias", [&] { cut.bias = in_.string(); }, false},
                {"shards", read_shards}});
    check_casts(tensor);
    check_hashes(tensor);
    tensor.shards.shrink_to_fit();
    if (!tensor.stored_on.empty()) tensor.stored_on.resize(tensor.shards.size());
    tensor.cut = shared(std::move(cut));
    tensor.holders = holder_sets_.of(tensor.shape, regions_);
  }

  /// Every shard has a hash, and none of an unread tensor has.
  void check_hashes(const TensorRecord& tensor) {
    const auto hashed = std::ranges::count_if(
        tensor.shards, [](const ShardRecord& shard) { return shard.xxh3.has_value(); });
    const i64 expected = tensor.is_unread ? 0 : std::ssize(tensor.shards);
    if (hashed == expected) return;
    throw in_.error(
        tensor.is_unread ? "an unread tensor has an 'xxh3'" : "'xxh3' is missing",
        fmt::format("{} of {} have one", hashed, plural(std::ssize(tensor.shards), "shard")),
        tensor.is_unread ? "none" : "all");
  }

  std::shared_ptr<const std::string> shared_name(std::string name) {
    auto& known = names_[name];
    if (!known) known = std::make_shared<const std::string>(std::move(name));
    return known;
  }

  std::shared_ptr<const CutRecord> shared(CutRecord cut) {
    auto& known = cuts_[cut];
    if (!known) known = std::make_shared<const CutRecord>(std::move(cut));
    return known;
  }

  Dtype read_dtype() {
    const std::string name = in_.string();
    if (const auto dtype = parse_dtype(name)) return *dtype;
    throw in_.error("the dtype is unknown", quote_for_message(name), "a dtype of safetensors");
  }

  void read_rounding() {
    const std::string rounding = in_.string();
    if (rounding == "nearest_even") return;
    throw in_.error("the rounding is unknown", quote_for_message(rounding), "nearest_even");
  }

  void read_dequantized(DequantizeRecord& record) {
    const auto read_stored = [&] {
      StoredRecord& stored = record.from.emplace_back();
      in_.object({{"name", [&] { stored.name = in_.string(); }},
                  {"dtype", [&] { stored.dtype = read_dtype(); }},
                  {"shape", [&] { stored.shape = read_shape(); }},
                  {"digest", [&] { stored.digest = read_digest(); }, false}});
    };
    in_.object({{"scheme", [&] { record.scheme = in_.string(); }},
                {"rounding", [&] { read_rounding(); }},
                {"from", [&] { each_element(read_stored); }}});
  }

  void read_casts(TensorRecord& tensor) {
    each_element([&] {
      CastRecord& cast = tensor.casts.emplace_back();
      in_.object({{"from", [&] { cast.from = read_dtype(); }},
                  {"to", [&] { cast.to = read_dtype(); }},
                  {"rounding", [&] { read_rounding(); }},
                  {"digest", [&] { cast.digest = read_digest(); }, false}});
    });
  }

  /// Throws unless every cast leads to the next one's type, and the last to the tensor's.
  void check_casts(const TensorRecord& tensor) {
    for (size_t i = 0; i < tensor.casts.size(); ++i) {
      const bool is_last = i + 1 == tensor.casts.size();
      const Dtype next = is_last ? tensor.dtype : tensor.casts[i + 1].from;
      if (tensor.casts[i].to == next) continue;
      throw in_.error("a cast does not lead to the next type",
                      std::string(to_string(tensor.casts[i].to)), std::string(to_string(next)));
    }
  }

  void read_axes(CutRecord& cut) {
    each_element([&] {
      AxisRecord& axis = cut.axes.emplace_back();
      in_.object({{"logical", [&] { axis.logical = in_.string(); }},
                  {"expression", [&] { axis.expression = in_.string(); }}});
    });
  }

  void read_shard(TensorRecord& tensor) {
    ShardRecord& shard = tensor.shards.emplace_back();
    index::Region& region = regions_.emplace_back();
    index::ValueShift shift;
    std::shared_ptr<const std::string> stored;
    Shape shape;
    const auto read_slices = [&] {
      each_element([&] {
        const size_t axis = region.size();
        region.push_back(read_axis_map(axis < tensor.shape.size() ? tensor.shape[axis] : 0));
      });
    };
    in_.object({{"stored", [&] { stored = shared_name(in_.string()); }, false},
                {"rank", [&] { shard.rank = in_.integer(); }},
                {"file", [&] { shard.file = read_file_number(); }},
                {"offset", [&] { shard.offset = read_size(); }},
                {"bytes", [&] { shard.bytes = read_size(); }},
                {"shape", [&] { shape = read_shape(); }},
                {"slices", read_slices},
                {"xxh3", [&] { shard.xxh3 = read_xxh3(); }, false},
                {"shift", [&] { read_shift(shift, region); }, false},
                {"halvings", [&] { shift.halvings = read_size(); }, false}});
    if (shape != local_shape(region) || global_shape(region) != tensor.shape) {
      throw in_.error("'slices' do not fit the shape of the shard",
                      fmt::format("slices of {} in {}", to_string(local_shape(region)),
                                  to_string(tensor.shape)),
                      to_string(shape));
    }
    if (stored) tensor.stored_on.resize(tensor.shards.size());
    if (stored) tensor.stored_on.back() = std::move(stored);
    if (shift.is_plain() && tensor.shifts.empty()) return;
    tensor.shifts.resize(tensor.shards.size());
    tensor.shifts.back() = std::move(shift);
  }

  void read_shift(index::ValueShift& shift, const index::Region& region) {
    each_element([&] { shift.addends.push_back(in_.integer()); });
    const size_t n = shift.addends.size();
    if (n == 1 || (region.size() == 1 && static_cast<i64>(n) == region.front().local_size()))
      return;
    throw in_.error("'shift' does not fit the shard", fmt::format("{} values", n),
                    "one value, or one per element, after 'slices'");
  }

  AxisMap read_axis_map(i64 global_size) {
    std::vector<Piece> pieces;
    i64 local = 0;
    each_element([&] {
      i64 size = 0;
      if (in_.kind() == JsonKind::kObject) {
        in_.object({{"pad", [&] { size = read_size(); }}});
      } else {
        const auto [begin, end] = read_interval();
        size = end - begin;
        pieces.push_back({local, begin, size});
      }
      const auto next = checked_add(local, size);
      if (!next) throw in_.error("a size overflows", std::to_string(size), "less than 2^63");
      local = *next;
    });
    if (auto map = AxisMap::make(local, global_size, std::move(pieces))) return *std::move(map);
    throw in_.error("'slices' overlap or leave the axis", "slices of one axis",
                    fmt::format("disjoint intervals inside [0, {})", global_size));
  }

  std::pair<i64, i64> read_interval() {
    std::vector<i64> ends;
    each_element([&] { ends.push_back(read_size()); });
    if (ends.size() == 2 && ends[0] <= ends[1]) return {ends[0], ends[1]};
    throw in_.error("no interval", fmt::format("[{}]", fmt::join(ends, ",")), "[begin, end]");
  }

  JsonReader in_;
  Manifest manifest_;
  std::vector<mesh::MeshAxis> axes_;
  std::vector<i64> device_order_;       ///< ranks of the mesh's cells
  std::vector<index::Region> regions_;  ///< of the shards of the current tensor
  index::HolderSetPool holder_sets_;
  std::map<CutRecord, std::shared_ptr<const CutRecord>> cuts_;
  std::map<std::string, std::shared_ptr<const std::string>> names_;  ///< of stored tensors
};

}  // namespace

Manifest parse_manifest(const std::string& text, const std::string& path) {
  Manifest manifest = ManifestParser(text, path).read();
  check_manifest(manifest, path);
  return manifest;
}

}  // namespace shardtool::format
