#include "lib/format/checkpoint.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/format/shard_files.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
#include "tests/support/torch_files.h"

namespace shardtool::format {
namespace {

namespace fs = std::filesystem;

/// A file with one-byte U8 tensors, one per letter.
std::string bytes_with(const std::string& letters) {
  std::string json = "{";
  for (size_t i = 0; i < letters.size(); ++i) {
    if (i > 0) json += ',';
    json += std::string("\"") + letters[i] + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
            std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  }
  return test::safetensors_bytes(json + "}", letters);
}

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> all;
  for (const StoredTensor& tensor : checkpoint.tensors) all.push_back(tensor.name);
  return all;
}

const char* const kIndex = R"({"metadata":{"total_size":3},"weight_map":{"a":"m-1.safetensors",
  "b":"m-1.safetensors","c":"m-2.safetensors"}})";

Error opening_error(const std::string& location) {
  return testing::error_of([&] { return open_checkpoint(location); }).value();
}

}  // namespace

TEST_CASE("config.json stands alone in a folder without weights, and where it is named itself") {
  const test::TempFolder folder;
  const std::string config = folder.write("config.json", "{}");
  folder.write("tokenizer.json", "{}");
  const auto found = config_without_weights(folder.path());
  REQUIRE(found.has_value());
  CHECK(found->config_path == config);
  CHECK(found->path == folder.path());
  CHECK(found->files.empty());
  CHECK_FALSE(config_without_weights(folder / "tokenizer.json").has_value());
  const Error error = opening_error(folder.path());
  CHECK(error.code() == ErrorCode::kFileMissing);
  CHECK(error.help_lines().front().find("shardtool plan") != std::string::npos);
  for (const char* weights : {"x.safetensors", "x.bin", "model.safetensors.index.json", "x.gguf"}) {
    CAPTURE(weights);
    const std::string path = folder.write(weights, "{}");
    CHECK_FALSE(config_without_weights(folder.path()).has_value());
    CHECK(config_without_weights(config).has_value());
    fs::remove(path);
  }
  fs::remove(config);
  CHECK_FALSE(config_without_weights(folder.path()).has_value());
  CHECK_FALSE(config_without_weights(config).has_value());
}

TEST_CASE("a single file opens, with the config beside it and no tokenizer files") {
  const test::TempFolder folder;
  const std::string path = folder.write("x.safetensors", bytes_with("ab"));
  folder.write("config.json", "{}");
  const Checkpoint checkpoint = open_checkpoint(path);
  CHECK(checkpoint.format == "safetensors");
  CHECK(names(checkpoint) == std::vector<std::string>{"a", "b"});
  CHECK(checkpoint.tensors[1].offset == checkpoint.header_bytes + 1);
  CHECK(checkpoint.files[0].identity.size == checkpoint.header_bytes + 2);
  CHECK(checkpoint.folder() == folder.path());
  CHECK(checkpoint.config_path == folder / "config.json");
  CHECK(checkpoint.other_files.empty());
}

TEST_CASE("a folder with an index opens the files that it names, in order") {
  const test::TempFolder folder;
  folder.write("m-1.safetensors", bytes_with("ab"));
  folder.write("m-2.safetensors", bytes_with("c"));
  const std::string index = folder.write("model.safetensors.index.json", kIndex);
  for (const std::string& location : {folder.path(), folder.path() + "//", index}) {
    const Checkpoint checkpoint = open_checkpoint(location);
    CHECK(checkpoint.format == "safetensors index");
    CHECK(checkpoint.path == folder.path());
    CHECK(names(checkpoint) == std::vector<std::string>{"a", "b", "c"});
    CHECK(checkpoint.tensors[2].file == 1);
    CHECK(checkpoint.warnings.empty());
  }
}

TEST_CASE("config and tokenizer files are plain and not weights, index, manifest or hidden") {
  const test::TempFolder folder;
  folder.write("model.safetensors", bytes_with("a"));
  for (const char* name :
       {"config.json", "tokenizer.model", "README.md", "modeling.py", "merges.txt"}) {
    folder.write(name, "");
  }
  for (const char* name : {"pytorch_model.bin", ".hidden", "sub/file.json", "x.pth", "y.gguf"}) {
    folder.write(name, "");
  }
  fs::create_symlink("config.json", folder / "link.json");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint.other_files == std::vector<std::string>{"README.md", "config.json", "link.json",
                                                           "merges.txt", "modeling.py",
                                                           "tokenizer.model"});
}

TEST_CASE("a config or tokenizer file behind a link out of the folder is left with a warning") {
  const test::TempFolder folder;
  const test::TempFolder other;
  folder.write("model.safetensors", bytes_with("a"));
  fs::create_symlink(other.write("secret.txt", "x"), folder / "notes.txt");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint.other_files.empty());
  REQUIRE(checkpoint.warnings.size() == 1);
  CHECK(checkpoint.warnings[0].file == "notes.txt");
}

