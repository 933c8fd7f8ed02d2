#include "lib/format/shard_files.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/xxh3/xxh3.h"
#include "lib/format/hugging_face/hf_index.h"
#include "lib/format/safetensors/files.h"
#include "lib/format/safetensors/safetensors.h"

namespace shardtool::format {
namespace {

std::vector<TensorSpec> random_tensors() {
  const auto sizes = *rc::gen::container<std::vector<i64>>(
      rc::gen::element<i64>(0, 1, 100, 4095, 4096, 8192, 10000));
  std::vector<TensorSpec> tensors;
  for (const i64 size : sizes) {
    tensors.push_back({"t" + std::to_string(tensors.size()), Dtype::kU8, {size}});
  }
  return tensors;
}

i64 bytes_of(const TensorSpec& tensor) {
  return *byte_size(tensor.dtype, tensor.shape);
}

safetensors::Header header_of(const PlannedFile& file, const std::vector<TensorSpec>& tensors) {
  const std::string text = header_text(file, TensorTable(tensors));
  return safetensors::parse_header(std::string_view(text).substr(8), file.size, file.name);
}

}  // namespace

TEST_CASE("data begins where its pages lie as those that most of its bytes come from") {
  const std::vector<TensorSpec> tensors{{"a", Dtype::kU8, {8192}},
                                        {"b", Dtype::kU8, {40960}},
                                        {"c", Dtype::kU8, {100}},
                                        {"d", Dtype::kU8, {12288}}};
  struct Case {
    std::vector<i64> origins;
    i64 residue;
  };
  const std::vector<Case> cases{
      {{}, 0},
      {{kNoOrigin, kNoOrigin, kNoOrigin, kNoOrigin}, 0},
      {{4096 + 1000, 8192 + 24, 77, kNoOrigin}, 24},   // b is the largest
      {{1000, 27, kNoOrigin, 4096 * 9 + 1000}, 1000},  // b's offset is not a multiple of 8
      {{16, 4096 * 3, kNoOrigin, 4096 * 5 + 16}, 0},
  };
  for (const Case& test : cases) {
    CAPTURE(test.residue);
    const FilePlan plan = plan_rank_files(0, TensorTable(tensors), 1 << 30, test.origins);
    const i64 begin = plan.files[0].data_begin;
    CHECK(begin % kDataAlignment == test.residue);
    CHECK(plan.places[0].offset == begin);
    const std::string header = header_text(plan.files[0], TensorTable(tensors));
    CHECK(std::ssize(header) == begin);
    CHECK(kernels::xxh3_hex(std::as_bytes(std::span(header))) == plan.files[0].header_xxh3);
    CHECK(header_of(plan.files[0], tensors).entries.size() == 4);
  }
}

TEST_CASE("the planned headers are valid and place every tensor where the plan says") {
  CHECK(rc::check("headers", [] {
    const auto tensors = random_tensors();
    const auto limit = *rc::gen::element<i64>(1, 5000, 20000, 1 << 30);
    const FilePlan plan = plan_rank_files(3, TensorTable(tensors), limit);
    std::vector<safetensors::Header> headers;
    for (const PlannedFile& file : plan.files) headers.push_back(header_of(file, tensors));
    RC_ASSERT(plan.places.size() == tensors.size());
    size_t placed = 0;
    for (size_t f = 0; f < headers.size(); ++f) placed += headers[f].entries.size();
    RC_ASSERT(placed == tensors.size());
    for (size_t t = 0; t < tensors.size(); ++t) {
      const auto& header = headers[static_cast<size_t>(plan.places[t].file)];
      const auto entry = std::find_if(header.entries.begin(), header.entries.end(),
                                      [&](const auto& e) { return e.name == tensors[t].name; });
      RC_ASSERT(entry != header.entries.end());
      RC_ASSERT(entry->shape == tensors[t].shape);
      RC_ASSERT(header.data_begin + entry->begin == plan.places[t].offset);
    }
  }));
}

TEST_CASE("inside a file, tensors of whole pages come first and lie on pages, order is kept") {
  CHECK(rc::check("order", [] {
    const auto tensors = random_tensors();
    const FilePlan plan = plan_rank_files(0, TensorTable(tensors), 20000);
    for (size_t a = 0; a < tensors.size(); ++a) {
      const bool paged = bytes_of(tensors[a]) % kDataAlignment == 0;
      if (paged) RC_ASSERT(plan.places[a].offset % kDataAlignment == 0);
      for (size_t b = a + 1; b < tensors.size(); ++b) {
        RC_ASSERT(plan.places[a].file <= plan.places[b].file);
        const bool same_kind = paged == (bytes_of(tensors[b]) % kDataAlignment == 0);
        if (plan.places[a].file == plan.places[b].file && same_kind) {
          RC_ASSERT(plan.places[a].offset <= plan.places[b].offset);
        }
      }
    }
  }));
}

TEST_CASE("every tensor begins at a multiple of its element's bytes") {
  CHECK(rc::check("aligned", [] {
    std::vector<TensorSpec> tensors;
    for (const i64 size :
         *rc::gen::container<std::vector<i64>>(rc::gen::element<i64>(0, 1, 3, 512))) {
      const Dtype dtype =
          *rc::gen::element(Dtype::kU8, Dtype::kBF16, Dtype::kF32, Dtype::kI64, Dtype::kBool);
      tensors.push_back({"t" + std::to_string(tensors.size()), dtype, {size}});
    }
    const FilePlan plan = plan_whole_files(TensorTable(tensors), 6000);
    for (size_t t = 0; t < tensors.size(); ++t)
      RC_ASSERT(plan.places[t].offset % (bits(tensors[t].dtype) / 8) == 0);
  }));
}

TEST_CASE("tensors of larger elements move to the front only where one is not aligned otherwise") {
  const auto order = [](std::vector<TensorSpec> tensors) {
    const FilePlan plan = plan_whole_files(TensorTable(tensors), 1 << 20);
    return plan.files.front().members;
  };
  using Order = std::vector<size_t>;
  CHECK(order({{"a", Dtype::kU8, {3}}, {"b", Dtype::kI64, {2}}, {"c", Dtype::kF32, {1}}}) ==
        Order{1, 2, 0});
  CHECK(order({{"a", Dtype::kU8, {8}}, {"b", Dtype::kI64, {2}}, {"c", Dtype::kF32, {1}}}) ==
        Order{0, 1, 2});
  CHECK(order({{"a", Dtype::kU8, {3}}, {"b", Dtype::kU8, {4096}}, {"c", Dtype::kF32, {1}}}) ==
        Order{1, 2, 0});
}

TEST_CASE("a file's data stays below the limit unless it is one tensor") {
  CHECK(rc::check("limit", [] {
    const auto tensors = random_tensors();
    const FilePlan plan = plan_whole_files(TensorTable(tensors), 9000);
    for (const PlannedFile& file : plan.files) {
      const auto header = header_of(file, tensors);
      const bool alone = std::count_if(header.entries.begin(), header.entries.end(),
                                       [](const auto& e) { return e.end > e.begin; }) <= 1;
      RC_ASSERT((alone || file.size - header.data_begin <= 9000));
    }
  }));
}

TEST_CASE("files are named by rank and part, or like a checkpoint of transformers") {
  const std::vector<TensorSpec> tensors = {{"b", Dtype::kU8, {10}}, {"a", Dtype::kU8, {10}}};
  const FilePlan ranks = plan_rank_files(12, TensorTable(tensors), 10);
  REQUIRE(ranks.files.size() == 2);
  CHECK(ranks.files[0].name == "model-rank-12-part-0.safetensors");
  CHECK(ranks.files[1].name == "model-rank-12-part-1.safetensors");
  const auto metadata = header_of(ranks.files[0], tensors).metadata;
  CHECK(metadata == std::vector<std::pair<std::string, std::string>>{{"format", "pt"},
                                                                     {"shardtool.rank", "12"}});
  CHECK(plan_whole_files(TensorTable(tensors), 20).files[0].name == "model.safetensors");
  CHECK(safetensors::index_name(true, 1).empty());
  CHECK(safetensors::index_name(false, 2).empty());
  CHECK(plan_whole_files(TensorTable(tensors), 10).files[1].name ==
        "model-00002-of-00002.safetensors");
}

TEST_CASE("a rank without tensors gets one empty file") {
  const FilePlan plan = plan_rank_files(0, TensorTable(std::span<const TensorSpec>()), 100);
  REQUIRE(plan.files.size() == 1);
  CHECK(plan.files[0].size == plan.files[0].data_begin);
  CHECK(header_of(plan.files[0], {}).entries.empty());
}

TEST_CASE("the index of a whole checkpoint is one that we read") {
  const std::vector<TensorSpec> tensors = {{"b\"", Dtype::kU8, {10}}, {"a", Dtype::kU8, {10}}};
  const FilePlan plan = plan_whole_files(TensorTable(tensors), 10);
  std::string text;
  const auto placed = [&](size_t t) {
    const PlannedPlace& place = plan.places[t];
    return PlacedTensor{tensors[t].name,
                        tensors[t].dtype,
                        tensors[t].shape,
                        {{{0}, tensors[t].shape, place.file, place.offset}}};
  };
  safetensors::write_index({plan.files, tensors.size(), placed},
                           [&](std::string_view piece) { text += piece; });
  const HfIndex index = parse_index(text, "i.json");
  CHECK(index.total_size == 20);
  REQUIRE(index.weights.size() == 2);
  CHECK(index.weights[0].tensor == "a");
  CHECK(index.files[static_cast<size_t>(index.weights[0].file)] == plan.files[1].name);
  CHECK(index.weights[1].tensor == "b\"");
  CHECK(index.files[static_cast<size_t>(index.weights[1].file)] == plan.files[0].name);
}

}  // namespace shardtool::format
