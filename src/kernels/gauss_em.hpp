// Runs of EM on points in memory.
#pragma once
#include "gauss_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
void gauss_em(int64_t n, const T* x, const double* w, const GaussSearch& search, const GaussRuns& runs);

}  // namespace majorant::MAJORANT_ISA
