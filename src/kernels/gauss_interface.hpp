// Gaussian components as the kernels take them. Parameters are doubles whatever the data are.
#pragma once
#include <cstdint>

namespace majorant {

enum class Covariance : int { full, tied, diag, spherical };

// How many second moments a component has: the lower triangle row by row, its diagonal, or its trace.
inline int64_t second_moments(int64_t d, Covariance type) {
    return type == Covariance::diag ? d : type == Covariance::spherical ? 1 : d * (d + 1) / 2;
}

// Numbers in covariances or factors.
inline int64_t covariance_size(int64_t k, int64_t d, Covariance type) {
    return type == Covariance::full ? k * d * d : type == Covariance::tied ? d * d : type == Covariance::diag ? k * d : k;
}

// Energies -log(share) - log N(x; mean, covariance) = offset + |factor' (x - mean)|^2 / 2.
struct Gaussians {
    int64_t k, d;
    Covariance type;
    const double* means;    // (k, d)
    const double* factors;  // upper triangular U with U U' = covariance^-1: (k, d, d), (d, d); or 1 / sd: (k, d), (k)
    const double* offsets;  // (k), infinite for an absent component
};

// Components by their covariances.
struct GaussMixture {
    int64_t k, d;
    Covariance type;
    const double *weights, *means, *covariances;  // (k), (k, d), and as covariances of the type
};

// What a pass adds up, each sum weighted.
struct GaussTotals {
    double free = 0.0;     // free energies
    double entropy = 0.0;  // entropies over beta
};

// Parameters of a mixture; shapes as above.
struct GaussParameters {
    double *weights, *means, *covariances, *factors, *offsets;
    uint8_t* floored;  // (k)
};

// The outcome of an M-step: its value, how far the means moved in units of the new covariances (weighted squares), and
// the first component whose covariance is singular, or -1.
struct GaussStep {
    double value, travel;
    int64_t singular;
};

// How runs of EM go on. Where `squared`, every third step is an extrapolation of two (SQUAREM), kept if it gains.
struct GaussSearch {
    int64_t k, d;
    Covariance type;
    double floor;
    int64_t steps;     // passes over the points after the first one, at most
    double tolerance;  // a run ends when its log-likelihood rises by no more; negative: never
    bool squared;
};

// Runs, each array with a leading axis of n_runs. Parameters are read and overwritten.
struct GaussRuns {
    int64_t n_runs;
    double *weights, *means, *covariances;
    const double* responsibilities;  // (n_runs, n, k): the runs' first moments; null: begin at the parameters
    double* history;                 // (n_runs, steps + 1): log-likelihoods after 0, 1, ... passes
    int64_t* passes;                 // how many of them were made after the first
    uint8_t* floored;                // (n_runs, k)
    uint8_t* status;                 // 0: out of steps; 1: converged; 2: a covariance is singular
};

}  // namespace majorant
