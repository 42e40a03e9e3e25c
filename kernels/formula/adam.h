/// \file
/// One element of Adam and AdamW, as torch's single-tensor form computes it.
#pragma once

#include "kernels/formula/number.h"

namespace ddp::formula {

/// Hyper-parameters of one group, in double.
struct AdamValues {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;
};

/// What all elements of a group share in one step.
template <typename S>
struct AdamCoefficients {
  S decay;         ///< factor of the weight: 1 - lr * weight_decay, or 1
  S weight_decay;  ///< what Adam adds to the gradient, times the weight
  S beta1, rest1;  ///< rest = 1 - beta
  S beta2, rest2;
  S step_size;     ///< lr / (1 - beta1^t)
  S inverse_root;  ///< 1 / sqrt(1 - beta2^t)
  S eps;
  bool far;  ///< beta1 <= 0.5: interpolate from the gradient's end
};

/// `time` counts updates and starts at 1.
template <typename S>
DDP_HOST_DEVICE inline AdamCoefficients<S> adam_coefficients(
    const AdamValues& a, std::int64_t time) {
  const double correction1 = 1 - integer_power(a.beta1, time);
  const double correction2 = 1 - integer_power(a.beta2, time);
  AdamCoefficients<S> c;
  c.decay = static_cast<S>(a.decoupled ? 1 - a.lr * a.weight_decay : 1.0);
  c.weight_decay = static_cast<S>(a.decoupled ? 0.0 : a.weight_decay);
  c.beta1 = static_cast<S>(a.beta1);
  c.rest1 = static_cast<S>(1 - a.beta1);
  c.beta2 = static_cast<S>(a.beta2);
  c.rest2 = static_cast<S>(1 - a.beta2);
  c.step_size = static_cast<S>(a.lr / correction1);
  c.inverse_root = static_cast<S>(1 / square_root(correction2));
  c.eps = static_cast<S>(a.eps);
  c.far = a.beta1 <= 0.5;
  return c;
}

/// Kingma & Ba 2015, algorithm 1, lines 7 to 12; the decay of Loshchilov &
/// Hutter 2019, algorithm 2, line 12, is applied to the weight first.
template <typename S>
DDP_HOST_DEVICE inline void adam_element(S& w, S& m, S& v, S g,
                                         const AdamCoefficients<S>& c) {
  g += c.weight_decay * w;
  w *= c.decay;
  const S towards = g - m;
  m = c.far ? g - towards * c.beta1 : m + towards * c.rest1;
  v = v * c.beta2 + (c.rest2 * g) * g;
  w -= (c.step_size * m) / (square_root(v) * c.inverse_root + c.eps);
}

}  // namespace ddp::formula
