#include "lib/mapping/resolve/resolve.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidcheck.h>

#include <set>

#include "tests/mapping/fixtures.h"

namespace shardtool::mapping {
namespace {

/// Intervals from one rule for the tensor "w" over these axes.
Held cut(const std::string& axes, const std::string& dims, const Shape& shape,
         std::string_view mesh, size_t axis = 0) {
  const auto rule = fmt::format(R"({{"match": "w", "dims": {}}})", dims);
  return only(mapping_with(axes, rule), spec("w", shape), nullptr, over(mesh), axis);
}

TEST_CASE("the first layer with a match wins: overrides, own rules, inherited ones") {
  const std::string base =
      R"({"version": 1, "rules": [{"id": "base", "match": "**", "strategy": "replicate"}]})";
  const auto rule_for = [&](const std::string& own) {
    const Mapping mapping(
        {{"m.json", R"({"version": 1, "unused_rule": "ignore", )" + own + "}"}, {"b.json", base}});
    const std::vector<TensorSpec> tensors = {spec("a", {4})};
    return resolve(mapping, tensors, nullptr, over("tp=2")).tensors[0].by->rule;
  };
  const std::string rules = R"("rules": [{"id": "own", "match": "a", "strategy": "rowwise"}])";
  const std::string overrides =
      R"("overrides": [{"id": "over", "match": "*", "strategy": "rowwise"}])";
  CHECK(rule_for(rules + ", " + overrides) == "over");
  CHECK(rule_for(rules) == "own");
  CHECK(rule_for(R"("rules": [{"id": "own", "match": "b", "strategy": "rowwise"}])") ==
        "b.json#base");
}

TEST_CASE("rules are called by their label in the user's own file, and by document elsewhere") {
  const Mapping mapping = with_settings(
      Mapping({{"m.json", R"({"version": 1, "rules": [{"match": "a", "strategy": "rowwise"}]})"},
               {"sub/b.json",
                R"({"version": 1, "rules": [{"id": "b", "match": "b", "strategy": "rowwise"}]})"}}),
      {{"unknown", "replicate"}});
  const std::vector<TensorSpec> tensors = {spec("a", {4}), spec("b", {4}), spec("c", {4})};
  const Resolution result = resolve(mapping, tensors, nullptr, over("tp=2"));
  CHECK(result.tensors[0].by->rule == "rules/0");
  CHECK(result.tensors[1].by->rule == "sub/b.json#b");
  CHECK(result.tensors[2].by->rule == "unknown");
  CHECK(result.tensors[2].by->rule_place.file == "m.json");
}

TEST_CASE("where errors are told, a bias whose cut does not fit is left out, with any policy") {
  const Mapping mapping = mapping_of(R"({"version": 1, "reduced_bias": "first",
    "rules": [{"match": "*.bias", "dims": [null, null], "bias": "after_reduction"}]})");
  const std::vector<TensorSpec> tensors = {spec("a.bias", {4}), spec("b.bias", {4})};
  ResolveOptions options = over("tp=2");
  int told = 0;
  options.report = [&](const Error&) { ++told; };
  CHECK(resolve(mapping, tensors, nullptr, options).tensors.empty());
  CHECK(told == 1);
}

TEST_CASE("every factor of a product can be cut: experts below each other, and rows inside each") {
  const Mapping mapping = mapping_of(R"({"version": 1,
    "axes": {"experts": {"mesh": "ep", "size": 4}, "mlp": "tp"},
    "rules": [{"match": "w", "dims": ["experts*mlp", null]}]})");
  CHECK(only(mapping, spec("w", {4 * 6, 3}), nullptr, over("ep=2,tp=3")) ==
        Held{"[0, 2) [6, 8)", "[2, 4) [8, 10)", "[4, 6) [10, 12)", "[12, 14) [18, 20)",
             "[14, 16) [20, 22)", "[16, 18) [22, 24)"});
}

