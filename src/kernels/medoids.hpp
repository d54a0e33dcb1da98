// Swaps of medoids on a matrix of distances.
#pragma once
#include "isa.hpp"
#include "medoids_interface.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
void medoid_places(const MedoidPlaces<T>& p);
template <class T>
void medoid_replace(const MedoidPlaces<T>& p, int64_t position, int64_t row);
template <class T>
MedoidSwaps medoid_swaps(const MedoidPlaces<T>& p, int64_t m, const int64_t* candidates, MedoidSwaps from, int64_t tests,
                         double least);

}  // namespace majorant::MAJORANT_ISA
