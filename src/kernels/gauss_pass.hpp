// A pass of rows through a tile, for whoever needs one: a block of the engine, or a run of EM.
#pragma once
#include "gauss_tile.hpp"

namespace majorant::MAJORANT_ISA {

// What weights are divided by, so that those of single precision are within its range.
inline double largest(int64_t n, const double* w) {
    double most = w ? 0.0 : 1.0;
    for (int64_t i = 0; w && i < n; i++) most = std::max(most, w[i]);
    return most > 0 ? std::max(most, 1e-300) : 1.0;  // with an inverse
}

inline void clear(int64_t k, int64_t d, Covariance type, double* moments) {
    std::fill_n(moments, k * (1 + d + second_moments(d, type)), 0.0);
}

template <class T, class Visit>
void by_tiles(int64_t n, const T* x, const double* w, double unit, GaussTile<T>& tile, Visit visit) {
    for (int64_t first = 0; first < n; first += tile.capacity()) {
        tile.load(std::min(tile.capacity(), n - first), x + first * tile.columns(), w ? w + first : nullptr, unit);
        visit(first);
    }
}

// Adds moments under the responsibilities; each of moments, free and q may be null.
template <class T>
GaussTotals add_pass(int64_t n, const T* x, const double* w, double unit, double beta, GaussTile<T>& tile, double* moments,
                     double* free, T* q) {
    GaussTotals totals;
    by_tiles<T>(n, x, w, unit, tile, [&](int64_t first) {
        tile.energies();
        const GaussTotals part = tile.posteriors(beta, free ? free + first : nullptr);
        totals.free += part.free;
        totals.entropy += part.entropy;
        if (q) tile.write_table(q + first * tile.components());
        if (moments) tile.add_moments(unit, moments);
    });
    return totals;
}

// Adds moments about the means under given responsibilities (n, k).
template <class T>
void add_given_moments(int64_t n, const T* x, const double* w, double unit, const double* means, const double* q,
                       GaussTile<T>& tile, double* moments) {
    tile.set_means(means);
    by_tiles<T>(n, x, w, unit, tile, [&](int64_t first) {
        tile.read_table(q + first * tile.components());
        tile.add_moments(unit, moments);
    });
}

}  // namespace majorant::MAJORANT_ISA