TEST_CASE("a product is cut in whole units of its first factor") {
  const std::string axes = R"("heads": {"mesh": "tp", "size": 10}, "d": {"size": 64})";
  CHECK(cut(axes, R"(["heads*d"])", {640}, "tp=4") ==
        Held{"[0, 192)", "[192, 384)", "[384, 512)", "[512, 640)"});
  CHECK(cut(axes, R"(["heads*3*d"])", {1920}, "tp=4")[3] == "[1536, 1920)");
}

TEST_CASE("sections are cut one by one, and one decision holds for grouped heads in all of them") {
  const std::string axes = R"("heads": {"mesh": "tp", "size": 32, "groups": "kv"},
    "kv": {"mesh": "tp", "size": 8, "small": "replicate"}, "d": {"size": 128}, "mlp": "tp")";
  CHECK(cut(axes, R"(["heads*d + kv*d + kv*d"])", {6144}, "tp=4") ==
        Held{"[0, 1024) [4096, 4352) [5120, 5376)", "[1024, 2048) [4352, 4608) [5376, 5632)",
             "[2048, 3072) [4608, 4864) [5632, 5888)", "[3072, 4096) [4864, 5120) [5888, 6144)"});
  CHECK(cut(axes, R"(["mlp + mlp"])", {20}, "tp=4") ==
        Held{"[0, 3) [10, 13)", "[3, 6) [13, 16)", "[6, 8) [16, 18)", "[8, 10) [18, 20)"});
}

TEST_CASE("whole groups go together where there are fewer devices than KV heads") {
  const std::string axes =
      R"("q": {"mesh": "tp", "size": 28, "groups": "kv"}, "kv": {"mesh": "tp", "size": 4})";
  CHECK(cut(axes, R"(["q"])", {28}, "tp=3") == Held{"[0, 14)", "[14, 21)", "[21, 28)"});
  CHECK(cut(axes, R"(["kv"])", {4}, "tp=3") == Held{"[0, 2)", "[2, 3)", "[3, 4)"});
}

TEST_CASE("groups are dealt out as the axis says in whose groups another is cut") {
  const auto cut_of = [](const std::string& axis, i64 size, const std::string& policy) {
    return cut(R"("q": {"mesh": "tp", "size": 10, "groups": "kv"},
                  "kv": {"mesh": "tp", "size": 5, )" +
                   policy + "}",
               "[\"" + axis + "\"]", {size}, "tp=3");
  };
  const std::string dealt = R"("owners": "round_robin")";
  CHECK(cut_of("kv", 5, dealt) == Held{"[0, 1) [3, 4)", "[1, 2) [4, 5)", "[2, 3)"});
  CHECK(cut_of("q", 10, dealt) == Held{"[0, 2) [6, 8)", "[2, 4) [8, 10)", "[4, 6)"});
  const std::string listed = R"("owners": [[4], [2, 3], [0, 1]])";
  CHECK(cut_of("kv", 5, listed) == Held{"[4, 5)", "[2, 4)", "[0, 2)"});
  CHECK(cut_of("q", 10, listed) == Held{"[8, 10)", "[4, 8)", "[0, 4)"});
  const std::string padded = R"("uneven": "pad")";
  CHECK(cut_of("kv", 5, padded) == Held{"[0, 2)", "[2, 4)", "[4, 5) pad 1"});
  CHECK(cut_of("q", 10, padded) == Held{"[0, 4)", "[4, 8)", "[8, 10) pad 2"});
  CHECK_ERROR(kGroups, cut(R"("q": {"mesh": "tp", "size": 9, "groups": "kv"},
                              "kv": {"mesh": "tp", "size": 5, "owners": "round_robin"})",
                           R"(["q"])", {9}, "tp=3"));
}

