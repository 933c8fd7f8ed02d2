// Layouts of torch.distributed.checkpoint: every element is stored once, in boxes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

#include "lib/api/transform.h"
#include "lib/format/checkpoint.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/api/model_files.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using test::Tensors;
using testing::error_of;

/// A random strategy for a tensor of this shape.
nlohmann::json strategy_for(const Shape& shape) {
  const i64 axis = *gen::between(-1, std::ssize(shape) - 1);
  if (axis < 0) return "replicate";
  const i64 extent = shape[static_cast<size_t>(axis)];
  if (extent >= 2 && *rc::gen::arbitrary<bool>()) {
    const i64 first = *gen::between(1, extent - 1);
    return {{"type", "segmented"}, {"axis", axis}, {"segments", {first, extent - first}}};
  }
  const std::string uneven = *rc::gen::element<std::string>("balanced", "pad", "chunk");
  return {{"type", "axiswise"}, {"axis", axis}, {"uneven", uneven}};
}

struct ChunkedModel {
  Tensors tensors;
  nlohmann::json rules = nlohmann::json::array();
};

ChunkedModel random_chunked_model() {
  ChunkedModel model;
  for (i64 t = *gen::between(1, 6); t-- > 0;) {
    const std::string name = fmt::format("t{}\"é", t);
    const Shape shape = *gen::shape();
    const Dtype dtype =
        *rc::gen::element(Dtype::kBool, Dtype::kBF16, Dtype::kF64, Dtype::kF8E4M3, Dtype::kU16);
    model.tensors[name] = test::numbered_tensor(name, dtype, shape);
    model.rules.push_back({{"match", name}, {"strategy", strategy_for(shape)}});
  }
  return model;
}

std::string write_mapping(const TempFolder& folder, const std::string& name,
                          const nlohmann::json& rules, i64 devices) {
  const nlohmann::json mapping = {
      {"version", 1}, {"mesh", {{{"axis", "tp"}, {"size", devices}}}}, {"rules", rules}};
  return folder.write(name + ".json", mapping.dump());
}

ReshardOptions reshard_to(const TempFolder& folder, const std::string& from, const std::string& to,
                          const std::string& mapping, const std::string& layout) {
  ReshardOptions options;
  options.sources = {folder / from};
  options.to.path = mapping;
  options.to.allow_empty_shards = true;
  options.write.output = folder / to;
  options.write.layout = layout;
  return options;
}

Tensors merged(const TempFolder& folder, const std::string& from, const std::string& to) {
  MergeOptions options;
  options.sources = {folder / from};
  options.write.output = folder / to;
  merge(options);
  return test::read_tensors(folder / to, "");
}

/// Requires that the shards of every tensor have as many bytes as the tensor.
void require_stored_once(const std::string& folder) {
  const auto text = format::manifest_text(folder);
  const auto manifest = format::parse_manifest(text.value(), folder);
  RC_ASSERT(manifest.has_chunks);
  for (const format::TensorRecord& tensor : manifest.tensors) {
    i64 bytes = 0;
    for (const format::ShardRecord& shard : tensor.shards) bytes += shard.bytes;
    RC_ASSERT(bytes == byte_size(tensor.dtype, tensor.shape));
  }
}

}  // namespace

