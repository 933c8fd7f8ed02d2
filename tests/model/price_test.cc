#include "lib/model/price.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/model/priced.h"
#include "tests/model/published.h"
#include "tests/support/throws.h"

using namespace shardtool;
using doctest::Approx;
using model::comm_of;
using model::comm_text;
using model::Price;
using model::price_of;
using model::ReplicaWorkload;

TEST_CASE("parameters that follow from graph and config are the published ones") {
  CHECK(model::llama_3_8b().parameters() == 8'030'261'248);
  CHECK(model::llama_3_70b().parameters() == 70'553'706'496);
  CHECK(model::llama_3_405b().parameters() == 405'853'388'800);
  CHECK(model::published(R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2,
    "intermediate_size": 4864, "num_hidden_layers": 24, "vocab_size": 151936,
    "tie_word_embeddings": true})")
            .parameters() == 494'032'768);
  CHECK(model::published(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
    "hidden_size": 5120, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 25600, "num_hidden_layers": 64, "vocab_size": 151936})")
            .parameters() == 32'762'123'264);
  // scaling-book inference.md question 1, which rounds to 18.4e9; excludes norms
  CHECK(model::published(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 256,
    "intermediate_size": 16384, "num_hidden_layers": 64, "vocab_size": 32128,
    "tie_word_embeddings": true})")
            .parameters() == 18'385'207'296 + (64 * 2 + 1) * 4096);
}

TEST_CASE("tensor parallel Llama-3-70B: two all_reduces per layer, 28,672 bytes each per token") {
  // Megatron: two per layer forward, one of the embedding cut by vocabulary, one gather of logits
  const auto m = model::llama_3_70b();
  const Price price = price_of(m, "tp=8", {.batch = 1, .prompt_len = 8192, .context = 8192});
  CHECK(comm_text(price.decode.comm) == "tp all_gather 1 x 256512; tp all_reduce 161 x 16384");
  CHECK(price.decode.comm[1].wire_bytes_per_rank == 28'672);
  CHECK(160 * price.decode.comm[1].wire_bytes_per_rank == 4'587'520);
  CHECK(comm_text(price.prefill.comm) == "tp all_gather 1 x 256512; tp all_reduce 161 x 134217728");
  CHECK(160.0 * static_cast<double>(price.prefill.comm[1].wire_bytes_per_rank) ==
        Approx(37.58e9).epsilon(1e-3));
  // weights without the embedding of which one row is read: 17,640,734,720 - 262,668,288 bytes
  CHECK(price.decode.amounts.weight_bytes == 17'640'734'720 - 262'668'288 + 8192 * 2);
  CHECK(price.decode.amounts.all_flops() / 2 ==
        Approx(17'640'734'720 / 2 - 262'668'288 / 2 + 80 * 2 * 8 * 128 * 8192.0).epsilon(1e-4));
  // 8 KV heads of 128 over eight devices: 2 * 128 * 2 bytes * 80 layers per position
  CHECK(price.decode.amounts.cache_bytes == 8192.0 * 80 * 2 * 128 * 2);
}

TEST_CASE(
    "decode of Llama-3-70B on eight H100 is bound by memory, then by latency of all_reduces") {
  // 5.27 ms for the weights at 3.35 TB/s and 160 measured all_reduces of 18.98 us = 3.04 ms
  const Price price = price_of(model::llama_3_70b(), "tp=8", {.context = 1}, "h100-sxm");
  REQUIRE(price.decode.roofline);
  CHECK(price.decode.roofline->memory_us * 0.8 == Approx(5270).epsilon(0.02));
  CHECK(price.decode.roofline->comm_us == Approx(3040).epsilon(plan::kTimeErrorBand));
  CHECK(price.decode.roofline->bound == model::Roofline::Bound::kMemory);
  const Price prefill =
      price_of(model::llama_3_70b(), "tp=8", {.prompt_len = 8192, .context = 8192}, "h100-sxm");
  // 161 of 578.7 us measured; 146 ms of ideal compute at 989 TFLOP/s without attention
  CHECK(prefill.prefill.roofline->comm_us == Approx(92.6e3).epsilon(plan::kTimeErrorBand));
  CHECK(prefill.prefill.roofline->compute_us * 0.7 > 140e3);
  CHECK(prefill.prefill.roofline->compute_us * 0.7 < 170e3);
  CHECK(prefill.prefill.roofline->bound == model::Roofline::Bound::kCompute);
}

TEST_CASE("what a position keeps on a device: distinct KV heads, latents whole on every device") {
  const auto cache_of = [](const model::Published& m, const std::string& mesh) {
    return price_of(m, mesh, {.context = 1}).decode.amounts.cache_bytes;
  };
  // Llama-3-8B: 32 layers, 8 KV heads of 128, keys and values in bf16
  CHECK(cache_of(model::llama_3_8b(), "tp=1") == 32 * 2 * 8 * 128 * 2);
  CHECK(cache_of(model::llama_3_8b(), "tp=8") == 32 * 2 * 128 * 2);
  CHECK(cache_of(model::llama_3_8b(), "tp=16") == 32 * 2 * 128 * 2);  // each head on two devices
  // Phi-3 keeps q, k and v in one tensor; 4 KV heads over 8 devices
  const auto phi = model::published(R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
    "hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": 4,
    "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 128})");
  CHECK(cache_of(phi, "tp=1") == 2 * 2 * 4 * 4 * 2);
  CHECK(cache_of(phi, "tp=4") == 2 * 2 * 4 * 2);
  CHECK(cache_of(phi, "tp=8") == 2 * 2 * 4 * 2);
}

TEST_CASE("an encoder reads the prompt once, and behind it a sequence has one token at a time") {
  const Price price = price_of("t5", "tp=2", {.batch = 4, .prompt_len = 100, .context = 32});
  // 48 features in bf16: the encoder's two layers reduce twice each, and its embedding once; the
  // decoder's three times, for one token per sequence. The head's 101 words are gathered.
  CHECK(comm_text(price.prefill.comm) ==
        "tp all_gather 1 x 808; tp all_reduce 7 x 384; tp all_reduce 5 x 38400");
  CHECK(comm_text(price.decode.comm) == "tp all_gather 1 x 808; tp all_reduce 7 x 384");
  // A device keeps 16 numbers of keys and of values: 64 bytes per position and layer.
  CHECK(price.decode.amounts.cache_bytes == 4 * 2 * 64 * (32 + 100));
  CHECK(price.prefill.amounts.cache_bytes == 4 * 2 * 64 * (100 + 1 + 100));
  // Keys and values of the prompt are products of the prefill only.
  CHECK(price.prefill.amounts.launches - price.decode.amounts.launches == 1 + 2 * 7 + 1 + 2);
  // The last stage hands the encoder's output to the first one, where the decoder begins. From
  // there it is passed on with the decoder's values, once.
  CHECK(comm_text(price_of("t5", "pp=2", {.batch = 4, .prompt_len = 100}).decode.comm) ==
        "pp permute 1 x 384");
  CHECK(comm_text(price_of("t5", "pp=2", {.batch = 4, .prompt_len = 100}).prefill.comm) ==
        "pp permute 1 x 384; pp permute 3 x 38400");
  CHECK(comm_of("t5_encoder", "tp=2") == "tp all_reduce 5 x 96");
}

TEST_CASE("with every logit a decoder computes an answer as long as the prompt") {
  const ReplicaWorkload workload{.batch = 4, .prompt_len = 100, .every_logit = true};
  // The encoder's two layers reduce twice each, the decoder's three times, and both embeddings
  // once.
  CHECK(comm_text(price_of("t5", "tp=2", workload).prefill.comm) == "tp all_reduce 12 x 38400");
  CHECK(comm_text(price_of("t5", "pp=2", workload).prefill.comm) == "pp permute 4 x 38400");
}

TEST_CASE("a window bounds what a decoded token reads of the cache") {
  const auto cache = [](const char* chunk, i64 context) {
    const auto m = model::published(fmt::format(R"({{"model_type": "mistral",
      "architectures": ["MistralForCausalLM"], "hidden_size": 64, "num_attention_heads": 8,
      "num_key_value_heads": 2, "intermediate_size": 96, "num_hidden_layers": 2,
      "vocab_size": 128, "sliding_window": {}}})",
                                                chunk));
    return price_of(m, "tp=1", {.context = context}).decode.amounts.cache_bytes;
  };
  CHECK(cache("16", 64) == cache("null", 16));
  CHECK(cache("128", 64) == cache("null", 64));
}

TEST_CASE("a window to both sides bounds what an encoder's tokens attend to") {
  const auto flops = [](int window, i64 context) {
    const auto m = model::published(fmt::format(R"({{"model_type": "modernbert",
      "architectures": ["ModernBertForMaskedLM"], "hidden_size": 64, "num_attention_heads": 8,
      "intermediate_size": 96, "num_hidden_layers": 1, "vocab_size": 128,
      "layer_types": ["sliding_attention"], "local_attention": {}}})",
                                                window));
    const ReplicaWorkload workload{.prompt_len = context, .context = context};
    return price_of(m, "tp=1", workload).prefill.amounts.flops.front();
  };
  // 10 tokens with a window of 2 + 1 + 2: the first and the last see three, their neighbours four;
  // two products of 64 numbers are 256 flops.
  CHECK(flops(20, 10) - flops(4, 10) == 256 * (100 - (2 * 3 + 2 * 4 + 6 * 5)));
}

