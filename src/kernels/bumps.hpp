// The highest place of a sum of Gaussian bumps: max over c of g(c) = sum_i height_i exp(-|x_i - c|^2 / 2), bounded from
// above by branch and bound, and its local maxima.
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_ISA {

BoxSearch* bump_search(int64_t n, int64_t d, const double* x, const double* heights, double tolerance);
int64_t bump_climb(int64_t n, int64_t d, const double* x, const double* heights, int64_t n_starts, double* centres,
                   double* values, int64_t max_steps, double progress);

}  // namespace majorant::MAJORANT_ISA
