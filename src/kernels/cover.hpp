// The largest cover: max over c of h(c) = sum_i w_i (reach_i - |x_i - c|^2)_+, bounded from above by branch and bound,
// and its local maxima.
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

BoxSearch* cover_search(int64_t n, int64_t d, const double* x, const double* w, const double* reach, double tolerance);
int64_t cover_climb(int64_t n, int64_t d, const double* x, const double* w, const double* reach, int64_t n_starts,
                    double* centres, double* values, int64_t max_steps, double enough, int64_t* tests);

}  // namespace majorant::MAJORANT_UP_TO_V3