TEST_CASE("keys of distances are made once, and met by every token") {
  const auto flops = [](int buckets) {
    const auto m = model::published(fmt::format(R"({{"model_type": "deberta-v2",
      "architectures": ["DebertaV2ForMaskedLM"], "hidden_size": 64, "num_attention_heads": 8,
      "intermediate_size": 96, "num_hidden_layers": 1, "vocab_size": 128,
      "position_biased_input": false, "relative_attention": true, "pos_att_type": "p2c|c2p",
      "type_vocab_size": 2, "max_position_embeddings": 64,
      "position_buckets": {}}})",
                                                buckets));
    return price_of(m, "tp=1", {.prompt_len = 10, .context = 10}).prefill.amounts.flops.front();
  };
  // Four more on either side; queries and keys have 64 features, like a row of the table.
  CHECK(flops(8) - flops(4) == 2 * 2 * 8 * 64 * (64 + 10));
}

TEST_CASE("an index is read of every position, latents of those alone that it chooses") {
  const auto cache = [](i64 context) {
    return price_of("deepseek_v32", "tp=2", {.context = context}).decode.amounts.cache_bytes;
  };
  // Two layers in bf16: latents of 10 + 2 numbers, of two positions at most; keys of 4.
  CHECK(cache(64) == 2 * (2 * 12 + 64 * 4) * 2);
  CHECK(cache(1) == 2 * (12 + 4) * 2);
}

