#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/api/transform.h"
#include "lib/base/checked.h"
#include "tests/layouts/tables.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

/// The vocabulary as engines pad it: vLLM 0.32 and SGLang 0.5, layers/vocab_parallel_embedding.py.
namespace shardtool::layouts {
namespace {

using nlohmann::json;
using test::TempFolder;

constexpr i64 kMultiple = 64;

/// A llama of one layer whose heads divide over 12 devices.
json table_of(i64 vocabulary) {
  constexpr i64 kHidden = 48;
  constexpr i64 kMlp = 96;
  const json square = {"BF16", {kHidden, kHidden}};
  const std::string layer = "model.layers.0.";
  json tensors = {{"model.norm.weight", {"BF16", {kHidden}}},
                  {layer + "input_layernorm.weight", {"BF16", {kHidden}}},
                  {layer + "post_attention_layernorm.weight", {"BF16", {kHidden}}},
                  {layer + "mlp.down_proj.weight", {"BF16", {kHidden, kMlp}}}};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    tensors[fmt::format("{}self_attn.{}.weight", layer, name)] = square;
  }
  for (const char* name : {"gate_proj", "up_proj"}) {
    tensors[fmt::format("{}mlp.{}.weight", layer, name)] = {"BF16", {kMlp, kHidden}};
  }
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    tensors[name] = {"BF16", {vocabulary, kHidden}};
  }
  return {{"tensors", tensors},
          {"config",
           {{"model_type", "llama"},
            {"hidden_size", kHidden},
            {"intermediate_size", kMlp},
            {"num_hidden_layers", 1},
            {"num_attention_heads", 12},
            {"num_key_value_heads", 12},
            {"vocab_size", vocabulary}}}};
}

i64 rows_of_part(const std::string& folder) {
  return test::read_tensors(folder, "model-rank-0-part-")
      .at("model.embed_tokens.weight")
      .spec.shape.at(0);
}

i64 rows_of_sglang(i64 vocabulary, i64 tp) {
  const bool divides = round_up(vocabulary, kMultiple) % tp == 0;
  return round_up(vocabulary, divides ? kMultiple : kMultiple * tp) / tp;
}

}  // namespace

TEST_CASE("the vocabulary is padded as the engine pads it, or refused where it does not start") {
  for (const i64 vocabulary : {15000, 15160}) {
    const TempFolder folder;
    const json table = table_of(vocabulary);
    const test::Tensors whole = test::write_model(folder / "whole", table);
    for (const i64 tp : {2, 3, 6, 12}) {
      CAPTURE(vocabulary);
      CAPTURE(tp);
      const auto split = [&](const std::string& layout) {
        api::SplitOptions options;
        options.source = folder / "whole";
        options.mapping = test::choice_of({"--mesh", fmt::format("tp={}", tp)});
        options.write.output = folder / layout;
        options.write.layout = layout;
        options.write.force = true;
        api::split(options);
        return rows_of_part(folder / layout);
      };
      if (round_up(vocabulary, kMultiple) % tp == 0) {
        CHECK(split("vllm") == round_up(vocabulary, kMultiple) / tp);
      } else {
        CHECK_ERROR(kNotDivisible, split("vllm"));
      }
      CHECK(split("sglang") == rows_of_sglang(vocabulary, tp));
      api::MergeOptions merge;
      merge.sources = {folder / "sglang"};
      merge.write.output = folder / "merged";
      merge.write.force = true;
      api::merge(merge);
      CHECK(test::rows_of(test::read_tensors(folder / "merged", "model")) == test::rows_of(whole));
      api::ReshardOptions reshard;
      reshard.sources = {folder / "sglang"};
      reshard.to = test::choice_of({"--mesh", "tp=4"});
      reshard.write.output = folder / "resharded";
      reshard.write.layout = "sglang";
      reshard.write.force = true;
      api::reshard(reshard);
      CHECK(rows_of_part(folder / "resharded") == rows_of_sglang(vocabulary, 4));
    }
  }
}

}  // namespace shardtool::layouts
