// Catalogue of bad input, rows E: mappings, and meshes that a checkpoint does not fit.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "lib/mapping/match/assignment.h"
#include "lib/mapping/resolve/resolve.h"
#include "tests/hostile/verdict.h"
#include "tests/mapping/fixtures.h"
#include "tests/support/colliding_names.h"

namespace shardtool {
namespace {

using mapping::over;
using mapping::spec;
using test::says;

/// A document, the tensors and the mesh to apply it to (empty: its own), and the expected message.
struct Row {
  std::string id;
  std::string document;
  std::vector<TensorSpec> tensors;
  std::string mesh;
  ErrorCode code;
  std::string said;
};

/// The members of a document of version 1.
std::string document(const std::string& members) {
  return "{\"version\": 1,\n" + members + "}";
}

/// One rule for the tensor w.
std::string rule(const std::string& cut) {
  return R"("rules": [{"match": "w", )" + cut + "}]";
}

std::string axis_x(const std::string& fields, const std::string& dims = R"(["x"])") {
  return document(R"("axes": {"x": {)" + fields + "}}, " + rule("\"dims\": " + dims));
}

Error refusal_of_mapping(const std::string& text, const std::vector<TensorSpec>& tensors,
                         const std::string& mesh) {
  try {
    mapping::resolve(mapping::mapping_of(text), tensors, nullptr,
                     mesh.empty() ? mapping::ResolveOptions{} : over(mesh));
  } catch (const Error& error) {
    CHECK((error.exit_status() == 3 || error.code() == ErrorCode::kLimit));
    CHECK(error.place().has_value());
    return error;
  }
  FAIL("resolved " << text);
  return Error(ErrorCode::kInternal, "unreachable");
}

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.id);
    const Error error = refusal_of_mapping(row.document, row.tensors, row.mesh);
    CAPTURE(test::everything(error));
    CHECK(error.code() == row.code);
    CHECK(says(error, row.said));
  }
}

const std::vector<TensorSpec> kMatrix = {spec("w", {8, 8})};

}  // namespace

TEST_CASE("E01 E02 what is no strict JSON is refused with line and column") {
  const std::string valid = document(rule(R"("strategy": "rowwise")"));
  std::string utf16 = "\xff\xfe";
  for (const char c : valid) utf16 += {c, '\0'};
  const std::string twice =
      document(R"("axes": {"x": "tp", "x": null}, )" + rule(R"("strategy": "rowwise")"));
  for (const std::string& text :
       {std::string(), "\xef\xbb\xbf" + valid, utf16, "// a comment\n" + valid, valid + ",",
        document("'rules': []"), twice}) {
    CAPTURE(text);
    const Error error = refusal_of_mapping(text, kMatrix, "tp=2");
    CHECK(error.code() == ErrorCode::kMappingSyntax);
    CHECK(error.place()->line >= 1);
    CHECK(error.place()->column >= 1);
  }
}

TEST_CASE("E03 E04 E05 words, keys and axes that nothing knows are refused, never ignored") {
  using enum ErrorCode;
  check_rows({
      {"E03", document(rule(R"("strategy": "rowise")")), kMatrix, "tp=2", kUnknownName, "rowwise"},
      {"E04 of a document", document(R"("axess": {}, )" + rule(R"("strategy": "rowwise")")),
       kMatrix, "tp=2", kMappingSchema, "axes"},
      {"E04 of a rule", document(rule(R"("strategi": "rowwise")")), kMatrix, "tp=2", kMappingSchema,
       "strategy"},
      {"E04 of a strategy", document(rule(R"("strategy": {"type": "axiswise", "axes": 0})")),
       kMatrix, "tp=2", kMappingSchema, "axis"},
      {"E05 out of range", document(rule(R"("strategy": {"type": "axiswise", "axis": 2})")),
       kMatrix, "tp=2", kShapeMismatch, "2"},
      {"E05 a string", document(rule(R"("strategy": {"type": "axiswise", "axis": "0"})")), kMatrix,
       "tp=2", kMappingSchema, "integer"},
      {"E05 1.5", document(rule(R"("strategy": {"type": "axiswise", "axis": 1.5})")), kMatrix,
       "tp=2", kMappingSchema, "integer"},
  });
}