TEST_CASE("KV heads are replicated or gathered where there are more devices than heads") {
  const auto axes = [](const std::string& small) {
    return R"("q": {"mesh": "tp", "size": 10, "groups": "kv"}, "kv": {"mesh": "tp", "size": 2, "small": ")" +
           small + "\"}";
  };
  CHECK(cut(axes("replicate"), R"(["kv"])", {2}, "tp=10")[4] == "[0, 1)");
  CHECK(cut(axes("replicate"), R"(["kv"])", {2}, "tp=10")[5] == "[1, 2)");
  CHECK(cut(axes("gather"), R"(["kv"])", {2}, "tp=4") ==
        Held{"[0, 1)", "[0, 2)", "[1, 2)", "[1, 2)"});
  CHECK_ERROR(kGroups, cut(axes("error"), R"(["kv"])", {2}, "tp=4"));
  CHECK_ERROR(kGroups, cut(axes("replicate"), R"(["kv"])", {2}, "tp=4"));
}

TEST_CASE("the policies for uneven axes are the split rules of the algebra") {
  const auto rows = [](const std::string& policy) {
    return cut(R"("x": {"mesh": "tp", )" + policy + "}", R"(["x"])", {10}, "tp=4");
  };
  CHECK(rows(R"("uneven": "balanced")") == Held{"[0, 3)", "[3, 6)", "[6, 8)", "[8, 10)"});
  CHECK(rows(R"("uneven": "chunk")") == Held{"[0, 3)", "[3, 6)", "[6, 9)", "[9, 10)"});
  CHECK(rows(R"("uneven": "pad")") == Held{"[0, 3)", "[3, 6)", "[6, 9)", "[9, 10) pad 2"});
  CHECK(cut(R"("x": {"mesh": "tp", "uneven": "pad", "pad_to": 8})", R"(["x"])", {10}, "tp=2") ==
        Held{"[0, 8)", "[8, 10) pad 6"});
}

TEST_CASE("units that are left over go to the parts before the last one, with uneven middle") {
  const auto stages = [](i64 units, i64 parts) {
    return cut(fmt::format(R"("x": {{"mesh": "tp", "size": {}, "uneven": "middle"}})", units),
               R"(["x"])", {units}, fmt::format("tp={}", parts));
  };
  CHECK(stages(61, 4) == Held{"[0, 15)", "[15, 30)", "[30, 46)", "[46, 61)"});
  CHECK(stages(126, 4) == Held{"[0, 31)", "[31, 63)", "[63, 95)", "[95, 126)"});
  CHECK(stages(7, 4) == Held{"[0, 2)", "[2, 4)", "[4, 6)", "[6, 7)"});
  CHECK(stages(8, 4) == Held{"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)"});
  CHECK(stages(3, 2) == Held{"[0, 2)", "[2, 3)"});
}

TEST_CASE("a list of mesh axes is major to minor in the order given") {
  CHECK(cut(R"("x": ["tp", "dp"])", R"(["x"])", {8}, "dp=2,tp=2") ==
        Held{"[0, 2)", "[4, 6)", "[2, 4)", "[6, 8)"});
  CHECK(cut(R"("x": "tp:(1)2")", R"(["x"])", {8}, "tp=4") ==
        Held{"[0, 4)", "[0, 4)", "[4, 8)", "[4, 8)"});
}

TEST_CASE("a Haliax mapping pasted into axes keeps what the preset says about them") {
  const Mapping mapping = extending(
      "llama", R"({"version": 1, "axes": {"embed": "fsdp", "mlp": ["tp", "ep"], "heads": "tp"}})");
  const ModelConfig config = config_of(
      R"({"hidden_size": 32, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 1})");
  const std::vector<TensorSpec> tensors = {spec("model.layers.0.mlp.up_proj.weight", {64, 32}),
                                           spec("model.layers.0.self_attn.q_proj.weight", {32, 32}),
                                           spec("model.norm.weight", {32})};
  const Resolution result = resolve(mapping, tensors, &config, over("fsdp=2,ep=2,tp=2"));
  CHECK(to_string(result.tensors[0].layout->axes()[0].expr) == "Split(64, tp*ep)");
  CHECK(to_string(result.tensors[0].layout->axes()[1].expr) == "Split(32, fsdp)");
  CHECK(to_string(result.tensors[1].layout->axes()[0].expr) == "Scale(Scale(Split(2, tp), 4), 4)");
  CHECK(to_string(result.tensors[2].layout->axes()[0].expr) == "Split(32, fsdp)");
  CHECK(result.axis_sizes.at("kv_heads") == 2);
}

