// Catalogue of bad input, rows C02, C13 to C20 and G26: unusual but legal tensors keep every byte
// through split, merge and reshard.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "lib/api/transform.h"
#include "tests/hostile/verdict.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::Tensors;

/// Cuts names that begin with "cut" and replicates the rest.
constexpr const char* kValuesMapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "unknown": "replicate", "unused_rule": "ignore",
  "rules": [{"match": "cut**", "strategy": "rowwise"}]})";

api::SplitOptions split_options(const TempFolder& folder, i64 ranks) {
  api::SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path = folder.write("mapping.json", kValuesMapping);
  options.mapping.mesh = mesh::Mesh({{"tp", ranks}});
  options.mapping.allow_empty_shards = true;
  options.write.output = folder / ("tp" + std::to_string(ranks));
  return options;
}

Tensors merged(const TempFolder& folder, const std::string& source) {
  api::MergeOptions options;
  options.sources = {folder / source};
  options.write.output = folder / (source + "-merged");
  api::merge(options);
  return test::read_tensors(options.write.output, "model");
}

/// Splits folder/whole over 2, reshards to 3, and merges both.
void check_kept(const TempFolder& folder, const Tensors& whole) {
  api::split(split_options(folder, 2));
  api::ReshardOptions three;
  three.sources = {folder / "tp2"};
  three.to = split_options(folder, 3).mapping;
  three.write.output = folder / "tp3";
  api::reshard(three);
  for (const char* parts : {"tp2", "tp3"}) {
    const Tensors again = merged(folder, parts);
    REQUIRE(again.size() == whole.size());
    for (const auto& [name, tensor] : whole) {
      CAPTURE(parts);
      CAPTURE(name);
      CHECK(again.at(name).bytes == tensor.bytes);
      CHECK(again.at(name).spec.shape == tensor.spec.shape);
      CHECK(again.at(name).spec.dtype == tensor.spec.dtype);
    }
  }
}

void check_kept(const Tensors& whole) {
  const TempFolder folder;
  test::write_checkpoint(folder / "whole", whole);
  check_kept(folder, whole);
}

void add(Tensors& tensors, const std::string& name, Dtype dtype, const Shape& shape) {
  tensors[name] = test::distinct_tensor({name, dtype, shape});
}

}  // namespace

TEST_CASE("C02 every dtype is cut by rows of whole bytes") {
  Tensors tensors;
  for (const DtypeInfo& row : dtype_table()) {
    add(tensors, "cut " + std::string(row.name), row.dtype, {5, 8});
  }
  check_kept(tensors);
}

TEST_CASE("C13 C14 C16 C20 F20 scalars, empty tensors and many axes stay what they are") {
  Tensors tensors;
  add(tensors, "r.scalar", Dtype::kF32, {});
  add(tensors, "r.count", Dtype::kI64, {1});
  add(tensors, "r.empty", Dtype::kBF16, {3, 0, 5});
  add(tensors, "cut.empty", Dtype::kBF16, {0, 4});
  add(tensors, "cut.ids", Dtype::kI64, {7, 3});
  add(tensors, "cut.deep", Dtype::kU8, Shape{4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3});
  check_kept(tensors);
}

TEST_CASE("C13 a scalar cannot be cut") {
  const TempFolder folder;
  Tensors tensors;
  add(tensors, "cut", Dtype::kF32, {});
  test::write_checkpoint(folder / "whole", tensors);
  CHECK_ERROR(kShapeMismatch, api::split(split_options(folder, 2)));
}

TEST_CASE("C16 10,000 axes are replicated, or refused by the axis that is cut") {
  Tensors tensors;
  tensors["r.deep"] = {{"r.deep", Dtype::kU8, Shape(10'000, 1)}, {7}};
  check_kept(tensors);
}

TEST_CASE("C17 C18 data at odd addresses keeps every byte") {
  const TempFolder folder;
  std::string json = R"({"cut.u8":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                     R"("cut.f64":{"dtype":"F64","shape":[4],"data_offsets":[3,35]}})";
  json.resize(json.size() / 2 * 2 + 1, ' ');
  std::string data(35, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(1 + 7 * i);
  folder.write("whole/model.safetensors", test::safetensors_bytes(json, data));
  check_kept(folder, test::read_tensors(folder / "whole", "model"));
}

TEST_CASE("C19 payloads of NaN, negative zero, denormals and a BOOL of 2 are bits") {
  Tensors tensors;
  const auto put = [&](const std::string& name, Dtype dtype, const test::Bytes& bytes) {
    const i64 rows = static_cast<i64>(bytes.size()) * 8 / bits(dtype);
    tensors[name] = {{name, dtype, {rows}}, bytes};
  };
  put("cut.f32", Dtype::kF32,
      {1, 0, 0xc0, 0x7f, 0xef, 0xbe, 0xad, 0xff, 0, 0, 0, 0x80, 1, 0, 0, 0});
  put("cut.bf16", Dtype::kBF16, {0x81, 0x7f, 0xff, 0xff, 0, 0x80, 1, 0});
  put("cut.bool", Dtype::kBool, {2, 255, 0, 1});
  put("r.f8", Dtype::kF8E4M3, {0x7f, 0xff, 0x80, 1});
  check_kept(tensors);
}

TEST_CASE("B20 B22 names that are empty or look like paths are names") {
  Tensors tensors;
  for (const std::string name : {"", "r/../../x", "r\\", "cut/etc/passwd", "r\n\x01"}) {
    add(tensors, name, Dtype::kU8, {4, 2});
  }
  check_kept(tensors);
}

TEST_CASE("G26 an output header above the format's limit is refused before anything is written") {
  const TempFolder folder;
  const std::string entry = R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  for (const char number : {'1', '2'}) {  // each fits into a header, both do not
    const std::string name = number + std::string(60'000'000, 'n');
    folder.write(std::string("whole/model-0000") + number + "-of-00002.safetensors",
                 test::safetensors_bytes("{\"" + name + entry, "xy"));
  }
  api::SplitOptions options = split_options(folder, 2);
  folder.write("mapping.json", R"({"version": 1, "unknown": "replicate"})");
  const auto error = testing::error_of([&] { return api::split(options); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kLimit);
  CHECK(test::says(*error, "header"));
  CHECK_FALSE(fs::exists(folder / "tp2"));
}

}  // namespace shardtool
