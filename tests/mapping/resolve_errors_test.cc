#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/mapping/resolve/cut_checks.h"
#include "lib/mapping/resolve/resolve.h"
#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {

using testing::has_note;

namespace {

/// Error of resolving one document for these tensors.
std::optional<Error> fault(const std::string& members, const std::vector<TensorSpec>& tensors,
                           ResolveOptions options, const ModelConfig* config = nullptr) {
  const Mapping mapping = mapping_of("{\n\"version\": 1,\n" + members + "}");
  return error_of([&] { return resolve(mapping, tensors, config, options); });
}

#define CHECK_FAULT(code_, ...)               \
  do {                                        \
    const auto found = fault(__VA_ARGS__);    \
    REQUIRE(found.has_value());               \
    CHECK(found->code() == ErrorCode::code_); \
    CHECK(found->place().has_value());        \
  } while (false)

TEST_CASE(
    "an uneven cut that is refused names the tensors, the config, the place, and what works") {
  const ModelConfig config = config_of(R"({"num_attention_heads": 30})");
  const auto e = fault(
      R"("axes": {"heads": {"mesh": "tp", "size": "config.num_attention_heads", "uneven": "error"}, "d": {"size": 2}},
"rules": [{"id": "q", "match": "l.<n>.q", "dims": ["heads*d", null]}])",
      {spec("l.0.q", {60, 8}), spec("l.1.q", {60, 8}), spec("l.2.q", {60, 8})}, over("tp=4"),
      &config);
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kNotDivisible);
  CHECK(e->message() ==
        "30 heads cannot be split evenly over mesh axis \"tp\" (size 4): 30 % 4 = 2");
  CHECK(e->place() == Place{"mapping.json", 3, 19, "/axes/heads"});
  CHECK(e->tensor_name() == "l.0.q");
  CHECK(has_note(*e, "tensor", "l.0.q [60, 8] BF16 (and 2 more)"));
  CHECK(has_note(*e, "config", "num_attention_heads = 30 (from config.json)"));
  CHECK(e->help_lines()[0] ==
        "use a size that divides 30 (1 2 3 5 6 10 15 30), or allow uneven shards with \"uneven\": "
        "\"balanced\" -> 8+8+7+7");
}

TEST_CASE("a strategy refuses an uneven cut also where an earlier tensor is cut alike and may be") {
  const auto rules = [](const std::string& lenient, const std::string& strict) {
    return R"("rules": [{"match": ")" + lenient + R"(", "strategy": "rowwise"},
      {"match": ")" +
           strict + R"(", "strategy": {"type": "rowwise", "uneven": "error"}}])";
  };
  const std::vector<TensorSpec> tensors = {spec("a", {16}), spec("b", {16})};
  CHECK_FAULT(kNotDivisible, rules("a", "b"), tensors, over("tp=3"));
  CHECK_FAULT(kNotDivisible, rules("b", "a"), tensors, over("tp=3"));
  CHECK_FALSE(fault(rules("a", "b"), tensors, over("tp=4")));
}

TEST_CASE("only of two rules that are not among the overrides one can be moved there") {
  const auto help = [](const std::string& section) {
    const std::string rules = R"([{"match": "x.*", "strategy": "replicate"},
      {"match": "x.2", "strategy": "rowwise"}])";
    const std::string members =
        section == "rules" ? R"("rules": )" + rules : R"("rules": [], "overrides": )" + rules;
    const auto e = fault(members, {spec("x.2", {4})}, over("tp=2"));
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kAmbiguousRule);
    return e->help_lines().front();
  };
  CHECK(help("rules").ends_with("to \"overrides\""));
  CHECK(help("overrides") == "narrow one of the two patterns");
}

TEST_CASE("heads of their own are not told to share devices where no number of devices allows it") {
  const auto help = [](i64 kv_heads) {
    const std::string strategy = fmt::format(
        R"({{"type": "stacked_qkv", "num_heads": 4, "num_kv_heads": {}, "head_dim": 2}})",
        kv_heads);
    const auto e = fault(R"("rules": [{"match": "qkv", "strategy": )" + strategy + "}]",
                         {spec("qkv", {8 + 4 * kv_heads})}, over("tp=8"));
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kGroups);
    return e->help_lines().front();
  };
  CHECK(help(4) == "device counts that work: 1 2 3 4");
  CHECK(help(2) == "device counts that work: 1 2 4 (above 2 with \"small\": \"replicate\")");
}

