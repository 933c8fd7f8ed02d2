#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// Update rule for a head's state, a matrix S of keys and values:
///
///     add     S = decay S + key (gate value)^T
///     delta   S = decay S + key (gate (value - (decay S)^T key))^T      replaces the key's value
enum class RecurrenceRule { kAdd, kDelta };

/// Decay of a state per token: one number (stride 0), or one per key number (stride 1).
template <class T>
struct Decays {
  const T* numbers = nullptr;
  i64 stride = 0;
};

/// Processes one token for one number of a head's value. Updates the `n` state numbers of that
/// column and returns query * state. Columns are independent. O(n).
template <class T>
SHARDTOOL_BOTH inline T recur(RecurrenceRule rule, const T* query, const T* key, T value,
                              Decays<T> decay, T gate, i64 n, T* state) {
  T had{};
  for (i64 i = 0; i < n; ++i) {
    state[i] *= decay.numbers[i * decay.stride];
    had += key[i] * state[i];
  }
  const T written = gate * (rule == RecurrenceRule::kDelta ? value - had : value);
  T y{};
  for (i64 i = 0; i < n; ++i) {
    state[i] += key[i] * written;
    y += query[i] * state[i];
  }
  return y;
}

/// Step size of a token (Mamba's dt): softplus(x) clamped to [least, most].
template <class T>
SHARDTOOL_BOTH inline T step_of(T x, double least, double most) {
  return clamp(softplus(x), static_cast<T>(least), static_cast<T>(most));
}
/// Ignores the limits: they are equal on both sides of a proof.
SHARDTOOL_BOTH inline Field step_of(Field x, double /*least*/, double /*most*/) {
  return surrogate(Surrogate::kStep, x);
}

/// Decay of a step: e^(-e^rate step).
template <class T>
SHARDTOOL_BOTH inline T decay_of(T rate, T step) {
  return std::exp(-std::exp(rate) * step);
}
/// Uses a surrogate of the rate: a rate of 0 is common and must not hide the step.
SHARDTOOL_BOTH inline Field decay_of(Field rate, Field step) {
  return surrogate(Surrogate::kDecay, surrogate(Surrogate::kRate, rate) * step);
}

/// Decay bounded below by e^least: e^(least sigmoid(e^rate x)).
template <class T>
SHARDTOOL_BOTH inline T bounded_decay_of(T rate, T x, double least) {
  return std::exp(static_cast<T>(least) * sigmoid(std::exp(rate) * x));
}
/// Ignores the limit: it is equal on both sides of a proof.
SHARDTOOL_BOTH inline Field bounded_decay_of(Field rate, Field x, double /*least*/) {
  return decay_of(rate, x);
}

/// Constant decay of every token: e^-rate.
template <class T>
SHARDTOOL_BOTH inline T faded(T rate) {
  return std::exp(-rate);
}
SHARDTOOL_BOTH inline Field faded(Field rate) {
  return surrogate(Surrogate::kFade, rate);
}

}  // namespace shardtool::kernels
