#include <fmt/format.h>

#include "tests/check/broken_checkpoints.h"

namespace shardtool::test {
namespace {

using check::CheckRule;

/// Makes a checkpoint with these tensors (and this config.json), checked with a mapping of this
/// text.
auto mapped(std::vector<WrittenTensor> tensors, const std::string& text,
            const std::string& config = "") {
  return [tensors, text, config](const TempFolder& folder) {
    write_tensors(folder, "model.safetensors", tensors);
    if (!config.empty()) folder.write("config.json", config);
    api::CheckOptions options = options_for(folder.path());
    options.mapping.emplace();
    options.mapping->path = folder.write("mapping.json", text);
    return options;
  };
}

/// Returns a mapping over tp=2 with these rules and further members.
std::string rules(const std::string& rules, const std::string& more = "") {
  return fmt::format(R"({{"version": 1, "mesh": [{{"axis": "tp", "size": 2}}], "rules": [{}]{}}})",
                     rules, more);
}

std::string cut(const std::string& name, const std::string& strategy = "rowwise") {
  return fmt::format(R"({{"match": "{}", "strategy": {{"type": "{}", "over": "tp"}}}})", name,
                     strategy);
}

const std::vector<WrittenTensor> kOne{{"w", "F32", {4, 4}}};

/// Six query heads and three key/value heads on four devices.
const std::string kHeads =
    R"({"version": 1, "mesh": [{"axis": "tp", "size": 4}],
        "axes": {"heads": {"mesh": "tp", "size": 6, "groups": "kv"},
                 "kv": {"mesh": "tp", "size": 3}, "width": {"size": 2}},
        "rules": [{"match": "q", "dims": ["heads*width", null]},
                  {"match": "k", "dims": ["kv*width", null]}]})";

}  // namespace

std::vector<Broken> broken_mappings() {
  const std::string block_config = R"({"quantization_config": {"weight_block_size": [4, 4]}})";
  const std::string companion =
      R"(, "companions": [{"of": "**.weight", "is": "**.scale", "kind": "block_scale", "block": [4, 4]}])";
  return {
      {CheckRule::kMappingSyntax, mapped(kOne, "{")},
      {CheckRule::kMappingSchema, mapped(kOne, rules(cut("w"), R"(, "colour": 1)"))},
      {CheckRule::kNotDivisible, mapped({{"w", "F32", {3, 4}}},
                                        R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                  "axes": {"rows": {"mesh": "tp", "uneven": "error"}},
                  "rules": [{"match": "w", "dims": ["rows", null]}]})")},
      {CheckRule::kUnusedRule, mapped(kOne, rules(cut("w") + "," + cut("v")))},
      {CheckRule::kNoRule, mapped({{"w", "F32", {4}}, {"v", "F32", {4}}}, rules(cut("w")))},
      {CheckRule::kAmbiguousRule, mapped(kOne, rules(cut("w") + "," + cut("*")))},
      {CheckRule::kUnknownName, mapped(kOne, rules(R"({"match": "w", "dims": ["rows", null]})"))},
      {CheckRule::kRuleShape, mapped(kOne, rules(R"({"match": "w", "dims": [null, null, null]})"))},
      {CheckRule::kMeshAxisReused,
       mapped(kOne, R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                        "axes": {"a": {"mesh": "tp"}, "b": {"mesh": "tp"}},
                        "rules": [{"match": "w", "dims": ["a", "b"]}]})")},
      {CheckRule::kEmptyShard, mapped({{"w", "F32", {1, 4}}}, rules(cut("w")))},
      {CheckRule::kSizeExpression,
       mapped(kOne, R"({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                        "axes": {"a": {"mesh": "tp", "size": "config.rows"}},
                        "rules": [{"match": "w", "dims": ["a", null]}]})",
              R"({"model_type": "x"})")},
      {CheckRule::kExtends, mapped(kOne, rules(cut("w"), R"(, "extends": ["../other.json"])"))},
      {CheckRule::kGroups, mapped({{"q", "F32", {12, 2}}, {"k", "F32", {6, 2}}}, kHeads)},
      {CheckRule::kMesh, mapped(kOne, R"({"version": 1, "rules": [{"match": "w",
                                     "strategy": "replicate"}]})")},
      {CheckRule::kAssertion,
       mapped(kOne, rules(R"({"match": "w", "strategy": "replicate", "dtype": "BF16"})"))},
      {CheckRule::kStrategy, mapped({{"w", "F32", {3, 4}}}, rules(R"({"match": "w",
          "strategy": {"type": "gate_up", "axis": 0, "over": "tp"}})"))},
      {CheckRule::kSubByteCut, mapped({{"w", "F4", {1, 2}}}, rules(cut("w", "columnwise")))},
      {CheckRule::kTied,
       mapped({{"w", "F32", {4, 4}}, {"v", "F32", {4, 4}}},
              rules(cut("w") + "," + cut("v", "columnwise"), R"(, "tied": [["w", "v"]])"))},
      {CheckRule::kBlockStraddle, mapped({{"a.weight", "U8", {12, 4}}, {"a.scale", "F32", {3, 1}}},
                                         rules(cut("a.weight"), companion), block_config)},
      {CheckRule::kMappingConfig,
       [](const TempFolder& folder) {
         write_tensors(folder, "model.safetensors", {{"w", "F32", {4}}});
         api::CheckOptions options = options_for(folder.path());
         options.mapping.emplace();
         options.mapping->mesh = mesh::parse_mesh("tp=2");
         return options;
       }},
      {CheckRule::kUneven, mapped({{"w", "F32", {3, 4}}}, rules(cut("w")))},
      {CheckRule::kDoubtfulCut, mapped({{"b.0.qkv", "F32", {12, 4}}}, rules(cut("b.*.qkv")))},
      {CheckRule::kMappingWarning,
       mapped(kOne, rules(cut("w"), R"(, "when": {"architectures": ["LlamaForCausalLM"]})"),
              R"({"architectures": ["GPT2LMHeadModel"]})")},
  };
}

}  // namespace shardtool::test
