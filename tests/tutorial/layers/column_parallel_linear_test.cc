#include "lib/tutorial/layers/column_parallel_linear.h"

#include <doctest/doctest.h>

#include "lib/tutorial/layers/layers.h"
#include "tests/support/generators.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

using FieldMatrix = Matrix<Field>;
using Linear = ColumnParallelLinear<Field>;

/// A whole layer, its input and a gradient.
struct Given {
  FieldMatrix weights;
  std::optional<FieldMatrix> bias;
  FieldMatrix x;
  FieldMatrix g;
};

Given given(i64 in, i64 out, i64 rows, bool has_bias) {
  Given all{random_matrix<Field>(in, out, 1), std::nullopt, random_matrix<Field>(rows, in, 3),
            random_matrix<Field>(rows, out, 4)};
  if (has_bias) all.bias = random_matrix<Field>(1, out, 2);
  return all;
}

FieldMatrix whole_output(const Given& all) {
  return linear(all.x, all.weights, all.bias ? &*all.bias : nullptr);
}

/// True if all parts of this device equal those of the whole layer's results.
bool is_right(Device<Field>& device, const Given& all, layout::SplitRule rule) {
  Linear layer(device, all.weights, all.bias, rule);
  const Interval own = layer.parts()[device.device_id()];
  const FieldMatrix y = layer.forward(all.x);
  const FieldMatrix g = slice(all.g, Axis::kColumns, own);
  const Linear::Gradients gradients = layer.backward(all.x, g);
  const bool has_right_bias =
      !all.bias || gradients.bias == slice(row_sum(all.g), Axis::kColumns, own);
  return y == slice(whole_output(all), Axis::kColumns, own) &&
         layer.gathered(y) == whole_output(all) && has_right_bias &&
         gradients.weights == slice(times(transposed(all.x), all.g), Axis::kColumns, own) &&
         gradients.x == times(all.g, transposed(all.weights));
}

TEST_CASE("the columns of all devices together are the whole layer, forward and backward") {
  CHECK(rc::check("column parallel = whole", [] {
    const auto devices = static_cast<int>(*gen::between(1, 5));
    const Given all = given(*gen::between(1, 6), *gen::between(devices, 12), *gen::between(0, 4),
                            *rc::gen::arbitrary<bool>());
    const auto right = on_devices<Field>(
        devices, [&](Device<Field>& device) { return is_right(device, all, layout::kBalanced); });
    RC_ASSERT(right == std::vector<bool>(static_cast<size_t>(devices), true));
  }));
}

TEST_CASE("ten outputs are cut over four devices by either rule, nine by ceil are refused") {
  const auto right_on_four = [](i64 out, layout::SplitRule rule) {
    const Given all = given(3, out, 2, true);
    return on_devices<Field>(4, [&](Device<Field>& device) { return is_right(device, all, rule); });
  };
  const std::vector<bool> right(4, true);
  CHECK(right_on_four(10, layout::kBalanced) == right);
  CHECK(right_on_four(10, layout::kCeil) == right);
  CHECK(right_on_four(9, layout::kBalanced) == right);
  CHECK_ERROR(kEmptyShard, right_on_four(9, layout::kCeil));
  CHECK_ERROR(kEmptyShard, right_on_four(3, layout::kBalanced));
  CHECK_ERROR(kNotDivisible, right_on_four(10, layout::kExact));
}

TEST_CASE("a bias of another length is refused") {
  comm::SoloCommunicator solo;
  Device<Field> device(solo);
  CHECK_ERROR(kShapeMismatch, Linear(device, FieldMatrix(3, 4), FieldMatrix(1, 3)));
}

struct Head {
  FieldMatrix table = random_matrix<Field>(10, 3, 1);
  FieldMatrix bias = random_matrix<Field>(1, 10, 2);
  FieldMatrix g = random_matrix<Field>(5, 10, 3);
  Tokens tokens{9, 0, 3, 3, 6};
};

/// Rows of the table for the tokens.
FieldMatrix rows_of(const FieldMatrix& table, const Tokens& tokens) {
  std::vector<FieldMatrix> rows;
  for (const i64 token : tokens) rows.push_back(slice(table, Axis::kRows, {token, token + 1}));
  return joined<Field>(rows, Axis::kRows);
}

/// Gradient of a tied table: as a head, plus as an embedding at each token.
FieldMatrix tied_gradient(const Head& head) {
  const FieldMatrix x = rows_of(head.table, head.tokens);
  FieldMatrix gradient = times(transposed(head.g), x);
  const FieldMatrix dx = times(head.g, head.table);
  for (size_t i = 0; i < head.tokens.size(); ++i) {
    const auto row = static_cast<i64>(i);
    for (i64 c = 0; c < dx.columns(); ++c) gradient(head.tokens[i], c) += dx(row, c);
  }
  return gradient;
}

TEST_CASE("a tied head reads the embedding's rows, and both gradients meet where the rows are") {
  const Head head;
  for (const layout::SplitRule rule : {layout::kBalanced, layout::kCeil}) {
    const auto right = on_devices<Field>(4, [&](Device<Field>& device) {
      VocabularyEmbedding<Field> embedding(device, head.table, rule);
      Linear layer(device, embedding, head.bias);
      const FieldMatrix x = embedding.forward(head.tokens);
      const FieldMatrix logits = layer.gathered(layer.forward(x));
      const Interval own = layer.parts()[device.device_id()];
      const auto gradients = layer.backward(x, slice(head.g, Axis::kColumns, own));
      const FieldMatrix tied =
          plus(transposed(gradients.weights), embedding.backward(head.tokens, gradients.x));
      return layer.is_tied() && layer.parts() == embedding.parts() &&
             x == rows_of(head.table, head.tokens) &&
             logits == linear(x, transposed(head.table), &head.bias) &&
             tied == slice(tied_gradient(head), Axis::kRows, own);
    });
    CHECK(right == std::vector<bool>(4, true));
  }
}

TEST_CASE("a tied head follows its embedding when that changes, a copy does not") {
  const Head head;
  const auto right = on_devices<Field>(3, [&](Device<Field>& device) {
    VocabularyEmbedding<Field> embedding(device, head.table);
    Linear tied(device, embedding, std::nullopt);
    Linear copy(device, transposed(head.table), std::nullopt);
    const FieldMatrix x = random_matrix<Field>(2, 3, 5);
    const FieldMatrix before = tied.forward(x);
    const bool was_alike = before == copy.forward(x);
    embedding.table() = scaled(embedding.table(), Field{2});
    return was_alike && tied.forward(x) == scaled(before, Field{2}) && copy.forward(x) == before;
  });
  CHECK(right == std::vector<bool>(3, true));
}

TEST_CASE("a token outside the vocabulary is refused, and so is a vocabulary too small to cut") {
  const Head head;
  const auto embed = [&](int devices, const Tokens& tokens) {
    return on_devices<Field>(devices, [&](Device<Field>& device) {
      VocabularyEmbedding<Field> embedding(device, head.table);
      return embedding.forward(tokens);
    });
  };
  CHECK_ERROR(kUnknownName, embed(2, {10}));
  CHECK_ERROR(kUnknownName, embed(2, {-1}));
  CHECK_ERROR(kEmptyShard, embed(11, {1}));
}

}  // namespace
