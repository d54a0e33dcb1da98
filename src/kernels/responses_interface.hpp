// What the kernels of regressions are told.
#pragma once
#include <cstdint>

namespace majorant {

// What y is, given the predictor offset + columns' coef: the mean of a normal or Student target, the logarithm of the mean
// of a Poisson or gamma target, the logit of a binomial one.
enum class Family { gaussian, student, poisson, binomial, gamma };

struct Responses {
    Family family;
    double df;  // of Student targets
    int64_t n, p;
    const double* columns;  // (p, n)
    const double* y;        // (n)
    const double* offset;   // (n), or null
    const double* trials;   // (n), of binomial targets
};

struct ResponseKernels {
    // By how much log densities (n) of each of m predictors, coef (m, p) with dispersions (m), lie below those of the best
    // predictor of each row: out (m, n).
    void (*losses)(const Responses& rows, int64_t m, const double* coef, const double* dispersions, double* out);

    // [sum q, sum q spread, sum q score x, sum q curvature x x' (lower triangle)] for given weights q (m, n), score and
    // curvature times the dispersion: out (m, 2 + p + p (p + 1) / 2). The mean spread gives the dispersion, and is zero where
    // a family has none.
    void (*sums)(const Responses& rows, int64_t m, const double* coef, const double* dispersions, const double* q, double* out);
};

}  // namespace majorant
