#include <filesystem>

#include "lib/api/transform.h"
#include "tests/check/broken_checkpoints.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/torch_files.h"

namespace shardtool::test {
namespace {

namespace fs = std::filesystem;
using check::CheckRule;

constexpr const char* kIndex = "model.safetensors.index.json";

/// Makes a file with this header and this many bytes of data.
auto header(const std::string& json, size_t data) {
  return [json, data](const TempFolder& folder) {
    return options_for(
        folder.write("m.safetensors", safetensors_bytes(json, std::string(data, 'x'))));
  };
}

auto bytes(const std::string& content) {
  return [content](const TempFolder& folder) {
    return options_for(folder.write("m.safetensors", content));
  };
}

auto torch_file(const std::string& content) {
  return [content](const TempFolder& folder) { return options_for(folder.write("m.pt", content)); };
}

/// A file of torch.save with a tensor and a number.
std::string tensor_and_epoch() {
  PickleWriter pickle;
  pickle.raw("}(").text("epoch").integer(3);
  pickle.text("a").raw(torch_tensor({"a", Dtype::kU8, {1}}, {"0", 1, 0, {1}}));
  return torch_zip(pickle.raw("u").finished(), {{"0", "x"}});
}

/// Makes 1.safetensors with a, 2.safetensors with b, and this index.
auto index(const std::string& text) {
  return [text](const TempFolder& folder) {
    write_tensors(folder, "1.safetensors", {{"a", "U8", {1}}});
    write_tensors(folder, "2.safetensors", {{"b", "U8", {1}}});
    folder.write(kIndex, text);
    return options_for(folder.path());
  };
}

std::string map(const std::string& members) {
  return "{\"weight_map\":{" + members + "}}";
}

/// Merges shards of the sample into several files with an index.
std::string merged_in_files(const TempFolder& folder) {
  api::MergeOptions merge;
  merge.sources = {split_sample(folder)};
  merge.write.output = folder / "whole";
  merge.write.max_file_size = 100'000;
  api::merge(merge);
  return merge.write.output;
}

/// Replaces a text in the index of a merged output.
auto merged_index(const std::string& before, const std::string& after) {
  return [before, after](const TempFolder& folder) {
    const std::string output = merged_in_files(folder);
    edit(output + "/" + kIndex, before, after);
    return options_for(output);
  };
}

api::CheckOptions merged_without_index(const TempFolder& folder) {
  const std::string output = merged_in_files(folder);
  fs::remove(output + "/" + kIndex);
  return options_for(output);
}

api::CheckOptions one_file_twice(const TempFolder& folder) {
  write_tensors(folder, "1.safetensors", {{"a", "U8", {1}}});
  fs::create_hard_link(folder / "1.safetensors", folder / "2.safetensors");
  folder.write(kIndex, map(R"("a":"1.safetensors","b":"2.safetensors")"));
  return options_for(folder.path());
}

api::CheckOptions a_folder_as_file(const TempFolder& folder) {
  fs::create_directory(folder / "2.safetensors");
  write_tensors(folder, "1.safetensors", {{"a", "U8", {1}}});
  folder.write(kIndex, map(R"("a":"1.safetensors","b":"2.safetensors")"));
  return options_for(folder.path());
}

api::CheckOptions parts_without_index(const TempFolder& folder) {
  write_tensors(folder, "model-00001-of-00002.safetensors", {{"a", "U8", {1}}});
  write_tensors(folder, "model-00002-of-00002.safetensors", {{"b", "U8", {1}}});
  return options_for(folder.path());
}

api::CheckOptions two_models(const TempFolder& folder) {
  write_tensors(folder, "one.safetensors", {{"a", "U8", {1}}});
  write_tensors(folder, "other.safetensors", {{"a", "U8", {1}}});
  return options_for(folder.path());
}

/// A GGUF file with a key twice.
api::CheckOptions invalid_gguf(const TempFolder& folder) {
  GgufBytes gguf;
  return options_for(folder.write("m.gguf", gguf.u32("a", 1).u32("a", 1).bytes()));
}

/// A GGUF part that counts itself otherwise than its name.
api::CheckOptions parts_that_disagree(const TempFolder& folder) {
  GgufBytes gguf;
  gguf.u16("split.no", 1).u16("split.count", 1).i32("split.tensors.count", 0);
  return options_for(folder.write("m-00001-of-00001.gguf", gguf.bytes()));
}

/// Makes two files of one tensor in chunks that begin at these rows, as torch saves them.
auto chunks(const std::string& first, const std::string& second, i64 begin) {
  return [=](const TempFolder& folder) {
    const auto write = [&](const char* name, const std::string& entry, i64 row) {
      const std::string info = R"({\"w\":{\"saved_offsets\":[)" + std::to_string(row) + "]}}";
      folder.write(name, safetensors_bytes(R"({"__metadata__":{"DCP_SHARDING_INFO":")" + info +
                                               R"("},"w":)" + entry + "}",
                                           "xy"));
    };
    write("1.safetensors", first, 0);
    write("2.safetensors", second, begin);
    return options_for(folder.path());
  };
}

}  // namespace

