#pragma once

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/compare/compare.h"
#include "kernels/decode/element.h"
#include "kernels/device/launch.h"
#include "kernels/ops/balance.h"
#include "kernels/ops/pool.h"
#include "kernels/ops/round.h"
#include "kernels/ops/sums.h"
#include "kernels/ops/works.h"
#include "kernels/product/sums.h"
#include "tests/kernels/random_numbers.h"

/// Digests of the results of every op body. Two programs print them, one compiled by the C++
/// compiler, one by nvcc for the host. They are separate programs because a linker keeps only one
/// of two inline functions with the same name.
namespace shardtool::kernels {

template <class T>
std::uint64_t digest_of(const std::vector<T>& values) {
  std::uint64_t digest = 0;
  for (const T& value : values) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    digest = hashed(digest ^ bits, sizeof value);
  }
  return digest;
}

inline void print_digest(const char* op, const char* of, std::uint64_t digest) {
  std::printf("%-28s %-8s %016" PRIx64 "\n", op, of, digest);
}

/// Every pattern of 16 bits.
inline void print_patterns() {
  constexpr i64 kCount = i64{1} << 16;
  std::vector<std::uint16_t> stored(kCount);
  for (i64 i = 0; i < kCount; ++i) stored[static_cast<size_t>(i)] = static_cast<std::uint16_t>(i);
  const auto* bytes = reinterpret_cast<const std::byte*>(stored.data());
  const struct {
    const char* name;
    Dtype dtype;
    i64 width;
  } formats[] = {{"bf16", Dtype::kBF16, 2},           {"f16", Dtype::kF16, 2},
                 {"e4m3", Dtype::kF8E4M3, 1},         {"e5m2", Dtype::kF8E5M2, 1},
                 {"e4m3fnuz", Dtype::kF8E4M3Fnuz, 1}, {"e5m2fnuz", Dtype::kF8E5M2Fnuz, 1},
                 {"e8m0", Dtype::kF8E8M0, 1}};
  for (const auto& format : formats) {
    std::vector<Field> bits, values;
    std::vector<double> doubles;
    for (i64 i = 0; i < kCount; ++i) {
      bits.push_back(residue_at(format.dtype, format.width, NumberMap::kBits, bytes, i));
      values.push_back(residue_at(format.dtype, format.width, NumberMap::kValue, bytes, i));
      const auto number = number_at<double>(format.dtype, bytes, i);
      doubles.push_back(number == number ? number : 0.125);
    }
    print_digest("bits map", format.name, digest_of(bits));
    print_digest("value map", format.name, digest_of(values));
    print_digest("value", format.name, digest_of(doubles));
  }
  std::vector<float> rounded;
  for (i64 i = 0; i < kCount; ++i) {
    const auto bits = static_cast<std::uint32_t>(hashed(3, static_cast<std::uint64_t>(i)));
    const float x = std::bit_cast<float>(bits);
    if (x == x) rounded.push_back(rounded_to_bf16(x));
  }
  print_digest("rounding", "bf16", digest_of(rounded));
}

template <class T>
void print_rows(const char* name) {
  constexpr i64 kRows = 12, kHeads = 4, kHead = 16, kWidth = kHeads * kHead, kLength = 6;
  const auto x = random_numbers<T>(kRows * kWidth, 1), w = random_numbers<T>(kWidth, 2);
  const auto cos = random_numbers<T>(kLength * kHead, 3),
             sin = random_numbers<T>(kLength * kHead, 4);
  std::vector<T> y(x.size()), scores(kRows * kHeads * kLength);
  const auto run = [&](const char* op, const auto& work) {
    run_on_host(work);
    print_digest(op, name, digest_of(y));
  };
  const RowView<const T> in{x.data(), kRows, kWidth};
  const RowView<T> out{y.data(), kRows, kWidth};
  for (const auto& [op, kind] : {std::pair{"rms norm", NormKind::kRms},
                                 {"layer norm", NormKind::kLayer},
                                 {"l2 norm", NormKind::kL2}}) {
    run(op, NormRows<T>{{kind, 1e-5, kind == NormKind::kRms}, in, kWidth, w.data(), w.data(), out});
  }
  for (const auto style :
       {RotaryPairs::kHalf, RotaryPairs::kInterleaved, RotaryPairs::kDeinterleavedHalf}) {
    run("rotation",
        RotateHeads<T>{style, in, kHeads, kHead, 0, kLength, cos.data(), sin.data(), 6, out});
  }
  const std::vector<i64> kv_of = {0, 0, 1, 3};
  AttendHeads<T> attention;
  attention.scale = w[0];
  attention.sinks = w.data();
  attention.queries = attention.keys = attention.values = in;
  attention.heads = kHeads;
  attention.key_size = attention.value_size = kHead;
  attention.key_of = attention.value_of = kv_of.data();
  attention.length = kLength;
  attention.window = 4;
  attention.scores = scores.data();
  attention.y = out;
  run("attention", attention);
  attention.softcap = w[1];
  run("attention, capped", attention);
  constexpr i64 kBuckets = kWidth / kHeads;
  std::vector<i64> bucket_of;
  for (i64 i = 0; i < 2 * kLength - 1; ++i) bucket_of.push_back(i % kBuckets);
  attention.biases = in;
  attention.buckets = kBuckets;
  attention.bias_of = kv_of.data();
  attention.bucket_of = bucket_of.data();
  run("attention, biased", attention);
  attention.key_biases = in;
  attention.key_bias_of = kv_of.data();
  attention.causal = false;
  run("attention, biased by keys", attention);
  attention.entry_every = 2;
  attention.entry_keys = attention.entry_values = in;
  attention.entry_key_of = attention.entry_value_of = kv_of.data();
  run("attention, with entries", attention);
  const auto taps = random_numbers<T>(4 * kWidth, 5);
  run("convolution", ConvolveRows<T>{in, kWidth, taps.data(), 4, w.data(), x.data(), kLength, out});
  RecurHeads<T> recurrence;
  recurrence.scale = w[0];
  recurrence.queries = recurrence.keys = recurrence.values = in;
  recurrence.decays = recurrence.gates = {w.data(), kRows, kHeads};
  recurrence.heads = kHeads;
  recurrence.key_size = recurrence.value_size = kHead;
  recurrence.query_of = recurrence.key_of = kv_of.data();
  recurrence.skips = w.data();
  recurrence.length = kLength;
  std::vector<T> state(kHead);
  recurrence.states = state.data();
  recurrence.y = out;
  run("recurrence", recurrence);
  recurrence.rule = RecurrenceRule::kDelta;
  run("recurrence, delta", recurrence);
  for (int kind = 0; kind <= static_cast<int>(ActivationKind::kTanh); ++kind) {
    run("activation", ActivateAll<T>{static_cast<ActivationKind>(kind), x.data(), nullptr,
                                     kRows * kWidth, y.data()});
  }
  const auto up = random_numbers<T>(kRows * kWidth, 7);
  for (const bool is_pair : {false, true}) {
    run("gate and up", ActivateAll<T>{ActivationKind::kSilu, x.data(), up.data(), kRows * kWidth,
                                      y.data(), is_pair, true, w[0]});
  }
  run("rows times weights", WeighRows<T>{in, kWidth, up.data(), 3, out, true});
}

