// Casts of floats while splitting, merging and resharding: the bytes, the records in the manifest
// and in config.json, and the proof by diff.
#include "kernels/cast/cast.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "lib/api/check.h"
#include "lib/api/diff.h"
#include "lib/api/transfer/config_text.h"
#include "lib/api/transform.h"
#include "lib/exec/stream.h"
#include "lib/format/manifest/manifest.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/faulty_syscalls.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using test::TempFolder;
using testing::Call;
using testing::FaultySyscalls;

constexpr const char* kCastMapping = R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
  "axes": {"padded": {"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"}},
  "rules": [{"match": "padded.*", "dims": ["padded", null]},
            {"match": "rows.*", "strategy": "rowwise"},
            {"match": "columns.*", "strategy": "columnwise"},
            {"match": "norm.*", "strategy": "replicate"}]})";

/// Values with every class of numbers.
test::Tensor random_tensor(const std::string& name, Dtype dtype, const Shape& shape) {
  test::Tensor tensor = test::distinct_tensor({name, dtype, shape});
  std::mt19937 random(static_cast<unsigned>(tensor.bytes.size()));
  for (auto& byte : tensor.bytes) byte = static_cast<test::Bytes::value_type>(random());
  return tensor;
}

test::Tensor cast_of(const test::Tensor& tensor, Dtype to, kernels::CastCounts& counts) {
  const i64 n = *element_count(tensor.spec.shape);
  test::Tensor cast{{tensor.spec.name, to, tensor.spec.shape},
                    test::Bytes(static_cast<size_t>(*byte_size(to, tensor.spec.shape)))};
  counts +=
      kernels::cast(tensor.spec.dtype, to, reinterpret_cast<const std::byte*>(tensor.bytes.data()),
                    n, reinterpret_cast<std::byte*>(cast.bytes.data()));
  return cast;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A checkpoint of several types, and the same one with its floats cast beforehand.
struct Checkpoints {
  TempFolder folder;
  std::string source = folder / "source";
  std::string cast = folder / "cast";
  kernels::CastCounts counts;
  Dtype to;

  explicit Checkpoints(Dtype target) : to(target) {
    test::Tensors tensors;
    add(tensors, "rows.f32", Dtype::kF32, {300, 64});
    add(tensors, "columns.f32", Dtype::kF32, {70, 1024});
    add(tensors, "columns.f64", Dtype::kF64, {30, 128});
    add(tensors, "rows.f16", Dtype::kF16, {40, 50});
    add(tensors, "rows.bf16", Dtype::kBF16, {40, 50});
    add(tensors, "rows.e4m3", Dtype::kF8E4M3, {40, 50});
    add(tensors, "norm.i32", Dtype::kI32, {77});
    add(tensors, "norm.f32", Dtype::kF32, {77});
    add(tensors, "padded.f32", Dtype::kF32, {301, 12});
    test::write_checkpoint(source, tensors, 2);
    folder.write("source/config.json", "{\"torch_dtype\": \"float32\", \"x\": 1e-05}\n");
    for (auto& [name, tensor] : tensors) {
      const bool is_cast = kernels::is_castable(tensor.spec.dtype) && tensor.spec.dtype != to;
      if (is_cast) tensor = cast_of(tensor, to, counts);
    }
    test::write_checkpoint(cast, tensors, 2);
    folder.write("mapping.json", kCastMapping);
  }

  TransformReport split_to(const std::string& output, const std::string& from, bool casts,
                           i64 devices = 2) const {
    return split(split_options(output, from, casts, devices));
  }
  SplitOptions split_options(const std::string& output, const std::string& from, bool casts,
                             i64 devices = 2) const {
    SplitOptions options;
    options.source = from;
    options.mapping.path = folder / "mapping.json";
    options.mapping.mesh = mesh::Mesh({{"tp", devices}});
    options.write.output = output;
    options.write.resources.max_memory = exec::kMinMemory;
    if (casts) options.write.dtype = to;
    return options;
  }
  std::string merge_to(const std::string& output, const std::string& from, bool casts) const {
    MergeOptions options;
    options.sources = {from};
    options.write.output = output;
    if (casts) options.write.dtype = to;
    merge(options);
    return output;
  }
  std::string reshard_to(const std::string& output, const std::string& from, bool casts,
                         i64 devices) const {
    ReshardOptions options;
    options.sources = {from};
    options.to.path = folder / "mapping.json";
    options.to.mesh = mesh::Mesh({{"tp", devices}});
    options.write.output = output;
    if (casts) options.write.dtype = to;
    reshard(options);
    return output;
  }

 private:
  static void add(test::Tensors& tensors, const std::string& name, Dtype dtype,
                  const Shape& shape) {
    tensors[name] = random_tensor(name, dtype, shape);
  }
};

/// True if the weights of both folders are equal, tensor by tensor, in files that begin so.
bool same_weights(const std::string& a, const std::string& b, const std::string& prefix) {
  const test::Tensors left = test::read_tensors(a, prefix);
  const test::Tensors right = test::read_tensors(b, prefix);
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.spec.dtype == y.second.spec.dtype &&
           x.second.bytes == y.second.bytes;
  };
  return !left.empty() && std::ranges::equal(left, right, same);
}

