#include "lib/format/hugging_face/hf_index.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

namespace shardtool::format {
namespace {

HfIndex two_files() {
  return parse_index(
      R"({"metadata":{"total_size":3,"other":1.5},"weight_map":{"b":"2.safetensors","a":"1.safetensors","c":"1.safetensors"}})",
      "i.json");
}

StoredTensor stored(const std::string& name, int file) {
  return {name, Dtype::kU8, {}, file, 0, 1};
}

ErrorCode code_of(const std::vector<StoredTensor>& tensors) {
  try {
    check_index(two_files(), tensors, "i.json");
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

/// Problems that check_index reports, as "kind: found".
std::vector<std::string> reported(const std::vector<StoredTensor>& tensors) {
  std::vector<std::string> lines;
  const auto add = [&](const Problem& problem) {
    const bool is_absent = problem.kind == ProblemKind::kIndexNamesAbsent;
    lines.push_back((is_absent ? "absent: " : "unlisted: ") + problem.error.notes().front().second);
  };
  for (const Warning& warning : check_index(two_files(), tensors, "i.json", add))
    lines.push_back(warning.message);
  return lines;
}

}  // namespace

TEST_CASE("files and tensors are sorted, and each tensor knows its file") {
  const HfIndex index = two_files();
  CHECK(index.total_size == 3);
  CHECK(index.files == std::vector<std::string>{"1.safetensors", "2.safetensors"});
  REQUIRE(index.weights.size() == 3);
  CHECK(index.weights[0].tensor == "a");
  CHECK(index.weights[0].file == 0);
  CHECK(index.weights[1].tensor == "b");
  CHECK(index.weights[1].file == 1);
  CHECK(index.weights[2].file == 0);
}

TEST_CASE("an index that is right says nothing") {
  CHECK(check_index(two_files(), {stored("a", 0), stored("c", 0), stored("b", 1)}, "i").empty());
}

TEST_CASE("both directions are held against the headers") {
  CHECK(code_of({stored("a", 0), stored("b", 1)}) == ErrorCode::kIndexInvalid);
  CHECK(code_of({stored("a", 0), stored("c", 1), stored("b", 1)}) == ErrorCode::kIndexInvalid);
  CHECK(code_of({stored("a", 0), stored("c", 0), stored("b", 1), stored("d", 1)}) ==
        ErrorCode::kIndexInvalid);
}

TEST_CASE("files in a subfolder are told once each, and are no way out of the folder") {
  std::vector<std::pair<ProblemKind, std::string>> problems;
  const auto add = [&](const Problem& problem) {
    problems.emplace_back(problem.kind, problem.error.message());
  };
  parse_index(
      R"({"weight_map":{"a":"sub/1.safetensors","b":"sub/1.safetensors","c":"sub/../2.safetensors"}})",
      "i.json", add);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].first == ProblemKind::kIndexInvalid);
  CHECK(problems[0].second == "the index names a file in a subfolder, which is not read");
  CHECK(problems[1].first == ProblemKind::kIndexEscapes);
}

TEST_CASE("a second copy of a tensor is no difference to the index") {
  using Lines = std::vector<std::string>;
  for (const int first : {0, 1}) {
    CHECK(reported({stored("a", 0), stored("c", 0), stored("b", first), stored("b", 1 - first)}) ==
          Lines{});
  }
  CHECK(reported({stored("a", 0), stored("c", 0), stored("b", 1), stored("d", 0),
                  stored("d", 1)}) == Lines{"unlisted: d (1.safetensors)"});
}

TEST_CASE("a tensor in another file than the index says is one difference") {
  using Lines = std::vector<std::string>;
  CHECK(reported({stored("a", 0), stored("c", 0), stored("b", 0)}) ==
        Lines{"absent: b (2.safetensors; 1.safetensors holds it)"});
  CHECK(reported({stored("a", 0), stored("c", 0)}) ==
        Lines{"absent: b (2.safetensors)", "metadata.total_size says 3 bytes, the tensors have 2"});
}

TEST_CASE("a wrong total is a warning with both numbers") {
  StoredTensor large = stored("a", 0);
  large.bytes = 5;
  const auto warnings = check_index(two_files(), {large, stored("c", 0), stored("b", 1)}, "i");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].message == "metadata.total_size says 3 bytes, the tensors have 7");
}

}  // namespace shardtool::format
