// Where do fits of several regressions begin? Lines through a few rows, drawn to the rows that they fit best.
#pragma once
#include "isa.hpp"

namespace majorant::baseline {

template <class T>
double regression_concentrate(int64_t n, int64_t p, const T* x, const T* y, const double* w, const double* odds,
                              int64_t n_drawn, const int64_t* drawn, double mass, int64_t steps, double* coef);
template <class T>
void regression_greedy(int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w, int64_t candidates,
                       int64_t steps, const double* mass, const double* uniforms, double* coef);

}  // namespace majorant::baseline
