// Rows with missing entries (NaN) against the components of a Gaussian mixture.
#pragma once
#include "gauss_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// Passes as `gauss_pass` makes, of the densities of observed entries, for runs whose mixtures have one shape. Moments are
// those of completed rows as they are expected given these, and each component has a last number: minus the entropies of its
// missing entries. A run with a singular covariance is not done.
template <class T>
void gauss_gaps(int64_t n, const T* x, const double* w, int64_t runs, const GaussMixture* mixtures, double beta,
                double* moments, GaussTotals* totals, bool* done);

}  // namespace majorant::MAJORANT_ISA