std::vector<Broken> broken_containers() {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::string bytes_2 = R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::string half_1 = R"({"dtype":"F16","shape":[1],"data_offsets":[0,2]})";
  return {
      {CheckRule::kFileUnreadable, a_folder_as_file},
      {CheckRule::kFileMissing, index(map(R"("a":"1.safetensors","c":"3.safetensors")"))},
      {CheckRule::kTorchFile, torch_file("PK\x03\x04 and so on")},
      {CheckRule::kOtherEntry, torch_file(tensor_and_epoch())},
      {CheckRule::kForeignFormat, bytes("PK\x03\x04 and so on")},
      {CheckRule::kHeaderLength, bytes("1234567")},
      {CheckRule::kHeaderJson, header("{" + a + ",}", 1)},
      {CheckRule::kHeaderMetadata, header(R"({"__metadata__":{"n":1},)" + a + "}", 1)},
      {CheckRule::kTensorTwice, header("{" + a + "," + a + "}", 1)},
      {CheckRule::kDtype, header(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,1]}})", 1)},
      {CheckRule::kTensorSize,
       header(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1)},
      {CheckRule::kOverlap,
       header("{" + a + R"(,"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 4)},
      {CheckRule::kHole, header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2)},
      {CheckRule::kTruncated,
       header(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 2)},
      {CheckRule::kTrailingBytes, header("{" + a + "}", 2)},
      {CheckRule::kUnknownField,
       header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})", 1)},
      {CheckRule::kMisaligned,
       header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]} })", 4)},
      {CheckRule::kFramework, header("{" + a + "}", 1)},
      {CheckRule::kHeaderInvalid, invalid_gguf},
      {CheckRule::kSplitParts, parts_that_disagree},
      {CheckRule::kChunksInvalid, chunks(bytes_2, half_1, 2)},
      {CheckRule::kChunksIncomplete, chunks(bytes_2, bytes_2, 3)},
      {CheckRule::kPartialOverlap, chunks(bytes_2, bytes_2, 1)},
      {CheckRule::kIndexInvalid, index("{}")},
      {CheckRule::kIndexNamesAbsent,
       index(map(R"("a":"1.safetensors","b":"2.safetensors","c":"1.safetensors")"))},
      {CheckRule::kIndexLacks, index(map(R"("a":"1.safetensors","c":"2.safetensors")"))},
      {CheckRule::kIndexInvalid, merged_index("{", "")},
      {CheckRule::kIndexNamesAbsent, merged_index("model.norm.weight", "ghost")},
      {CheckRule::kIndexLacks, merged_index("model.norm.weight", "ghost")},
      {CheckRule::kTensorInTwoFiles,
       [](const TempFolder& folder) {
         write_tensors(folder, "1.safetensors", {{"a", "U8", {1}}});
         write_tensors(folder, "2.safetensors", {{"a", "U8", {1}}, {"b", "U8", {1}}});
         folder.write(kIndex, map(R"("a":"1.safetensors","b":"2.safetensors")"));
         return options_for(folder.path());
       }},
      {CheckRule::kSameFile, one_file_twice},
      {CheckRule::kTotalSize, index(R"({"metadata":{"total_size":3},"weight_map":)"
                                    R"({"a":"1.safetensors","b":"2.safetensors"}})")},
      {CheckRule::kUnlistedFile, index(map(R"("a":"1.safetensors")"))},
      {CheckRule::kNoIndex, parts_without_index},
      {CheckRule::kNoIndex, merged_without_index},
      {CheckRule::kUnclearChoice, two_models},
  };
}

}  // namespace shardtool::test