TEST_CASE("an axis that nothing defines is an error, or whole where the mapping says so") {
  const std::string rule = R"("rules": [{"match": "w", "dims": ["x", "nameless"]}])";
  const std::string axes = R"("axes": {"x": "tp"}, )";
  CHECK_FAULT(kUnknownName, axes + rule, {spec("w", {4, 4})}, over("tp=2"));
  CHECK_FALSE(
      fault(R"("default": "replicate", )" + axes + rule, {spec("w", {4, 4})}, over("tp=2")));
}

TEST_CASE("an uneven cut is told with the nearest numbers of devices that divide") {
  CHECK(even_counts({8}, 3) == "8 divides over 2 or 4 devices");
  CHECK(even_counts({3}, 4) == "3 divides over 3 devices");
  CHECK(even_counts({176, 16}, 2) == "176 in runs of 16 divides over 1 or 11 devices");
  CHECK(even_counts({1100, 128}, 3) == "1100 in runs of 128 divides over 1 device");
  CHECK(sum_text({334, 333, 333}) == "334+333+333");
  CHECK(sum_text(std::vector<i64>(17, 1)) == "1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+...");
}

TEST_CASE("require_even refuses what is uneven and nothing else") {
  const std::string rows =
      R"("axes": {"x": "tp", "p": {"mesh": "tp", "uneven": "pad"}}, "unused_rule": "ignore", "rules": [
{"match": "a", "dims": ["x"]}, {"match": "b", "strategy": "rowwise"}, {"match": "c", "dims": ["p"]}])";
  ResolveOptions even = over("tp=4");
  even.require_even = true;
  CHECK_FAULT(kNotDivisible, rows, {spec("a", {4097})}, even);
  CHECK(fault(rows, {spec("a", {4097})}, even)->help_lines().front() ==
        "use a size that divides 4097 (1 17 241)");
  CHECK_FAULT(kNotDivisible, rows, {spec("b", {4097})}, even);
  CHECK_FALSE(fault(rows, {spec("a", {4096}), spec("b", {4096}), spec("c", {4097})}, even));
}

TEST_CASE("a strategy that cannot cut an axis evenly counts its units") {
  const auto message = [](const std::string& strategy, const Shape& shape) {
    const auto e = fault(R"("rules": [{"match": "w", "strategy": )" + strategy + "}]",
                         {spec("w", shape)}, over("tp=2"));
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kNotDivisible);
    return e->message();
  };
  CHECK(message(R"({"type": "rowwise", "uneven": "error"})", {4097, 2}) ==
        "4097 units of axis 0 of rowwise cannot be split evenly over mesh axis \"tp\" (size 2): "
        "4097 % 2 = 1");
  CHECK(message(R"({"type": "stacked_qkv", "num_heads": 1, "head_dim": 2, "axis": 1,
                    "small": "gather", "uneven": "error"})",
                {4, 6}) ==
        "1 unit of axis 1 of stacked_qkv cannot be split evenly over mesh axis \"tp\" (size 2): "
        "1 % 2 = 1");
}

TEST_CASE("groups that do not divide are counted in groups") {
  const auto e = fault(
      R"("axes": {"q": {"mesh": "tp", "size": 24, "groups": "kv", "uneven": "error"}, "kv": {"mesh": "tp", "size": 6}},
"rules": [{"match": "w", "dims": ["q"]}])",
      {spec("w", {24})}, over("tp=4"));
  REQUIRE(e);
  CHECK(e->message() ==
        "6 groups of 4 q cannot be split evenly over mesh axis \"tp\" (size 4): 6 % 4 = 2");
}

TEST_CASE("an axis in the groups of another one has its policy for uneven cuts") {
  const std::string axes =
      R"("axes": {"q": {"mesh": "tp", "size": 24, "groups": "kv"}, "kv": {"mesh": "tp", "size": 8, "uneven": "error"}},
"rules": [{"match": "w", "dims": ["q"]}])";
  CHECK_FAULT(kNotDivisible, axes, {spec("w", {24})}, over("tp=3"));
  CHECK_FALSE(fault(axes, {spec("w", {24})}, over("tp=4")));
}

