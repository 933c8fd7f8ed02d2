#include "lib/tutorial/layers/layers.h"

#include <doctest/doctest.h>

#include "lib/tutorial/proof/example.h"
#include "tests/support/throws.h"
#include "tests/tutorial/on_devices.h"
#include "tests/tutorial/textbook.h"

using namespace shardtool;
using namespace shardtool::tutorial;

namespace {

template <Number T>
void check_textbook() {
  const Textbook<T> book;
  const auto layers = layers_of(book.parameters);
  const Pass<T> pass = run_layers<T>(layers, book.x);
  CHECK(linear(book.x, layers[0].weights, layers[0].bias_or_null()) == book.z);
  CHECK(pass.tape == Tape<T>{book.x, relu(book.z)});
  CHECK(pass.y == book.y);
  CHECK(pull_back_layers<T>(layers, pass.tape, book.g) == book.gradients);
}

TEST_CASE("the worked example comes out in every arithmetic, forward and backward") {
  check_textbook<Field>();
  check_textbook<double>();
  check_textbook<float>();
}

TEST_CASE("backward is the adjoint of the derivative, exactly in the field") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const auto& example :
         {random_layers<Field>({3, 10, 4}, 5, seed), random_layers<Field>({4, 3, 6, 5, 2}, 3, seed),
          random_experts<Field>({3, 5, 2}, 4, 9, seed)}) {
      CHECK(adjoint_gap(tangent(example, seed), yardstick(example).gradients) == 0);
    }
  }
}

TEST_CASE("one wrong element of any gradient breaks the adjoint") {
  const auto example = random_layers<Field>({3, 10, 4}, 5, 1);
  const Parameters<Field> gradients = yardstick(example).gradients;
  CHECK(gradients.size() == 5);
  for (const auto& [name, gradient] : gradients) {
    Parameters<Field> wrong = gradients;
    wrong.at(name).values().back() += Field{1};
    CHECK_MESSAGE(adjoint_gap(tangent(example, 2), wrong) == 1, name);
  }
}

TEST_CASE("in f64 the gradients are those of central differences") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto example = random_layers<double>({6, 10, 5}, 4, seed);
    Parameters<double> gradients = yardstick(example).gradients;
    CHECK(directional_gap(example, gradients, seed) < 1e-6);
    CHECK(adjoint_gap(tangent(example, seed), gradients) < 1e-12);
    for (double& value : gradients.at(weights_name(1)).values()) value = -value;
    CHECK(directional_gap(example, gradients, seed) > 1e-3);
  }
}

TEST_CASE("a checkpoint that is no chain of layers is refused with the name that is wrong") {
  const Parameters<Field> good = random_layers<Field>({3, 4, 2}, 1, 1).parameters;
  const auto with = [&](const std::string& name, Matrix<Field> array) {
    Parameters<Field> parameters = good;
    parameters[name] = std::move(array);
    return parameters;
  };
  CHECK(layers_of(good).size() == 2);
  CHECK_ERROR(kShapeMismatch, layers_of(with("layer_1/weights", Matrix<Field>(5, 2))));
  CHECK_ERROR(kShapeMismatch, layers_of(with("layer_0/bias", Matrix<Field>(1, 5))));
  CHECK_ERROR(kShapeMismatch, layers_of(with("layer_0/bias", Matrix<Field>(4, 1))));
  CHECK_ERROR(kUnknownName, layers_of(with("layer_1/scale", Matrix<Field>(1, 2))));
  CHECK_ERROR(kUnknownName, layers_of(with("layer_3/weights", Matrix<Field>(2, 2))));
  CHECK_ERROR(kUnknownName, layers_of(Parameters<Field>{}));
}

}  // namespace
