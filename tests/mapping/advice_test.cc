#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lib/mapping/presets.h"
#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

/// Follows the advice ("help:") of every error of a mapping: what it says to write gets past it.
namespace shardtool::mapping {
namespace {

/// A checkpoint, its config.json and a mapping's members, over a mesh.
struct Try {
  std::string members;
  std::vector<TensorSpec> tensors;
  std::string mesh = "tp=2";
  std::string config = "{}";
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< --set
  bool allow_empty_shards = false;
  std::string text = {};  ///< the whole file; empty: version 1 and the members
};

/// An error, words of the help that are followed, and the try as advised.
struct Row {
  ErrorCode code;
  std::string words;
  Try before;
  Try after;
};

std::optional<Error> error_from(const Try& run) {
  return error_of([&] {
    const std::string text =
        run.text.empty() ? "{\n\"version\": 1,\n" + run.members + "}" : run.text;
    const ModelConfig config = config_of(run.config);
    ResolveOptions options = over(run.mesh);
    options.settings = run.settings;
    options.allow_empty_shards = run.allow_empty_shards;
    resolve(mapping_of(text), run.tensors, &config, options);
  });
}

Try with(Try run, const std::function<void(Try&)>& change) {
  change(run);
  return run;
}

Row members(ErrorCode code, const std::string& words, const Try& before,
            const std::string& advised) {
  return {code, words, before, with(before, [&](Try& run) { run.members = advised; })};
}

Row mesh(ErrorCode code, const std::string& words, const Try& before, const std::string& advised) {
  return {code, words, before, with(before, [&](Try& run) { run.mesh = advised; })};
}

Row set(ErrorCode code, const std::string& words, const Try& before, const std::string& path,
        const std::string& value) {
  return {code, words, before, with(before, [&](Try& run) { run.settings = {{path, value}}; })};
}

const std::vector<TensorSpec> kOne = {spec("w", {8, 8})};

std::string rule(const std::string& cut) {
  return R"("rules": [{"match": "w", )" + cut + "}]";
}

/// 8 query heads and 2 KV heads of 4.
Try grouped(const std::string& mesh, const std::string& small = "") {
  return {R"("axes": {"heads": {"mesh": "tp", "size": 8, "groups": "kv_heads"},
      "kv_heads": {"mesh": "tp", "size": 2)" +
              small + R"(}, "head_dim": {"size": 4}},
      "rules": [{"match": "q", "dims": ["heads*head_dim", null]},
                {"match": "k", "dims": ["kv_heads*head_dim", null]}])",
          {spec("q", {32, 8}), spec("k", {8, 8})},
          mesh};
}

std::vector<Row> rows_of_cuts() {
  const Try empty{R"("axes": {"x": "tp"}, "rules": [{"match": "w", "dims": ["x", null]}])",
                  {spec("w", {2, 8})},
                  "tp=4"};
  const Try heads{
      rule(R"("strategy": {"type": "head_aware_rowwise", "num_heads": 2, "head_dim": 4})"),
      {spec("w", {8, 8})},
      "tp=4"};
  const Try straddled{R"("axes": {"x": "tp"}, "rules": [{"match": "a.weight", "dims": ["x", null]}],
      "companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": [4, 4]}])",
                      {spec("a.weight", {12, 8}), spec("a.scale", {3, 2}, Dtype::kF32)}};
  const Try uneven{
      R"("axes": {"x": {"mesh": "tp", "uneven": "error"}}, "rules": [{"match": "w", "dims": ["x"]}])",
      {spec("w", {3})}};
  const Try packed{rule(R"("strategy": "columnwise")"), {spec("w", {2, 6}, Dtype::kF4)}};
  const Try refined = with(straddled, [](Try& run) { run.settings = {{"straddle", "refine"}}; });
  std::vector<Row> rows = {
      mesh(ErrorCode::kEmptyShard, "use at most 2 devices along tp", empty, "tp=2"),
      set(ErrorCode::kEmptyShard, "--set axes.x.mesh=null", empty, "axes.x.mesh", "null"),
      mesh(ErrorCode::kEmptyShard, "use at most 8 devices along tp",
           grouped("tp=16", R"(, "small": "gather")"), "tp=8"),
      {ErrorCode::kEmptyShard, "--allow-empty-shards", empty,
       with(empty, [](Try& run) { run.allow_empty_shards = true; })},
      mesh(ErrorCode::kEmptyShard, "use at most 2 devices along tp", heads, "tp=2"),
      members(ErrorCode::kEmptyShard, "\"strategy\": \"replicate\"", heads,
              rule(R"("strategy": "replicate")")),
      {ErrorCode::kBlockStraddle, "choose a mesh size", straddled,
       with(straddled, [](Try& run) { run.mesh = "tp=3"; })},
      mesh(ErrorCode::kNotDivisible, "use a size that divides 3 (1 3)", uneven, "tp=3"),
      set(ErrorCode::kNotDivisible, "\"uneven\": \"balanced\"", uneven, "axes.x.uneven",
          "balanced"),
      {ErrorCode::kSubByteCut, "replicate the tensor", packed,
       with(packed, [](Try& run) { run.members = rule(R"("strategy": "replicate")"); })},
      mesh(ErrorCode::kGroups, "device counts that work: 1 2 4 8", grouped("tp=3"), "tp=2"),
      set(ErrorCode::kGroups, "or make it that of 'kv_heads'",
          with(grouped("tp=2", R"(, "uneven": "pad")"),
               [](Try& run) {
                 run.settings = {{"axes.heads.uneven", "chunk"}};
               }),
          "axes.heads.uneven", "pad"),
      mesh(ErrorCode::kGroups, "device counts that work: 1 2 4 8", grouped("tp=16"), "tp=1"),
      set(ErrorCode::kGroups, "(above 2 with --set axes.kv_heads.small=replicate)", grouped("tp=4"),
          "axes.kv_heads.small", "replicate"),
      set(ErrorCode::kGroups, "with --set axes.kv_heads.small=gather", grouped("tp=3"),
          "axes.kv_heads.small", "gather"),
  };
  const Try of_groups{
      R"("axes": {"heads": {"mesh": "tp", "size": 4, "groups": "kv"}, "kv": {"mesh": "tp", "size": 2},
      "head_dim": {"size": 4}}, "rules": [{"match": "a.weight", "dims": ["kv*head_dim", null]}],
      "companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": [8, 8]}])",
      {spec("a.weight", {8, 8}), spec("a.scale", {1, 1}, Dtype::kF32)}};
  for (const std::string policy : {"replicate-scale", "refine"}) {
    rows.push_back(set(ErrorCode::kBlockStraddle, "--straddle replicate-scale or refine", of_groups,
                       "straddle", policy));
  }
  const Try by_strategy = with(straddled, [](Try& run) {
    run.members = R"("rules": [{"match": "a.weight", "strategy": "rowwise"}],
      "companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": [4, 4]}])";
  });
  for (const std::string policy : {"replicate-scale", "refine"}) {
    rows.push_back(set(ErrorCode::kBlockStraddle, "--straddle replicate-scale or refine",
                       by_strategy, "straddle", policy));
  }
  for (const std::string policy : {"uneven-aligned", "pad", "replicate-scale", "refine"}) {
    rows.push_back(set(ErrorCode::kBlockStraddle, policy, straddled, "straddle", policy));
  }
  return rows;
}