TEST_CASE("parts that are complete by their names open without an index") {
  const test::TempFolder folder;
  folder.write("model-00001-of-00002.safetensors", bytes_with("a"));
  folder.write("model-00002-of-00002.safetensors", bytes_with("b"));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint.files.size() == 2);
  CHECK(checkpoint.warnings.size() == 1);
  fs::remove(folder / "model-00001-of-00002.safetensors");
  folder.write("model-00003-of-00002.safetensors", bytes_with("b"));
  CHECK(opening_error(folder.path()).code() == ErrorCode::kUnsupported);
}

TEST_CASE("a part that a numbered series lacks is missing, also without an index") {
  const test::Tensors tensors = {{"a", test::numbered_tensor("a", Dtype::kF32, {2})}};
  for (const std::string& ending : {std::string("safetensors"), std::string("bin")}) {
    const test::TempFolder folder;
    const auto add_part = [&](int part) {
      const std::string name = "model-0000" + std::to_string(part) + "-of-00003." + ending;
      folder.write(name, ending == "bin" ? test::torch_zip(tensors) : bytes_with("a"));
    };
    for (const int part : {2, 1}) {
      add_part(part);
      const Error error = opening_error(folder.path());
      CHECK(error.code() == ErrorCode::kFileMissing);
      CHECK(error.notes().front().second.find("model-00003-of-00003." + ending) !=
            std::string::npos);
    }
    folder.write("other." + ending, ending == "bin" ? test::torch_zip(tensors) : bytes_with("a"));
    const auto expected = ending == "bin" ? ErrorCode::kFileMissing : ErrorCode::kUnsupported;
    CHECK(opening_error(folder.path()).code() == expected);
  }
}

TEST_CASE("several files without an index are refused, several indices too") {
  const test::TempFolder folder;
  folder.write("a.safetensors", bytes_with("a"));
  folder.write("b.safetensors", bytes_with("b"));
  CHECK(opening_error(folder.path()).code() == ErrorCode::kUnsupported);
  folder.write("x.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors"}})");
  CHECK(open_checkpoint(folder.path()).files.size() == 1);
  folder.write("y.safetensors.index.json", R"({"weight_map":{"b":"b.safetensors"}})");
  CHECK(opening_error(folder.path()).code() == ErrorCode::kUnsupported);
  CHECK(names(open_checkpoint(folder / "y.safetensors.index.json")) ==
        std::vector<std::string>{"b"});
}

TEST_CASE("the files of ranks without a manifest are said to be such, not to lack an index") {
  for (const std::string& front : {std::string("model-rank-"), std::string("model-pp-0-tp-")}) {
    const test::TempFolder folder;
    folder.write(front + "0-part-0.safetensors", bytes_with("a"));
    folder.write(front + "1-part-0.safetensors", bytes_with("a"));
    const Error error = opening_error(folder.path());
    CHECK(error.code() == ErrorCode::kUnsupported);
    REQUIRE(error.help_lines().size() == 1);
    CHECK(error.help_lines()[0].find("manifest.json") != std::string::npos);
    CHECK(error.help_lines()[0].find("index") == std::string::npos);
    folder.write("other.safetensors", bytes_with("b"));
    CHECK(opening_error(folder.path()).help_lines()[0].find("index") != std::string::npos);
  }
}

TEST_CASE("an index of other files than those of the folder is named as the one that is wrong") {
  for (const std::string& ending : {std::string("safetensors"), std::string("bin")}) {
    CAPTURE(ending);
    const test::TempFolder folder;
    const auto content = [&](const char* name) {
      const test::Tensors one = {{name, test::numbered_tensor(name, Dtype::kF32, {2})}};
      return ending == "bin" ? test::torch_zip(one) : bytes_with(name);
    };
    folder.write("model." + ending + ".index.json", R"({"weight_map": {"a": "m-1-of-2.)" + ending +
                                                        R"(", "b": "m-2-of-2.)" + ending + "\"}}");
    const auto help = [&] { return opening_error(folder.path()).help_lines().at(0); };
    CHECK(help().find("delete") == std::string::npos);
    folder.write("whole." + ending, content("a"));
    CHECK(opening_error(folder.path()).code() == ErrorCode::kFileMissing);
    CHECK(help().find("whole." + ending + ": if these are all of the model, delete the index") !=
          std::string::npos);
    folder.write("m-1-of-2." + ending, content("a"));
    CHECK(help().find("delete") == std::string::npos);
  }
}

TEST_CASE("a tar archive is named as one, to be unpacked") {
  const test::TempFolder folder;
  std::string archive(1024, '\0');
  archive.replace(0, 19, "./model_config.yaml").replace(257, 5, "ustar");
  const Error error = opening_error(folder.write("model.nemo", archive));
  CHECK(error.code() == ErrorCode::kUnsupported);
  CHECK(error.help_lines().at(0).find("tar xf") != std::string::npos);
  CHECK(opening_error(folder.write("model.nemo", archive.substr(0, 200))).code() ==
        ErrorCode::kMalformed);
}

