#pragma once

#include <rapidcheck.h>

#include <cstring>

#include "kernels/ops/works.h"
#include "tests/kernels/machine.h"
#include "tests/kernels/random_numbers.h"

/// Laws of ops over many rows: the results of the op's body row by row.
namespace shardtool::kernels {

template <class Machine, class T>
void norm_law() {
  Machine machine;
  const NormSpec spec{*rc::gen::element(NormKind::kRms, NormKind::kLayer, NormKind::kL2), 1e-5,
                      *rc::gen::arbitrary<bool>()};
  const i64 rows = *rc::gen::inRange<i64>(0, 9);
  const bool has_heads = *rc::gen::arbitrary<bool>();
  const i64 heads = has_heads ? *rc::gen::inRange<i64>(1, 9) : 1;
  const i64 n = *rc::gen::inRange<i64>(1, has_heads ? 150 : 1300);
  const i64 width = heads * n;
  const HostTeam team(lanes_for(n));
  const auto x = random_numbers<T>(static_cast<size_t>(rows * width), 1);
  const auto weight = random_numbers<T>(static_cast<size_t>(width), 2);
  const auto bias = random_numbers<T>(static_cast<size_t>(width), 3);
  const bool has_bias = *rc::gen::arbitrary<bool>();
  const i64 weight_stride = *rc::gen::element<i64>(0, n), bias_stride = n - weight_stride;
  std::vector<T> expected(x.size());
  for (i64 i = 0; i < rows * heads; ++i) {
    const i64 h = i % heads;
    norm_row(team, spec, x.data() + i * n, weight.data() + h * weight_stride,
             has_bias ? bias.data() + h * bias_stride : nullptr, n, expected.data() + i * n);
  }
  T* y = machine.template poisoned<T>(x.size());
  machine.run(NormRows<T>{spec,
                          {machine.put(x), rows, width},
                          n,
                          machine.put(weight),
                          has_bias ? machine.put(bias) : nullptr,
                          {y, rows, width},
                          heads,
                          weight_stride,
                          bias_stride});
  RC_ASSERT(same_numbers(machine.get(y, x.size()), expected));
}

template <class Machine, class T>
void rotate_law() {
  Machine machine;
  const auto style = *rc::gen::element(RotaryPairs::kHalf, RotaryPairs::kInterleaved,
                                       RotaryPairs::kDeinterleavedHalf);
  const i64 heads = *rc::gen::inRange<i64>(1, 5);
  const i64 head = *rc::gen::inRange<i64>(1, 150);
  const i64 pairs = *rc::gen::inRange<i64>(0, head / 2 + 1);
  const i64 begin = *rc::gen::inRange<i64>(0, head - 2 * pairs + 1);
  const i64 length = *rc::gen::inRange<i64>(1, 5);
  const i64 rows = length * *rc::gen::inRange<i64>(0, 4);
  const auto x = random_numbers<T>(static_cast<size_t>(rows * heads * head), 1);
  const auto cos = random_numbers<T>(static_cast<size_t>(length * pairs), 2);
  const auto sin = random_numbers<T>(static_cast<size_t>(length * pairs), 3);
  const auto before = random_numbers<T>(x.size(), 4);
  std::vector<T> expected = before;
  for (i64 t = 0; t < rows; ++t) {
    for (i64 h = 0; h < heads; ++h) {
      const i64 at = (t * heads + h) * head + begin;
      rotate(HostTeam(kWarpLanes), style, x.data() + at, head - begin,
             cos.data() + t % length * pairs, sin.data() + t % length * pairs, pairs,
             expected.data() + at);
    }
  }
  T* y = machine.put(before);
  machine.run(RotateHeads<T>{style,
                             {machine.put(x), rows, heads * head},
                             heads,
                             head,
                             begin,
                             length,
                             machine.put(cos),
                             machine.put(sin),
                             pairs,
                             {y, rows, heads * head}});
  RC_ASSERT(same_numbers(machine.get(y, x.size()), expected));
}

/// Sequences, windows, sinks, biases, and heads that share keys, compared with one query at a time
/// over copied keys and values.
template <class Machine, class T>
void attend_law() {
  Machine machine;
  const i64 heads = *rc::gen::inRange<i64>(1, 5), kv_heads = *rc::gen::inRange<i64>(1, 4);
  const i64 key = *rc::gen::inRange<i64>(1, 70), value = *rc::gen::inRange<i64>(1, 70);
  const i64 length = *rc::gen::inRange<i64>(1, 12), rows = length * *rc::gen::inRange<i64>(0, 4);
  const bool causal = *rc::gen::arbitrary<bool>(), has_sinks = *rc::gen::arbitrary<bool>();
  const i64 window = *rc::gen::inRange<i64>(0, 5);
  const bool chunked = *rc::gen::arbitrary<bool>();
  const auto q = random_numbers<T>(static_cast<size_t>(rows * heads * key), 1);
  const auto k = random_numbers<T>(static_cast<size_t>(rows * kv_heads * key), 2);
  const auto v = random_numbers<T>(static_cast<size_t>(rows * kv_heads * value), 3);
  const auto sinks = random_numbers<T>(static_cast<size_t>(heads), 4);
  const auto factors = random_numbers<T>(2, 5);
  const auto slopes = random_numbers<T>(static_cast<size_t>(heads), 6);
  const bool has_slopes = *rc::gen::arbitrary<bool>();
  const T softcap = *rc::gen::arbitrary<bool>() ? factors[1] : T{};
  const bool has_biases = *rc::gen::arbitrary<bool>();
  const i64 buckets = *rc::gen::inRange<i64>(1, 5);
  const auto biases = random_numbers<T>(static_cast<size_t>(rows * heads * buckets), 8);
  const bool has_key_biases = has_biases && *rc::gen::arbitrary<bool>();
  const auto key_biases = random_numbers<T>(static_cast<size_t>(rows * heads * buckets), 9);
  std::vector<i64> bias_of, bucket_of;
  for (i64 h = 0; h < heads; ++h) bias_of.push_back(heads - 1 - h);
  for (i64 d = 1 - length; d < length; ++d) bucket_of.push_back((d + length) % buckets);
  const bool has_gates = window == 0 && *rc::gen::arbitrary<bool>();
  std::vector<T> gates = random_numbers<T>(static_cast<size_t>(rows * length), 7);
  for (i64 row = 0; row < rows; ++row)
    gate_positions(gates.data() + row * length, row % length + 1, 2);
  std::vector<i64> key_of, value_of;
  for (i64 h = 0; h < heads; ++h) key_of.push_back(h % kv_heads);
  for (i64 h = 0; h < heads; ++h) value_of.push_back((h + 1) % kv_heads);
  const i64 every = *rc::gen::inRange<i64>(0, 4);
  const bool has_entry_gates = every > 0 && *rc::gen::arbitrary<bool>();
  const auto entry_k = random_numbers<T>(k.size(), 10), entry_v = random_numbers<T>(v.size(), 11);
  std::vector<T> entry_gates = random_numbers<T>(static_cast<size_t>(rows * length), 12);
  for (i64 row = 0; row < rows; ++row) gate_positions(entry_gates.data() + row * length, length, 2);
  std::vector<T> expected(static_cast<size_t>(rows * heads * value));
  for (i64 row = 0; row < rows; ++row) {
    for (i64 h = 0; h < heads; ++h) {
      const i64 t = row % length;
      const i64 of_window = chunked ? t - t % std::max<i64>(1, window) : t + 1 - window;
      const i64 begin = window > 0 ? std::max<i64>(0, of_window) : 0;
      const i64 last = window > 0 ? (chunked ? of_window : t) + window : length;
      const i64 end = causal ? t + 1 : std::min(length, last);
      std::vector<T> keys, values, scores(static_cast<size_t>(2 * length));
      std::vector<T> keys_of_entries, values_of_entries;
      for (i64 p = row - t; p < row - t + (causal ? t + 1 : length); ++p) {
        if (every == 0 || (p - row + t + 1) % every != 0) continue;
        const T* k_at = entry_k.data() + (p * kv_heads + value_of[static_cast<size_t>(h)]) * key;
        const T* v_at = entry_v.data() + (p * kv_heads + key_of[static_cast<size_t>(h)]) * value;
        keys_of_entries.insert(keys_of_entries.end(), k_at, k_at + key);
        values_of_entries.insert(values_of_entries.end(), v_at, v_at + value);
      }
      for (i64 p = row - t; p < row - t + end; ++p) {
        const T* k_at = k.data() + (p * kv_heads + key_of[static_cast<size_t>(h)]) * key;
        const T* v_at = v.data() + (p * kv_heads + value_of[static_cast<size_t>(h)]) * value;
        keys.insert(keys.end(), k_at, k_at + key);
        values.insert(values.end(), v_at, v_at + value);
      }
      attend(HostTeam(kWarpLanes),
             ScoreSpec<T>{
                 factors[0], softcap, has_sinks ? &sinks[static_cast<size_t>(h)] : nullptr,
                 has_slopes ? slopes[static_cast<size_t>(h)] : T{},
                 has_gates ? gates.data() + row * length : nullptr,
                 has_biases ? biases.data() + (row * heads + heads - 1 - h) * buckets : nullptr,
                 bucket_of.data() + length - 1 - t,
                 has_key_biases ? key_biases.data() + ((row - t) * heads + heads - 1 - h) * buckets
                                : nullptr,
                 heads * buckets, std::ssize(keys_of_entries) / key,
                 has_entry_gates ? entry_gates.data() + row * length : nullptr},
             q.data() + (row * heads + h) * key, HeadRows<T>{keys.data(), key, key},
             HeadRows<T>{values.data(), value, value}, begin, end, scores.data(),
             expected.data() + (row * heads + h) * value,
             EntryRows<T>{{keys_of_entries.data(), key, key},
                          {values_of_entries.data(), value, value}});
    }
  }
  AttendHeads<T> work;
  work.scale = factors[0];
  work.softcap = softcap;
  work.sinks = has_sinks ? machine.put(sinks) : nullptr;
  work.slopes = has_slopes ? machine.put(slopes) : nullptr;
  work.gates = has_gates ? machine.put(gates) : nullptr;
  if (has_biases) {
    work.biases = {machine.put(biases), rows, heads * buckets};
    work.buckets = buckets;
    work.bias_of = machine.put(bias_of);
    work.bucket_of = machine.put(bucket_of);
  }
  if (has_key_biases) {
    work.key_biases = {machine.put(key_biases), rows, heads * buckets};
    work.key_bias_of = work.bias_of;
  }
  work.queries = {machine.put(q), rows, heads * key};
  work.keys = {machine.put(k), rows, kv_heads * key};
  work.values = {machine.put(v), rows, kv_heads * value};
  work.heads = heads;
  work.key_size = key;
  work.value_size = value;
  work.key_of = machine.put(key_of);
  work.value_of = machine.put(value_of);
  work.length = length;
  work.causal = causal;
  work.window = window;
  work.chunked = chunked;
  work.entry_every = every;
  if (every > 0) {
    work.entry_keys = {machine.put(entry_k), rows, kv_heads * key};
    work.entry_values = {machine.put(entry_v), rows, kv_heads * value};
    work.entry_key_of = work.value_of;
    work.entry_value_of = work.key_of;
    work.entry_gates = has_entry_gates ? machine.put(entry_gates) : nullptr;
  }
  work.scores_stride = work.most_scores();
  work.scores =
      machine.template poisoned<T>(static_cast<size_t>(rows * heads * work.scores_stride));
  work.y = {machine.template poisoned<T>(expected.size()), rows, heads * value};
  machine.run(work);
  RC_ASSERT(near_numbers(machine.get(work.y.data, expected.size()), expected, Machine::kRoundings));
}

/// Floats: the best positions up to the query's own. Residues: all of them. Without top_k, scores.
template <class Machine, class T>
void index_law() {
  Machine machine;
  const i64 heads = *rc::gen::inRange<i64>(1, 4), dim = *rc::gen::inRange<i64>(1, 70);
  const i64 length = *rc::gen::inRange<i64>(1, 20), rows = length * *rc::gen::inRange<i64>(0, 4);
  const i64 top_k = *rc::gen::inRange<i64>(0, 8);
  const bool causal = *rc::gen::arbitrary<bool>();
  const i64 every = *rc::gen::inRange<i64>(1, 4);
  const auto q = random_numbers<T>(static_cast<size_t>(rows * heads * dim), 1);
  const auto k = random_numbers<T>(static_cast<size_t>(rows * dim), 2);
  const auto w = random_numbers<T>(static_cast<size_t>(rows * heads), 3);
  std::vector<T> expected(static_cast<size_t>(rows * length));
  for (i64 row = 0; row < rows; ++row) {
    const i64 t = row % length, seen = (causal ? t + 1 : length) / every;
    T* const scores = expected.data() + row * length;
    for (i64 p = 0; p < seen; ++p) {
      const T* const key = k.data() + (row - t + (p + 1) * every - 1) * dim;
      index_scores(
          HostTeam(kWarpLanes), q.data() + row * heads * dim, w.data() + row * heads, heads, dim, 1,
          [key](i64) { return key; }, scores + p);
    }
    if (top_k == 0) continue;
    gate_positions(scores, seen, top_k);
    if constexpr (!std::is_same_v<T, Field>) {
      RC_ASSERT(std::count(scores, scores + seen, T(1)) == std::min(top_k, seen));
    }
  }
  std::vector<T> nothing(expected.size());
  T* const gates = machine.put(nothing);
  machine.run(IndexRows<T>{{machine.put(q), rows, heads * dim},
                           {machine.put(k), rows, dim},
                           {machine.put(w), rows, heads},
                           heads,
                           dim,
                           top_k,
                           length,
                           causal,
                           gates,
                           every});
  RC_ASSERT(same_numbers(machine.get(gates, expected.size()), expected));
}

template <class Machine, class T>
void activate_law() {
  Machine machine;
  const auto kind = static_cast<ActivationKind>(
      *rc::gen::inRange(0, static_cast<int>(ActivationKind::kTanh) + 1));
  const auto n = *rc::gen::inRange<size_t>(0, 600);
  const bool is_gated = *rc::gen::arbitrary<bool>();
  const bool is_pair = is_gated && *rc::gen::arbitrary<bool>();
  const bool is_limited = *rc::gen::arbitrary<bool>();
  const auto x = random_numbers<T>(n, 1);
  const auto up = random_numbers<T>(n, 2);
  const T limit = random_numbers<T>(1, 3)[0];
  std::vector<T> expected;
  for (size_t i = 0; i < n; ++i) {
    const T gate = is_limited ? at_most(limit, x[i]) : x[i];
    const T other = is_limited ? limited(limit, up[i]) : up[i];
    const T y = activated(kind, gate);
    expected.push_back(is_pair ? activated_pair(gate, other) : is_gated ? y * other : y);
  }
  T* y = machine.put(x);
  machine.run(ActivateAll<T>{kind, y, is_gated ? machine.put(up) : nullptr, static_cast<i64>(n), y,
                             is_pair, is_limited, limit});
  RC_ASSERT(near_numbers(machine.get(y, n), expected, Machine::kRoundings));
}

template <class Machine, class T>
void weigh_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(1, 9);
  const i64 n = *rc::gen::inRange<i64>(1, 90);
  const i64 x_stride = n + *rc::gen::inRange<i64>(0, 3);
  const i64 y_stride = n + *rc::gen::inRange<i64>(0, 3);
  const i64 stride = *rc::gen::inRange<i64>(1, 4);
  const bool has_weights = *rc::gen::arbitrary<bool>();
  const bool adds = *rc::gen::arbitrary<bool>();
  const auto x = random_numbers<T>(static_cast<size_t>(rows * x_stride), 1);
  const auto weights = random_numbers<T>(static_cast<size_t>(rows * stride), 2);
  std::vector<T> expected = random_numbers<T>(static_cast<size_t>(rows * y_stride), 3);
  T* y = machine.put(expected);
  for (i64 t = 0; t < rows; ++t) {
    for (i64 k = 0; k < n; ++k) {
      const T number = x[static_cast<size_t>(t * x_stride + k)];
      const T weighed = has_weights ? weights[static_cast<size_t>(t * stride)] * number : number;
      T& sum = expected[static_cast<size_t>(t * y_stride + k)];
      sum = adds ? sum + weighed : weighed;
    }
  }
  machine.run(WeighRows<T>{{machine.put(x), rows, x_stride},
                           n,
                           has_weights ? machine.put(weights) : nullptr,
                           stride,
                           {y, rows, y_stride},
                           adds});
  RC_ASSERT(machine.get(y, expected.size()) == expected);
}

