// Which centre is nearest, and what are the moments of its rows?
#pragma once
#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
int64_t assign(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres, double* moments,
               int32_t* labels, T* nearest);
template <class T>
void moments(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres, const int32_t* labels,
             double* out);
template <class T>
void distances(int64_t n, int64_t d, int64_t k, const T* x, const T* centres, T* out);

}  // namespace majorant::MAJORANT_ISA
