// Catalogue of bad input, rows D: model.safetensors.index.json.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/store/local/syscalls.h"
#include "tests/hostile/verdict.h"

namespace shardtool {
namespace {

namespace fs = std::filesystem;
using test::refusal;
using test::says;
using test::TempFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

/// A file with one tensor of one byte.
std::string holding(const std::string& tensor) {
  return test::safetensors_bytes(
      "{\"" + tensor + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
}

/// A folder with 1.safetensors {a} and 2.safetensors {b}, and this index.
struct Model {
  explicit Model(const std::string& index) {
    folder.write("1.safetensors", holding("a"));
    folder.write("2.safetensors", holding("b"));
    folder.write(kIndex, index);
  }
  TempFolder folder;
};

std::string map(const std::string& members) {
  return "{\"weight_map\":{" + members + "}}";
}

const std::string kGood = R"("a":"1.safetensors","b":"2.safetensors")";

std::vector<std::string> opened;

int recording_openat(int folder, const char* path, int flags, mode_t mode) {
  opened.emplace_back(path);
  return store::real_syscalls().openat(folder, path, flags, mode);
}

}  // namespace

TEST_CASE("D01 D02 D11 D13 an index that is not one is refused") {
  const std::vector<std::string> rows = {
      "{}",
      "[]",
      "",
      R"({"weight_map":[]})",
      R"({"weight_map":null})",
      map(""),
      map(R"("a":null)"),
      map(R"("a":1)"),
      map(R"("a":["1.safetensors"])"),
      map(kGood + R"(,"a":"2.safetensors")"),
      map(kGood + R"(,"\u0061":"1.safetensors")"),
      map(kGood) + "x",
      R"({"metadata":{"total_size":"2"},"weight_map":{)" + kGood + "}}",
      R"({"metadata":{"total_size":2.0},"weight_map":{)" + kGood + "}}",
      R"({"metadata":{"total_size":-2},"weight_map":{)" + kGood + "}}",
      R"({"metadata":{"total_size":1180591620717411303424},"weight_map":{)" + kGood + "}}",
      R"({"metadata":[],"weight_map":{)" + kGood + "}}",
      map(kGood + R"(,"c":"pytorch_model.bin")"),
  };
  for (const std::string& row : rows) {
    CAPTURE(row);
    const Model model(row);
    CHECK(refusal(model.folder.path()).code() == ErrorCode::kIndexInvalid);
  }
}

TEST_CASE("D03 a name that leaves the folder is refused before anything is opened") {
  for (const std::string name :
       {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "..", "", "a\\\\x.safetensors",
        ".x.safetensors", "x\\u0000.safetensors"}) {
    CAPTURE(name);
    const Model model(map(kGood + ",\"c\":\"" + name + "\""));
    store::Syscalls recording = store::real_syscalls();
    recording.openat = recording_openat;
    opened.clear();
    const store::ScopedSyscalls scope(recording);
    CHECK(test::refusal_of_opening(model.folder.path()).code() == ErrorCode::kIndexInvalid);
    CHECK(opened == std::vector<std::string>{model.folder / kIndex});
    opened.clear();
    CHECK(test::survey_objects(model.folder.path()));
    CHECK(opened == std::vector<std::string>{model.folder / kIndex, model.folder / "1.safetensors",
                                             model.folder / "2.safetensors"});
  }
}

TEST_CASE("D06 all missing files are listed") {
  const Model model(map(kGood + R"(,"c":"3.safetensors","d":"4.safetensors")"));
  const Error error = refusal(model.folder.path());
  CHECK(error.code() == ErrorCode::kFileMissing);
  CHECK(says(error, "missing: 3.safetensors, 4.safetensors"));
}

TEST_CASE("D07 D14 a file that the index does not name is ignored with a warning") {
  const Model model(map(kGood));
  model.folder.write("model.safetensors", holding("stale"));
  const auto checkpoint = format::open_checkpoint(model.folder.path());
  CHECK(checkpoint.tensors.size() == 2);
  REQUIRE(checkpoint.warnings.size() == 1);
  CHECK(checkpoint.warnings[0].file == "model.safetensors");
}

TEST_CASE("D08 D09 D10 index and headers must say the same") {
  struct Row {
    std::string index;
    std::string said;
  };
  const std::vector<Row> rows = {
      {map(kGood + R"(,"c":"2.safetensors")"), "found: c (2.safetensors)"},
      {map(R"("a":"2.safetensors","b":"1.safetensors")"),
       "found: a (2.safetensors; 1.safetensors holds it), b (1.safetensors; 2.safetensors holds "
       "it)"},
      {map(kGood + R"(,"c":"3.safetensors")"), "found: d (3.safetensors)"},
      {map(kGood + R"(,"x":"4.safetensors")"), "found: 1.safetensors, 4.safetensors"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.index);
    const Model model(row.index);
    model.folder.write("3.safetensors", test::safetensors_bytes(
                                            R"({"c":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                         "d":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                            "xy"));
    model.folder.write("4.safetensors", holding("a"));
    const Error error = refusal(model.folder.path());
    CHECK(error.code() == ErrorCode::kIndexInvalid);
    CHECK(says(error, row.said));
  }
}

TEST_CASE("D12 a wrong total_size is a warning") {
  const Model model(R"({"metadata":{"total_size":7},"weight_map":{)" + kGood + "}}");
  CHECK(format::open_checkpoint(model.folder.path()).warnings.size() == 1);
}

TEST_CASE("D15 an index that names a folder is refused") {
  const Model model(map(kGood + R"(,"c":"folder.safetensors")"));
  fs::create_directories(model.folder / "folder.safetensors");
  CHECK(refusal(model.folder.path()).exit_status() == 4);
}

TEST_CASE("D17 an index of a gigabyte is refused before it is read") {
  const Model model("");
  fs::resize_file(model.folder / kIndex, 1'000'000'000);
  CHECK(refusal(model.folder.path()).code() == ErrorCode::kLimit);
}

TEST_CASE("D18 two names of one file are refused") {
  const Model model(map(R"("a":"1.safetensors","b":"2.safetensors")"));
  fs::remove(model.folder / "2.safetensors");
  fs::create_hard_link(model.folder / "1.safetensors", model.folder / "2.safetensors");
  const Error error = refusal(model.folder.path());
  CHECK(error.code() == ErrorCode::kIndexInvalid);
  CHECK(says(error, "'1.safetensors' and '2.safetensors'"));
  fs::remove(model.folder / "2.safetensors");
  fs::create_symlink("1.safetensors", model.folder / "2.safetensors");
  CHECK(refusal(model.folder.path()).code() == ErrorCode::kIndexInvalid);
}

}  // namespace shardtool
