// Regressions: losses of rows, and sums for a step of Newton's, of many linear predictors at a time.
#pragma once
#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_ISA {

void response_losses(const Responses& rows, int64_t m, const double* coef, const double* dispersions, double* out);
void response_sums(const Responses& rows, int64_t m, const double* coef, const double* dispersions, const double* q, double* out);

}  // namespace majorant::MAJORANT_ISA
