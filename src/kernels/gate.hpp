// Weights of components that depend on covariates: responsibilities, score and information.
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_ISA {

void gate_pass(const Gate& gate, int64_t runs, const double* coef, const double* log_density, double* q, double* log_sums,
               double* sums);

}  // namespace majorant::MAJORANT_ISA