TEST_CASE("E07 E08 E09 E22 rules and tensors belong together, one to one") {
  using enum ErrorCode;
  const std::string whole = R"("strategy": "replicate")";
  check_rows({
      {"E07", document(R"("rules": [{"match": ["w"], "strategy": "replicate"},
                                    {"match": "lm_haed", "strategy": "replicate"}])"),
       kMatrix, "tp=2", kUnusedRule, "lm_haed"},
      {"E08", document(rule(whole)), {spec("w", {8}), spec("v", {8})}, "tp=2", kNoRule, "'v'"},
      {"E09", document(R"("rules": [{"id": "one", "match": "w", "strategy": "rowwise"},
                                    {"id": "two", "match": "*", "strategy": "columnwise"}])"),
       kMatrix, "tp=2", kAmbiguousRule, "'one' and 'two'"},
      {"E22", document(R"("rules": [{"match": ["w"], "strategy": "rowwise"},
                                    {"match": "lm_head.weight", "strategy": "rowwise"}])"),
       kMatrix, "tp=2", kUnusedRule, "lm_head.weight"},
  });
}

TEST_CASE("E11 E12 E13 what does not divide names the axis, the parts and what is left over") {
  using enum ErrorCode;
  const std::string even = R"("mesh": "tp", "uneven": "error")";
  check_rows({
      {"E11 rows", axis_x(even), {spec("w", {4097})}, "tp=4", kNotDivisible, "4097 % 4 = 1"},
      {"E11 vocabulary",
       axis_x(even),
       {spec("w", {128257})},
       "tp=8",
       kNotDivisible,
       "128257 % 8 = 1"},
      {"E12", axis_x(R"("mesh": "tp")"), {spec("w", {3})}, "tp=4", kEmptyShard, "w"},
      {"E13",
       document(R"("axes": {"q": {"mesh": "tp", "size": 16, "groups": "kv"},
                                   "kv": {"mesh": "tp", "size": 2}, "d": {"size": 4}}, )" +
                rule(R"("dims": ["q*d"])")),
       {spec("w", {64})},
       "tp=8",
       kGroups,
       "2"},
  });
}

TEST_CASE("E14 E15 E16 E19 sizes that contradict the tensor are refused with both numbers") {
  using enum ErrorCode;
  const auto qkv = [](const std::string& heads) {
    return document(rule(R"("strategy": {"type": "stacked_qkv", )" + heads + "}"));
  };
  check_rows({
      {"E14",
       document(R"("axes": {"h": {"mesh": "tp", "size": 8}, "d": {"size": 16}}, )" +
                rule(R"("dims": ["h*d"])")),
       {spec("w", {120})},
       "tp=2",
       kShapeMismatch,
       "8*16 = 128"},
      {"E15 sum",
       qkv(R"("num_heads": 4, "num_kv_heads": 2, "head_dim": 8)"),
       {spec("w", {65, 8})},
       "tp=2",
       kStrategy,
       "65"},
      {"E15 zero",
       qkv(R"("num_heads": 0, "head_dim": 8)"),
       {spec("w", {64, 8})},
       "tp=2",
       kMappingSchema,
       "0"},
      {"E15 negative",
       qkv(R"("num_heads": -4, "head_dim": 8)"),
       {spec("w", {64, 8})},
       "tp=2",
       kMappingSchema,
       "-4"},
      {"E16 odd",
       document(rule(R"("strategy": {"type": "gate_up", "axis": 0})")),
       {spec("w", {7, 8})},
       "tp=1",
       kStrategy,
       "7"},
      {"E19", document(R"("axes": {"x": "tp"}, )" + rule(R"("dims": ["x"])")), kMatrix, "tp=2",
       kShapeMismatch, "2"},
  });
}

