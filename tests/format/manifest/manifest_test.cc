#include "lib/format/manifest/manifest.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "tests/support/throws.h"

namespace shardtool::format {
namespace {

using index::AxisMap;
using index::Piece;

const std::string kHash(32, 'a');

/// A random map with pieces in random global order, gaps and padding.
AxisMap random_axis(i64 global_size) {
  std::vector<Piece> pieces;
  i64 local = 0;
  i64 global = 0;
  while (true) {
    local += *rc::gen::inRange<i64>(0, 3);
    global += *rc::gen::inRange<i64>(0, 3);
    const i64 size = *rc::gen::inRange<i64>(1, 4);
    if (global + size > global_size) break;
    pieces.push_back({local, global, size});
    local += size;
    global += size;
  }
  if (pieces.size() > 1 && *rc::gen::arbitrary<bool>()) {
    std::swap(pieces.front().global, pieces.back().global);
    std::swap(pieces.front().size, pieces.back().size);
  }
  auto map = AxisMap::make(local + *rc::gen::inRange<i64>(0, 3), global_size, pieces);
  return map ? *map : AxisMap::identity(global_size);
}

/// A random manifest of tp=2: two ranks with a file each, tensors with random regions.
Manifest random_manifest() {
  Manifest m;
  m.tool_version = "0.1.0";
  m.source = {{"model.safetensors", 1 << 20, kHash}};
  m.mesh = mesh::Mesh({{"tp", 2}});
  m.layout = "plain";
  m.files = {{"model-rank-0-part-0.safetensors", INT64_MAX, kHash},
             {"model-rank-1-part-0.safetensors", INT64_MAX, kHash}};
  if (*rc::gen::arbitrary<bool>()) m.files[0].sha256 = kHash + kHash;
  m.ranks = {{0, {{"tp", 0}}, {0}}, {1, {{"tp", 1}}, {1}}};
  const int tensors = *rc::gen::inRange(0, 5);
  for (int t = 0; t < tensors; ++t) {
    CutRecord cut{"rule", {{"heads", "Split(8, tp)"}}};
    if (*rc::gen::arbitrary<bool>()) cut.bias = "after_reduction";
    if (*rc::gen::arbitrary<bool>()) cut.transforms = {"x", "y"};
    TensorRecord tensor;
    tensor.name = "t" + std::to_string(t) + "\"é";
    tensor.dtype = Dtype::kBF16;
    tensor.shape = {8, 6};
    tensor.cut = std::make_shared<const CutRecord>(cut);
    auto holders = std::make_shared<index::HolderSet>(tensor.shape);
    if (*rc::gen::arbitrary<bool>()) tensor.digest = 0x0123456789abcdef;
    if (*rc::gen::arbitrary<bool>()) tensor.casts = {{Dtype::kF32, Dtype::kBF16, 0x0123}};
    if (*rc::gen::arbitrary<bool>()) tensor.casts.push_back({Dtype::kBF16, Dtype::kBF16, {}});
    if (*rc::gen::arbitrary<bool>()) {
      tensor.dequantized = {"fp8/block",
                            {{"q\"", Dtype::kF8E4M3, {8, 6}, 0x0123}, {"s", Dtype::kF32, {}, {}}}};
    }
    const int ranks = *rc::gen::inRange(0, 3);
    for (int rank = 0; rank < ranks; ++rank) {
      const index::Region region = {random_axis(8), random_axis(6)};
      const i64 bytes = byte_size(tensor.dtype, local_shape(region)).value();
      holders->add(region);
      tensor.shards.push_back(
          {rank, rank, (i64{1} << 53) + 1, bytes, kernels::parse_hash128(kHash)});
    }
    if (*rc::gen::arbitrary<bool>() && ranks == 2) tensor.shifts = {{}, {{-3}, {}, 1}};
    tensor.holders = std::move(holders);
    m.tensors.push_back(tensor);
  }
  m.tied = {{"a", "b"}};
  m.dropped = {"c"};
  m.elsewhere = {"d"};
  if (*rc::gen::arbitrary<bool>()) m.mapping = R"([{"name":"llama","document":{"x":[1.5]}}])";
  return m;
}

const char* const kDocument = R"({"format_version":"1.0",
"tool":{"name":"shardtool","version":"0.1.0"},
"source":[],
"mesh":[{"axis":"tp","size":2}],
"layout":"plain",
"ranks":[{"rank":0,"coordinate":{"tp":0},"files":[0]},
{"rank":1,"coordinate":{"tp":1},"files":[1]}],
"files":[{"name":"a.safetensors","bytes":100,"header_xxh3":"00000000000000000000000000000000"},
{"name":"b.safetensors","bytes":100,"header_xxh3":"00000000000000000000000000000000"}],
"tensors":{
"w":{"dtype":"U8","shape":[4],"rule":"r","axes":[],"digest":"0123456789abcdef","transforms":[],"shards":[{"rank":0,"file":0,"offset":60,"bytes":4,"shape":[4],"slices":[[[2,4],{"pad":2}]],"xxh3":"00000000000000000000000000000000"}]}},
"tied":[],
"dropped":[]}
)";

/// Upper halves of the F32 with these bits, and of its negative, as a constant in BF16 stores them.
std::pair<int, int> stored_as_bf16(std::uint32_t bits) {
  const double value = std::bit_cast<float>(bits);
  const auto stored = [](double of) {
    const std::string bytes = constant_bytes({"c", Dtype::kBF16, {1}, of});
    REQUIRE(bytes.size() == 2);
    return static_cast<unsigned char>(bytes[0]) | static_cast<unsigned char>(bytes[1]) << 8;
  };
  return {stored(value), stored(-value)};
}

}  // namespace