DiffReport diff_of(const std::string& a, const std::string& b, bool values) {
  DiffOptions options;
  options.a = a;
  options.b = b;
  options.values = values;
  return diff(options);
}

/// Changes one byte of a tensor of a safetensors file.
void change_byte(const std::string& output, const std::string& tensor, i64 byte) {
  const std::string manifest = output + "/manifest.json";
  const format::Manifest parsed = format::parse_manifest(file_text(manifest), manifest);
  for (const format::TensorRecord& record : parsed.tensors) {
    if (record.name != tensor) continue;
    const format::ShardRecord& shard = record.shards.front();
    const std::string path = output + "/" + parsed.files[static_cast<size_t>(shard.file)].name;
    test::flip_bits(path, shard.offset + byte);
  }
}

}  // namespace

TEST_CASE("casting while splitting gives the shards of the cast checkpoint") {
  for (const Dtype to : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
    CAPTURE(to_string(to));
    const Checkpoints files(to);
    const TransformReport report = files.split_to(files.folder / "out", files.source, true);
    files.split_to(files.folder / "plain", files.cast, false);
    for (const char* rank : {"model-rank-0", "model-rank-1"}) {
      CHECK(same_weights(files.folder / "out", files.folder / "plain", rank));
    }
    REQUIRE(report.cast);
    CHECK(report.cast->counts == files.counts);
    CHECK(report.cast->tensors + report.cast->kept == 9);
  }
}

TEST_CASE("merging and resharding cast as splitting does") {
  const Checkpoints files(Dtype::kBF16);
  const auto at = [&](const std::string& name) { return files.folder / name; };
  files.split_to(at("plain"), files.source, false);
  files.split_to(at("cast4"), files.source, true, 4);
  files.split_to(at("cast2"), files.source, true);
  const std::string merged = files.merge_to(at("merged"), at("plain"), true);
  CHECK(same_weights(merged, files.cast, "model"));
  // Before or after a change of the layout, the files and their manifest are the same.
  files.reshard_to(at("early"), at("cast2"), false, 4);
  files.reshard_to(at("late"), at("plain"), true, 4);
  const auto content = test::folder_content(at("cast4"));
  CHECK(test::folder_content(at("early")) == content);
  CHECK(test::folder_content(at("late")) == content);
  CHECK(same_weights(files.merge_to(at("back"), at("cast2"), false), files.cast, "model"));
}

TEST_CASE("the manifest has the digests before and after the cast, and check agrees with it") {
  const Checkpoints files(Dtype::kBF16);
  files.split_to(files.folder / "plain", files.source, false);
  files.split_to(files.folder / "out", files.source, true);
  const auto manifest = [&](const std::string& name) {
    const std::string path = files.folder / name + "/manifest.json";
    return format::parse_manifest(file_text(path), path);
  };
  const format::Manifest plain = manifest("plain");
  const format::Manifest out = manifest("out");
  REQUIRE(plain.tensors.size() == out.tensors.size());
  for (size_t t = 0; t < out.tensors.size(); ++t) {
    const format::TensorRecord& record = out.tensors[t];
    CAPTURE(record.name);
    const Dtype from = plain.tensors[t].dtype;
    if (from == Dtype::kI32 || from == Dtype::kBF16) {
      CHECK(record.casts.empty());
      CHECK(record.digest == plain.tensors[t].digest);
      continue;
    }
    REQUIRE(record.casts.size() == 1);
    CHECK(record.casts[0] == format::CastRecord{from, Dtype::kBF16, plain.tensors[t].digest});
    CHECK(record.digest != plain.tensors[t].digest);
  }
  CheckOptions options;
  options.sources = {files.folder / "out"};
  options.data = check::DataSubset{};
  // The values are random bits, and halves of an odd count stand before words.
  const std::set harmless{check::CheckRule::kNan, check::CheckRule::kInfinite,
                          check::CheckRule::kMisaligned};
  for (const check::Finding& finding : check(options).findings) {
    CAPTURE(finding.message);
    CHECK(harmless.contains(finding.rule));
  }
}

