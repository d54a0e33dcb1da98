// What the kernels of regression mixtures are told: a mixture, and which variances it may have.
#pragma once
#include <cstdint>

namespace majorant {

struct Regressions {
    int64_t k, p;
    const double* weights;    // (k)
    const double* coef;       // (k, p)
    const double* variances;  // (k), of the noise
};

// Variances are at least `floor` and at most `ratio` times the smallest one, or all equal.
struct VarianceRule {
    double ratio, floor;
    bool common;
};

}  // namespace majorant