template <class T>
void print_sums(const char* name) {
  constexpr i64 kCount = 100, kStreams = 4;
  const auto x = random_numbers<T>(kStreams * kCount, 11), sums = random_numbers<T>(kCount, 12);
  std::vector<T> factors, cuts, mixes;
  for (size_t i = 0; i < kCount; ++i) {
    const T squares = sums[i] * sums[i];
    factors.push_back(resize_factor(squares, x[i] * x[i], 7, 1e-3));
    cuts.push_back(cutoff_of(sums[i], squares, 7, x[i]));
    mixes.push_back(mixed(x.data() + i, kCount, sums.data(), kStreams));
  }
  print_digest("factors of sizes", name, digest_of(factors));
  print_digest("cutoffs", name, digest_of(cuts));
  print_digest("mixed streams", name, digest_of(mixes));
}

template <class T>
void print_routers(const char* name) {
  using Kind = RouterSpec::Kind;
  constexpr i64 kRows = 50, kExperts = 32, kTopK = 5;
  const auto scores = random_numbers<T>(kRows * kExperts, 5),
             correction = random_numbers<T>(kExperts, 6);
  for (const Kind kind :
       {Kind::kSoftmaxTopK, Kind::kTopKSoftmax, Kind::kGroupMax, Kind::kSigmoidGroups}) {
    const bool has_groups = kind == Kind::kGroupMax || kind == Kind::kSigmoidGroups;
    const RouterSpec spec{kind, kExperts, kTopK, true, 2.5, has_groups ? 8 : 0, has_groups ? 3 : 0};
    std::vector<T> gates(scores.size()), gaps(kRows);
    std::vector<i64> chosen(kRows * kTopK);
    run_on_host(RouteRows<T>{spec,
                             {scores.data(), kRows, kExperts},
                             correction.data(),
                             {gates.data(), kRows, kExperts},
                             chosen.data(),
                             gaps.data()});
    print_digest("router: gates", name, digest_of(gates));
    print_digest("router: chosen", name, digest_of(chosen));
    print_digest("router: gaps", name, digest_of(gaps));
  }
}

/// The value of a sum of one row of weights.
template <class Sum, class Decoder>
void print_product(const char* map, const Decoder& decoder, const std::vector<std::byte>& weights,
                   const std::vector<typename Sum::Number>& x) {
  std::vector<typename Sum::Number> sums;
  Sum sum;
  for (size_t k = 0; k < x.size(); ++k) {
    sum.add(decoder.at(weights.data() + k * Decoder::kBytes), Sum::of(x[k]));
    sums.push_back(sum.value());
  }
  print_digest("products", map, digest_of(sums));
}
inline void print_products() {
  const auto bytes = random_bytes(WideSum::kMost * 2, 7);
  const auto x = random_numbers<Field>(WideSum::kMost, 8);
  print_product<NarrowSum>("bits", BitWeights<2>{}, bytes, x);
  print_product<WideSum>("values", ResidueWeights<2>{Dtype::kBF16, NumberMap::kValue}, bytes, x);
  const auto tame = random_numbers<float>(333, 9);
  std::vector<std::byte> stored(tame.size() * sizeof(float));
  std::memcpy(stored.data(), tame.data(), stored.size());
  print_product<RealSum<double>>("f64", NumberWeights<double, 4>{Dtype::kF32}, stored,
                                 random_numbers<double>(tame.size(), 10));
}

inline void print_digests() {
  print_patterns();
  print_rows<Field>("field");
  print_rows<double>("f64");
  print_rows<float>("f32");
  print_sums<Field>("field");
  print_sums<double>("f64");
  print_sums<float>("f32");
  print_routers<double>("f64");
  print_routers<float>("f32");
  print_products();
}

}  // namespace shardtool::kernels