TEST_CASE("E17 experts: missing, twice, or not all dealt out") {
  using enum ErrorCode;
  const auto experts = [](const std::string& axis) {
    return document(R"("axes": {"experts": {)" + axis + R"(}},
      "rules": [{"match": "l.<layer>.e.<n>", "strategy": "replicate", "index": {"n": "experts"}}])");
  };
  std::vector<TensorSpec> sixty;
  for (int e = 0; e < 60; ++e) sixty.push_back(spec("l.0.e." + std::to_string(e), {1}));
  std::vector<TensorSpec> missing = sixty;
  missing.erase(missing.begin() + 17);
  std::vector<TensorSpec> twice = sixty;
  twice.push_back(spec("l.0.e.017", {1}));
  const std::string dealt = R"("mesh": "ep", "size": 60)";
  check_rows({
      {"uneven", experts(dealt + R"(, "uneven": "error")"), sixty, "ep=8", kNotDivisible,
       "60 % 8 = 4"},
      {"missing", experts(dealt), missing, "ep=8", kAssertion, "index 17"},
      {"twice", experts(dealt), twice, "ep=8", kAssertion, "17"},
      {"no owner", experts(R"("mesh": "ep", "size": 60, "owners": [[0], [1]])"), sixty, "ep=2",
       kStrategy, "no rank holds"},
  });
  mapping::resolve(mapping::mapping_of(experts(dealt)), sixty, nullptr, over("ep=8"));
}

TEST_CASE("E18 E20 meshes that are none, and mesh axes that are used twice") {
  using enum ErrorCode;
  const std::string rows = rule(R"("strategy": "rowwise")");
  for (const char* size :
       {"0", "-1", "1048577", "2147483648", "9223372036854775808", "\"4\"", "1e3"}) {
    CAPTURE(size);
    const Error error = refusal_of_mapping(
        document(R"("mesh": [{"axis": "tp", "size": )" + std::string(size) + "}], " + rows),
        kMatrix, "");
    CHECK_FALSE(error.message().empty());
  }
  check_rows({
      {"E18 an axis twice",
       document(R"("mesh": [{"axis": "tp", "size": 2}, {"axis": "tp", "size": 2}], )" + rows),
       kMatrix, "", kMesh, "tp"},
      {"E18 twice in a list",
       document(R"("axes": {"x": ["tp", "tp"]}, )" + rule(R"("dims": ["x", null])")), kMatrix,
       "tp=2", kMappingSchema, "repeated mesh axes"},
      {"E18 for two dims",
       document(R"("axes": {"x": "tp", "y": "tp"}, )" + rule(R"("dims": ["x", "y"])")), kMatrix,
       "tp=2", kMeshAxisReused, "tp"},
  });
}

TEST_CASE("E21 packed weights and their scales are cut at the same places or not at all") {
  using enum ErrorCode;
  const std::string packed = document(R"("axes": {"x": "tp"},
    "rules": [{"match": "w", "dims": ["x", null]}],
    "companions": [{"of": "w", "is": "w_scale", "kind": "block_scale", "block": [4, 8]}])");
  check_rows({
      {"straddles",
       packed,
       {spec("w", {24, 8}), spec("w_scale", {6, 1})},
       "tp=4",
       kBlockStraddle,
       "w_scale"},
      {"other blocks",
       packed,
       {spec("w", {16, 8}), spec("w_scale", {5, 1})},
       "tp=4",
       kShapeMismatch,
       "w_scale"},
  });
}

TEST_CASE("E24 a million rules reach a limit before they are read") {
  const test::TempFolder folder;
  std::string rules;
  for (int i = 0; i < 1'000'000; ++i) {
    rules +=
        (i == 0 ? "" : ",") + (R"({"match":"t)" + std::to_string(i)) + R"(","strategy":"rowwise"})";
  }
  const std::string path = folder.write("m.json", document("\"rules\": [" + rules + "]"));
  const auto begin = std::clock();
  CHECK_ERROR(kLimit, mapping::load_mapping(path));
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 1.0);
}

TEST_CASE("B29 names that collide in std::hash are found one by one") {
  std::vector<TensorSpec> tensors;
  for (const std::string& name : test::colliding_names(12)) tensors.push_back(spec(name, {1}));
  const mapping::TensorIndex index = mapping::index_by_name(tensors);
  size_t longest = 0;
  for (size_t bucket = 0; bucket < index.bucket_count(); ++bucket)
    longest = std::max(longest, index.bucket_size(bucket));
  CHECK(index.size() == tensors.size());
  CHECK(longest < 20);  // 4,096 names in at least as many buckets: 20 in one has probability 10^-14
}

