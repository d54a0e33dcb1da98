// Small symmetric systems, packed as the rows of their lower triangle.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// Numbers in a lower triangle of p rows.
constexpr int64_t pairs(int64_t p) { return p * (p + 1) / 2; }

// out = (gram + ridge (mean of the diagonal) I)^-1 slope, by Cholesky; a pivot that rounding ate is the ridge.
inline void solve_normal(int64_t p, const double* gram, const double* slope, double ridge, std::vector<double>& factor,
                         double* out) {
    factor.assign(gram, gram + pairs(p));
    double trace = 0.0;
    for (int64_t j = 0; j < p; j++) trace += factor[pairs(j) + j];
    const double least = ridge * trace / double(p) + 1e-300;
    for (int64_t j = 0; j < p; j++) {
        double* a = &factor[pairs(j)];
        for (int64_t l = 0; l < j; l++) {
            const double* b = &factor[pairs(l)];
            double sum = a[l];
            for (int64_t i = 0; i < l; i++) sum -= a[i] * b[i];
            a[l] = sum / b[l];
        }
        double sum = a[j] + least;
        for (int64_t i = 0; i < j; i++) sum -= a[i] * a[i];
        a[j] = std::sqrt(std::max(sum, least));
    }
    for (int64_t j = 0; j < p; j++) {
        double sum = slope[j];
        for (int64_t i = 0; i < j; i++) sum -= factor[pairs(j) + i] * out[i];
        out[j] = sum / factor[pairs(j) + j];
    }
    for (int64_t j = p - 1; j >= 0; j--) {
        double sum = out[j];
        for (int64_t i = j + 1; i < p; i++) sum -= factor[pairs(i) + j] * out[i];
        out[j] = sum / factor[pairs(j) + j];
    }
}

}  // namespace majorant::MAJORANT_ISA
