// Tensors read in memory, against files that the tests' own reader reads.
#include "lib/api/reading/opened_checkpoint.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/api/model_files.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::Bytes;
using test::TempFolder;
using test::Tensors;

const std::string kOpenedSample = SHARDTOOL_SOURCE_DIR "/samples/tiny-llama";

std::string split_sample(const TempFolder& folder, const std::string& mesh,
                         const std::string& layout = "plain") {
  SplitOptions options;
  options.source = kOpenedSample;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.output = folder / (layout + mesh);
  options.write.layout = layout;
  split(options);
  return options.write.output;
}

Bytes read_all(const TensorReader& reader) {
  const Shape& shape = reader.shape();
  Bytes bytes(static_cast<size_t>(reader.bytes_of(shape)));
  reader.read(Shape(shape.size(), 0), shape, 2, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// The elements of a box of a row-major tensor, one by one.
Bytes box_of(const test::Tensor& tensor, const Shape& begin, const Shape& sizes) {
  const auto width = static_cast<size_t>(bits(tensor.spec.dtype) / 8);
  Bytes box;
  const i64 count = element_count(sizes).value();
  for (i64 e = 0; e < count; ++e) {
    i64 rest = e;
    i64 at = 0;
    i64 stride = 1;
    for (size_t a = sizes.size(); a-- > 0;) {
      at += (begin[a] + rest % sizes[a]) * stride;
      rest /= sizes[a];
      stride *= tensor.spec.shape[a];
    }
    const auto from = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at) * width;
    box.insert(box.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return box;
}

TEST_CASE("a rank reads what its file stores, and the whole is joined from all files") {
  const Tensors whole = test::read_tensors(kOpenedSample, "");
  for (const char* mesh : {"tp=2", "tp=4", "pp=2,tp=2"}) {
    const TempFolder folder;
    const std::string output = split_sample(folder, mesh);
    const OpenedCheckpoint opened({{output}, {}});
    for (i64 rank = 0; rank < opened.mesh()->size(); ++rank) {
      const Tensors stored = test::shards(output, rank);
      CHECK(opened.held_by(rank).size() == stored.size());
      for (const auto& [name, tensor] : stored) {
        const TensorReader shard = opened.shard(opened.number_of(name), rank);
        CHECK(shard.shape() == tensor.spec.shape);
        CHECK(read_all(shard) == tensor.bytes);
      }
    }
    for (const auto& [name, tensor] : whole) {
      CHECK(read_all(opened.whole(opened.number_of(name))) == tensor.bytes);
    }
  }
}

TEST_CASE("a whole checkpoint with a mesh shows the shards that split writes") {
  for (const char* mesh : {"tp=2", "tp=4", "tp=8", "dp=2,tp=2"}) {
    const TempFolder folder;
    const std::string output = split_sample(folder, mesh);
    MappingChoice choice;
    choice.mesh = mesh::parse_mesh(mesh);
    const OpenedCheckpoint opened({{kOpenedSample}, choice});
    for (i64 rank = 0; rank < opened.mesh()->size(); ++rank) {
      for (const auto& [name, tensor] : test::shards(output, rank)) {
        CHECK(read_all(opened.shard(opened.number_of(name), rank)) == tensor.bytes);
      }
    }
  }
}

TEST_CASE(
    "the names of fused tensors are the checkpoint's, and their shards those of plain files") {
  const TempFolder folder;
  const OpenedCheckpoint plain({{split_sample(folder, "tp=2")}, {}});
  const OpenedCheckpoint fused({{split_sample(folder, "tp=2", "vllm")}, {}});
  for (const size_t tensor : plain.held_by(1)) {
    const size_t same = fused.number_of(plain.spec(tensor).name);
    // vLLM pads the vocabulary.
    if (plain.spec(tensor).shape.front() == 1000) continue;
    CHECK(read_all(fused.shard(same, 1)) == read_all(plain.shard(tensor, 1)));
  }
}

TEST_CASE("a box of a tensor has the elements that the subscript names") {
  CHECK(rc::check("any box of a stored tensor", [] {
    const TempFolder folder;
    const Shape shape = *gen::shape();
    const Dtype dtype = *rc::gen::element(Dtype::kU8, Dtype::kBF16, Dtype::kF32, Dtype::kC64);
    const test::Tensor tensor = test::numbered_tensor("t", dtype, shape);
    test::write_checkpoint(folder.path(), {{"t", tensor}});
    Shape begin;
    Shape sizes;
    for (const i64 extent : shape) {
      begin.push_back(*gen::between(0, extent));
      sizes.push_back(*gen::between(0, extent - begin.back()));
    }
    const OpenedCheckpoint opened({{folder.path()}, {}});
    const TensorReader reader = opened.whole(0);
    Bytes bytes(static_cast<size_t>(reader.bytes_of(sizes)));
    reader.read(begin, sizes, 2, std::as_writable_bytes(std::span(bytes)));
    RC_ASSERT(bytes == box_of(tensor, begin, sizes));
    const auto place = reader.in_file(begin, sizes);
    RC_ASSERT(place.has_value() == !bytes.empty());
    if (!place) return;
    std::ranges::fill(bytes, std::uint8_t{0});
    const MapWindow::View pages = opened.view(*place);
    place->copy_out(pages.data, 2, std::as_writable_bytes(std::span(bytes)).data());
    RC_ASSERT(bytes == box_of(tensor, begin, sizes));
  }));
}

TEST_CASE("bytes far apart in a file are seen through a window that moves") {
  const TempFolder folder;
  constexpr i64 kSize = i64{5} << 29;  // more than two windows; the file has a hole
  const std::string path = folder.write("sparse", "first");
  std::filesystem::resize_file(path, kSize - 4);
  std::ofstream(path, std::ios::app) << "last";
  const exec::SourceFile file(path);
  MapWindow window;
  const auto text = [](const MapWindow::View& view, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(view.data), bytes);
  };
  const MapWindow::View first = window.view(file, 0, 5);
  CHECK(window.view(file, 1, 4).pages == first.pages);
  const MapWindow::View last = window.view(file, kSize - 4, 4);
  CHECK(last.pages != first.pages);
  CHECK(text(last, 4) == "last");
  CHECK(text(first, 5) == "first");
  const MapWindow::View all = window.view(file, 1, kSize - 1);
  CHECK(all.data[kSize - 2] == std::byte{'t'});
  CHECK(window.view(file, kSize - 4, 4).pages == all.pages);
}

TEST_CASE("a tensor of several parts is read by several threads") {
  const TempFolder folder;
  const test::Tensor tensor = test::numbered_tensor("t", Dtype::kF32, {5000, 1500});
  test::write_checkpoint(folder.path(), {{"t", tensor}});
  const OpenedCheckpoint opened({{folder.path()}, {}});
  const TensorReader reader = opened.whole(0);
  CHECK(read_all(reader) == tensor.bytes);
  const Shape begin{1, 7};
  for (const Shape& sizes : {Shape{4999, 1001}, Shape{3, 1001}, Shape{4999, 1}, Shape{1, 1}}) {
    Bytes bytes(static_cast<size_t>(reader.bytes_of(sizes)));
    const auto place = reader.in_file(begin, sizes);
    REQUIRE(place);
    place->copy_out(opened.view(*place).data, 3, std::as_writable_bytes(std::span(bytes)).data());
    CHECK(bytes == box_of(tensor, begin, sizes));
  }
}

TEST_CASE("what cannot be read says what was asked and what there is") {
  const TempFolder folder;
  const OpenedCheckpoint whole({{kOpenedSample}, {}});
  CHECK(whole.find("model.norm.weight").has_value());
  CHECK_FALSE(whole.find("model.norm").has_value());
  CHECK_ERROR(kUnknownName, whole.number_of("model.norm.weights"));
  CHECK_ERROR(kUsage, whole.cut(0));
  CHECK_ERROR(kUsage, whole.shard(0, 0));
  const OpenedCheckpoint opened({{split_sample(folder, "pp=2,tp=2")}, {}});
  CHECK_ERROR(kUsage, opened.shard(0, 4));
  CHECK_ERROR(kUsage, opened.held_by(-1));
  CHECK_ERROR(kCoverage, opened.shard(opened.number_of("model.layers.1.mlp.up_proj.weight"), 0));
  MappingChoice choice;
  choice.mesh = mesh::parse_mesh("tp=2");
  CHECK_ERROR(kUsage, OpenedCheckpoint({{folder / "plainpp=2,tp=2"}, choice}));
}

}  // namespace
}  // namespace shardtool::api