TEST_CASE("E25 as many layers as config.json likes are one warning, in no time") {
  const std::string text = document(
      R"("axes": {"layers": {"size": "config.num_hidden_layers"}},
         "rules": [{"match": "l.<n>.w", "strategy": "replicate", "index": {"n": "layers"}}])");
  const std::vector<TensorSpec> two = {spec("l.0.w", {1}), spec("l.2.w", {1})};
  for (const std::string layers : {"1000000000", "1000000000000000000", "9223372036854775807"}) {
    const auto config = mapping::config_of(R"({"num_hidden_layers": )" + layers + "}");
    const auto resolution = mapping::resolve(mapping::mapping_of(text), two, &config, over("tp=2"));
    const i64 more = std::stoll(layers) - 7;
    CHECK(std::count(resolution.warnings.begin(), resolution.warnings.end(),
                     "axis 'layers' has size " + layers + ", num_hidden_layers = " + layers +
                         " (from config.json), but no tensor has index 1, 3, 4, 5, 6 and " +
                         std::to_string(more) + " more") == 1);
  }
}

TEST_CASE("E25 an axis that is dealt out unit by unit has a longest size") {
  using enum ErrorCode;
  check_rows(
      {{"dealt",
        document(R"("axes": {"e": {"mesh": "ep", "size": 1000000000000, "owners": "round_robin"}},
                 "rules": [{"match": "w.<n>", "strategy": "replicate", "index": {"n": "e"}}])"),
        {spec("w.0", {1})},
        "ep=2",
        kLimit,
        "1000000000000"}});
}

TEST_CASE(
    "E26 sizes that refer to each other in a circle or a long row are refused at their place") {
  const auto sizes = [](int axes, const std::string& last) {
    std::string text;
    for (int i = 0; i < axes; ++i) {
      const std::string next = i + 1 == axes ? last : "\"axes.a" + std::to_string(i + 1) + '"';
      text += (i == 0 ? "" : ", ") + ("\"a" + std::to_string(i)) + R"(": {"size": )" + next + "}";
    }
    return document("\"axes\": {" + text + R"(}, "rules": [{"match": "w", "dims": ["a0", null]}])");
  };
  const Error circle = refusal_of_mapping(
      document(R"("axes": {"a": {"mesh": "tp", "size": "axes.b"}, "b": {"size": "axes.a"}},
        "rules": [{"match": "w", "dims": ["a*b", null]}])"),
      kMatrix, "tp=2");
  CHECK(circle.code() == ErrorCode::kSizeExpression);
  CHECK(says(circle, "->"));
  const Error row = refusal_of_mapping(sizes(20'000, "8"), kMatrix, "tp=2");
  CHECK(row.code() == ErrorCode::kLimit);
  CHECK(says(row, "a0"));
}

TEST_CASE("E27 an axis of --mesh that cuts nothing is a warning that names it") {
  const std::string own =
      document(R"("mesh": [{"axis": "dp", "size": 2}, {"axis": "tp", "size": 2}],
    "axes": {"x": "tp"}, "rules": [{"match": "w", "dims": ["x", null]}])");
  const auto warnings = [&](const mapping::ResolveOptions& options) {
    return mapping::resolve(mapping::mapping_of(own), kMatrix, nullptr, options).warnings;
  };
  CHECK(warnings({}).empty());
  CHECK(warnings(over("tp=4")).empty());
  CHECK(warnings(over("dp=1,tp=4")).empty());
  CHECK(warnings(over("dp=2,tp=4")) ==
        std::vector<std::string>{"mesh axis 'dp' cuts no tensor: the 2 devices along it get the "
                                 "same bytes; the mapping cuts over tp"});
}

TEST_CASE("E28 layouts over more devices than fit into memory reach a limit") {
  std::vector<TensorSpec> tensors;
  for (int i = 1; i <= 5; ++i) tensors.push_back(spec("w" + std::to_string(i), {i}));
  mapping::ResolveOptions many = over("tp=1048576");
  CHECK_ERROR(
      kLimit,
      mapping::resolve(
          mapping::mapping_of(document(R"("rules": [{"match": "**", "strategy": "replicate"}])")),
          tensors, nullptr, many));
}

}  // namespace shardtool