TEST_CASE("what to_json writes, parse_manifest reads, and it is written the same again") {
  CHECK(rc::check("round trip", [] {
    const Manifest manifest = random_manifest();
    const std::string text = to_json(manifest);
    const Manifest again = parse_manifest(text, "manifest.json");
    RC_ASSERT(to_json(again) == text);
    RC_ASSERT(again.files[0].sha256 == manifest.files[0].sha256);
    RC_ASSERT(again.tensors.size() == manifest.tensors.size());
    for (size_t t = 0; t < manifest.tensors.size(); ++t) {
      RC_ASSERT(again.tensors[t].shards.size() == manifest.tensors[t].shards.size());
      RC_ASSERT(*again.tensors[t].cut == *manifest.tensors[t].cut);
      RC_ASSERT(again.tensors[t].shifts == manifest.tensors[t].shifts);
      RC_ASSERT(again.tensors[t].casts == manifest.tensors[t].casts);
      RC_ASSERT(again.tensors[t].dequantized == manifest.tensors[t].dequantized);
      for (size_t s = 0; s < manifest.tensors[t].shards.size(); ++s) {
        const int holder = static_cast<int>(s);
        RC_ASSERT(again.tensors[t].holders->region(holder) ==
                  manifest.tensors[t].holders->region(holder));
        RC_ASSERT(again.tensors[t].shards[s].xxh3 == manifest.tensors[t].shards[s].xxh3);
        RC_ASSERT(again.tensors[t].shards[s].offset == manifest.tensors[t].shards[s].offset);
      }
    }
    RC_ASSERT(again.mapping == manifest.mapping);
  }));
}

TEST_CASE("the text is plain JSON for other readers, one tensor a line") {
  CHECK(rc::check("nlohmann reads it", [] {
    const Manifest manifest = random_manifest();
    const std::string text = to_json(manifest);
    const auto tree = nlohmann::json::parse(text);
    RC_ASSERT(tree["tensors"].size() == manifest.tensors.size());
    for (const TensorRecord& tensor : manifest.tensors) {
      const std::string line = nlohmann::json(tensor.name).dump() + ":{";
      RC_ASSERT(text.find("\n" + line) != std::string::npos);
    }
  }));
}

TEST_CASE("the text is golden") {
  const Manifest manifest = parse_manifest(kDocument, "manifest.json");
  CHECK(to_json(manifest) == kDocument);
}

TEST_CASE("slices are the runs in local order") {
  CHECK(slices_json(AxisMap::identity(4)) == "[[0,4]]");
  CHECK(slices_json(AxisMap(6, 10, {{1, 8, 2}, {3, 0, 2}})) ==
        R"([{"pad":1},[8,10],[0,2],{"pad":1}])");
  CHECK(slices_json(AxisMap::identity(0)) == "[]");
}

TEST_CASE("tensors are written in the order of their names") {
  Manifest manifest = parse_manifest(kDocument, "manifest.json");
  manifest.tensors.push_back(manifest.tensors[0]);
  manifest.tensors[1].name = "a";
  const std::string text = to_json(manifest);
  CHECK(text.find("\"a\":{") < text.find("\"w\":{"));
}

TEST_CASE("casts must lead from one type to the next, and round to nearest even") {
  const auto parse = [](const std::string& casts) {
    std::string text = kDocument;
    text.replace(text.find("\"rule\""), 0, "\"cast\":" + casts + ",");
    return parse_manifest(text, "m").tensors[0].casts.size();
  };
  CHECK(parse(R"([{"from":"F32","to":"U8","rounding":"nearest_even"}])") == 1);
  for (const char* wrong : {R"([{"from":"F32","to":"U8","rounding":"down"}])",
                            R"([{"from":"F32","to":"BF16","rounding":"nearest_even"}])",
                            R"([{"from":"F64","to":"F32","rounding":"nearest_even"},
            {"from":"F16","to":"U8","rounding":"nearest_even"}])"}) {
    CAPTURE(wrong);
    CHECK_ERROR(kManifestInvalid, parse(wrong));
  }
}

TEST_CASE("fields that a later 1.x adds are skipped") {
  std::string text = kDocument;
  text.replace(text.find("1.0"), 3, "1.7");
  text.replace(text.find("\"tied\""), 0, "\"new\":{\"x\":[1]},");
  text.replace(text.find("\"rule\""), 0, "\"new\":null,");
  CHECK(parse_manifest(text, "m").tensors.size() == 1);
}

TEST_CASE("a constant in BF16 is rounded to nearest, and half-way to even") {
  constexpr int kSign = 0x8000;
  constexpr int kLargest = 0x7f7f;
  constexpr std::uint32_t kHalf = 0x8000;  // of the distance to the next BF16
  for (int below = 0; below < kLargest; below += 3) {
    CAPTURE(below);
    const int above = below + 1;
    const int even = below % 2 == 0 ? below : above;
    const std::uint32_t exact = static_cast<std::uint32_t>(below) << 16;
    const auto rounds = [](std::uint32_t bits, int to) {
      CHECK(stored_as_bf16(bits) == std::pair(to, to | kSign));
    };
    rounds(exact, below);
    rounds(exact + kHalf - 1, below);
    rounds(exact + kHalf, even);
    rounds(exact + kHalf + 1, above);
  }
}

TEST_CASE("a constant repeats its value") {
  CHECK(constant_bytes({"c", Dtype::kBF16, {2, 2}, 1.0}) ==
        std::string("\x80\x3f\x80\x3f\x80\x3f\x80\x3f"));
  CHECK(constant_bytes({"c", Dtype::kF32, {1}, 0.1}) == std::string("\xcd\xcc\xcc\x3d"));
}

}  // namespace shardtool::format
