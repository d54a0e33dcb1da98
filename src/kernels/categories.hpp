// Mixtures of independent categorical columns: whole runs of EM.
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

double category_em(const Categories& rows, int64_t k, int64_t max_steps, double tolerance, double* weights,
                   double* probabilities, double* path, int64_t* steps, bool* converged);

}  // namespace majorant::MAJORANT_UP_TO_V3
