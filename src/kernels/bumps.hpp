// The highest place of a sum of Gaussian bumps, bounded from above by branch and bound, and its local maxima: of points,
// g(c) = sum_i height_i exp(-|x_i - c|^2 / 2), and of lines, g(c) = sum_i height_i exp(-(y_i - z_i'c)^2 / 2).
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

BoxSearch* bump_search(int64_t n, int64_t d, const double* x, const double* heights, double tolerance);
int64_t bump_climb(int64_t n, int64_t d, const double* x, const double* heights, int64_t n_starts, double* centres,
                   double* values, int64_t max_steps, double progress);

BoxSearch* line_search(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_partitions,
                       const int32_t* labels, const double* caps, double tolerance);
int64_t line_climb(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_starts,
                   double* lines, double* values, int64_t max_steps, double progress);

}  // namespace majorant::MAJORANT_UP_TO_V3