template <class Machine, class T>
void combine_law() {
  Machine machine;
  const auto n = static_cast<size_t>(*rc::gen::inRange<i64>(1, 90));
  const bool multiplies = *rc::gen::arbitrary<bool>();
  const auto a = random_numbers<T>(n, 1);
  const auto b = random_numbers<T>(n, 2);
  std::vector<T> expected(n);
  for (size_t i = 0; i < n; ++i) expected[i] = multiplies ? a[i] * b[i] : a[i] + b[i];
  T* y = machine.template poisoned<T>(n);
  machine.run(CombineAll<T>{multiplies, machine.put(a), machine.put(b), static_cast<i64>(n), y});
  RC_ASSERT(machine.get(y, n) == expected);
  T* both = machine.put(a);
  machine.run(CombineAll<T>{multiplies, both, machine.put(b), static_cast<i64>(n), both});
  RC_ASSERT(machine.get(both, n) == expected);
}

template <class Machine, class T>
void add_to_rows_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(1, 9);
  const i64 n = *rc::gen::inRange<i64>(1, 90);
  const i64 stride = n + *rc::gen::inRange<i64>(0, 3);
  const auto before = random_numbers<T>(static_cast<size_t>(rows * stride), 1);
  const auto summand = random_numbers<T>(static_cast<size_t>(n), 2);
  std::vector<T> expected = before;
  for (i64 t = 0; t < rows; ++t) {
    for (i64 k = 0; k < n; ++k) {
      T& number = expected[static_cast<size_t>(t * stride + k)];
      number = number + summand[static_cast<size_t>(k)];
    }
  }
  T* y = machine.put(before);
  machine.run(AddToRows<T>{{y, rows, stride}, n, machine.put(summand)});
  RC_ASSERT(machine.get(y, expected.size()) == expected);
}

