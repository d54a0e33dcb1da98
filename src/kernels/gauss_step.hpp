// The M-step of a Gaussian mixture: moments to parameters, with a floor under every covariance.
#pragma once
#include "gauss_interface.hpp"
#include "isa.hpp"

namespace majorant::baseline {

// Minimises <moments, energies> among covariances whose eigenvalues are at least the floor. Moments are about
// `reference`; a component without mass keeps its reference and its covariance in `out`. Where `single`, means are
// rounded to single precision, and covariances are about the rounded means.
GaussStep gauss_step(int64_t k, int64_t d, Covariance type, double floor, const double* moments, const double* reference,
                     bool single, const GaussParameters& out);

// Factors of covariances, and -log N(mean; mean, covariance). Returns the first singular component, or -1.
int64_t gauss_factor(int64_t k, int64_t d, Covariance type, const double* covariances, double* factors, double* constants);

// Factors and offsets from weights and covariances; false if a covariance reaches below the floor.
bool gauss_complete(int64_t k, int64_t d, Covariance type, double floor, const GaussParameters& out);

}  // namespace majorant::baseline