TEST_CASE("a rule for tensors that are dropped is told that they are") {
  const auto e = fault(
      R"("drop": ["b"], "rules": [{"match": ["a", "b"], "strategy": "replicate"}, {"id": "gone", "match": "b", "strategy": "rowwise"}])",
      {spec("a", {4}), spec("b", {4})}, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kUnusedRule);
  CHECK(e->message() == "rule 'gone' matches no tensor");
  CHECK(has_note(*e, "dropped", "b"));
}

TEST_CASE("a tensor that no rule matches is an error that says which, how many, and what to do") {
  const ModelConfig config = config_of(R"({"architectures": ["LlamaForCausalLM"]})");
  const auto e =
      fault(R"("rules": [{"id": "typo", "match": "lm_haed.weight", "strategy": "replicate"}])",
            {spec("lm_head.weight", {8, 2}), spec("l.0.a", {2}), spec("l.1.a", {2})}, over("tp=2"),
            &config);
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kNoRule);
  CHECK(e->message() == "3 tensors match no rule, the first is 'lm_head.weight'");
  CHECK(has_note(*e, "no rule", "l.*.a (2)"));
  CHECK(has_note(*e, "matches nothing",
                 "rule 'typo', \"lm_haed.weight\"; the nearest names are lm_head.weight"));
  CHECK(e->help_lines()[0] ==
        "rule 'typo' says \"lm_haed.weight\": did you mean 'lm_head.weight'?");
  CHECK(e->help_lines()[1].find("preset:llama") != std::string::npos);
  CHECK(e->help_lines()[2].find(R"({"match": "l.*.a", "strategy": "replicate"})") !=
        std::string::npos);
}

TEST_CASE("a prefix of all names that the mapping does not know is to be left out") {
  const std::string rules =
      R"("rules": [{"match": "model.*.weight", "strategy": "rowwise"}, {"match": "own", "strategy": "replicate"}])";
  const std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight", "own"};
  const auto with_prefix = [&](const std::string& prefix) {
    std::vector<TensorSpec> tensors;
    for (const std::string& name : names) tensors.push_back(spec(prefix + name, {8}));
    return tensors;
  };
  const ModelConfig config = config_of(R"({"architectures": ["LlamaForCausalLM"]})");
  for (const std::string prefix : {"_orig_mod", "module", "state_dict.model"}) {
    CAPTURE(prefix);
    const auto e = fault(rules, with_prefix(prefix + "."), over("tp=2"), &config);
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kNoRule);
    REQUIRE(e->help_lines().size() == 1);
    CHECK(e->help_lines().front().find("SRC#" + prefix + ",") != std::string::npos);
  }
  auto mixed = with_prefix("module.");
  mixed.push_back(spec("module.further", {8}));
  const auto e = fault(rules, mixed, over("tp=2"), &config);
  REQUIRE(e);
  CHECK(e->help_lines().back().find("\"unknown\": \"replicate\"") != std::string::npos);
}

TEST_CASE("a rule that matches nothing is an error with the name that was meant") {
  const std::vector<TensorSpec> tensors = {spec("l.0.gate_proj.weight", {2})};
  const auto e = fault(R"("rules": [{"match": "**", "strategy": "replicate"}],
"overrides": [{"id": "up", "match": "l.<n>.gate_porj.weight", "strategy": "rowwise"}])",
                       tensors, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kUnusedRule);
  CHECK(e->place()->line == 4);
  CHECK(e->help_lines()[0] == "did you mean 'l.*.gate_proj.weight'?");
  const std::string unused =
      R"("rules": [{"match": "**", "strategy": "replicate"}], "overrides": [{"match": "x", "strategy": "rowwise"}])";
  CHECK_FALSE(fault(unused + R"(, "unused_rule": "ignore")", tensors, over("tp=2")));
  const Mapping warns = mapping_of(R"({"version": 1, )" + unused + R"(, "unused_rule": "warn"})");
  CHECK(resolve(warns, tensors, nullptr, over("tp=1")).warnings ==
        std::vector<std::string>{"mapping.json:1: rule 'overrides/0' matches no tensor"});
}

TEST_CASE("a rule that matches nothing names the tensors whose names are most like it") {
  const auto e = fault(R"("unknown": "replicate", "rules": [
{"match": "blk.<layer>.attention.Wq", "strategy": "rowwise"}])",
                       {spec("blk.0.att.Wq", {4, 4}), spec("emb", {9, 4})}, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kUnusedRule);
  CHECK(has_note(*e, "nearest names", "blk.*.att.Wq"));
}