TEST_CASE("a decode step attends to latents, a prompt to keys and values") {
  const auto price = price_of("deepseek_v3", "tp=2", {.prompt_len = 8, .context = 8});
  // Two layers, four heads: latents of 10 numbers beside 2 that are rotated, keys of 6, values
  // of 3.
  CHECK(price.decode.amounts.attention_flops == 2 * 2 * 4 * 8 * (10 + 2 + 10));
  CHECK(price.prefill.amounts.attention_flops == 2 * 2 * 4 * (8 * 9 / 2) * (6 + 3));
}

TEST_CASE("entries of several positions are read beside a window, of an index's those it chooses") {
  const auto cache = [](i64 context) {
    return price_of("deepseek_v4", "tp=2", {.context = context}).decode.amounts.cache_bytes;
  };
  // Three layers in bf16: keys of 8 numbers, of eight positions. The second one's index has keys of
  // 4 for every fourth position, and selects three; the third one sees every 128th.
  CHECK(cache(256) == (3 * 8 * 8 + 3 * 8 + 64 * 4 + 2 * 8) * 2);
  CHECK(cache(6) == (3 * 6 * 8 + 8 + 4) * 2);
}

TEST_CASE("an index that an earlier layer made is read there alone") {
  const auto cache = [](i64 context) {
    return price_of("hy_v4", "tp=2", {.context = context}).decode.amounts.cache_bytes;
  };
  CHECK(cache(64) == (2 * 2 * 12 + 64 * 4) * 2);
}