template <class Machine, class T>
void scale_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(1, 9);
  const i64 n = *rc::gen::inRange<i64>(1, 90);
  const i64 stride = n + *rc::gen::inRange<i64>(0, 3);
  const auto x = random_numbers<T>(static_cast<size_t>(rows * n), 1);
  const auto factor = random_numbers<T>(static_cast<size_t>(n), 2);
  T* y = machine.template poisoned<T>(static_cast<size_t>(rows * stride));
  std::vector<T> expected = machine.get(y, static_cast<size_t>(rows * stride));
  for (i64 t = 0; t < rows; ++t) {
    for (i64 k = 0; k < n; ++k) {
      expected[static_cast<size_t>(t * stride + k)] =
          x[static_cast<size_t>(t * n + k)] * factor[static_cast<size_t>(k)];
    }
  }
  machine.run(ScaleRows<T>{{machine.put(x), rows, n}, n, machine.put(factor), {y, rows, stride}});
  // Gaps between rows may hold NaN, so bytes are compared.
  const auto made = machine.get(y, expected.size());
  RC_ASSERT(std::memcmp(static_cast<const void*>(made.data()),
                        static_cast<const void*>(expected.data()),
                        expected.size() * sizeof(T)) == 0);
}

template <class Machine, class T>
void route_law() {
  Machine machine;
  using Kind = RouterSpec::Kind;
  RouterSpec spec;
  spec.kind = *rc::gen::element(Kind::kSoftmaxTopK, Kind::kTopKSoftmax, Kind::kGroupMax,
                                Kind::kSigmoidGroups);
  const bool has_groups = spec.kind == Kind::kGroupMax || spec.kind == Kind::kSigmoidGroups;
  spec.experts = 4 * *rc::gen::inRange<i64>(1, 9);
  spec.top_k = *rc::gen::inRange<i64>(1, spec.experts / 2 + 1);
  spec.groups = has_groups ? 4 : 0;
  spec.top_groups = has_groups ? 2 : 0;
  spec.renormalise = *rc::gen::arbitrary<bool>();
  spec.scale = 2.5;
  const i64 rows = *rc::gen::inRange<i64>(0, 20);
  const auto scores = random_numbers<T>(static_cast<size_t>(rows * spec.experts), 1);
  const auto correction = random_numbers<T>(static_cast<size_t>(spec.experts), 2);
  std::vector<T> gates(scores.size()), gaps(static_cast<size_t>(rows));
  std::vector<i64> chosen(static_cast<size_t>(rows * spec.top_k));
  for (i64 t = 0; t < rows; ++t) {
    gaps[static_cast<size_t>(t)] =
        route(spec, scores.data() + t * spec.experts, correction.data(),
              gates.data() + t * spec.experts, chosen.data() + t * spec.top_k);
    // Nearly equal experts may swap if exp differs in the last bits.
    if (Machine::kRoundings > 0) RC_PRE(gaps[static_cast<size_t>(t)] > T(1e-5));
  }
  RouteRows<T> work{
      spec, {machine.put(scores), rows, spec.experts}, machine.put(correction), {}, {}, {}};
  work.gates = {machine.template poisoned<T>(gates.size()), rows, spec.experts};
  work.chosen = machine.template poisoned<i64>(chosen.size());
  work.gaps = machine.template poisoned<T>(gaps.size());
  machine.run(work);
  RC_ASSERT(machine.get(work.chosen, chosen.size()) == chosen);
  RC_ASSERT(near_numbers(machine.get(work.gates.data, gates.size()), gates, Machine::kRoundings));
  RC_ASSERT(near_numbers(machine.get(work.gaps, gaps.size()), gaps, Machine::kRoundings));
  // A given choice, of which some rows use fewer experts.
  std::vector<i64> counts;
  for (i64 t = 0; t < rows; ++t) {
    counts.push_back(*rc::gen::inRange<i64>(1, spec.top_k + 1));
    RouterSpec fewer = spec;
    fewer.top_k = counts.back();
    gates_of_choice(fewer, scores.data() + t * spec.experts, chosen.data() + t * spec.top_k,
                    gates.data() + t * spec.experts);
  }
  work.gates.data = machine.template poisoned<T>(gates.size());
  work.given = machine.put(chosen);
  work.counts = machine.put(counts);
  work.chosen = nullptr;
  work.gaps = nullptr;
  machine.run(work);
  RC_ASSERT(near_numbers(machine.get(work.gates.data, gates.size()), gates, Machine::kRoundings));
}