TEST_CASE("a rule for the absent one of two tied tensors is not unused") {
  const std::string rules =
      R"("rules": [{"match": "embed", "strategy": "rowwise"}, {"match": "head", "strategy": "rowwise"}])";
  CHECK_FALSE(
      fault(rules + R"(, "tied": [["embed", "head"]])", {spec("embed", {4})}, over("tp=2")));
  CHECK_FAULT(kUnusedRule, rules, {spec("embed", {4})}, over("tp=2"));
}

TEST_CASE("two rules of one layer for one tensor are named both") {
  const auto e = fault(R"("rules": [
{"id": "one", "match": "a.*", "strategy": "replicate"},
{"id": "two", "match": ["b", "*.b"], "strategy": "rowwise"}])",
                       {spec("a.b", {4})}, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kAmbiguousRule);
  CHECK(e->message() == "the rules 'one' and 'two' both match 'a.b'");
  CHECK(has_note(*e, "one", "mapping.json:4:1 /rules/0"));
  CHECK(has_note(*e, "two", "mapping.json:5:1 /rules/1"));
}

TEST_CASE("count and dtype are asserted") {
  const std::vector<TensorSpec> tensors = {spec("a.0", {2}), spec("a.1", {2}, Dtype::kF32)};
  const std::string rule = R"("rules": [{"match": "a.*", "strategy": "replicate", )";
  CHECK_FAULT(kAssertion, rule + R"("count": 3}])", tensors, over("tp=2"));
  CHECK_FALSE(fault(rule + R"("count": 2, "dtype": ["BF16", "F32"]}])", tensors, over("tp=2")));
  CHECK_FAULT(kAssertion, rule + R"("dtype": "BF16"}])", tensors, over("tp=2"));
}

TEST_CASE("experts that are missing or stand twice are named") {
  const ModelConfig config = config_of(R"({"n": 3})");
  const std::string rules =
      R"("axes": {"experts": {"size": "config.n"}}, "rules": [{"match": "l.<layer>.e.<expert>", "strategy": "replicate", "index": {"expert": "experts"}}])";
  const auto e = fault(rules, {spec("l.0.e.0", {1}), spec("l.0.e.2", {1})}, over("tp=2"), &config);
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kAssertion);
  CHECK(e->message() == "index 1 of axis 'experts' is missing: the axis has 3 indices");
  CHECK_FAULT(
      kAssertion, rules,
      {spec("l.0.e.0", {1}), spec("l.0.e.1", {1}), spec("l.0.e.2", {1}), spec("l.0.e.02", {1})},
      over("tp=2"), &config);
  CHECK_FAULT(
      kAssertion, rules,
      {spec("l.0.e.0", {1}), spec("l.0.e.1", {1}), spec("l.0.e.2", {1}), spec("l.0.e.3", {1})},
      over("tp=2"), &config);
  CHECK_FALSE(fault(rules, {spec("l.0.e.0", {1}), spec("l.0.e.1", {1}), spec("l.0.e.2", {1})},
                    over("tp=2"), &config));
}

TEST_CASE("layers may have gaps, but none beyond the size of a cut axis") {
  const std::string rules =
      R"("axes": {"layers": {"mesh": "pp", "size": 4}}, "rules": [{"match": "l.<n>", "strategy": "replicate", "index": {"n": "layers"}}])";
  CHECK_FALSE(fault(rules, {spec("l.0", {1}), spec("l.3", {1})}, over("pp=2")));
  CHECK_FAULT(kShapeMismatch, rules, {spec("l.4", {1})}, over("pp=2"));
}

TEST_CASE("dims that do not fit the shape name the axis, both sizes and where they come from") {
  const ModelConfig config = config_of(R"({"heads": 8})");
  const std::string rules =
      R"("axes": {"heads": {"size": "config.heads"}, "d": {"size": 4}, "x": null},
"rules": [{"id": "q", "match": "w", "dims": ["x", "heads*d"]}])";
  CHECK_FAULT(kShapeMismatch, rules, {spec("w", {32})}, over("tp=2"), &config);
  const auto e = fault(rules, {spec("w", {16, 33})}, over("tp=2"), &config);
  REQUIRE(e);
  CHECK(e->message() == "'heads*d' is 8*4 = 32, but the tensor has 33 elements there");
  CHECK(has_note(*e, "axis", "1"));
  CHECK(has_note(*e, "config", "heads = 8 (from config.json)"));
  CHECK(e->place()->pointer == "/rules/0/dims/1");
}