TEST_CASE("a named layout moves axes and keeps the rest of them") {
  const Mapping mapping = mapping_with(R"("x": {"mesh": "tp", "uneven": "chunk"}, "y": null)",
                                       R"({"match": "w", "dims": ["x", "y"]})",
                                       R"(, "layouts": {"train": {"x": null, "y": "tp"}})");
  ResolveOptions options = over("tp=2");
  options.layout = "train";
  CHECK(only(mapping, spec("w", {4, 4}), nullptr, options, 1) == Held{"[0, 2)", "[2, 4)"});
  CHECK(only(mapping, spec("w", {4, 4}), nullptr, options, 0) == Held{"[0, 4)", "[0, 4)"});
  const auto unknown = [&](const std::string& layout) {
    options.layout = layout;
    return error_of([&] { return only(mapping, spec("w", {4, 4}), nullptr, options); }).value();
  };
  CHECK(unknown("trian").code() == ErrorCode::kUnknownName);
  CHECK(unknown("trian").help_lines() == std::vector<std::string>{"did you mean 'train'?"});
  CHECK(testing::has_note(unknown("compute"), "layouts", "train"));
}

TEST_CASE("settings change an axis") {
  ResolveOptions options = over("tp=4");
  options.settings = {{"axes.x.uneven", "chunk"}};
  CHECK(only(mapping_with(R"("x": "tp")", R"({"match": "w", "dims": ["x"]})"), spec("w", {10}),
             nullptr, options)[2] == "[6, 9)");
}

TEST_CASE("named strategies take tp, or the only axis of the mesh") {
  const auto columns = [](const std::string& strategy, std::string_view mesh) {
    return only(mapping_with("", fmt::format(R"({{"match": "w", "strategy": {}}})", strategy)),
                spec("w", {2, 4}), nullptr, over(mesh), 1);
  };
  CHECK(columns("\"columnwise\"", "dp=2,tp=2") == Held{"[0, 2)", "[2, 4)", "[0, 2)", "[2, 4)"});
  CHECK(columns("\"columnwise\"", "x=2") == Held{"[0, 2)", "[2, 4)"});
  CHECK(columns(R"({"type": "columnwise", "over": "dp"})", "dp=2,tp=2")[1] == "[0, 2)");
  CHECK(columns(R"({"type": "columnwise", "over": null})", "tp=2")[1] == "[0, 4)");
  CHECK_ERROR(kUnknownName, columns("\"columnwise\"", "x=2,y=2"));
  CHECK_ERROR(kUnknownName, columns(R"({"type": "columnwise", "over": "tq"})", "tp=2"));
}

TEST_CASE("gate_up is stacked unless it says interleaved") {
  const auto rows = [](const std::string& strategy) {
    return only(mapping_with("", fmt::format(R"({{"match": "w", "strategy": {}}})", strategy)),
                spec("w", {20}), nullptr, over("tp=4"));
  };
  CHECK(rows(R"({"type": "gate_up", "axis": 0})")[0] == "[0, 3) [10, 13)");
  CHECK(rows(R"({"type": "gate_up", "axis": 0, "layout": "interleaved"})") ==
        Held{"[0, 6)", "[6, 12)", "[12, 16)", "[16, 20)"});
  CHECK(rows(R"({"type": "segmented", "segments": [4, {"num_heads": 4, "head_dim": 4}]})")[1] ==
        "[1, 2) [8, 12)");
}

TEST_CASE("a row-parallel bias is whole, and recorded as added after the reduction") {
  const auto bias = [](const std::string& rule) {
    const std::vector<TensorSpec> tensors = {spec("w", {8})};
    return resolve(mapping_with("", fmt::format(R"({{"match": "w", {}}})", rule)), tensors, nullptr,
                   over("tp=2"))
        .tensors[0];
  };
  const ResolvedTensor row = bias(R"("strategy": "row_parallel")");
  CHECK(row.by->bias == "after_reduction");
  CHECK_FALSE(row.layout->is_sharded());
  CHECK(bias(R"("strategy": "row_parallel", "bias": "plain")").by->bias == "");
  CHECK(bias(R"("strategy": "column_parallel")").by->bias == "");
  CHECK(bias(R"("dims": [null], "bias": "after_reduction")").by->bias == "after_reduction");
}