TEST_CASE("diff --values proves a cast, and names the tensor and the element of a wrong value") {
  const Checkpoints files(Dtype::kF16);
  files.split_to(files.folder / "out", files.source, true);
  const DiffReport unproved = diff_of(files.source, files.folder / "out", false);
  CHECK_FALSE(unproved.equal);
  CHECK(unproved.not_compared == 7);
  const DiffReport proved = diff_of(files.source, files.folder / "out", true);
  CHECK(proved.equal);
  CHECK(proved.cast == 7);
  // Row 2, column 5 of the first device's part, which begins at row 0.
  change_byte(files.folder / "out", "rows.f32", (2 * 64 + 5) * 2);
  const DiffReport wrong = diff_of(files.source, files.folder / "out", true);
  REQUIRE(wrong.changed.size() == 1);
  CHECK(wrong.changed[0].name == "rows.f32");
  CHECK(wrong.changed[0].what == "data after F32 -> F16, first at element [2, 5]");
  CHECK(wrong.changed[0].bytes_differing == 1);
}

TEST_CASE("diff --values says that a tensor was cast twice, and compares exact steps as one") {
  const Checkpoints files(Dtype::kBF16);
  files.split_to(files.folder / "once", files.source, true);
  const auto reshard_to = [](const std::string& from, const std::string& to, Dtype dtype) {
    ReshardOptions options;
    options.sources = {from};
    options.write.output = to;
    options.write.dtype = dtype;
    reshard(options);
  };
  reshard_to(files.folder / "once", files.folder / "exact", Dtype::kF32);
  CHECK(diff_of(files.folder / "once", files.folder / "exact", true).equal);
  reshard_to(files.folder / "exact", files.folder / "twice", Dtype::kF16);
  const DiffReport twice = diff_of(files.source, files.folder / "twice", true);
  const auto rows = std::ranges::find(twice.changed, "rows.f32", &DiffChange::name);
  REQUIRE(rows != twice.changed.end());
  CHECK(rows->what.ends_with(
      "; cast F32 -> BF16 -> F32 -> F16: compare with the input of the last cast"));
}

TEST_CASE("diff --values tells of copies that differ in a tensor that the other side lacks") {
  const Checkpoints files(Dtype::kF16);
  files.split_to(files.folder / "out", files.source, false);
  test::Tensors some = test::read_tensors(files.source, "");
  some.erase("norm.f32");
  test::write_checkpoint(files.folder / "some", some, 1);
  change_byte(files.folder / "out", "norm.f32", 0);
  const DiffReport report = diff_of(files.folder / "out", files.folder / "some", true);
  CHECK(report.only_a == std::vector<std::string>{"norm.f32"});
}

TEST_CASE(
    "a cast that failed is resumed with the counts of all values, and by the same cast only") {
  const Checkpoints files(Dtype::kBF16);
  const std::string whole = files.folder / "whole";
  files.split_to(whole, files.source, true);
  SplitOptions options = files.split_options(files.folder / "out", files.source, true);
  options.write.journal_bytes = 1;
  options.write.worth_keeping = 1;
  options.write.resources.threads = 1;
  {
    FaultySyscalls faults;
    faults.fail(Call::kPwrite, 20, EIO);
    CHECK_ERROR(kWriteFailed, split(options));
  }
  options.write.resume = true;
  options.write.dtype = Dtype::kF16;
  CHECK_ERROR(kOtherRun, split(options));
  options.write.dtype = Dtype::kBF16;
  const TransformReport report = split(options);
  REQUIRE(report.resumed);
  CHECK(report.resumed->tensors > 0);
  CHECK(report.cast->counts == files.counts);
  CHECK(test::folder_content(files.folder / "out") == test::folder_content(whole));
  CHECK(split(options).was_complete);
}

