#include "lib/tutorial/proof/example.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/tutorial/shardings/expert_bank.h"

namespace shardtool::tutorial {
namespace {

/// Draws consecutive arrays, each from its own random sequence.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  template <Number T>
  Matrix<T> matrix(i64 rows, i64 columns) {
    return random_matrix<T>(rows, columns, kernels::hashed(seed_, n_drawn_++));
  }
  i64 below(i64 n) {
    return static_cast<i64>(kernels::hashed(seed_, n_drawn_++) % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t n_drawn_ = 0;
};

template <Number T>
Parameters<T> draw_layers(const std::vector<i64>& sizes, Draw& draw, const std::string& prefix) {
  Parameters<T> parameters;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    parameters[prefix + weights_name(i)] = draw.matrix<T>(sizes[i], sizes[i + 1]);
    parameters[prefix + bias_name(i)] = draw.matrix<T>(1, sizes[i + 1]);
  }
  return parameters;
}

/// Runs `body(system)` with the model unsharded on a device of its own.
template <Number T, class Body>
auto on_one_device(const Example<T>& example, const Body& body) {
  comm::SoloCommunicator solo;
  Device<T> device(solo);
  const auto system = example.assignment.empty() ? unsharded(device)
                                                 : unsharded_experts(device, example.assignment);
  system->load_checkpoint(example.parameters);
  return body(*system);
}

/// Moves the example by h along a direction.
Example<double> moved(Example<double> example, const Parameters<double>& direction, double h) {
  for (const auto& [name, change] : direction) {
    Matrix<double>& array = name == kInputGradient ? example.x : example.parameters.at(name);
    array = plus(std::move(array), scaled(change, h));
  }
  return example;
}

double loss(const Example<double>& example) {
  return on_one_device(example, [&](System<double>& system) {
    return inner_product(system.infer(example.x), example.g);
  });
}

/// <v, gradients> over all arrays.
template <Number T>
T along(const Parameters<T>& direction, const Parameters<T>& gradients) {
  T sum{};
  for (const auto& [name, change] : direction) sum += inner_product(change, gradients.at(name));
  return sum;
}

template <Number T>
double sum_of_magnitudes(const Parameters<T>& direction, const Parameters<T>& gradients) {
  double sum = 0;
  for (const auto& [name, change] : direction) {
    const auto other = gradients.at(name).values();
    for (size_t i = 0; i < other.size(); ++i) sum += magnitude(change.values()[i] * other[i]);
  }
  return sum;
}

/// A direction of change for x (as "dx") and every parameter.
template <Number T>
Parameters<T> random_direction(const Example<T>& example, std::uint64_t seed) {
  Draw draw(seed);
  Parameters<T> direction;
  direction[std::string(kInputGradient)] = draw.matrix<T>(example.x.rows(), example.x.columns());
  for (const auto& [name, array] : example.parameters) {
    direction[name] = draw.matrix<T>(array.rows(), array.columns());
  }
  return direction;
}

}  // namespace

template <Number T>
Example<T> random_layers(const std::vector<i64>& sizes, i64 batch, std::uint64_t seed) {
  Draw draw(seed);
  Example<T> example;
  example.parameters = draw_layers<T>(sizes, draw, "");
  example.x = draw.matrix<T>(batch, sizes.front());
  example.g = draw.matrix<T>(batch, sizes.back());
  return example;
}

template <Number T>
Example<T> random_experts(const TwoLayers& sizes, i64 n_experts, i64 batch, std::uint64_t seed) {
  Draw draw(seed);
  Example<T> example;
  for (i64 e = 0; e < n_experts; ++e) {
    example.parameters.merge(
        draw_layers<T>({sizes.in, sizes.hidden, sizes.out}, draw, fmt::format("expert_{}/", e)));
  }
  example.x = draw.matrix<T>(batch, sizes.in);
  example.g = draw.matrix<T>(batch, sizes.out);
  // The first two rows use the first two experts, so that an exchange of these is detectable.
  for (i64 row = 0; row < batch; ++row) {
    example.assignment.push_back(row < std::min<i64>(2, n_experts) ? row : draw.below(n_experts));
  }
  return example;
}

template <Number T>
Example<T> without_biases(Example<T> example) {
  std::erase_if(example.parameters,
                [](const auto& entry) { return entry.first.ends_with("/bias"); });
  return example;
}

template <Number T>
Yardstick<T> yardstick(const Example<T>& example) {
  return on_one_device(example, [&](System<T>& system) {
    Yardstick<T> result;
    result.y = system.forward(example.x);
    result.gradients = system.backward(example.g);
    return result;
  });
}

template <Number T>
Matrix<T> push_forward(const Example<T>& example, const Parameters<T>& direction) {
  if (example.assignment.empty()) {
    const std::vector<DenseLayer<T>> layers = layers_of(example.parameters);
    return push_forward_layers<T>(layers, run_layers<T>(layers, example.x).tape, direction);
  }
  auto models = experts_of(example.parameters);
  const auto n_experts = static_cast<i64>(models.size());
  const ExpertBank<T> bank(std::move(models), {0, n_experts});
  return bank.push_forward(bank.run(example.x, example.assignment).tape, direction,
                           example.assignment);
}

template <Number T>
Tangent<T> tangent(const Example<T>& example, std::uint64_t seed) {
  Tangent<T> result{random_direction(example, seed)};
  result.change = inner_product(push_forward(example, result.direction), example.g);
  return result;
}

template <Number T>
double adjoint_gap(const Tangent<T>& tangent, const Parameters<T>& gradients) {
  const double gap = magnitude(tangent.change - along(tangent.direction, gradients));
  // In the field a gap has no size: it is 0 or 1.
  if (gap == 0 || std::same_as<T, Field>) return gap;
  return gap / sum_of_magnitudes(tangent.direction, gradients);
}

template <Number T>
Reference<T> reference_of(const Example<T>& example, i64 divisor) {
  constexpr std::uint64_t kDirectionSeed = 17;
  Reference<T> result{yardstick(example), tangent(example, kDirectionSeed), divisor};
  for (auto& [name, gradient] : result.results.gradients) {
    if (divisor == 1 || name == kInputGradient) continue;
    for (T& value : gradient.values()) value = divided(value, divisor);
  }
  return result;
}

double directional_gap(const Example<double>& example, const Parameters<double>& gradients,
                       std::uint64_t seed) {
  constexpr double kStep = 1e-6;
  const Parameters<double> direction = random_direction(example, seed);
  const double ahead = loss(moved(example, direction, kStep));
  const double behind = loss(moved(example, direction, -kStep));
  const double difference = (ahead - behind) / (2 * kStep);
  const double derivative = along(direction, gradients);
  if (difference == derivative) return 0;
  return std::abs(difference - derivative) / std::max(std::abs(difference), std::abs(derivative));
}

template Example<Field> random_layers(const std::vector<i64>&, i64, std::uint64_t);
template Example<Field> random_experts(const TwoLayers&, i64, i64, std::uint64_t);
template Example<Field> without_biases(Example<Field>);
template Yardstick<Field> yardstick(const Example<Field>&);
template Matrix<Field> push_forward(const Example<Field>&, const Parameters<Field>&);
template Tangent<Field> tangent(const Example<Field>&, std::uint64_t);
template double adjoint_gap(const Tangent<Field>&, const Parameters<Field>&);
template Reference<Field> reference_of(const Example<Field>&, i64);
template Example<double> random_layers(const std::vector<i64>&, i64, std::uint64_t);
template Example<double> random_experts(const TwoLayers&, i64, i64, std::uint64_t);
template Example<double> without_biases(Example<double>);
template Yardstick<double> yardstick(const Example<double>&);
template Matrix<double> push_forward(const Example<double>&, const Parameters<double>&);
template Tangent<double> tangent(const Example<double>&, std::uint64_t);
template double adjoint_gap(const Tangent<double>&, const Parameters<double>&);
template Reference<double> reference_of(const Example<double>&, i64);
template Example<float> random_layers(const std::vector<i64>&, i64, std::uint64_t);
template Example<float> random_experts(const TwoLayers&, i64, i64, std::uint64_t);
template Example<float> without_biases(Example<float>);
template Yardstick<float> yardstick(const Example<float>&);
template Matrix<float> push_forward(const Example<float>&, const Parameters<float>&);
template Tangent<float> tangent(const Example<float>&, std::uint64_t);
template double adjoint_gap(const Tangent<float>&, const Parameters<float>&);
template Reference<float> reference_of(const Example<float>&, i64);
}  // namespace shardtool::tutorial
