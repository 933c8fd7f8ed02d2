#include "lib/plan/kv_cache.h"

#include <doctest/doctest.h>

#include "lib/base/checked.h"
#include "tests/plan/gib.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"

using namespace shardtool;
using plan::CachedLayers;
using plan::CacheStore;
using plan::kv_bytes;
using plan::kv_bytes_per_token;
using plan::kv_capacity_tokens;

namespace {

using Layers = std::vector<CachedLayers>;

constexpr CacheStore kBf16{16, 1};

/// Grouped-query attention: keys and values of `kv_heads` heads.
Layers grouped(i64 layers, i64 kv_heads, i64 head_dim) {
  return {{2 * kv_heads * head_dim, 0, layers}};
}

TEST_CASE("what fits is a whole number of blocks, and the next block does not") {
  CHECK(rc::check("kv_capacity_tokens", [] {
    Layers layers;
    for (i64 i = *gen::between(1, 3); i > 0; --i)
      layers.push_back({*gen::between(1, 50), 0, *gen::between(1, 4)});
    const CacheStore store{*rc::gen::element(8, 16, 32), *gen::between(1, 20)};
    const i64 bytes = *gen::between(0, 100'000);
    const i64 tokens = kv_capacity_tokens(layers, store, bytes);
    RC_ASSERT(tokens % store.block_tokens == 0);
    RC_ASSERT(kv_bytes(layers, store, tokens) <= bytes);
    RC_ASSERT(kv_bytes(layers, store, tokens + store.block_tokens) > bytes);
  }));
}

TEST_CASE("a window bounds what a layer keeps") {
  CHECK(rc::check("windows", [] {
    const i64 window = *gen::between(1, 30);
    const i64 tokens = *gen::between(0, 60);
    const CacheStore store{16, *gen::between(1, 8)};
    const i64 full = kv_bytes(Layers{{4, 0, 2}}, store, std::min(tokens, window));
    RC_ASSERT(kv_bytes(Layers{{4, window, 2}}, store, tokens) == full);
  }));
}

TEST_CASE("an entry of several tokens is kept once they are complete") {
  CHECK(rc::check("strides", [] {
    const i64 stride = *gen::between(1, 9);
    const i64 tokens = *gen::between(0, 60);
    const Layers compressed{{.elements = 4, .layers = 2, .stride = stride}};
    RC_ASSERT(kv_bytes(compressed, kBf16, tokens) == tokens / stride * 4 * 2 * 2);
    RC_ASSERT(kv_bytes_per_token(compressed, kBf16) == ceil_div(i64{4 * 2 * 2}, stride));
  }));
}

TEST_CASE("what fits in sequences of a length: no more than the bytes, and a block more does not") {
  CHECK(rc::check("kv_capacity_tokens of sequences", [] {
    Layers layers{{*gen::between(1, 50)}};
    for (i64 i = *gen::between(0, 3); i > 0; --i) {
      layers.push_back(
          {*gen::between(1, 50), *gen::between(0, 40), *gen::between(1, 4), *gen::between(1, 8)});
    }
    const CacheStore store{*rc::gen::element(8, 16, 32), *gen::between(1, 20)};
    const i64 context = *gen::between(1, 100);
    const i64 bytes = *gen::between(0, 1'000'000);
    const i64 tokens = kv_capacity_tokens(layers, store, bytes, context);
    const i64 sequence = round_up(context, store.block_tokens);
    const auto needed = [&](i64 all) {
      return all / sequence * kv_bytes(layers, store, context) +
             kv_bytes(layers, store, all % sequence);
    };
    RC_ASSERT(tokens % store.block_tokens == 0);
    RC_ASSERT(needed(tokens) <= bytes);
    RC_ASSERT(needed(tokens + store.block_tokens) > bytes);
  }));
  CHECK(rc::check("where no layer drops any the length does not matter", [] {
    const Layers layers = grouped(*gen::between(1, 9), *gen::between(1, 4), 8);
    const CacheStore store{16, *gen::between(1, 20)};
    const i64 bytes = *gen::between(0, 1'000'000);
    RC_ASSERT(kv_capacity_tokens(layers, store, bytes, *gen::between(1, 100)) ==
              kv_capacity_tokens(layers, store, bytes));
  }));
}

// "How to scale your model", chapter on inference.
TEST_CASE("LLaMA-2-13B in BF16 at 8,192 tokens: 6,710,886,400 bytes (D12)") {
  CHECK(kv_bytes(grouped(40, 40, 128), kBf16, 8192) == 6'710'886'400);
}

TEST_CASE("64 layers of 8 KV heads of 256 in int8: 262,144 bytes per token (D15)") {
  CHECK(kv_bytes_per_token(grouped(64, 8, 256), {8, 1}) == 262'144);
}

// llm-d-planner's tests of its capacity planner.
TEST_CASE("10,000 tokens: MLA keeps one vector for all heads, grouped queries two per head (D21)") {
  const Layers deepseek_v3{{512 + 64, 0, 61}};
  const Layers deepseek_v2{{512 + 64, 0, 60}};
  CHECK(static_cast<double>(kv_bytes(deepseek_v3, kBf16, 10'000)) / kGib ==
        doctest::Approx(0.65446).epsilon(1e-5));
  CHECK(static_cast<double>(kv_bytes(deepseek_v2, kBf16, 10'000)) / kGib ==
        doctest::Approx(0.64373).epsilon(1e-5));
  CHECK(static_cast<double>(kv_bytes(grouped(24, 2, 64), kBf16, 10'000)) / kGib ==
        doctest::Approx(0.11444).epsilon(1e-4));
}

// llm-d-planner's document of measured memory: Mistral-Small-24B, blocks of 128 tokens.
TEST_CASE("163,840 bytes per token, 184,832 tokens are 1,444 blocks of 28.20 GiB (D22)") {
  const Layers layers = grouped(40, 8, 128);
  const CacheStore store{16, 128};
  CHECK(kv_bytes_per_token(layers, store) == 163'840);
  const i64 bytes = kv_bytes(layers, store, 184'832);
  CHECK(bytes == 1'444 * 128 * i64{163'840});
  CHECK(static_cast<double>(bytes) / kGib == doctest::Approx(28.20).epsilon(2e-4));
  CHECK(kv_capacity_tokens(layers, store, bytes) == 184'832);
  CHECK(kv_bytes(layers, store, 15'049) == 118 * 128 * i64{163'840});
}

// llm-d-planner's tests: Qwen2.5-0.5B, blocks of 16; on two devices each has one of the two KV
// heads.
TEST_CASE("blocks that fit into 68.89 GiB on one device, 68.09 GiB on each of two (D23)") {
  const auto gib = [](double count) { return static_cast<i64>(count * kGib); };
  const CacheStore store{16, 16};
  CHECK(kv_capacity_tokens(grouped(24, 2, 64), store, gib(68.89)) / 16 == 376'231);
  CHECK(kv_capacity_tokens(grouped(24, 1, 64), store, gib(68.09)) / 16 == 743'724);
}

TEST_CASE("nothing cached has no capacity, and too much is told") {
  CHECK(kv_capacity_tokens({}, kBf16, 100) == 0);
  CHECK(kv_capacity_tokens(grouped(1, 1, 8), kBf16, -5) == 0);
  CHECK_ERROR(kLimit, kv_bytes(grouped(64, 64, 512), kBf16, i64{1} << 50));
}

}  // namespace