/// 2 KV heads over 3 devices, each with those of its queries.
TEST_CASE("the units of an uneven axis are counted once, however many devices share one") {
  const Try run = grouped("tp=3", R"(, "small": "gather")");
  const Mapping mapping = mapping_of("{\"version\": 1,\n" + run.members + "}");
  const Resolution resolution = resolve(mapping, run.tensors, nullptr, over(run.mesh));
  REQUIRE(resolution.uneven.size() == 2);
  const UnevenCut& kv = resolution.uneven.back();
  CHECK(kv.axis == "kv_heads");
  CHECK(kv.sizes == std::vector<i64>{1, 2, 1});
  CHECK(kv.units.units == 2);
}

TEST_CASE("axes whose units devices share are warned of, but not grouped heads and presets") {
  const auto warnings = [](const Mapping& mapping, const Try& run) {
    return resolve(mapping, run.tensors, nullptr, over(run.mesh)).warnings;
  };
  const std::string axes = R"("axes": {"x": {"mesh": "tp", "small": "replicate"}})";
  const std::string rule = R"("rules": [{"match": "w", "dims": ["x", null]}])";
  const Try shared{axes + ", " + rule, {spec("w", {2, 8})}, "tp=4"};
  const Mapping user = mapping_of("{\"version\": 1, " + shared.members + "}");
  REQUIRE(warnings(user, shared).size() == 1);
  CHECK(
      warnings(user, shared).front() ==
      "axis 'x' has fewer units than the 4 devices along tp, so that devices share one: an engine "
      "that sums over all of them counts it several times (`shardtool validate` shows it)");
  Try enough = shared;
  enough.mesh = "tp=2";
  CHECK(warnings(user, enough).empty());
  const Mapping preset(
      {{"mapping.json", "{\"version\": 1, \"extends\": [\"preset:x\"], " + rule + "}"},
       {"preset:x", "{\"version\": 1, " + axes + "}"}});
  CHECK(warnings(preset, shared).empty());
  const Try heads = grouped("tp=4", R"(, "small": "replicate")");
  CHECK(warnings(mapping_of("{\"version\": 1, " + heads.members + "}"), heads).empty());
}