TEST_CASE("uneven cuts are reported once per axis and size, with an example and a count") {
  const Mapping mapping = mapping_with(R"("x": "tp")", R"({"match": "**", "dims": ["x"]})");
  const std::vector<TensorSpec> tensors = {spec("a", {10}), spec("b", {8}), spec("c", {10}),
                                           spec("d", {9})};
  const Resolution result = resolve(mapping, tensors, nullptr, over("tp=4"));
  REQUIRE(result.uneven.size() == 2);
  CHECK(result.uneven[0].sizes == std::vector<i64>{3, 3, 2, 2});
  CHECK(result.uneven[0].axis == "x");
  CHECK(result.uneven[0].example_tensor == "a");
  CHECK(result.uneven[0].tensors == 2);
  CHECK(result.uneven[1].sizes == std::vector<i64>{3, 2, 2, 2});
}

TEST_CASE("padding is written down as a transform") {
  const std::vector<TensorSpec> tensors = {spec("w", {50257})};
  const Mapping mapping = mapping_with(R"("vocab": {"mesh": "tp", "uneven": "pad", "pad_to": 64})",
                                       R"({"match": "w", "dims": ["vocab"]})");
  CHECK(resolve(mapping, tensors, nullptr, over("tp=4")).tensors[0].by->transforms ==
        std::vector<std::string>{"pad axis 0 'vocab' from 50257 to 50304 with zeros"});
  const auto padded = [](const std::string& axes, const std::string& dim) {
    const Mapping folded = mapping_with(axes, R"({"match": "w", "dims": [")" + dim + "\"]}");
    return resolve(folded, std::vector{spec("w", {18})}, nullptr, over("ep=2,tp=3"))
        .tensors[0]
        .by->transforms.at(0);
  };
  CHECK(padded(R"("b": {"mesh": "ep", "size": 3, "uneven": "pad"}, "d": {"mesh": "tp", "size": 6})",
               "b*d") == "pad axis 0 'b*d' from 18 to 24 with zeros");
  CHECK(padded(R"("c": {"mesh": "ep", "size": 9},
                  "e": {"mesh": ["ep", "tp"], "size": 9, "uneven": "pad"})",
               "c + e") == "pad axis 0 'c + e' from 18 to 21 with zeros");
}

TEST_CASE("drop and tied are listed, unknown tensors can be replicated") {
  const Mapping mapping =
      mapping_with(R"("x": "tp")", R"({"match": ["a", "b"], "dims": ["x"]})",
                   R"(, "drop": ["**.mask"], "tied": [["a", "b", "z"]], "unknown": "warn")");
  const std::vector<TensorSpec> tensors = {spec("a", {4}), spec("l.mask", {4}), spec("b", {4}),
                                           spec("l.7.odd", {4})};
  const Resolution result = resolve(mapping, tensors, nullptr, over("tp=2"));
  CHECK(result.dropped == std::vector<size_t>{1});
  CHECK(result.tied == std::vector<std::vector<std::string>>{{"a", "b"}});
  CHECK(result.tensors[2].by->rule == "unknown");
  CHECK_FALSE(result.tensors[2].layout->is_sharded());
  CHECK(result.warnings == std::vector<std::string>{"no rule matches l.*.odd (1); replicated"});
}