TEST_CASE("a checkpoint in chunks holds every element once, and merge gives it back") {
  CHECK(rc::check("chunks", [] {
    const TempFolder folder;
    const ChunkedModel model = random_chunked_model();
    test::write_checkpoint(folder / "whole", model.tensors);
    const std::string layout = *rc::gen::element<std::string>("dcp", "dcp-hf");
    const auto mapping = write_mapping(folder, "mapping", model.rules, *gen::between(1, 5));
    ReshardOptions options = reshard_to(folder, "whole", "chunks", mapping, layout);
    options.write.max_file_size = *rc::gen::element<i64>(1, 64, 50'000'000'000);
    options.write.verify = true;
    reshard(options);
    require_stored_once(folder / "chunks");
    RC_ASSERT(test::same_tensors(merged(folder, "chunks", "merged"), model.tensors));
  }));
}

TEST_CASE("chunks become the shards that a split of the whole checkpoint makes") {
  CHECK(rc::check("reshard", [] {
    const TempFolder folder;
    const ChunkedModel model = random_chunked_model();
    test::write_checkpoint(folder / "whole", model.tensors);
    const std::string layout = *rc::gen::element<std::string>("dcp", "dcp-hf");
    const auto first = write_mapping(folder, "first", model.rules, *gen::between(1, 5));
    const auto second = write_mapping(folder, "second", model.rules, *gen::between(1, 5));
    reshard(reshard_to(folder, "whole", "chunks", first, layout));
    reshard(reshard_to(folder, "chunks", "parts", second, "plain"));
    reshard(reshard_to(folder, "whole", "expected", second, "plain"));
    auto parts = test::folder_content(folder / "parts");
    auto expected = test::folder_content(folder / "expected");
    parts.erase("manifest.json");  // names the source's files
    expected.erase("manifest.json");
    RC_ASSERT(parts == expected);
  }));
}

TEST_CASE("the order of a source's tensors in its files decides nothing about its chunks") {
  CHECK(rc::check("order", [] {
    const TempFolder folder;
    const ChunkedModel model = random_chunked_model();
    test::write_checkpoint(folder / "sorted", model.tensors);
    test::write_checkpoint(folder / "mixed", model.tensors, 2);  // every second name first
    const std::string layout = *rc::gen::element<std::string>("dcp", "dcp-hf");
    const auto mapping = write_mapping(folder, "mapping", model.rules, *gen::between(1, 5));
    reshard(reshard_to(folder, "sorted", "expected", mapping, layout));
    reshard(reshard_to(folder, "mixed", "chunks", mapping, layout));
    auto chunks = test::folder_content(folder / "chunks");
    auto expected = test::folder_content(folder / "expected");
    chunks.erase("manifest.json");  // names the source's files
    expected.erase("manifest.json");
    RC_ASSERT(chunks == expected);
  }));
}

namespace {

struct Box {
  Shape begin;
  Shape shape;
};

/// Cuts a box again and again, at random places of random axes.
std::vector<Box> random_boxes(const Shape& shape) {
  std::vector<Box> boxes{{Shape(shape.size(), 0), shape}};
  for (i64 cuts = *gen::between(0, 6); cuts-- > 0 && !shape.empty();) {
    const auto b = static_cast<size_t>(*gen::between(0, std::ssize(boxes) - 1));
    const auto axis = static_cast<size_t>(*gen::between(0, std::ssize(shape) - 1));
    if (boxes[b].shape[axis] < 2) continue;
    const i64 first = *gen::between(1, boxes[b].shape[axis] - 1);
    Box second = boxes[b];
    boxes[b].shape[axis] = first;
    second.begin[axis] += first;
    second.shape[axis] -= first;
    boxes.push_back(second);
  }
  return boxes;
}

/// Bytes of a box, row-major.
std::string bytes_of(const test::Tensor& tensor, const Box& box) {
  const int width = bits(tensor.spec.dtype);
  reference::Bytes part(static_cast<size_t>(*byte_size(tensor.spec.dtype, box.shape)));
  i64 to = 0;
  for (const auto& local : reference::tuples(box.shape)) {
    std::vector<i64> global;
    for (size_t a = 0; a < local.size(); ++a) global.push_back(box.begin[a] + local[a]);
    const i64 from = reference::row_major(global, tensor.spec.shape);
    reference::copy_element(tensor.bytes, from, part, to++, width);
  }
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

/// Writes box `b` of every tensor into file `b`, as PyTorch's HuggingFaceStorageWriter does.
void write_boxes(const TempFolder& folder, const Tensors& tensors) {
  std::vector<std::vector<format::safetensors::Entry>> entries;
  std::vector<std::string> data;
  std::vector<nlohmann::json> infos;
  for (const auto& [name, tensor] : tensors) {
    std::vector<Box> boxes = random_boxes(tensor.spec.shape);
    for (size_t b = 0; b < boxes.size(); ++b) {
      if (b == data.size()) {
        entries.emplace_back();
        data.emplace_back();
        infos.push_back(nlohmann::json::object());
      }
      const std::string bytes = bytes_of(tensor, boxes[b]);
      const i64 at = std::ssize(data[b]);
      entries[b].push_back({name, tensor.spec.dtype, boxes[b].shape, at, at + std::ssize(bytes)});
      data[b] += bytes;
      infos[b][name] = {{"saved_offsets", boxes[b].begin}};
    }
  }
  for (size_t f = 0; f < data.size(); ++f) {
    const format::safetensors::Metadata metadata{{"DCP_SHARDING_INFO", infos[f].dump()}};
    folder.write(fmt::format("boxes/shard-{:05}-model-00001-of-00001.safetensors", f + 1),
                 write_header(entries[f], metadata, 8) + data[f]);
  }
}

}  // namespace

TEST_CASE("boxes that another tool cut in any way are put together by their offsets") {
  CHECK(rc::check("boxes", [] {
    const TempFolder folder;
    const ChunkedModel model = random_chunked_model();
    write_boxes(folder, model.tensors);
    RC_ASSERT(test::same_tensors(merged(folder, "boxes", "merged"), model.tensors));
    const auto mapping = write_mapping(folder, "mapping", model.rules, *gen::between(1, 4));
    reshard(reshard_to(folder, "boxes", "chunks", mapping, "dcp"));
    RC_ASSERT(test::same_tensors(merged(folder, "chunks", "again"), model.tensors));
  }));
}

TEST_CASE("chunks of some ranks, or of tensors that are stored together, are refused") {
  const TempFolder folder;
  Tensors tensors;
  tensors["a"] = test::numbered_tensor("a", Dtype::kF32, {4, 2});
  tensors["b"] = test::numbered_tensor("b", Dtype::kF32, {4, 2});
  test::write_checkpoint(folder / "whole", tensors);
  const nlohmann::json rules = {{{"match", "*"}, {"strategy", "rowwise"}}};
  const auto mapping = write_mapping(folder, "mapping", rules, 2);
  ReshardOptions options = reshard_to(folder, "whole", "chunks", mapping, "dcp");
  options.ranks = {1};
  const auto some = error_of([&] { reshard(options); });
  REQUIRE(some);
  CHECK(some->code() == ErrorCode::kUsage);
  const nlohmann::json together = {{"version", 1},
                                   {"mesh", {{{"axis", "tp"}, {"size", 2}}}},
                                   {"rules", rules},
                                   {"store", {{{"name", "ab"}, {"of", {"a", "b"}}}}}};
  options.ranks = {};
  options.to.path = folder.write("together.json", together.dump());
  const auto fused = error_of([&] { reshard(options); });
  REQUIRE(fused);
  CHECK(fused->code() == ErrorCode::kUnsupported);
  CHECK(fused->message() == "a tensor cannot be stored in chunks");
}

}  // namespace shardtool::api
