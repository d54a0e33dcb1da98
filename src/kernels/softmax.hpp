// Multinomial logit: the log-partition function of linear scores, its gradient and the blocks of its Hessian.
#pragma once
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
double softmax_pass(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* coef, const double* offsets,
                    double* moments, double* blocks, double* probabilities, double* logs);

template <class T>
void soft_moments(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* q, double* moments);

}  // namespace majorant::MAJORANT_UP_TO_V3