TEST_CASE("a nearer document's field displaces inherited ones that contradict it") {
  const auto set = [](const std::string& axis, const std::string& path, const std::string& value,
                      i64 n, std::string_view mesh) {
    const Mapping base = mapping_with(R"("x": )" + axis, R"({"match": "w", "dims": ["x"]})");
    return only(with_settings(base, {{path, value}}), spec("w", {n}), nullptr, over(mesh));
  };
  CHECK(set(R"({"mesh": "tp", "small": "replicate"})", "axes.x.owners", "round_robin", 4, "tp=2") ==
        Held{"[0, 1) [2, 3)", "[1, 2) [3, 4)"});
  CHECK(set(R"({"mesh": "tp", "owners": "round_robin"})", "axes.x.small", "replicate", 2, "tp=4") ==
        Held{"[0, 1)", "[0, 1)", "[1, 2)", "[1, 2)"});
  CHECK(set(R"({"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"})",
            "axes.x.uneven", "balanced", 5, "tp=2") == Held{"[0, 3)", "[3, 5)"});
  CHECK_ERROR(kMappingSchema,
              set(R"({"mesh": "tp", "uneven": "chunk"})", "axes.x.pad_to", "8", 5, "tp=2"));
}

TEST_CASE("an axis alone keeps whole what is cut over a part of its mesh axis, numbers, too") {
  const std::string alone = R"("x": {"mesh": "tp", "alone": true}, "y": "tp:(1)2")";
  CHECK(cut(alone, R"(["x", "y"])", {4, 4}, "tp=4", 1) == Held(4, "[0, 4)"));
  CHECK(cut(alone, R"(["x", "y"])", {4, 4}, "tp=4", 0)[3] == "[3, 4)");
  const std::vector<TensorSpec> tensors = {spec("e.0", {4}), spec("e.1", {4})};
  const Resolution result =
      resolve(mapping_with(alone, R"({"match": "e.<n>", "dims": ["x"], "index": {"n": "y"}})"),
              tensors, nullptr, over("tp=4"));
  CHECK(result.tensors[1].layout->ranks() == std::vector<i64>{0, 1, 2, 3});
}

TEST_CASE(
    "tensors with the same cut share one layout, and each decision can be told in a sentence") {
  const Mapping mapping =
      mapping_with(R"("x": "tp")", R"({"id": "all", "match": "**", "dims": ["x", null]})");
  const std::vector<TensorSpec> tensors = {spec("a", {4, 2}), spec("b", {4, 2}), spec("c", {4, 3})};
  const Resolution result = resolve(mapping, tensors, nullptr, over("tp=2"));
  CHECK(result.tensors[0].layout == result.tensors[1].layout);
  CHECK(result.tensors[0].layout != result.tensors[2].layout);
  CHECK(why(result.tensors[0]) == "rule 'all' (mapping.json:1) cuts axis 0 'x' as Split(4, tp)");
}

TEST_CASE("every element of every tensor is on some device, whatever the mesh and the shape") {
  CHECK(rc::check("resolve covers", [] {
    const i64 tp = *rc::gen::inRange<i64>(1, 6);
    const i64 dp = *rc::gen::inRange<i64>(1, 4);
    const i64 rows = *rc::gen::inRange<i64>(1, 40);
    const i64 columns = *rc::gen::inRange<i64>(1, 40);
    const auto policy = *rc::gen::element<std::string>("balanced", "chunk", "pad");
    const Mapping mapping =
        mapping_with(R"("x": {"mesh": "tp", "uneven": ")" + policy + R"("}, "y": "dp")",
                     R"({"match": "w", "dims": ["x + x", "y*2"]})");
    ResolveOptions options = over(fmt::format("dp={},tp={}", dp, tp));
    options.allow_empty_shards = true;
    const std::vector<TensorSpec> tensors = {spec("w", {2 * rows, 2 * columns})};
    const Resolution result = resolve(mapping, tensors, nullptr, options);
    std::set<std::pair<i64, i64>> covered;
    for (i64 rank = 0; rank < result.mesh.size(); ++rank) {
      const auto region = *result.tensors[0].layout->region(rank);
      for (i64 r = 0; r < region[0].local_size(); ++r) {
        for (i64 c = 0; c < region[1].local_size(); ++c) {
          if (const auto row = region[0](r)) covered.insert({*row, region[1](c).value()});
        }
      }
    }
    RC_ASSERT(static_cast<i64>(covered.size()) == 4 * rows * columns);
  }));
}

}  // namespace
}  // namespace shardtool::mapping