TEST_CASE("the folder of weights inside a folder is named, of numbered ones the last") {
  const test::TempFolder folder;
  const auto help = [&] { return opening_error(folder.path()).help_lines().at(0); };
  fs::create_directories(folder / "logs");
  CHECK(help() == "give the folder that holds the weights, or one file");
  for (const char* inner : {"checkpoint-500", "checkpoint-1000", ".cache-of-files"})
    folder.write(std::string(inner) + "/model.safetensors", bytes_with("a"));
  fs::create_directories(folder / "checkpoint-2000");
  CHECK(help() ==
        "give the folder that holds the weights, such as " + (folder / "checkpoint-1000"));
}

TEST_CASE("a folder without weights is missing them, one of other formats is refused") {
  const test::TempFolder folder;
  CHECK(opening_error(folder.path()).code() == ErrorCode::kFileMissing);
  fs::create_directories(folder / "iter_0000050");
  fs::create_directories(folder / "iter_0000100");
  CHECK(opening_error(folder.path()).help_lines().at(0) ==
        "give the folder of one iteration, such as " + (folder / "iter_0000100"));
  folder.write("model.onnx", "x");
  const Error error = opening_error(folder.path());
  CHECK(error.code() == ErrorCode::kUnsupported);
  CHECK(error.help_lines()[0].find("save_pretrained") != std::string::npos);
}

TEST_CASE("torch files open by index, by their usual names or alone, after safetensors files") {
  const test::TempFolder folder;
  const test::Tensors a = {{"a", test::numbered_tensor("a", Dtype::kF32, {2})}};
  const test::Tensors b = {{"b", test::numbered_tensor("b", Dtype::kF32, {2})}};
  folder.write("other.pt", test::torch_zip(a));
  CHECK(names(open_checkpoint(folder.path())) == std::vector<std::string>{"a"});
  folder.write("more.pth", test::torch_zip(b));
  CHECK(opening_error(folder.path()).code() == ErrorCode::kUnsupported);
  CHECK(names(open_checkpoint(folder / "more.pth")) == std::vector<std::string>{"b"});
  folder.write("pytorch_model-00001-of-00002.bin", test::torch_zip(a));
  folder.write("pytorch_model-00002-of-00002.bin", test::torch_legacy(b));
  const Checkpoint parts = open_checkpoint(folder.path());
  CHECK(names(parts) == std::vector<std::string>{"a", "b"});
  CHECK(parts.format == "torch");
  CHECK(parts.warnings.size() == 3);  // no index, two other files
  folder.write("pytorch_model.bin.index.json",
               R"({"weight_map":{"b":"pytorch_model-00002-of-00002.bin"}})");
  const Checkpoint indexed = open_checkpoint(folder.path());
  CHECK(indexed.format == "torch index");
  CHECK(names(indexed) == std::vector<std::string>{"b"});
  CHECK(names(open_checkpoint(folder / "pytorch_model.bin.index.json")) == names(indexed));
  folder.write("model.safetensors", bytes_with("s"));
  CHECK(names(open_checkpoint(folder.path())) == std::vector<std::string>{"s"});
  CHECK(names(open_checkpoint(folder / "pytorch_model.bin.index.json")) == names(indexed));
}

TEST_CASE("an index names files of its own format only") {
  const test::TempFolder folder;
  folder.write("model.safetensors", bytes_with("a"));
  folder.write("x.bin.index.json", R"({"weight_map":{"a":"model.safetensors"}})");
  CHECK(opening_error(folder / "x.bin.index.json").code() == ErrorCode::kIndexInvalid);
  folder.write("x.safetensors.index.json", R"({"weight_map":{"a":"x.bin"}})");
  CHECK(opening_error(folder / "x.safetensors.index.json").code() == ErrorCode::kIndexInvalid);
}

TEST_CASE("entries of a torch file that are no tensors are named in a warning") {
  const test::TempFolder folder;
  test::PickleWriter pickle;
  pickle.raw("}(").text("epoch").integer(3).text("w").raw(
      test::torch_tensor({"w", Dtype::kF32, {2}}, {"0", 2, 0, {1}}));
  folder.write("model.pt", test::torch_zip(pickle.raw("u").finished(), {{"0", "12345678"}}));
  const Checkpoint checkpoint = open_checkpoint(folder / "model.pt");
  REQUIRE(checkpoint.warnings.size() == 1);
  CHECK(checkpoint.warnings[0].message ==
        "one entry is no tensor and is left out: 'epoch' (an integer)");
}

TEST_CASE("another tool's manifest.json is a config or tokenizer file") {
  const test::TempFolder folder;
  folder.write("model.safetensors", bytes_with("a"));
  folder.write("manifest.json", R"({"version":3})");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  CHECK_FALSE(checkpoint.manifest);
  CHECK(checkpoint.other_files == std::vector<std::string>{"manifest.json"});
}

TEST_CASE("what is not there is missing") {
  CHECK(opening_error("/nowhere/model.safetensors").code() == ErrorCode::kFileMissing);
  CHECK(opening_error("/nowhere/model.safetensors.index.json").code() == ErrorCode::kFileMissing);
  CHECK(opening_error("").code() == ErrorCode::kFileMissing);
}

}  // namespace shardtool::format
