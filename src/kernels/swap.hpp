// k-means by swaps of centres.
#pragma once
#include "isa.hpp"
#include "swap_interface.hpp"

namespace majorant::MAJORANT_ISA {

// The points must stay as long as the search.
template <class T>
SwapSearch* swap_search(int64_t n, int64_t d, int64_t k, const T* x, const double* w, uint64_t seed, bool on_sphere);

}  // namespace majorant::MAJORANT_ISA
