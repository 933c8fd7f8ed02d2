// Models that contradict themselves: each is refused by name, or gets a warning, before a byte
// moves.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lib/api/transform.h"
#include "tests/mapping/models.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/throws.h"

namespace shardtool::api {
namespace {

using mapping::tiny_llama;
using mapping::tiny_mixtral;
using mapping::TinyModel;
using test::TempFolder;
using test::Tensors;

Tensors tensors_of(const TinyModel& model) {
  Tensors tensors;
  for (const TensorSpec& spec : model.tensors) tensors[spec.name] = test::distinct_tensor(spec);
  return tensors;
}

TransformReport split_over(const std::string& source, const std::string& mesh,
                           const std::string& output) {
  SplitOptions options;
  options.source = source;
  options.mapping.mesh = mesh::parse_mesh(mesh);
  options.write.output = output;
  return split(options);
}

TransformReport split_model(const TinyModel& model, const std::string& mesh = "tp=2") {
  const TempFolder folder;
  test::write_checkpoint(folder / "whole", tensors_of(model));
  if (!model.config.empty()) folder.write("whole/config.json", model.config);
  try {
    return split_over(folder / "whole", mesh, folder / "parts");
  } catch (const Error&) {
    CHECK_FALSE(std::filesystem::exists(folder / "parts"));
    throw;
  }
}

/// Text of an error as a user reads it, without its code.
std::string text_of(const Error& e) {
  std::string text(e.message());
  for (const auto& [label, note] : e.notes()) text += fmt::format("\n{}: {}", label, note);
  for (const std::string& help : e.help_lines()) text += "\nhelp: " + help;
  return text;
}

/// Requires the error with this code and tensor that contains all of `parts` and a help line.
void check_refused(const TinyModel& model, ErrorCode code, const std::string& tensor,
                   const std::vector<std::string>& parts, const std::string& mesh = "tp=2") {
  const auto e = testing::error_of([&] { return split_model(model, mesh); });
  REQUIRE(e);
  const std::string text = text_of(*e);
  CAPTURE(text);
  CHECK(e->code() == code);
  CHECK(e->tensor_name() == tensor);
  CHECK_FALSE(e->help_lines().empty());
  for (const std::string& part : parts) CHECK(text.find(part) != std::string::npos);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

TinyModel without(TinyModel model, const std::string& name) {
  REQUIRE(std::erase_if(model.tensors, [&](const TensorSpec& spec) { return spec.name == name; }) ==
          1);
  return model;
}

/// Llama with FP8 projections and scales for blocks of 32; the config states `block`.
TinyModel fp8_llama(i64 block, i64 mlp = 128) {
  TinyModel model = tiny_llama({.layers = 1, .heads = 8, .kv_heads = 8, .head_dim = 8, .mlp = mlp});
  std::vector<TensorSpec> scales;
  for (TensorSpec& spec : model.tensors) {
    if (spec.name.find("_proj.weight") == std::string::npos) continue;
    spec.dtype = Dtype::kF8E4M3;
    scales.push_back({spec.name + "_scale_inv",
                      Dtype::kF32,
                      {ceil_div(spec.shape[0], 32), ceil_div(spec.shape[1], 32)}});
  }
  model.tensors.insert(model.tensors.end(), scales.begin(), scales.end());
  model.config.pop_back();
  model.config += fmt::format(
      R"(, "quantization_config": {{"quant_method": "fp8", "weight_block_size": [{0}, {0}]}}}})",
      block);
  return model;
}

const std::string kLayer = "model.layers.0.";

TEST_CASE("an architecture that no preset knows is named, with what to do") {
  TinyModel model = tiny_llama();
  model.config = R"({"architectures": ["NovelForCausalLM"], "model_type": "novel"})";
  check_refused(model, ErrorCode::kConfig, "",
                {"NovelForCausalLM", "model_type 'novel'", "--preset", "shardtool init"});
}

TEST_CASE("heads times head_dim that are not the rows are named with both numbers") {
  TinyModel model = tiny_llama({.layers = 1, .heads = 8, .kv_heads = 2, .head_dim = 8});
  const TinyModel other_dim{replaced(model.config, R"("head_dim": 8)", R"("head_dim": 16)"),
                            model.tensors};
  check_refused(other_dim, ErrorCode::kShapeMismatch, kLayer + "self_attn.k_proj.weight",
                {"'kv_heads*head_dim' is 2*16 = 32, but the tensor has 16 elements there",
                 "axis: 0", "head_dim = 16 (from config.json)", "from one model"});
  const TinyModel other_kv{
      replaced(model.config, R"("num_key_value_heads": 2)", R"("num_key_value_heads": 4)"),
      model.tensors};
  check_refused(other_kv, ErrorCode::kShapeMismatch, kLayer + "self_attn.k_proj.weight",
                {"'kv_heads*head_dim' is 4*8 = 32, but the tensor has 16 elements there",
                 "num_key_value_heads = 4 (from config.json)"});
}

TEST_CASE("layers that are fewer or more than the config says are warned of, or refused on pp") {
  const TinyModel two = tiny_llama({.layers = 2});
  const TinyModel of_four{tiny_llama({.layers = 4}).config, two.tensors};
  CHECK(split_model(two).warnings.empty());
  CHECK(split_model(of_four).warnings ==
        std::vector<std::string>{"axis 'layers' has size 4, num_hidden_layers = 4 (from "
                                 "config.json), but no tensor has index 2, 3"});
  const TinyModel beyond{two.config, tiny_llama({.layers = 4}).tensors};
  CHECK(split_model(beyond).warnings ==
        std::vector<std::string>{"axis 'layers' has size 2, num_hidden_layers = 2 (from "
                                 "config.json), but tensors have indices up to 3"});
  const auto e = testing::error_of([&] { return split_model(beyond, "pp=2"); });
  REQUIRE(e);
  CHECK(e->code() == ErrorCode::kShapeMismatch);
  CHECK(e->message() == "index 2 is outside axis 'layers' of size 2");
  CHECK_FALSE(e->help_lines().empty());
}

TEST_CASE("a checkpoint without a single element is warned of") {
  const TempFolder folder;
  test::Tensors tensors;
  for (const char* name : {"a", "b"}) tensors[name].spec = {name, Dtype::kBF16, {0}};
  test::write_checkpoint(folder / "empty", tensors);
  MergeOptions options;
  options.sources = {folder / "empty"};
  options.write.output = folder / "merged";
  options.write.force = true;
  const auto warnings = merge(options).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().starts_with("none of the 2 tensors has an element."));
  tensors["a"] = test::numbered_tensor("a", Dtype::kBF16, {1});
  test::write_checkpoint(folder / "one", tensors);
  options.sources = {folder / "one"};
  CHECK(merge(options).warnings.empty());
}

TEST_CASE("a config with experts beside tensors without any is warned of") {
  const TinyModel model{tiny_mixtral().config, tiny_llama().tensors};
  CHECK(split_model(model).warnings ==
        std::vector<std::string>{"axis 'experts' has size 4, num_local_experts = 4 (from "
                                 "config.json), but no tensor has it"});
}

TEST_CASE("a fused tensor is refused where no rule declares its order") {
  TinyModel model = tiny_llama({.layers = 1});
  model.tensors.push_back({kLayer + "self_attn.qkv_proj.weight", Dtype::kBF16, {96, 64}});
  check_refused(model, ErrorCode::kNoRule, kLayer + "self_attn.qkv_proj.weight",
                {"the order inside a fused tensor is not guessed", "heads*head_dim + kv_heads"});
}

TEST_CASE(
    "weights beside an adapter that is not added to them are refused, and warned of by merge") {
  const auto warns = [](const TinyModel& model) {
    const TempFolder folder;
    test::write_checkpoint(folder / "whole", tensors_of(model));
    MergeOptions options;
    options.sources = {folder / "whole"};
    options.write.output = folder / "merged";
    const auto report = merge(options);
    return std::ranges::any_of(report.warnings, [](const std::string& warning) {
      return warning.find("merge_and_unload") != warning.npos;
    });
  };
  TinyModel model = tiny_llama();
  CHECK_FALSE(warns(model));
  for (TensorSpec& spec : model.tensors) {
    if (spec.name.ends_with("q_proj.weight"))
      spec.name.insert(spec.name.rfind("weight"), "base_layer.");
    spec.name.insert(0, "base_model.model.");
  }
  CHECK(warns(model));
  const auto error = testing::error_of([&] { return split_model(model); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kNoRule);
  REQUIRE_FALSE(error->help_lines().empty());
  CHECK(error->help_lines().front().find("merge_and_unload") != std::string::npos);
}

TEST_CASE("a wrapper of PyTorch inside of names is named, with the rule that takes it out") {
  TinyModel model = tiny_llama();
  for (TensorSpec& spec : model.tensors) {
    if (spec.name.starts_with(kLayer)) spec.name.insert(kLayer.size(), "_orig_mod.");
  }
  const auto error = testing::error_of([&] { return split_model(model); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kNoRule);
  const std::string read =
      R"("read": [{"name": "model.layers.*._orig_mod.**", "of": "model.layers.*.**"}])";
  CHECK(text_of(*error).find(read) != std::string::npos);
  const TempFolder folder;
  test::write_checkpoint(folder / "whole", tensors_of(model));
  folder.write("whole/config.json", model.config);
  SplitOptions options;
  options.source = folder / "whole";
  options.mapping.path =
      folder.write("mapping.json", R"({"version": 1, "extends": ["preset:llama"], )" + read + "}");
  options.mapping.mesh = mesh::parse_mesh("tp=2");
  options.write.output = folder / "parts";
  split(options);
  const Tensors written = test::read_tensors(folder / "parts", "model-rank-0");
  CHECK(written.size() == model.tensors.size());
  CHECK(written.contains(kLayer + "self_attn.q_proj.weight"));
}

TEST_CASE("a scale is refused without its weight, and where config.json knows of no scales") {
  const std::string weight = kLayer + "mlp.gate_proj.weight";
  check_refused(without(fp8_llama(32), weight), ErrorCode::kNoRule, weight + "_scale_inv",
                {"follows: '" + weight + "'", "which is not in the checkpoint"});
  TinyModel plain = fp8_llama(32);
  plain.config = tiny_llama({.layers = 1, .kv_heads = 8}).config;
  check_refused(plain, ErrorCode::kNoRule, kLayer + "mlp.down_proj.weight_scale_inv",
                {"the families of quantised tensors: fp8_block", "\"quantization_config\""});
}

TEST_CASE("blocks that are not those of the scales, or that a cut falls into, are refused") {
  check_refused(
      fp8_llama(48), ErrorCode::kShapeMismatch, kLayer + "mlp.down_proj.weight_scale_inv",
      {"axis 1 'mlp' has 4 elements, the rule expects 3", "in blocks of 48", "from one model"});
  check_refused(fp8_llama(32, 96), ErrorCode::kBlockStraddle,
                kLayer + "mlp.down_proj.weight_scale_inv",
                {"the cut of axis 1 'mlp' at index 48 falls inside a block of 32", "--straddle",
                 "uneven-aligned"});
  CHECK(split_model(fp8_llama(32)).written.has_value());
}

TEST_CASE("an expert that is missing, in part or whole, or one too many is named") {
  const std::string experts = kLayer + "block_sparse_moe.experts.";
  TinyModel model = tiny_mixtral({.layers = 1}, 4);
  CHECK(split_model(model).written.has_value());
  check_refused(without(model, experts + "3.w2.weight"), ErrorCode::kAssertion,
                experts + "0.w2.weight",
                {"index 3 of axis 'experts' is missing: the axis has 4 indices",
                 "num_local_experts = 4 (from config.json)", "missing tensors"});
  const TinyModel five{model.config, tiny_mixtral({.layers = 1}, 5).tensors};
  check_refused(five, ErrorCode::kAssertion, experts + "0.w1.weight",
                {"index 4 of axis 'experts' is too large", "from one model"});
}

/// Writes the files of Llama and of another model into one folder, with the index of the former if
/// `indexed`.
std::string mixed(const TempFolder& folder, const Tensors& other, const std::string& file,
                  bool indexed) {
  const TinyModel llama = tiny_llama();
  test::write_checkpoint(folder / "whole", tensors_of(llama), 2);
  folder.write("whole/config.json", llama.config);
  test::write_checkpoint(folder / "other", other);
  std::filesystem::rename(folder / "other/model.safetensors", folder / "whole/" + file);
  if (!indexed) std::filesystem::remove(folder / "whole/model.safetensors.index.json");
  return folder / "whole";
}

TEST_CASE("two checkpoints in one folder are told apart by the index, or refused") {
  const Tensors other = tensors_of(tiny_mixtral());
  for (const std::string file : {"model.safetensors", "model-00001-of-00003.safetensors"}) {
    CAPTURE(file);
    const TempFolder folder;
    const TransformReport report =
        split_over(mixed(folder, other, file, true), "tp=2", folder / "parts");
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings[0].find(file) != std::string::npos);
    const TempFolder alone;
    const auto e = testing::error_of(
        [&] { return split_over(mixed(alone, other, file, false), "tp=2", alone / "parts"); });
    REQUIRE(e);
    CHECK(e->code() == ErrorCode::kUnsupported);
    CHECK(text_of(*e).find(file) != std::string::npos);
    CHECK_FALSE(e->help_lines().empty());
  }
}

TEST_CASE("a file of another checkpoint in the place of one that the index names is refused") {
  const TempFolder folder;
  const std::string first = "model-00001-of-00002.safetensors";
  const std::string whole = mixed(folder, tensors_of(tiny_mixtral()), first, true);
  CHECK_ERROR(kIndexInvalid, split_over(whole, "tp=2", folder / "parts"));
}

}  // namespace
}  // namespace shardtool::api
