#include "swap.hpp"

#include "swap_search.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
SwapSearch* swap_search(int64_t n, int64_t d, int64_t k, const T* x, const double* w, uint64_t seed, bool on_sphere) {
    return new Search<T>(n, d, k, x, w, seed, on_sphere);
}

template SwapSearch* swap_search<float>(int64_t, int64_t, int64_t, const float*, const double*, uint64_t, bool);
template SwapSearch* swap_search<double>(int64_t, int64_t, int64_t, const double*, const double*, uint64_t, bool);

}  // namespace majorant::MAJORANT_ISA
