#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/tutorial/layers/matrix.h"

namespace shardtool::tutorial {

/// Arrays by name: "layer_0/weights" [in, out], "layer_0/bias" [1, out], "layer_1/weights", ...;
/// gradients also have "dx".
template <Number T>
using Parameters = std::map<std::string, Matrix<T>>;

inline constexpr std::string_view kInputGradient = "dx";

std::string weights_name(i64 layer);
std::string bias_name(i64 layer);

/// Returns the array of this name, or null.
template <Number T>
const Matrix<T>* find(const Parameters<T>& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

/// x w, plus the bias in every row if there is one.
template <Number T>
Matrix<T> linear(const Matrix<T>& x, const Matrix<T>& weights, const Matrix<T>* bias,
                 const Product<T>& product = times<T>);
/// z, plus the bias in every row if there is one. Throws kShapeMismatch.
template <Number T>
Matrix<T> plus_bias(Matrix<T> z, const Matrix<T>* bias);
/// z where z > 0, else 0.
template <Number T>
Matrix<T> relu(Matrix<T> z);
/// g where h > 0, else 0: the gradient before a ReLU with output h.
template <Number T>
Matrix<T> masked(Matrix<T> g, const Matrix<T>& h);

/// Gradients of a layer's parameters by name, from its input and the gradient of its output;
/// includes the bias if there is one.
template <Number T>
Parameters<T> layer_gradients(i64 layer, const Matrix<T>& input, const Matrix<T>& g,
                              const Matrix<T>* bias, const Product<T>& product = times<T>,
                              std::string_view prefix = "");

/// y = x W + b, followed by a ReLU unless it is the model's last layer.
template <Number T>
struct DenseLayer {
  i64 number = 0;  ///< index in the model
  Matrix<T> weights;
  std::optional<Matrix<T>> bias;  ///< one row
  bool is_last = false;

  const Matrix<T>* bias_or_null() const { return bias ? &*bias : nullptr; }
};

/// Returns the layers of "<prefix>layer_0/...", "<prefix>layer_1/...". Throws kShapeMismatch if a
/// layer's input does not fit the output before it or its bias has another length; kUnknownName for
/// an unknown name with the prefix, or if there are no layers.
template <Number T>
std::vector<DenseLayer<T>> layers_of(const Parameters<T>& parameters, std::string_view prefix = "");

/// Saved inputs of every layer for the backward pass. The ReLU masks follow from them: an input is
/// positive where the number before its ReLU was.
template <Number T>
using Tape = std::vector<Matrix<T>>;

template <Number T>
struct Pass {
  Matrix<T> y;
  Tape<T> tape;
};

/// Runs consecutive layers on one device. O(rows * sizes of the weights), like the next two.
template <Number T>
Pass<T> run_layers(std::span<const DenseLayer<T>> layers, const Matrix<T>& x,
                   const Product<T>& product = times<T>);

/// J^T g: the gradients of <y, g> by name, and "dx". The latter is already masked if the first of
/// these layers is not the model's first, because its input is the output of a ReLU.
template <Number T>
Parameters<T> pull_back_layers(std::span<const DenseLayer<T>> layers, const Tape<T>& tape,
                               const Matrix<T>& g, const Product<T>& product = times<T>,
                               std::string_view prefix = "");

/// J v: the change of y when x changes by direction["dx"] and every parameter by direction[its
/// name]. Requires the model's first layer to be the first of these.
template <Number T>
Matrix<T> push_forward_layers(std::span<const DenseLayer<T>> layers, const Tape<T>& tape,
                              const Parameters<T>& direction, std::string_view prefix = "");

}  // namespace shardtool::tutorial