TEST_CASE("a state is as large after any context, on the devices of its heads") {
  const auto amounts = [](const char* mesh, i64 context) {
    return price_of("mamba2", mesh, {.batch = 3, .context = context}).decode.amounts;
  };
  CHECK(amounts("tp=1", 4096).cache_bytes == amounts("tp=1", 8).cache_bytes);
  CHECK(amounts("tp=1", 4096).all_flops() == amounts("tp=1", 8).all_flops());
  // Two layers with 8 heads of 6 numbers by 5, in f32: read and written, for three sequences.
  CHECK(amounts("tp=1", 8).cache_bytes == 2 * (8 * 6 * 5) * 4 * 2 * 3);
  CHECK(amounts("tp=2", 8).cache_bytes == 2 * (4 * 6 * 5) * 4 * 2 * 3);
  // 6,600 weights of a device, and 5 operations for each number of its states.
  CHECK(amounts("tp=2", 8).all_flops() == 3 * (2 * 6600 + 2 * (4 * 6 * 5) * 5));
}

TEST_CASE("over an axis of experts alone a device attends to its sequences and has its experts") {
  const auto decode = [](const char* mesh, i64 batch) {
    return price_of("mixtral", mesh, {.batch = batch, .context = 64}).decode.amounts;
  };
  // All of 6 sequences is three times the work of each of three devices: 2 sequences, and a third
  // of the 6 * 2 pairs of a token and an expert.
  CHECK(decode("ep=3", 6).cache_bytes == decode("ep=1", 2).cache_bytes);
  CHECK(3 * decode("ep=3", 6).all_flops() == Approx(decode("ep=1", 6).all_flops()));
  // A single sequence is on one device.
  CHECK(decode("ep=3", 1).cache_bytes == decode("ep=1", 1).cache_bytes);
}

TEST_CASE("one token reads the experts that it chose, many tokens read nearly all") {
  const auto read = [](i64 batch) {
    const auto price = price_of("mixtral", "tp=1", {.batch = batch, .context = 1});
    const i64 embeddings = batch * 48 * 2;  // a row of 48 numbers per token
    return price.decode.amounts.weight_bytes - static_cast<double>(embeddings);
  };
  constexpr double kShare = 2.0 / 6;  // of experts that one token chooses
  const double all = (read(1'000'000) - read(1)) / (1 - kShare);
  for (const i64 tokens : {2, 4, 64}) {
    const double m = kShare * static_cast<double>(tokens - 1);
    CHECK(read(tokens) - read(1) == Approx(all * (1 - kShare) * m / (1 + m)).epsilon(1e-4));
    CHECK(read(tokens) < read(tokens + 1));
  }
}

TEST_CASE("activations take their time beside products, which hide the reads of weights alone") {
  plan::HardwareProfile profile;
  profile.rates.bf16_tflops = 1;
  profile.memory_gb_per_s = 1;
  model::Amounts amounts;
  amounts.flops.front() = 5e9;
  amounts.weight_bytes = 1e6;
  const auto before = model::roofline(amounts, profile, 0);
  amounts.activation_bytes = 2e6;
  const auto after = model::roofline(amounts, profile, 0);
  CHECK(before.step_us == before.compute_us);
  CHECK(after.step_us == Approx(before.step_us + 2000));
  CHECK(after.memory_us == Approx(before.memory_us + 2000));
}

