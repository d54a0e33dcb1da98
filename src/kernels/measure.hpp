// The weighted empirical measure: rows in canonical order, and seeds drawn from it.
#pragma once
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
void sort_rows(int64_t n, int64_t d, const T* x, int64_t* order, uint8_t* is_new);
template <class T>
void standard_rows(int64_t n, int64_t d, const T* x, const int64_t* order, double scale, const double* shift, T* out);
template <class T>
void plus_plus(int64_t n, int64_t d, int64_t k, int64_t trials, const T* x, const double* w, const double* uniforms,
               int64_t* chosen);

}  // namespace majorant::MAJORANT_UP_TO_V3