TEST_CASE("a mesh with a size that is not known says how to give it") {
  const Mapping mapping = mapping_of(
      R"({"version": 1, "mesh": [{"axis": "dp", "size": 2}, {"axis": "tp", "size": "auto"}],
      "rules": [{"match": "w", "strategy": "rowwise"}]})");
  const auto error = error_of([&] { return resolve(mapping, kOne, nullptr, {}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMesh);
  CHECK(error->help_lines().front() == "say how many devices there are: --mesh dp=2,tp=N");
}

std::vector<Row> rows_of_names() {
  const Try lacks{R"("axes": {"h": {"mesh": "tp", "size": "config.num_heads"}}, "rules": [
      {"match": "w", "dims": ["h", null]}])",
                  kOne, "tp=2", R"({"n_heads": 8, "other": 1})"};
  const auto sized = [](const std::string& size) {
    return R"("axes": {"h": {"mesh": "tp", "size": )" + size +
           R"(}}, "rules": [{"match": "w", "dims": ["h", null]}])";
  };
  const Try unsized{
      R"("axes": {"a": "tp", "b": null}, "rules": [{"match": "w", "dims": ["a*b", null]}])", kOne};
  const Try typo{rule(R"("strategy": "row_wise")"), kOne};
  const Try of_torch{rule(R"("strategy": "colwise")"), kOne};
  const Try no_axis{rule(R"("dims": ["ffn", null])"), kOne};
  const Try own_mesh{
      R"("mesh": [{"axis": "tp", "size": 2}], "axes": {"x": "tp"}, "rules": [{"match": "w", "dims": ["x", null]}])",
      kOne, "t=2"};
  const Try other_mesh{rule(R"("strategy": "rowwise")"), kOne, "x=2,y=2"};
  const Try no_match{R"("rules": [{"match": "w", "strategy": "rowwise"}])",
                     {spec("w", {8, 8}), spec("v", {4})}};
  const Try unused{
      R"("rules": [{"match": "w", "strategy": "rowwise"}, {"match": "v", "strategy": "rowwise"}])",
      kOne};
  const Try both{
      R"("rules": [{"match": "w", "strategy": "rowwise"}, {"match": "*", "strategy": "replicate"}])",
      kOne};
  return {
      members(ErrorCode::kSizeExpression, "name a number that the config has", lacks,
              sized(R"("config.n_heads")")),
      members(ErrorCode::kSizeExpression, "write the number itself", lacks, sized("8")),
      members(ErrorCode::kSizeExpression, R"({"ref": "config.num_heads", "default": NUMBER})",
              lacks, sized(R"({"ref": "config.num_heads", "default": 8})")),
      members(
          ErrorCode::kShapeMismatch, "give one of them a \"size\"", unsized,
          R"("axes": {"a": "tp", "b": {"size": 2}}, "rules": [{"match": "w", "dims": ["a*b", null]}])"),
      members(ErrorCode::kUnknownName, "did you mean 'rowwise'?", typo,
              rule(R"("strategy": "rowwise")")),
      members(ErrorCode::kUnknownName, "which is 'column_parallel'", of_torch,
              rule(R"("strategy": "column_parallel")")),
      members(ErrorCode::kUnknownName, "define it in \"axes\"", no_axis,
              R"("axes": {"ffn": "tp"}, )" + rule(R"("dims": ["ffn", null])")),
      mesh(ErrorCode::kUnknownName, "--mesh tp=2", own_mesh, "tp=2"),
      members(ErrorCode::kUnknownName, "add \"over\": \"NAME\"", other_mesh,
              rule(R"("strategy": {"type": "rowwise", "over": "x"})")),
      members(
          ErrorCode::kNoRule, R"({"match": "v", "strategy": "replicate"})", no_match,
          R"("rules": [{"match": "w", "strategy": "rowwise"}, {"match": "v", "strategy": "replicate"}])"),
      members(ErrorCode::kNoRule, "\"unknown\": \"replicate\"", no_match,
              R"("unknown": "replicate", "rules": [{"match": "w", "strategy": "rowwise"}])"),
      members(ErrorCode::kUnusedRule, "\"unused_rule\": \"ignore\"", unused,
              unused.members + R"(, "unused_rule": "ignore")"),
      members(
          ErrorCode::kAmbiguousRule, "\"overrides\"", both,
          R"("overrides": [{"match": "w", "strategy": "rowwise"}], "rules": [{"match": "*", "strategy": "replicate"}])"),
  };
}