TEST_CASE(
    "kernels without products read and write values of all tokens, of the device's features") {
  const auto bytes = [](const char* mesh, i64 tokens) {
    const auto price = price_of(model::llama_3_8b(), mesh, {.prompt_len = tokens, .context = 64});
    return price.prefill.amounts.activation_bytes;
  };
  // In bf16, of 32 layers: two norms and two sums of 4,096 features, in and out; rotated queries
  // and keys, 5,120; an activation and a product of 14,336. One more norm before the head.
  constexpr double kNorms = 4 * 2 * 4096, kCutRows = 2 * (5120 + 2 * 14'336);
  CHECK(bytes("tp=1", 1) == 2 * (32 * (kNorms + kCutRows) + 2 * 4096));
  CHECK(bytes("tp=8", 1) == 2 * (32 * (kNorms + kCutRows / 8) + 2 * 4096));
  CHECK(bytes("tp=2", 1000) - bytes("tp=2", 1) == 999 * 2 * 32 * (kNorms + kCutRows / 2));
}

TEST_CASE("devices of experts have the rows of tokens that chose these, or parts of all rows") {
  const auto bytes = [](const char* mesh, i64 batch) {
    return price_of("mixtral", mesh, {.batch = batch, .context = 64})
        .decode.amounts.activation_bytes;
  };
  // Six sequences are the work of two on each of three devices, with all their rows.
  CHECK(3 * bytes("ep=3", 6) == Approx(bytes("ep=1", 6)));
  // Rows that are cut have all of 48 embedded features, twice for each of two layers and experts.
  const double whole = bytes("tp=1", 6);
  const double copies = 6 * 2.0 * 2 * 2 * 48 * 2;
  CHECK(bytes("tp=2", 6) > whole / 2 + copies / 2);
  CHECK(bytes("tp=2", 6) < whole);
}

TEST_CASE("products run at the rate of the weights' numbers, where the device has it") {
  const auto step = [](Dtype dtype, const char* profile) {
    return *price_of(model::llama_3_8b(dtype), "tp=1", {.prompt_len = 2048, .context = 2048},
                     profile)
                .prefill.roofline;
  };
  const auto bf16 = step(Dtype::kBF16, "h100-sxm");
  const auto fp8 = step(Dtype::kF8E4M3, "h100-sxm");
  CHECK(bf16.arithmetic == plan::Arithmetic::kBf16);
  CHECK(fp8.arithmetic == plan::Arithmetic::kFp8);
  // All except attention, 3% of the whole, at 1979 instead of 989 TFLOP/s.
  CHECK(fp8.compute_us > bf16.compute_us * 989 / 1979);
  CHECK(fp8.compute_us < bf16.compute_us * 0.54);
  const auto wide = step(Dtype::kF8E4M3, "a100-80-sxm");  // no 8-bit floats: widened
  CHECK(wide.arithmetic == plan::Arithmetic::kBf16);
  CHECK(wide.compute_us == step(Dtype::kBF16, "a100-80-sxm").compute_us);
  CHECK(step(Dtype::kI8, "a100-80-sxm").arithmetic == plan::Arithmetic::kInt8);
}

TEST_CASE("what cannot be part of another op is launched, and a step is no shorter") {
  const auto price = price_of(model::llama_3_8b(), "tp=8", {.context = 1}, "h100-sxm");
  // 32 layers: 2 norms, qkv, attention, o, gate and up, down; embedding, norm and head
  CHECK(price.decode.amounts.launches == 32 * 7 + 3);
  CHECK(price.decode.roofline->launch_us == (32 * 7 + 3) * 4.0);
  CHECK(price.decode.roofline->step_us ==
        Approx(price.decode.roofline->launch_us + price.decode.roofline->comm_us +
               price.decode.roofline->memory_us));
}

TEST_CASE("a workload of nothing is refused") {
  const auto m = model::llama_3_8b();
  CHECK_ERROR(kUsage, price_of(m, "tp=1", {.batch = 0}));
  CHECK_ERROR(kUsage, price_of(m, "tp=1", {.batch = i64{1} << 40, .prompt_len = i64{1} << 40}));
}

TEST_CASE("a norm over all heads leaves every device its own KV heads") {
  const auto olmo2 = [](i64 kv_heads) {
    return model::published(fmt::format(
        R"({{"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": {}, "intermediate_size": 11008,
        "num_hidden_layers": 2, "vocab_size": 100352}})",
        kv_heads));
  };
  const ReplicaWorkload workload{.batch = 4, .prompt_len = 16, .context = 1024};
  const auto cache = [&](i64 kv_heads, const std::string& mesh) {
    return price_of(olmo2(kv_heads), mesh, workload).decode.amounts.cache_bytes;
  };
  CHECK(cache(8, "tp=1") == 4.0 * 1024 * 2 * 8 * 2 * 128 * 2);
  CHECK(cache(8, "tp=8") == cache(8, "tp=1") / 8);
  CHECK(cache(2, "tp=4") == cache(2, "tp=1") / 2);
  // Devices add up one sum of squares per token of q and of k, and gather neither.
  CHECK(comm_text(price_of(olmo2(8), "tp=8", {}).decode.comm) ==
        "tp all_gather 1 x 200704; tp all_reduce 4 x 2; tp all_reduce 5 x 8192");
}
