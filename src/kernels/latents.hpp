// What follows from a table of energies: the best state of every row, a random valid one, sums by state.
#pragma once
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
void row_minimum(int64_t n, int64_t states, const T* energies, T* least, int32_t* argument);
template <class T>
double draw(int64_t n, int64_t states, const T* energies, const double* w, const T* least, const int32_t* argument,
            double price, const double* uniforms, int32_t* z, int64_t* moved);
template <class T>
void walk(int64_t n, int64_t states, const T* energies, const double* w, const T* least, double room, int64_t steps,
          const int64_t* sites, const double* picks, int32_t* z);
template <class T>
void collect(int64_t n, int64_t p, int64_t k, const T* features, const double* w, const int32_t* labels, double* out);

}  // namespace majorant::MAJORANT_UP_TO_V3
