// Rows with missing entries (NaN) against the components of a Gaussian mixture.
#pragma once
#include "gauss_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// A pass as `gauss_pass` makes, of the densities of observed entries. Moments are those of completed rows as they are
// expected given these, and each component has a last number: minus the entropies of its missing entries. False where a
// covariance is singular.
template <class T>
bool gauss_gaps(int64_t n, const T* x, const double* w, const GaussMixture& mixture, double beta, double* moments,
                GaussTotals* totals);

}  // namespace majorant::MAJORANT_ISA