TEST_CASE("an unpacking that failed is resumed with the counts and digests of all values") {
  const TempFolder folder;
  test::Tensors tensors;
  for (const std::string name : {"rows.a", "rows.b", "columns.c"}) {
    tensors[name] = random_tensor(name, Dtype::kF8E4M3, {256, 128});
    tensors[name + "_scale_inv"] = random_tensor(name + "_scale_inv", Dtype::kF32, {4, 4});
  }
  test::write_checkpoint(folder / "source", tensors);
  folder.write(
      "source/config.json",
      R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 32]}})");
  folder.write("mapping.json", R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
    "rules": [{"match": "rows.*", "strategy": "rowwise"},
              {"match": "columns.*", "strategy": "columnwise"}]})");
  SplitOptions options;
  options.source = folder / "source";
  options.mapping.path = folder / "mapping.json";
  options.write.output = folder / "whole";
  options.write.dequantize = true;
  const TransformReport whole = split(options);
  options.write.output = folder / "out";
  options.write.journal_bytes = 1;
  options.write.worth_keeping = 1;
  options.write.resources.threads = 1;
  bool has_failed = false;
  for (int call = 1; call < 40 && !has_failed; ++call) {
    FaultySyscalls faults;
    faults.fail(Call::kPwrite, call, EIO);
    options.write.resume = false;
    try {
      split(options);
      std::filesystem::remove_all(folder / "out");
    } catch (const Error& error) {
      has_failed = error.is_resumable();
    }
  }
  REQUIRE(has_failed);
  options.write.resume = true;
  const TransformReport report = split(options);
  REQUIRE(report.resumed);
  CHECK(report.resumed->tensors > 0);
  CHECK(report.dequantized->counts == whole.dequantized->counts);
  CHECK(test::folder_content(folder / "out") == test::folder_content(folder / "whole"));
  CHECK(split(options).was_complete);
}

TEST_CASE("a quantised checkpoint is not cast") {
  const TempFolder folder;
  test::Tensors tensors;
  tensors["a.weight"] = random_tensor("a.weight", Dtype::kF8E4M3, {128, 128});
  tensors["a.weight_scale_inv"] = random_tensor("a.weight_scale_inv", Dtype::kF32, {1, 1});
  MergeOptions options;
  options.write.output = folder / "out";
  options.write.dtype = Dtype::kBF16;
  SUBCASE("by the names of its scales") {
    test::write_checkpoint(folder / "source", tensors);
  }
  SUBCASE("by the names of its packed words") {
    tensors.clear();
    tensors["a.qweight"] = random_tensor("a.qweight", Dtype::kI32, {16, 128});
    tensors["a.scales"] = random_tensor("a.scales", Dtype::kF16, {1, 128});
    test::write_checkpoint(folder / "source", tensors);
  }
  SUBCASE("by its config.json") {
    tensors.erase("a.weight_scale_inv");
    test::write_checkpoint(folder / "source", tensors);
    folder.write("source/config.json", R"({"quantization_config": {"quant_method": "fp8"}})");
  }
  options.sources = {folder / "source"};
  CHECK_ERROR(kUnsupported, merge(options));
}

TEST_CASE("config.json names the new type, and nothing else of it changes") {
  const auto bf16 = [](const std::string& text) {
    return with_dtype(text, Dtype::kBF16, "config.json");
  };
  CHECK(bf16(R"({"a": 1e-05, "torch_dtype":"float32" , "b": NaN})") ==
        R"({"a": 1e-05, "torch_dtype":"bfloat16" , "b": NaN})");
  CHECK(bf16(R"({"dtype": null, "text_config": {"dtype": "float16", "x": {"dtype": "y"}},
 "quantization_config": {"dtype": "keep"}})") ==
        R"({"dtype": "bfloat16", "text_config": {"dtype": "bfloat16", "x": {"dtype": "y"}},
 "quantization_config": {"dtype": "keep"}})");
  CHECK(bf16("{\"a\": 1}") == "{\n  \"torch_dtype\": \"bfloat16\",\"a\": 1}");
  CHECK(bf16("{}") == "{\n  \"torch_dtype\": \"bfloat16\"\n}");
  CHECK_ERROR(kConfig, bf16("[]"));
  const auto plain = [](const std::string& text) {
    return without_quantization(text, "config.json");
  };
  CHECK(plain(R"({"a": 1e-05, "quantization_config": {"b": [1, "}"]}, "c": NaN})") ==
        R"({"a": 1e-05, "c": NaN})");
  CHECK(plain(R"({"a": 1,
  "quantization_config": {"b": 2}
})") == "{\"a\": 1\n}");
  CHECK(plain(R"({ "quantization_config": null , "a": 1})") == R"({ "a": 1})");
  CHECK(plain(R"({ "quantization_config": {} })") == "{  }");
  CHECK(plain(R"({"text_config": {"quantization_config": 1}})") ==
        R"({"text_config": {"quantization_config": 1}})");
  CHECK_ERROR(kConfig, plain("[]"));
  const Checkpoints files(Dtype::kF16);
  files.split_to(files.folder / "out", files.source, true);
  CHECK(file_text(files.folder / "out/config.json") ==
        "{\"torch_dtype\": \"float16\", \"x\": 1e-05}\n");
}

}  // namespace shardtool::api
