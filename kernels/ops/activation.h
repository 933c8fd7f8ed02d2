#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/both.h"

namespace shardtool::kernels {

/// Elementwise functions that config.json names. Names of different implementations of one function
/// share a kind.
enum class ActivationKind {
  kGelu,
  kGelu10,  ///< gelu clamped to [-10, 10]
  kGeluTanh,
  kHardswish,
  kLaplace,  ///< normal distribution function: mean 0.707107, deviation 0.282095
  kLeakyRelu,
  kLinear,
  kMish,
  kQuickGelu,
  kRelu,
  kRelu6,
  kReluSquared,
  kSigmoid,
  kSilu,
  kSoftplus,
  kTanh,
};

/// Names of transformers' ACT2FN, and of torch (softplus). Functions with learned parameters
/// (prelu, xielu) are not among them.
inline constexpr auto kActivationNames =
    std::to_array<std::pair<std::string_view, ActivationKind>>({
        {"gelu", ActivationKind::kGelu},
        {"gelu_10", ActivationKind::kGelu10},
        {"gelu_accurate", ActivationKind::kGeluTanh},
        {"gelu_fast", ActivationKind::kGeluTanh},
        {"gelu_new", ActivationKind::kGeluTanh},
        {"gelu_python", ActivationKind::kGelu},
        {"gelu_python_tanh", ActivationKind::kGeluTanh},
        {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
        {"hardswish", ActivationKind::kHardswish},
        {"laplace", ActivationKind::kLaplace},
        {"leaky_relu", ActivationKind::kLeakyRelu},
        {"linear", ActivationKind::kLinear},
        {"mish", ActivationKind::kMish},
        {"quick_gelu", ActivationKind::kQuickGelu},
        {"relu", ActivationKind::kRelu},
        {"relu2", ActivationKind::kReluSquared},
        {"relu6", ActivationKind::kRelu6},
        {"sigmoid", ActivationKind::kSigmoid},
        {"silu", ActivationKind::kSilu},
        {"softplus", ActivationKind::kSoftplus},
        {"swish", ActivationKind::kSilu},
        {"tanh", ActivationKind::kTanh},
    });

/// Returns nullopt for an unknown name.
constexpr std::optional<ActivationKind> parse_activation(std::string_view name) {
  for (const auto& [known, kind] : kActivationNames) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

template <class T>
SHARDTOOL_BOTH inline T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
SHARDTOOL_BOTH inline T clamp(T x, T least, T most) {
  return x < least ? least : x > most ? most : x;
}

/// log(1 + e^x); x for x > 20, where the difference is rounding error.
template <class T>
SHARDTOOL_BOTH inline T softplus(T x) {
  return x > T(20) ? x : std::log1p(std::exp(x));
}

template <class T>
SHARDTOOL_BOTH inline T gelu(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
}

template <class T>
SHARDTOOL_BOTH inline T gelu_tanh(T x) {
  constexpr T kSqrtTwoOverPi = T(0.79788456080286535588);
  return T(0.5) * x * (T(1) + std::tanh(kSqrtTwoOverPi * (x + T(0.044715) * x * x * x)));
}

template <class T>
SHARDTOOL_BOTH inline T laplace(T x) {
  constexpr T kMean = T(0.707107), kDeviation = T(0.282095), kSqrtTwo = T(1.41421356237309504880);
  return T(0.5) * (T(1) + std::erf((x - kMean) / (kDeviation * kSqrtTwo)));
}

/// Computes the function in T. NaN stays NaN.
template <class T>
SHARDTOOL_BOTH inline T activate(ActivationKind kind, T x) {
  using enum ActivationKind;
  switch (kind) {
    case kGelu:
      return gelu(x);
    case kGelu10:
      return clamp(gelu(x), T(-10), T(10));
    case kGeluTanh:
      return gelu_tanh(x);
    case kHardswish:
      return x * clamp(x + T(3), T(0), T(6)) / T(6);
    case kLaplace:
      return laplace(x);
    case kLeakyRelu:
      return x < T(0) ? T(0.01) * x : x;
    case kLinear:
      return x;
    case kMish:
      return x * std::tanh(softplus(x));
    case kQuickGelu:
      return x * sigmoid(T(1.702) * x);
    case kRelu:
      return x < T(0) ? T(0) : x;
    case kRelu6:
      return clamp(x, T(0), T(6));
    case kReluSquared:
      return x < T(0) ? T(0) : x * x;
    case kSigmoid:
      return sigmoid(x);
    case kSilu:
      return x * sigmoid(x);
    case kSoftplus:
      return softplus(x);
    case kTanh:
      return std::tanh(x);
  }
  return x;
}

/// The gated activation of gpt-oss, a function of two values:
///
///     g = min(gate, 7), u = min(max(up, -7), 7):    (u + 1) g sigmoid(1.702 g)
template <class T>
SHARDTOOL_BOTH inline T gpt_oss_glu(T gate, T up) {
  constexpr T kLimit = T(7), kAlpha = T(1.702);
  const T bounded = gate > kLimit ? kLimit : gate;
  return (clamp(up, -kLimit, kLimit) + T(1)) * bounded * sigmoid(kAlpha * bounded);
}

}  // namespace shardtool::kernels