template <class Machine>
void route_to_all_law() {
  Machine machine;
  const i64 rows = *rc::gen::inRange<i64>(0, 20);
  const i64 experts = *rc::gen::inRange<i64>(1, 40);
  const bool is_corrected = *rc::gen::arbitrary<bool>();
  const bool has_more = *rc::gen::arbitrary<bool>();
  const auto scores = random_numbers<Field>(static_cast<size_t>(rows * experts), 1);
  const auto correction = random_numbers<Field>(static_cast<size_t>(experts), 2);
  const auto more = random_numbers<Field>(static_cast<size_t>(rows), 3);
  std::vector<Field> expected;
  for (i64 t = 0; t < rows; ++t) {
    Field sum = has_more ? more[static_cast<size_t>(t)] : Field{};
    std::vector<Field> of_row;
    for (i64 e = 0; e < experts; ++e) {
      const Field score = scores[static_cast<size_t>(t * experts + e)];
      const Field added = is_corrected ? correction[static_cast<size_t>(e)] : Field{};
      of_row.push_back(surrogate(Surrogate::kGate, score) +
                       surrogate(Surrogate::kCorrectedGate, score + added));
      sum += of_row.back();
    }
    for (const Field gate : of_row)
      expected.push_back(gate * surrogate(Surrogate::kNormaliser, sum));
  }
  Field* const gates = machine.template poisoned<Field>(expected.size());
  machine.run(RouteToAll{{machine.put(scores), rows, experts},
                         experts,
                         is_corrected ? machine.put(correction) : nullptr,
                         has_more ? machine.put(more) : nullptr,
                         {gates, rows, experts}});
  RC_ASSERT(machine.get(gates, expected.size()) == expected);
}

}  // namespace shardtool::kernels
