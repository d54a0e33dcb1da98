// Rows against the components of a Gaussian mixture: energies, responsibilities and moments in one pass.
#pragma once
#include "gauss_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
void gauss_energies(int64_t n, const T* x, const Gaussians& g, T* out);
template <class T>
GaussTotals gauss_pass(int64_t n, const T* x, const double* w, const Gaussians& g, double beta, double* moments,
                       double* free, T* q);
template <class T>
void gauss_moments(int64_t n, int64_t k, int64_t d, Covariance type, const T* x, const double* w, const double* means,
                   const double* q, double* moments);

}  // namespace majorant::MAJORANT_ISA