std::vector<Row> rows_of_files() {
  const auto text = [](const std::string& document) {
    return Try{"", kOne, "tp=2", "{}", {}, false, document};
  };
  const std::string good = R"({"version": 1, "rules": [{"match": "w", "strategy": "rowwise"}]})";
  const Try two{R"("axes": {"a": "tp", "b": "tp"}, "rules": [{"match": "w", "dims": ["a", "b"]}])",
                kOne};
  const Try odd{rule(R"("strategy": {"type": "gate_up", "axis": 0})"), {spec("w", {7, 8})}};
  const Try tied{
      R"("axes": {"v": "tp"}, "rules": [{"match": "w", "dims": ["v", null]}, {"match": "u", "strategy": "replicate"}],
      "tied": [["w", "u"]])",
      {spec("w", {8, 8}), spec("u", {8, 8})}};
  const Try experts{
      R"("axes": {"e": {"size": 2}}, "rules": [{"match": "l.<layer>.e.<n>", "strategy": "replicate", "index": {"n": "e"}}])",
      {spec("l.0.e.0", {4})}};
  return {
      {ErrorCode::kMappingSyntax, "delete the comma",
       text(R"({"version": 1, "rules": [{"match": "w", "strategy": "rowwise",}]})"), text(good)},
      {ErrorCode::kMappingSyntax, "delete the comment",
       text(
           "{\"version\": 1, // one\n \"rules\": [{\"match\": \"w\", \"strategy\": \"rowwise\"}]}"),
       text(good)},
      {ErrorCode::kMappingSyntax, "write a comma after it",
       text("{\"version\": 1\n \"rules\": [{\"match\": \"w\", \"strategy\": \"rowwise\"}]}"),
       text(good)},
      members(ErrorCode::kMappingSchema, "did you mean 'strategy'?",
              {rule(R"("stratgy": "rowwise")"), kOne}, rule(R"("strategy": "rowwise")")),
      members(ErrorCode::kMeshAxisReused, "", two,
              R"("axes": {"a": "tp"}, "rules": [{"match": "w", "dims": ["a", null]}])"),
      members(ErrorCode::kStrategy, "", odd, rule(R"("strategy": "rowwise")")),
      members(ErrorCode::kTied, "give both the same rule", tied,
              R"("axes": {"v": "tp"}, "rules": [{"match": ["w", "u"], "dims": ["v", null]}],
                 "tied": [["w", "u"]])"),
      members(
          ErrorCode::kAssertion, "correct the size of the axis", experts,
          R"("axes": {"e": {"size": 1}}, "rules": [{"match": "l.<layer>.e.<n>", "strategy": "replicate", "index": {"n": "e"}}])"),
      mesh(ErrorCode::kMesh, "the product pre * size must divide the size of the axis",
           {R"("axes": {"x": "tp:(1)3"}, "rules": [{"match": "w", "dims": ["x", null]}])", kOne,
            "tp=4"},
           "tp=6"),
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = rows_of_cuts();
  for (const auto& more : {rows_of_names(), rows_of_files()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

TEST_CASE("what the help of an error says gets past the error") {
  for (const Row& row : all_rows()) {
    CAPTURE(error_info(row.code).id);
    CAPTURE(row.words);
    const auto error = error_from(row.before);
    REQUIRE(error);
    CAPTURE(error->message());
    CHECK(error->code() == row.code);
    std::string help;
    for (const std::string& line : error->help_lines()) help += line + "\n";
    CAPTURE(help);
    CHECK(help.find(row.words) != std::string::npos);
    const auto after = error_from(row.after);
    CAPTURE((after ? after->message() : ""));
    CHECK_FALSE(after);
  }
}

TEST_CASE("every error of a mapping has a row") {
  std::set<ErrorCode> followed;
  for (const Row& row : all_rows()) followed.insert(row.code);
  // Errors about other files: extended documents (mapping_test), config.json (config_test),
  // hardware profiles and placements (tests/plan).
  const std::set<ErrorCode> elsewhere = {ErrorCode::kExtends, ErrorCode::kConfig,
                                         ErrorCode::kHardwareProfile, ErrorCode::kPlacement};
  constexpr int kMappingExit = 3;
  for (const ErrorInfo& info : error_table()) {
    if (info.exit_status != kMappingExit || elsewhere.contains(info.code)) continue;
    CAPTURE(info.id);
    CHECK(followed.contains(info.code));
  }
}

}  // namespace
}  // namespace shardtool::mapping
