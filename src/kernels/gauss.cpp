#include "gauss.hpp"

#include "gauss_pass.hpp"

namespace majorant::MAJORANT_ISA {

template class GaussTile<float>;
template class GaussTile<double>;

template <class T>
void gauss_energies(int64_t n, const T* x, const Gaussians& g, T* out) {
    GaussTile<T> tile(g.k, g.d, g.type);
    tile.set(g);
    by_tiles<T>(n, x, nullptr, 1.0, tile, [&](int64_t first) {
        tile.energies();
        tile.write_table(out + first * g.k);
    });
}

template <class T>
GaussTotals gauss_pass(int64_t n, const T* x, const double* w, const Gaussians& g, double beta, double* moments,
                       double* free, T* q) {
    GaussTile<T> tile(g.k, g.d, g.type);
    tile.set(g);
    if (moments) clear(g.k, g.d, g.type, moments);
    return add_pass(n, x, w, largest(n, w), beta, tile, moments, free, q);
}

template <class T>
void gauss_moments(int64_t n, int64_t k, int64_t d, Covariance type, const T* x, const double* w, const double* means,
                   const double* q, double* moments) {
    GaussTile<T> tile(k, d, type);
    clear(k, d, type, moments);
    add_given_moments(n, x, w, largest(n, w), means, q, tile, moments);
}

#define MAJORANT_INSTANTIATE(T)                                                                                           \
    template void gauss_energies<T>(int64_t, const T*, const Gaussians&, T*);                                             \
    template GaussTotals gauss_pass<T>(int64_t, const T*, const double*, const Gaussians&, double, double*, double*, T*); \
    template void gauss_moments<T>(int64_t, int64_t, int64_t, Covariance, const T*, const double*, const double*,         \
                                   const double*, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
