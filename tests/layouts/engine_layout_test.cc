#include "lib/layouts/engine_layout.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/mesh/mesh.h"
#include "tests/support/throws.h"

namespace shardtool::layouts {
namespace {

using testing::error_of;

const EngineLayout& vllm() {
  return find_layout("vllm");
}

mapping::ModelConfig config(const std::string& text) {
  return mapping::parse_config(text, "config.json");
}

}  // namespace

TEST_CASE("a layout is found by its name and by its label, which are listed by their use") {
  CHECK(find_layout("vllm").label() == find_layout("vllm@0.32").label());
  std::map<LayoutUse, std::set<std::string>> names;
  for (const EngineLayout& layout : engine_layouts()) {
    const LayoutUse use = layout.files.empty() ? LayoutUse::kOnlyRead : LayoutUse::kWritten;
    names[use].insert(layout.name);
    names[use].insert(layout.label());
    CHECK(&find_layout(layout.label()) == &layout);
  }
  for (const LayoutUse use : {LayoutUse::kWritten, LayoutUse::kOnlyRead}) {
    const std::vector<std::string> listed = layout_names(use);
    CHECK(std::set<std::string>(listed.begin(), listed.end()) == names[use]);
    CHECK(listed.size() == names[use].size());
  }
  const auto unknown = error_of([] { find_layout("vllm@0.1"); });
  REQUIRE(unknown);
  CHECK(unknown->code() == ErrorCode::kUsage);
}

TEST_CASE("every layout's documents decode, and its models name them") {
  for (const EngineLayout& layout : engine_layouts()) {
    std::set<std::string> used;
    for (const LayoutModels& models : layout.models) {
      CHECK_FALSE(models.proof.empty());
      for (const std::string& type : models.model_types) {
        std::set<std::string> of_models;
        for (const std::string tied : {"true", "false"}) {
          const auto model = config(
              fmt::format(R"({{"model_type": "{}", "tie_word_embeddings": {}}})", type, tied));
          const auto documents = documents_for(layout, &model);
          if (!models.documents.empty()) CHECK_NOTHROW(mapping::Mapping{documents});
          for (const auto& document : documents) of_models.insert(document.name);
        }
        CHECK(of_models.size() == models.documents.size());
        used.merge(of_models);
      }
    }
    CHECK(used.size() == layout.documents.size());
  }
}

TEST_CASE("files are named after the ranks of the axes that the layout knows") {
  const mesh::Mesh tp = mesh::parse_mesh("tp=4");
  CHECK(file_name(names_for(vllm(), tp), tp, 3, 12) == "model-rank-3-part-12.safetensors");
  const mesh::Mesh stages = mesh::parse_mesh("pp=2,tp=2");
  CHECK(file_name(names_for(vllm(), stages), stages, 3, 0) == "model-pp-1-tp-1-part-0.safetensors");
  const mesh::Mesh only_stages = mesh::parse_mesh("pp=2");
  const FileNames& names = names_for(vllm(), only_stages);
  CHECK(to_string(with_axes(names, only_stages)) == "pp=2,tp=1");
  CHECK(file_name(names, with_axes(names, only_stages), 1, 0) ==
        "model-pp-1-tp-0-part-0.safetensors");
  const mesh::Mesh one_stage = mesh::parse_mesh("pp=1,tp=2");
  CHECK(file_name(names_for(vllm(), one_stage), one_stage, 1, 0) ==
        "model-rank-1-part-0.safetensors");
}

TEST_CASE("a pattern may have the number of devices, and no parts") {
  const FileNames& names = find_layout("deepseek").files.front();
  const mesh::Mesh tp = mesh::parse_mesh("tp=16");
  CHECK(names.axes == std::vector<std::string>{"tp"});
  CHECK_FALSE(names.has_parts);
  CHECK(file_name(names, tp, 12, 0) == "model12-mp16.safetensors");
  CHECK(vllm().files.front().has_parts);
}

TEST_CASE("ranks that would share a file name are refused") {
  const auto error = error_of([] { names_for(vllm(), mesh::parse_mesh("dp=2,tp=2")); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->message() ==
        "the file names of the layout vllm@0.32 have no field for the mesh axis 'dp'");
  CHECK_NOTHROW(names_for(vllm(), mesh::parse_mesh("dp=1,tp=2")));
}

TEST_CASE("a model without a table is refused with those that have one") {
  const auto other = config(R"({"model_type": "unheard_of"})");
  const auto error = error_of([&] { documents_for(vllm(), &other); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kUnsupported);
  CHECK(error->notes().front().first == "known");
}

TEST_CASE("experts that are stored transposed are refused, and said to be") {
  const auto model = config(R"({"model_type": "gpt_oss"})");
  const auto error = error_of([&] { check_expressible(vllm(), model, mesh::parse_mesh("tp=2")); });
  REQUIRE(error);
  CHECK(error->notes().front().second.find("transposed") != std::string::npos);
}

TEST_CASE("a document whose condition the model does not meet is left out") {
  const auto names_of = [](const std::string& tied) {
    const auto model =
        config(fmt::format(R"({{"model_type": "llama", "tie_word_embeddings": {}}})", tied));
    std::set<std::string> names;
    for (const auto& document : documents_for(vllm(), &model)) names.insert(document.name);
    return names;
  };
  const auto tied = names_of("true");
  const auto untied = names_of("false");
  CHECK(tied.size() == untied.size() + 1);
  CHECK(std::ranges::includes(tied, untied));
}

TEST_CASE("what no engine has loaded is experimental, and what one has loaded is not") {
  const auto reasons = [](const std::string& text, const std::string& mesh) {
    return experimental_reasons(vllm(), config(text), mesh::parse_mesh(mesh));
  };
  const std::string quantised = R"("quantization_config": {"quant_method": "fp8"})";
  const auto model = [](const std::string& type, const std::string& more = "") {
    return fmt::format(R"({{"model_type": "{}"{}{}}})", type, more.empty() ? "" : ", ", more);
  };
  const std::string tied = R"("tie_word_embeddings": true)";
  CHECK(reasons(model("llama", tied), "pp=2,tp=2").empty());
  CHECK(reasons(model("llama", quantised), "tp=2").empty());
  CHECK(reasons(model("llama", quantised), "pp=2").size() == 1);
  CHECK(reasons(model("qwen3"), "pp=2,tp=2").empty());
  CHECK(reasons(model("qwen3", tied), "tp=2").empty());
  CHECK(reasons(model("glm4", tied), "tp=2").size() == 1);
  CHECK(reasons(model("smollm3"), "tp=2").empty());
  CHECK(reasons(model("smollm3", R"("tie_word_embeddings": false)"), "tp=2").size() == 1);
  CHECK(reasons(model("mistral", quantised), "tp=2").empty());
  CHECK(reasons(model("qwen2", quantised), "tp=2").size() == 1);
  CHECK(reasons(model("ministral3", quantised), "tp=2").size() == 1);
  CHECK(reasons(model("mistral"), "pp=2").empty());
  CHECK(reasons(model("ministral3"), "pp=2,tp=1").empty());
  CHECK(reasons(model("ministral3", tied), "pp=2,tp=1").size() == 1);
  CHECK(reasons(model("phi3"), "pp=2,tp=2").size() == 1);
  CHECK(reasons(model("gemma3_text"), "pp=2,tp=2").empty());
  CHECK(reasons(model("gpt_oss"), "pp=2,tp=1").size() == 1);
  CHECK(reasons(model("mixtral"), "pp=2").empty());
  CHECK(reasons(model("mixtral"), "pp=2,tp=2").size() == 1);
  CHECK(reasons(model("deepseek_v3", quantised), "tp=2").empty());
  CHECK(reasons(model("deepseek_v3", R"("q_lora_rank": null)"), "tp=2").empty());
  CHECK(reasons(model("deepseek_v2", quantised), "tp=2").size() == 1);
  CHECK(reasons(model("granitemoe", tied), "pp=2").empty());
  CHECK(reasons(model("olmoe", tied), "tp=2").size() == 1);
}

TEST_CASE("models without a table and quantised ones are refused with the reason") {
  const auto refusal = [](const std::string& text, const std::string& mesh) {
    const auto model = config(text);
    const auto error = error_of([&] {
      documents_for(vllm(), &model);
      check_expressible(vllm(), model, mesh::parse_mesh(mesh));
    });
    return error ? error->message() : "none";
  };
  CHECK(refusal(R"({"model_type": "llama"})", "tp=2") == "none");
  CHECK(refusal(R"({"model_type": "llama", "tie_word_embeddings": true})", "tp=2") == "none");
  CHECK(refusal(R"({"model_type": "llama", "tie_word_embeddings": true})", "pp=2") == "none");
  CHECK(refusal(R"({"model_type": "llama", "tie_word_embeddings": false})", "pp=2") == "none");
  CHECK(refusal(R"({"model_type": "ernie4_5_moe", "tie_word_embeddings": true})", "tp=2") ==
        "none");
  CHECK(refusal(R"({"model_type": "ernie4_5_moe", "tie_word_embeddings": true})", "pp=2") ==
        "the layout vllm@0.32 cannot store this model");
  CHECK(refusal(R"({"model_type": "llama", "quantization_config": null})", "tp=2") == "none");
  CHECK(refusal(R"({"model_type": "llama", "quantization_config": {}})", "tp=2") ==
        "the layout vllm@0.32 cannot store this model");
  const auto quantised = [&](const std::string& type, const std::string& quantization) {
    return refusal(
        fmt::format(R"({{"model_type": "{}", "quantization_config": {}}})", type, quantization),
        "tp=2");
  };
  const std::string blocks = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
  CHECK(quantised("llama", blocks) == "none");
  CHECK(quantised("qwen3_moe", blocks) == "none");
  CHECK(quantised("mixtral", blocks) == "the layout vllm@0.32 cannot store this model");
  CHECK(quantised("gpt_oss", R"({"quant_method": "mxfp4"})") == "none");
  CHECK(refusal(R"({"model_type": "gpt_oss"})", "tp=2") ==
        "the layout vllm@0.32 cannot store this model");
  const auto int8 = [](const std::string& dynamic) {
    return R"({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups":
        {"group_0": {"input_activations": {"dynamic": )" +
           dynamic + "}}}}";
  };
  CHECK(quantised("llama", int8("true")) == "none");
  for (const std::string& other :
       {std::string(R"({"quant_method": "gptq", "bits": 4})"),
        std::string(R"({"quant_method": "awq", "version": "gemm"})"),
        std::string(R"({"quant_method": "mxfp4"})"), int8("false"),
        std::string(
            R"({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"})"),
        std::string(R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})")}) {
    CAPTURE(other);
    CHECK(quantised("llama", other) == "the layout vllm@0.32 cannot store this model");
  }
  CHECK(refusal(R"({"model_type": "qwen2_5_vl"})", "tp=2") == "none");
  CHECK(refusal(R"({"model_type": "qwen2_5_vl"})", "pp=2") ==
        "the layout vllm@0.32 cannot store this model");
  CHECK(quantised("phi3", blocks) == "the layout vllm@0.32 cannot store this model");
  CHECK(refusal(R"({"model_type": "gpt2"})", "tp=2") ==
        "the layout vllm@0.32 has no table of names for the model type 'gpt2'");
  CHECK(error_of([] { documents_for(vllm(), nullptr); })->code() == ErrorCode::kConfig);
}

}  // namespace shardtool::layouts
