// The collectives of a pass: how many, and of how many bytes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/model/flow/token_axes.h"
#include "tests/model/priced.h"
#include "tests/model/published.h"
#include "tests/presets/fixture.h"

using namespace shardtool;
using mapping::Fixture;
using mapping::fixture;
using model::comm_of;
using model::comm_text;
using model::Price;
using model::price_of;
using model::ReplicaWorkload;

TEST_CASE("sequence parallel moves the bytes of all_reduce in two halves, where tokens suffice") {
  const auto m = model::llama_3_70b();
  ReplicaWorkload workload{.batch = 1, .prompt_len = 8192, .context = 8192};
  const Price whole = price_of(m, "tp=8", workload);
  workload.sequence_parallel = true;
  const Price cut = price_of(m, "tp=8", workload);
  CHECK(comm_text(cut.prefill.comm) ==
        "tp all_gather 1 x 256512; tp all_gather 161 x 134217728; "
        "tp reduce_scatter 161 x 134217728");
  CHECK(cut.prefill.comm[1].wire_bytes_per_rank + cut.prefill.comm[2].wire_bytes_per_rank ==
        whole.prefill.comm[1].wire_bytes_per_rank);
  // One token cannot be cut over eight devices.
  CHECK(comm_text(cut.decode.comm) == comm_text(whole.decode.comm));
}

TEST_CASE("one device, and replicas, exchange nothing") {
  const auto m = model::llama_3_8b();
  CHECK(price_of(m, "tp=1", {}).decode.comm.empty());
  CHECK(comm_text(price_of(m, "dp=2,tp=4", {}).decode.comm) ==
        "tp all_gather 1 x 256512; tp all_reduce 65 x 8192");
  // the same weights over half the devices: twice the bytes on each
  CHECK(price_of(m, "tp=4", {}).decode.amounts.weight_bytes ==
        price_of(m, "dp=2,tp=4", {}).decode.amounts.weight_bytes);
}

TEST_CASE("collectives of each family's block") {
  // Two layers of hidden size 48 in bf16: 96 bytes per all_reduce; 101 words: 202 bytes of logits.
  const std::string dense = "tp all_gather 1 x 202; tp all_reduce 5 x 96";
  for (const char* family :
       {"llama",       "mistral",   "qwen2",      "qwen3",       "phi3",        "gemma2",
        "gpt2",        "mixtral",   "phimoe",     "stablelm",    "opt",         "dbrx",
        "qwen2_moe",   "qwen3_moe", "gpt_oss",    "deepseek_v2", "deepseek_v3", "deepseek_v32",
        "glm_moe_dsa", "kimi_k25",  "glm",        "glm4",        "glm4_moe",    "seed_oss",
        "ernie4_5",    "exaone4",   "qwen3_next", "qwen3_5",     "qwen3_5_moe", "granitemoehybrid",
        "nemotron_h"}) {
    CAPTURE(family);
    CHECK(comm_of(family, "tp=2") == dense);
  }
  // a norm over all heads needs whole rows of q (48 features) and k (24), and v moves with them
  CHECK(comm_of("olmoe", "tp=2") ==
        "tp all_gather 1 x 202; tp all_reduce 4 x 2; tp all_reduce 5 x 96");
  // an encoder's words are added to segments and positions after they are whole; biases add no call
  CHECK(comm_of("bert", "tp=2") == dense);
  // parallel attention and MLP are reduced together: one per layer
  CHECK(comm_of("gpt_neox", "tp=2") == "tp all_gather 1 x 202; tp all_reduce 3 x 96");
}

TEST_CASE("stages of a pipeline hand the residual on") {
  CHECK(comm_of("llama", "pp=2") == "pp permute 1 x 96");
  CHECK(comm_of("llama", "pp=2,tp=2") ==
        "pp permute 1 x 96; tp all_gather 1 x 202; tp all_reduce 5 x 96");
}

TEST_CASE(
    "along an axis of experts alone devices have tokens of their own, sent to their experts") {
  // 6 experts, 2 per token: with 3 on each of 2 devices a token needs 2 (1 - C(3, 2) / C(6, 2)) =
  // 1.6 of them. 96 bytes per token, there and back in two layers.
  CHECK(comm_of("mixtral", "ep=2") == "ep all_to_all 4 x 154");
  CHECK(comm_of("mixtral_stacked", "ep=2") == "ep all_to_all 4 x 154");
  // The same if experts are stacked, and ep and tp cut one axis.
  CHECK(comm_of("dbrx", "ep=2") == "ep all_to_all 4 x 154");
  CHECK(comm_of("dbrx", "ep=2,tp=2") ==
        "ep all_to_all 4 x 154; tp all_gather 1 x 202; tp all_reduce 5 x 96");
  // With tp the sums of the experts' halves are tp's only, like attention and embedding.
  CHECK(comm_of("mixtral", "ep=2,tp=2") ==
        "ep all_to_all 4 x 154; tp all_gather 1 x 202; tp all_reduce 5 x 96");
}

TEST_CASE(
    "devices with the same tokens add up their experts, those with their own exchange tokens") {
  const Fixture& f = fixture("mixtral");
  std::string why_not;
  const auto bound = model::bind_model(model::find_graph(f.config, why_not), f.config, f.tensors);
  mapping::ResolveOptions options;
  options.mesh = mesh::parse_mesh("ep=2,tp=2");
  const auto resolution = resolve(mapping::load_preset(f.preset), f.tensors, &f.config, options);
  const auto layouts = model::layouts_of(resolution, f.tensors.size());
  const auto moves = [&](const mesh::Over& own_tokens) {
    model::Stream stream;
    flow(bound, 0, layouts, resolution.mesh, own_tokens, stream);
    const auto made = flow(bound, 1, layouts, resolution.mesh, own_tokens, stream);
    std::string text;
    for (const model::Exchange& exchange : exchanges(made))
      text += fmt::format("{} {}; ", mesh::to_string(exchange.over), to_string(exchange.move));
    return text + (stream.at("x").on[0].is(plan::Placement::Kind::kPartial) ? "partial" : "whole");
  };
  const mesh::Over dealt = model::token_axes(bound, layouts, resolution.mesh);
  CHECK(mesh::to_string(dealt) == "ep");
  CHECK(moves({}) == "tp all_reduce; tp all_reduce; ep*tp all_reduce; whole");
  CHECK(moves(dealt) ==
        "tp all_reduce; tp all_reduce; ep all_to_all; ep all_to_all; tp all_reduce; whole");
}

TEST_CASE("what follows a state is summed once a layer, and its norm where a group is cut") {
  CHECK(comm_of("mamba2", "tp=2") == "tp all_gather 1 x 202; tp all_reduce 3 x 48");
  CHECK(comm_of("mamba2_one_group", "tp=2") ==
        "tp all_gather 1 x 202; tp all_reduce 2 x 2; tp all_reduce 3 x 48");
}