TEST_CASE("names that nothing defines are refused where they are written") {
  const std::vector<TensorSpec> w = {spec("w", {4, 4})};
  CHECK_FAULT(kUnknownName, R"("axes": {"x": null}, "rules": [{"match": "w", "dims": ["x", "y"]}])",
              w, over("tp=2"));
  CHECK_FAULT(kUnknownName,
              R"("axes": {"x": "tq"}, "rules": [{"match": "w", "dims": ["x", null]}])", w,
              over("tp=2"));
  CHECK_FAULT(kUnknownName,
              R"("axes": {"x": {"groups": "y"}}, "rules": [{"match": "w", "dims": ["x", null]}])",
              w, over("tp=2"));
  CHECK_FAULT(
      kUnknownName,
      R"("axes": {"x": {"size": "axes.y"}}, "rules": [{"match": "w", "dims": ["x", null]}])", w,
      over("tp=2"));
  CHECK_FAULT(kUnknownName,
              R"("rules": [{"match": "<n>", "strategy": "replicate", "index": {"n": "y"}}])",
              {spec("3", {})}, over("tp=2"));
  CHECK_FAULT(kMesh, R"("axes": {"x": "tp:(1)3"}, "rules": [{"match": "w", "dims": ["x", null]}])",
              w, over("tp=4"));
}

TEST_CASE("a rule that matches nothing, and may, can name an axis that nobody defines") {
  CHECK_FALSE(fault(
      R"("unused_rule": "ignore", "unknown": "replicate", "axes": {"l": null}, "rules": [{"match": "l.<n>.e.<e>",
         "strategy": "replicate", "index": {"n": "l", "e": "experts"}}])",
      {spec("w", {4})}, over("tp=2")));
}

TEST_CASE("cuts that make no sense are refused") {
  const std::vector<TensorSpec> w = {spec("w", {8, 8})};
  CHECK_FAULT(kMeshAxisReused,
              R"("axes": {"x": "tp", "y": "tp"}, "rules": [{"match": "w", "dims": ["x", "y"]}])", w,
              over("tp=2"));
  CHECK_FAULT(kMeshAxisReused,
              R"("axes": {"x": {"mesh": "tp", "size": 2}, "y": "tp"},
                  "rules": [{"match": "w", "dims": ["x*y", null]}])",
              w, over("tp=2"));
  CHECK_FAULT(kShapeMismatch,
              R"("rules": [{"match": "w", "strategy": {"type": "axiswise", "axis": 2}}])", w,
              over("tp=2"));
  CHECK_FAULT(kShapeMismatch, R"("rules": [{"match": "w", "strategy": "rowwise"}])",
              {spec("w", {})}, over("tp=2"));
  CHECK_FAULT(kStrategy, R"("rules": [{"match": "w", "strategy": {"type": "gate_up", "axis": 0}}])",
              {spec("w", {7})}, over("tp=2"));
  CHECK_FAULT(kStrategy, R"("rules": [{"match": "w", "strategy": "tensor_parallel"}])", w,
              over("tp=2"));
  CHECK_FAULT(
      kStrategy,
      R"("axes": {"x": {"mesh": "tp", "owners": [[0, 1], [9]]}}, "rules": [{"match": "w", "dims": ["x", null]}])",
      w, over("tp=2"));
  CHECK_FAULT(
      kGroups,
      R"("axes": {"x": {"mesh": "tp", "size": 8, "groups": "y"}, "y": {"size": 8}}, "rules": [{"match": "w", "dims": ["x", null]}])",
      w, over("tp=2"));
  CHECK_FAULT(
      kSizeExpression,
      R"("axes": {"x": {"size": "axes.y"}, "y": {"size": "axes.x"}}, "rules": [{"match": "w", "dims": ["x", null]}])",
      w, over("tp=2"));
}

