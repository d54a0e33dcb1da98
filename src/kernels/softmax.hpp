// Logits, of several states and of bits: log-partition functions, their gradients and the blocks of their Hessian.
#pragma once
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
double softmax_pass(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* coef, const double* offsets,
                    double* moments, double* blocks, double* probabilities, double* logs);

template <class T>
void soft_moments(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* q, double* moments);

void bit_losses(int64_t n, int64_t p, double* eta, double* softplus);

}  // namespace majorant::MAJORANT_UP_TO_V3
