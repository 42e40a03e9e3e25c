/// \file
/// One element of stochastic gradient descent, as torch computes it.
#pragma once

#include "kernels/formula/number.h"

namespace ddp::formula {

/// Hyper-parameters of one group, in double.
struct SgdValues {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
};

/// What all elements of a group share in one step.
template <typename S>
struct SgdCoefficients {
  S lr, weight_decay;
  S momentum;  ///< factor of the buffer: 0 in the first update
  S fresh;     ///< factor of the gradient: 1 in the first, 1 - dampening
  S ahead;     ///< nesterov: factor of the new buffer beside the gradient
  bool nesterov;
};

/// `time` counts updates and starts at 1.
template <typename S>
DDP_HOST_DEVICE inline SgdCoefficients<S> sgd_coefficients(const SgdValues& a,
                                                           std::int64_t time) {
  SgdCoefficients<S> c;
  c.lr = static_cast<S>(a.lr);
  c.weight_decay = static_cast<S>(a.weight_decay);
  c.momentum = static_cast<S>(time <= 1 ? 0.0 : a.momentum);
  c.fresh = static_cast<S>(time <= 1 ? 1.0 : 1 - a.dampening);
  c.ahead = static_cast<S>(a.momentum);
  c.nesterov = a.nesterov;
  return c;
}

/// Without a momentum buffer.
template <typename S>
DDP_HOST_DEVICE inline void sgd_element(S& w, S g,
                                        const SgdCoefficients<S>& c) {
  g += c.weight_decay * w;
  w -= c.lr * g;
}

/// With momentum buffer `b`, whose old value the first update ignores.
template <typename S>
DDP_HOST_DEVICE inline void sgd_element(S& w, S& b, S g,
                                        const SgdCoefficients<S>& c) {
  g += c.weight_decay * w;
  const S kept = c.momentum == S(0) ? S(0) : c.momentum * b;
  b = kept + c.fresh * g;
  w -= c.lr * (c.nesterov ? g + c.ahead * b : b);
}

}  // namespace ddp::formula