TEST_CASE("fields that would say nothing beside each other are refused") {
  const std::vector<TensorSpec> w = {spec("w", {8})};
  const auto axis = [](const std::string& fields) {
    return R"("axes": {"kv": {"mesh": "tp", "size": 8}, "x": {"mesh": "tp", )" + fields +
           R"(}}, "rules": [{"match": "w", "dims": ["x"]}])";
  };
  CHECK_FAULT(kMappingSchema, axis(R"("pad_to": 8)"), w, over("tp=2"));
  CHECK_FAULT(kMappingSchema, axis(R"("groups": "kv", "small": "replicate")"), w, over("tp=2"));
  CHECK_FAULT(kMappingSchema, axis(R"("groups": "kv", "owners": "round_robin")"), w, over("tp=2"));
  CHECK_FAULT(kMappingSchema, axis(R"("small": "replicate", "owners": "round_robin")"), w,
              over("tp=2"));
}

TEST_CASE("more patterns than can be matched at once reach a limit, not the end of memory") {
  std::string rules;
  for (int i = 0; i <= 20'000; ++i) {
    rules += fmt::format(R"({}{{"match": "t{}", "strategy": "replicate"}})", i == 0 ? "" : ",", i);
  }
  const auto e = fault(R"("rules": [)" + rules + "]", {spec("t1", {4})}, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kLimit);
}

TEST_CASE("an empty shard is an error unless it is allowed") {
  const std::string rule = R"("axes": {"x": "tp"}, "rules": [{"match": "w", "dims": ["x"]}])";
  CHECK_FAULT(kEmptyShard, rule, {spec("w", {3})}, over("tp=4"));
  ResolveOptions allowed = over("tp=4");
  allowed.allow_empty_shards = true;
  CHECK_FALSE(fault(rule, {spec("w", {3})}, allowed));
  CHECK_FALSE(fault(rule, {spec("w", {0})}, over("tp=4")));
  CHECK_FAULT(
      kEmptyShard,
      R"("axes": {"l": "pp"}, "rules": [{"match": "<n>", "strategy": "replicate", "index": {"n": "l"}}])",
      {spec("0", {1}), spec("1", {1})}, over("pp=3"));
}

TEST_CASE("packed elements are cut on whole bytes only") {
  const std::string rows =
      R"("axes": {"x": "tp"}, "rules": [{"match": "r", "dims": ["x", null]}, {"match": "c", "dims": [null, "x"]}], "unused_rule": "ignore")";
  CHECK_FAULT(kSubByteCut, rows, {spec("c", {2, 6}, Dtype::kF4)}, over("tp=2"));
  CHECK_FALSE(fault(rows, {spec("c", {2, 8}, Dtype::kF4)}, over("tp=2")));
  CHECK_FALSE(fault(rows, {spec("r", {4, 1}, Dtype::kF4)}, over("tp=2")));
  CHECK_FAULT(kSubByteCut, rows, {spec("r", {6, 1}, Dtype::kF4)}, over("tp=2"));
  CHECK_FAULT(kSubByteCut, rows, {spec("r", {4, 2}, Dtype::kF6E2M3)}, over("tp=4"));
  CHECK_FALSE(fault(rows, {spec("r", {4, 4}, Dtype::kF6E2M3)}, over("tp=4")));
  CHECK_FAULT(kSubByteCut, rows, {spec("c", {4, 4}, Dtype::kF6E2M3)}, over("tp=2"));
}

TEST_CASE("tied tensors must be cut alike") {
  const std::string rules =
      R"("axes": {"v": "tp"}, "rules": [{"match": "a", "dims": ["v"]}, {"match": "b", "strategy": "replicate"}], "tied": [["a", "b"]])";
  const auto e = fault(rules, {spec("a", {4}), spec("b", {4})}, over("tp=2"));
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kTied);
}

TEST_CASE("an axis that no rule names is a warning, as is a mapping for another model") {
  const Mapping mapping =
      mapping_of(R"({"version": 1, "when": {"architectures": ["A"]}, "axes": {"batch": "tp"},
"rules": [{"match": "w", "strategy": "rowwise"}]})");
  const ModelConfig config = config_of(R"({"architectures": ["B"]})");
  const std::vector<TensorSpec> tensors = {spec("w", {4})};
  CHECK(resolve(mapping, tensors, &config, over("tp=2")).warnings ==
        std::vector<std::string>{"mapping.json is for A, and the model is a B",
                                 "mapping.json:1: axis 'batch' is named by no rule"});
}

}  // namespace
}  // namespace shardtool::mapping
