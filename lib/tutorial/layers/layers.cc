#include "lib/tutorial/layers/layers.h"

#include <fmt/format.h>

namespace shardtool::tutorial {
namespace {

template <Number T>
DenseLayer<T> read_layer(const Parameters<T>& parameters, std::string_view prefix, i64 number) {
  DenseLayer<T> layer;
  layer.number = number;
  layer.weights = parameters.at(std::string(prefix) + weights_name(number));
  const std::string name = std::string(prefix) + bias_name(number);
  if (const Matrix<T>* bias = find(parameters, name)) {
    require_extent("rows of " + name, bias->rows(), 1);
    require_extent("columns of " + name, bias->columns(), layer.weights.columns());
    layer.bias = *bias;
  }
  return layer;
}

template <Number T>
void require_known_names(const Parameters<T>& parameters, std::string_view prefix, i64 layers) {
  for (const auto& [name, matrix] : parameters) {
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    bool known = false;
    for (i64 i = 0; i < layers; ++i) known |= rest == weights_name(i) || rest == bias_name(i);
    if (known) continue;
    throw Error(ErrorCode::kUnknownName, fmt::format("'{}' is not a parameter of the model", name))
        .help("name them layer_0/weights, layer_0/bias, layer_1/weights, ... without gaps");
  }
}

}  // namespace

std::string weights_name(i64 layer) {
  return fmt::format("layer_{}/weights", layer);
}

std::string bias_name(i64 layer) {
  return fmt::format("layer_{}/bias", layer);
}

template <Number T>
Matrix<T> plus_bias(Matrix<T> z, const Matrix<T>* bias) {
  if (bias == nullptr) return z;
  require_extent("columns of a bias", bias->columns(), z.columns());
  for (i64 r = 0; r < z.rows(); ++r) {
    for (i64 c = 0; c < z.columns(); ++c) z(r, c) += (*bias)(0, c);
  }
  return z;
}

template <Number T>
Matrix<T> linear(const Matrix<T>& x, const Matrix<T>& weights, const Matrix<T>* bias,
                 const Product<T>& product) {
  return plus_bias(product(x, weights), bias);
}

template <Number T>
Matrix<T> relu(Matrix<T> z) {
  for (T& value : z.values()) {
    if (!is_positive(value)) value = T{};
  }
  return z;
}

template <Number T>
Matrix<T> masked(Matrix<T> g, const Matrix<T>& h) {
  require_extent("rows of a gradient", g.rows(), h.rows());
  require_extent("columns of a gradient", g.columns(), h.columns());
  for (size_t i = 0; i < g.values().size(); ++i) {
    if (!is_positive(h.values()[i])) g.values()[i] = T{};
  }
  return g;
}

template <Number T>
Parameters<T> layer_gradients(i64 layer, const Matrix<T>& input, const Matrix<T>& g,
                              const Matrix<T>* bias, const Product<T>& product,
                              std::string_view prefix) {
  Parameters<T> gradients;
  gradients[std::string(prefix) + weights_name(layer)] = product(transposed(input), g);
  if (bias != nullptr) gradients[std::string(prefix) + bias_name(layer)] = row_sum(g);
  return gradients;
}

template <Number T>
std::vector<DenseLayer<T>> layers_of(const Parameters<T>& parameters, std::string_view prefix) {
  std::vector<DenseLayer<T>> layers;
  while (parameters.contains(std::string(prefix) + weights_name(layers.size()))) {
    layers.push_back(read_layer(parameters, prefix, layers.size()));
    if (layers.size() == 1) continue;
    require_extent(fmt::format("rows of {}{}", prefix, weights_name(layers.back().number)),
                   layers.back().weights.rows(), layers[layers.size() - 2].weights.columns());
  }
  require_known_names(parameters, prefix, layers.size());
  if (layers.empty()) {
    throw Error(ErrorCode::kUnknownName, fmt::format("there is no {}{}", prefix, weights_name(0)));
  }
  layers.back().is_last = true;
  return layers;
}

template <Number T>
Pass<T> run_layers(std::span<const DenseLayer<T>> layers, const Matrix<T>& x,
                   const Product<T>& product) {
  Pass<T> pass{x, {}};
  for (const DenseLayer<T>& layer : layers) {
    Matrix<T> z = linear(pass.y, layer.weights, layer.bias_or_null(), product);
    pass.tape.push_back(std::move(pass.y));
    pass.y = layer.is_last ? std::move(z) : relu(std::move(z));
  }
  return pass;
}

template <Number T>
Parameters<T> pull_back_layers(std::span<const DenseLayer<T>> layers, const Tape<T>& tape,
                               const Matrix<T>& g, const Product<T>& product,
                               std::string_view prefix) {
  Parameters<T> gradients;
  Matrix<T> behind = g;
  for (size_t i = layers.size(); i-- > 0;) {
    const DenseLayer<T>& layer = layers[i];
    gradients.merge(
        layer_gradients(layer.number, tape[i], behind, layer.bias_or_null(), product, prefix));
    behind = product(behind, transposed(layer.weights));
    if (layer.number != 0) behind = masked(std::move(behind), tape[i]);
  }
  gradients[std::string(kInputGradient)] = std::move(behind);
  return gradients;
}

template <Number T>
Matrix<T> push_forward_layers(std::span<const DenseLayer<T>> layers, const Tape<T>& tape,
                              const Parameters<T>& direction, std::string_view prefix) {
  const std::string p(prefix);
  Matrix<T> moved = direction.at(std::string(kInputGradient));
  for (size_t i = 0; i < layers.size(); ++i) {
    const DenseLayer<T>& layer = layers[i];
    if (layer.number != 0) moved = masked(std::move(moved), tape[i]);
    const Matrix<T>* bias = layer.bias ? &direction.at(p + bias_name(layer.number)) : nullptr;
    moved = plus(times(moved, layer.weights),
                 linear(tape[i], direction.at(p + weights_name(layer.number)), bias));
  }
  return moved;
}

// Instantiations for the three arithmetics.
template Matrix<Field> plus_bias(Matrix<Field>, const Matrix<Field>*);
template Matrix<double> plus_bias(Matrix<double>, const Matrix<double>*);
template Matrix<float> plus_bias(Matrix<float>, const Matrix<float>*);
template Parameters<Field> layer_gradients(i64, const Matrix<Field>&, const Matrix<Field>&,
                                           const Matrix<Field>*, const Product<Field>&,
                                           std::string_view);
template Parameters<double> layer_gradients(i64, const Matrix<double>&, const Matrix<double>&,
                                            const Matrix<double>*, const Product<double>&,
                                            std::string_view);
template Parameters<float> layer_gradients(i64, const Matrix<float>&, const Matrix<float>&,
                                           const Matrix<float>*, const Product<float>&,
                                           std::string_view);
template Matrix<Field> linear(const Matrix<Field>&, const Matrix<Field>&, const Matrix<Field>*,
                              const Product<Field>&);
template Matrix<double> linear(const Matrix<double>&, const Matrix<double>&, const Matrix<double>*,
                               const Product<double>&);
template Matrix<float> linear(const Matrix<float>&, const Matrix<float>&, const Matrix<float>*,
                              const Product<float>&);
template Matrix<Field> relu(Matrix<Field>);
template Matrix<double> relu(Matrix<double>);
template Matrix<float> relu(Matrix<float>);
template Matrix<Field> masked(Matrix<Field>, const Matrix<Field>&);
template Matrix<double> masked(Matrix<double>, const Matrix<double>&);
template Matrix<float> masked(Matrix<float>, const Matrix<float>&);
template std::vector<DenseLayer<Field>> layers_of(const Parameters<Field>&, std::string_view);
template std::vector<DenseLayer<double>> layers_of(const Parameters<double>&, std::string_view);
template std::vector<DenseLayer<float>> layers_of(const Parameters<float>&, std::string_view);
template Pass<Field> run_layers(std::span<const DenseLayer<Field>>, const Matrix<Field>&,
                                const Product<Field>&);
template Pass<double> run_layers(std::span<const DenseLayer<double>>, const Matrix<double>&,
                                 const Product<double>&);
template Pass<float> run_layers(std::span<const DenseLayer<float>>, const Matrix<float>&,
                                const Product<float>&);
template Parameters<Field> pull_back_layers(std::span<const DenseLayer<Field>>, const Tape<Field>&,
                                            const Matrix<Field>&, const Product<Field>&,
                                            std::string_view);
template Parameters<double> pull_back_layers(std::span<const DenseLayer<double>>,
                                             const Tape<double>&, const Matrix<double>&,
                                             const Product<double>&, std::string_view);
template Parameters<float> pull_back_layers(std::span<const DenseLayer<float>>, const Tape<float>&,
                                            const Matrix<float>&, const Product<float>&,
                                            std::string_view);
template Matrix<Field> push_forward_layers(std::span<const DenseLayer<Field>>, const Tape<Field>&,
                                           const Parameters<Field>&, std::string_view);
template Matrix<double> push_forward_layers(std::span<const DenseLayer<double>>,
                                            const Tape<double>&, const Parameters<double>&,
                                            std::string_view);
template Matrix<float> push_forward_layers(std::span<const DenseLayer<float>>, const Tape<float>&,
                                           const Parameters<float>&, std::string_view);

}  // namespace shardtool::tutorial
