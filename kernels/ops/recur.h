#pragma once

#include <cmath>

#include "kernels/both.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/surrogate.h"
#include "lib/base/checked.h"

namespace shardtool::kernels {

/// What a recurrence writes to the state of a head, which is a matrix S of keys and values:
///
///     add     S = decay S + key (gate value)^T
///     delta   S = decay S + key (gate (value - (decay S)^T key))^T      what the key had is
///     replaced
enum class RecurrenceRule { kAdd, kDelta };

/// What a token leaves of a state: one number for all of it, or, with a stride of 1, one for each
/// number of a key.
template <class T>
struct Decays {
  const T* numbers = nullptr;
  i64 stride = 0;
};

/// One token and one number of a head's value, with the `n` numbers of the state that belong to it:
/// the state after the token, of which query * state is returned. Columns do not depend on each
/// other. O(n).
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

/// How far a token moves a state: softplus(x) within [least, most].
template <class T>
SHARDTOOL_BOTH inline T step_of(T x, double least, double most) {
  return clamp(softplus(x), static_cast<T>(least), static_cast<T>(most));
}
/// The limits are the same on both sides of a proof.
SHARDTOOL_BOTH inline Field step_of(Field x, double /*least*/, double /*most*/) {
  return surrogate(Surrogate::kStep, x);
}

/// What a step leaves of a state: e^(-e^rate step).
template <class T>
SHARDTOOL_BOTH inline T decay_of(T rate, T step) {
  return std::exp(-std::exp(rate) * step);
}
/// Rates of 0 are common, and must not hide the step.
SHARDTOOL_BOTH inline Field decay_of(Field rate, Field step) {
  return surrogate(Surrogate::kDecay, surrogate(Surrogate::kRate, rate) * step);
}

/// What a number leaves of a state, at least e^least: e^(least sigmoid(e^rate x)).
template <class T>
SHARDTOOL_BOTH inline T bounded_decay_of(T rate, T x, double least) {
  return std::exp(static_cast<T>(least) * sigmoid(std::exp(rate) * x));
}
/// The limit is the same on both sides of a proof.
SHARDTOOL_BOTH inline Field bounded_decay_of(Field rate, Field x, double /*least*/) {
  return decay_of(rate, x);
}

/// What every token leaves of a state alike: e^-rate.
template <class T>
SHARDTOOL_BOTH inline T faded(T rate) {
  return std::exp(-rate);
}
SHARDTOOL_BOTH inline Field faded(Field rate) {
  return surrogate(Surrogate::kFade, rate);
}

}  // namespace shardtool::kernels
