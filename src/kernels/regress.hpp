// Mixtures of Gaussian linear regressions: one fused pass, one M-step, and whole runs of EM.
#pragma once
#include "isa.hpp"
#include "regression.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
double regression_pass(const Regressions& model, int64_t n, const T* x, const T* y, const double* w, double beta,
                       double* statistics, T* energies, T* responsibilities);
double regression_step(const VarianceRule& rule, int64_t k, int64_t p, const double* statistics, double* weights,
                       double* coef, double* variances);
template <class T>
double regression_em(const VarianceRule& rule, int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w,
                     int64_t max_steps, double tolerance, double* weights, double* coef, double* variances,
                     double* path, int64_t* steps, bool* converged);

}  // namespace majorant::MAJORANT_ISA
