#include "lib/format/gguf/model.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/gguf_bytes.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace shardtool::format::gguf {
namespace {

using test::GgufBytes;
using test::TempFolder;

std::string part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBytes gguf;
  if (number == 0) gguf.text("general.architecture", "llama");
  gguf.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", tensors);
  return gguf.tensor("t" + std::to_string(number), {4}, 0, 16).bytes();
}

void write_parts(const TempFolder& folder) {
  folder.write("m-00001-of-00002.gguf", part(0, 2, 2));
  folder.write("m-00002-of-00002.gguf", part(1, 2, 2));
}

std::vector<ProblemKind> problems_at(const std::string& location) {
  std::vector<ProblemKind> kinds;
  open_model(location, [&](Problem problem) { kinds.push_back(problem.kind); });
  return kinds;
}

}  // namespace

TEST_CASE("a split is opened by its folder and by any of its parts") {
  const TempFolder folder;
  write_parts(folder);
  folder.write("README.md", "");
  CHECK(is_gguf({"", folder.path(), ""}));
  for (const std::string& location :
       {folder.path(), folder / "m-00001-of-00002.gguf", folder / "m-00002-of-00002.gguf"}) {
    const ModelFiles model = open_model(location, throw_problem);
    REQUIRE(model.files.size() == 2);
    CHECK(model.files[1].header.tensors[0].name == "t1");
    CHECK(model.head().find("general.architecture")->text == "llama");
  }
}

TEST_CASE("parts that are missing, of another split, or hold a tensor twice are reported") {
  using Kind = ProblemKind;
  const TempFolder folder;
  write_parts(folder);
  CHECK(problems_at(folder.path()).empty());
  folder.write("m-00002-of-00002.gguf", part(1, 3, 2));
  CHECK(problems_at(folder.path()) == std::vector{Kind::kSplitParts});
  folder.write("m-00002-of-00002.gguf", part(0, 2, 2));
  CHECK(problems_at(folder.path()) == std::vector{Kind::kSplitParts, Kind::kTensorInTwoFiles});
  folder.write("m-00002-of-00002.gguf", part(1, 2, 9));
  CHECK(problems_at(folder.path()) == std::vector{Kind::kSplitParts});
  folder.write("m-00002-of-00002.gguf", GgufBytes().bytes());
  CHECK(problems_at(folder.path()).size() == 4);
  std::filesystem::remove(folder / "m-00002-of-00002.gguf");
  CHECK(problems_at(folder.path()) == std::vector{Kind::kFileMissing});
}

TEST_CASE("a folder with several models asks for one") {
  const TempFolder folder;
  write_parts(folder);
  folder.write("other.gguf", GgufBytes().bytes());
  CHECK(models_at(folder.path()).size() == 2);
  CHECK_ERROR(kUnsupported, open_model(folder.path(), throw_problem));
  CHECK(open_model(folder / "other.gguf", throw_problem).files.size() == 1);
}

TEST_CASE("safetensors beside GGUF files come first") {
  const TempFolder folder;
  folder.write("a.gguf", GgufBytes().bytes());
  folder.write("model.safetensors", "");
  CHECK_FALSE(is_gguf({"", folder.path(), ""}));
  CHECK(is_gguf({"", folder / "a.gguf", ""}));
  CHECK_FALSE(is_gguf({"", folder / "model.safetensors", ""}));
}

}  // namespace shardtool::format::gguf
