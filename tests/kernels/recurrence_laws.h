#pragma once

#include <rapidcheck.h>

#include "kernels/ops/works.h"
#include "tests/kernels/machine.h"
#include "tests/kernels/random_numbers.h"

/// Laws of ops along a sequence: explicit sums over all earlier positions.
namespace shardtool::kernels {

/// Prepends its past to every sequence and computes every output as one sum.
template <class Machine, class T>
void convolve_law() {
  Machine machine;
  const i64 n = *rc::gen::inRange<i64>(1, 9), taps = *rc::gen::inRange<i64>(1, 5);
  const i64 length = *rc::gen::inRange<i64>(1, 7), rows = length * *rc::gen::inRange<i64>(0, 4);
  const bool has_bias = *rc::gen::arbitrary<bool>(), has_past = *rc::gen::arbitrary<bool>();
  const auto x = random_numbers<T>(static_cast<size_t>(rows * n), 1);
  const auto weight = random_numbers<T>(static_cast<size_t>(n * taps), 2);
  const auto bias = random_numbers<T>(static_cast<size_t>(n), 3);
  const auto past = random_numbers<T>(static_cast<size_t>(n * (taps - 1)), 4);
  std::vector<T> expected(x.size());
  for (i64 row = 0; row < rows; ++row) {
    for (i64 f = 0; f < n; ++f) {
      std::vector<T> line;
      for (i64 j = 0; j < taps - 1; ++j) {
        line.push_back(has_past ? past[static_cast<size_t>(f * (taps - 1) + j)] : T{});
      }
      for (i64 t = row - row % length; t <= row; ++t)
        line.push_back(x[static_cast<size_t>(t * n + f)]);
      T sum{};
      for (i64 j = 0; j < taps; ++j) {
        sum += weight[static_cast<size_t>(f * taps + j)] *
               line[line.size() - static_cast<size_t>(taps - j)];
      }
      expected[static_cast<size_t>(row * n + f)] =
          has_bias ? sum + bias[static_cast<size_t>(f)] : sum;
    }
  }
  T* y = machine.template poisoned<T>(x.size());
  machine.run(ConvolveRows<T>{{machine.put(x), rows, n},
                              n,
                              machine.put(weight),
                              taps,
                              has_bias ? machine.put(bias) : nullptr,
                              has_past ? machine.put(past) : nullptr,
                              length,
                              {y, rows, n}});
  RC_ASSERT(same_numbers(machine.get(y, x.size()), expected));
}

/// Models the state as a matrix of keys and values that each token updates.
template <class T>
class StateOfHead {
 public:
  StateOfHead(i64 keys, i64 values) : keys_(keys), values_(values) {
    s_.resize(static_cast<size_t>(keys * values));
  }
  T& at(i64 key, i64 value) { return s_[static_cast<size_t>(key * values_ + value)]; }

  void write(RecurrenceRule rule, const T* key, const T* value, Decays<T> decay, T gate) {
    for (i64 i = 0; i < keys_; ++i) {
      for (i64 j = 0; j < values_; ++j) at(i, j) *= decay.numbers[decay.stride * i];
    }
    std::vector<T> delta;
    for (i64 j = 0; j < values_; ++j) {
      T had{};
      for (i64 i = 0; i < keys_; ++i) had += key[i] * at(i, j);
      delta.push_back(gate * (rule == RecurrenceRule::kDelta ? value[j] - had : value[j]));
    }
    for (i64 i = 0; i < keys_; ++i) {
      for (i64 j = 0; j < values_; ++j) at(i, j) += key[i] * delta[static_cast<size_t>(j)];
    }
  }
  T read(const T* query, i64 j) {
    T sum{};
    for (i64 i = 0; i < keys_; ++i) sum += query[i] * at(i, j);
    return sum;
  }

 private:
  i64 keys_, values_;
  std::vector<T> s_;
};

template <class Machine, class T>
void recur_law() {
  Machine machine;
  const i64 heads = *rc::gen::inRange<i64>(1, 5), key_heads = *rc::gen::inRange<i64>(1, 4);
  const i64 key = *rc::gen::inRange<i64>(1, 6), value = *rc::gen::inRange<i64>(1, 6);
  const i64 length = *rc::gen::inRange<i64>(1, 6), sequences = *rc::gen::inRange<i64>(0, 4);
  const i64 rows = length * sequences;
  const auto numbers = [](i64 n, std::uint64_t seed) {
    return random_numbers<T>(static_cast<size_t>(n), seed);
  };
  const auto q = numbers(rows * key_heads * key, 1), k = numbers(rows * key_heads * key, 2);
  const i64 decays = *rc::gen::element<i64>(1, key);
  const auto v = numbers(rows * heads * value, 3), decay = numbers(rows * heads * decays, 4);
  const auto gate = numbers(rows * heads, 5), skips = numbers(heads, 6);
  const auto first = numbers(heads * value * key, 7), scale = numbers(1, 8);
  const bool has_skips = *rc::gen::arbitrary<bool>(), has_first = *rc::gen::arbitrary<bool>();
  const auto rule = *rc::gen::element(RecurrenceRule::kAdd, RecurrenceRule::kDelta);
  std::vector<i64> query_of, key_of;
  for (i64 h = 0; h < heads; ++h) query_of.push_back(h % key_heads);
  for (i64 h = 0; h < heads; ++h) key_of.push_back((h + 1) % key_heads);
  std::vector<T> expected(v.size());
  for (i64 item = 0; item < sequences * heads; ++item) {
    const i64 h = item % heads;
    StateOfHead<T> state(key, value);
    for (i64 i = 0; has_first && i < key * value; ++i)
      state.at(i % key, i / key) = first[static_cast<size_t>(h * key * value + i)];
    for (i64 row = item / heads * length; row < (item / heads + 1) * length; ++row) {
      const T* const values = v.data() + (row * heads + h) * value;
      const auto gates_at = static_cast<size_t>(row * heads + h);
      state.write(rule, k.data() + (row * key_heads + key_of[static_cast<size_t>(h)]) * key, values,
                  {decay.data() + gates_at * static_cast<size_t>(decays), decays == 1 ? 0 : 1},
                  gate[gates_at]);
      for (i64 j = 0; j < value; ++j) {
        const T read =
            state.read(q.data() + (row * key_heads + query_of[static_cast<size_t>(h)]) * key, j);
        expected[static_cast<size_t>((row * heads + h) * value + j)] =
            scale[0] * read + (has_skips ? skips[static_cast<size_t>(h)] * values[j] : T{});
      }
    }
  }
  RecurHeads<T> work;
  work.rule = rule;
  work.scale = scale[0];
  work.queries = {machine.put(q), rows, key_heads * key};
  work.keys = {machine.put(k), rows, key_heads * key};
  work.values = {machine.put(v), rows, heads * value};
  work.decays = {machine.put(decay), rows, heads * decays};
  work.gates = {machine.put(gate), rows, heads};
  work.heads = heads;
  work.key_size = key;
  work.value_size = value;
  work.decay_size = decays;
  work.query_of = machine.put(query_of);
  work.key_of = machine.put(key_of);
  work.skips = has_skips ? machine.put(skips) : nullptr;
  work.first = has_first ? machine.put(first) : nullptr;
  work.length = length;
  work.states = machine.template poisoned<T>(static_cast<size_t>(sequences * heads * value * key));
  work.states_stride = key;
  work.y = {machine.template poisoned<T>(expected.size()), rows, heads * value};
  machine.run(work);
  RC_ASSERT(same_numbers(machine.get(work.y.data, expected.size()), expected));
}

}  // namespace shardtool::kernels
