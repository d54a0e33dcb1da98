#include "measure.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace majorant::MAJORANT_ISA {

template <class T>
void sort_rows(int64_t n, int64_t d, const T* x, int64_t* order, uint8_t* is_new) {
    // Pairs (first column, position) sort in cache; the other columns are looked at only inside runs of equal keys. Positions
    // of half the bytes make those of float half as large.
    auto by_first_column = [&](auto position) {
        std::vector<std::pair<T, decltype(position)>> keys(n);
        for (int64_t i = 0; i < n; i++) keys[i] = {d ? x[i * d] : T(0), decltype(position)(i)};
        std::sort(keys.begin(), keys.end());
        for (int64_t i = 0; i < n; i++) order[i] = keys[i].second;
    };
    if (n < int64_t(1) << 31)
        by_first_column(int32_t());
    else
        by_first_column(int64_t());
    auto first_column = [&](int64_t i) { return d ? x[order[i] * d] : T(0); };

    auto compare = [&](int64_t a, int64_t b) {  // -1, 0, 1 on the columns after the first
        for (int64_t l = 1; l < d; l++) {
            const T u = x[a * d + l], v = x[b * d + l];
            if (u != v) return u < v ? -1 : 1;
        }
        return 0;
    };
    for (int64_t from = 0; from < n;) {
        int64_t to = from + 1;
        while (to < n && first_column(to) == first_column(from)) to++;
        if (to - from > 1 && d > 1)
            std::sort(order + from, order + to, [&](int64_t a, int64_t b) {
                const int c = compare(a, b);
                return c ? c < 0 : a < b;
            });
        is_new[from] = 1;
        for (int64_t i = from + 1; i < to; i++) is_new[i] = compare(order[i - 1], order[i]) != 0;
        from = to;
    }
}

template <class T>
void standard_rows(int64_t n, int64_t d, const T* x, const int64_t* order, double scale, const double* shift, T* out) {
    for (int64_t i = 0; i < n; i++) {
        const T* row = x + order[i] * d;
        // Scaled before anything is subtracted: a difference of numbers near the largest could overflow.
        for (int64_t l = 0; l < d; l++) out[i * d + l] = T(double(row[l]) * scale - shift[l]);
    }
}

namespace {

constexpr int64_t tile_rows = 64, tile_columns = 32, block_rows = 512;

// Squared distances of up to tile_rows rows to each of m points. Lanes are rows, or columns where there are many.
template <class T>
void tile_distances(int64_t rows, int64_t d, const T* x, int64_t m, const T* const* points, T (*out)[tile_rows]) {
    if (d >= tile_columns) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t q = 0; q < m; q++) {
                T sum = 0;
                for (int64_t l = 0; l < d; l++) {
                    const T difference = x[r * d + l] - points[q][l];
                    sum += difference * difference;
                }
                out[q][r] = sum;
            }
        return;
    }
    T columns[tile_columns][tile_rows];
    for (int64_t l = 0; l < d; l++) {
        for (int64_t r = 0; r < rows; r++) columns[l][r] = x[r * d + l];
        for (int64_t r = rows; r < tile_rows; r++) columns[l][r] = T(0);
    }
    for (int64_t q = 0; q < m; q++) {
        std::fill(out[q], out[q] + tile_rows, T(0));
        for (int64_t l = 0; l < d; l++) {
            const T c = points[q][l];
            for (int64_t r = 0; r < tile_rows; r++) {
                const T difference = columns[l][r] - c;
                out[q][r] += difference * difference;
            }
        }
    }
}

// A row by inverse CDF of the nonnegative masses, whose sums over blocks are known.
int64_t inverse_cdf(const std::vector<double>& mass, const std::vector<double>& blocks, double total, double u) {
    double rest = u * total;
    const int64_t n = int64_t(mass.size()), n_blocks = int64_t(blocks.size());
    int64_t block = 0;
    while (block + 1 < n_blocks && rest >= blocks[block]) rest -= blocks[block++];
    int64_t last = -1;  // the last row with mass, should rounding carry us past the end
    for (int64_t i = block * block_rows; i < std::min(n, (block + 1) * block_rows); i++) {
        if (mass[i] > 0) last = i;
        rest -= mass[i];
        if (rest < 0 && last == i) return i;
    }
    if (last >= 0) return last;
    for (int64_t i = std::min(n, (block + 1) * block_rows) - 1; i >= 0; i--)
        if (mass[i] > 0) return i;
    return n - 1;
}

}  // namespace

template <class T>
void plus_plus(int64_t n, int64_t d, int64_t k, int64_t trials, const T* x, const double* w, const double* uniforms,
               int64_t* chosen) {
    const int64_t n_blocks = (n + block_rows - 1) / block_rows;
    std::vector<double> mass(n), blocks(n_blocks), potential(trials);
    std::vector<T> nearest(n, infinity<T>);
    std::vector<int64_t> candidates(trials);
    std::vector<const T*> points(trials);
    // Tiles of distances to the candidates: of all rows where they cost more to compute again than to keep.
    const int64_t n_tiles = (n + tile_rows - 1) / tile_rows, kept_tiles = d >= tile_columns ? n_tiles : 1;
    std::vector<T> buffer(size_t(kept_tiles * trials) * tile_rows);
    auto tile_of = [&](int64_t i) {
        const int64_t at = kept_tiles == 1 ? 0 : i / tile_rows;
        return reinterpret_cast<T(*)[tile_rows]>(buffer.data() + at * trials * tile_rows);
    };

    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mass[i] = weight(w, i);
        blocks[i / block_rows] += mass[i];
    }
    for (double b : blocks) total += b;

    for (int64_t j = 0; j < k; j++) {
        const int64_t m = j == 0 ? 1 : trials;
        for (int64_t q = 0; q < m; q++) {
            candidates[q] = inverse_cdf(mass, blocks, total, uniforms[j * trials + q]);
            points[q] = x + candidates[q] * d;
            potential[q] = 0.0;
        }
        int64_t best = 0;
        if (m > 1) {
            for (int64_t i = 0; i < n; i += tile_rows) {
                const int64_t rows = std::min(tile_rows, n - i);
                auto tile = tile_of(i);
                tile_distances(rows, d, x + i * d, m, points.data(), tile);
                for (int64_t q = 0; q < m; q++) {
                    double sum = 0.0;
                    for (int64_t r = 0; r < rows; r++)
                        sum += weight(w, i + r) * double(std::min(nearest[i + r], tile[q][r]));
                    potential[q] += sum;
                }
            }
            for (int64_t q = 1; q < m; q++)
                if (potential[q] < potential[best]) best = q;
        }
        chosen[j] = candidates[best];
        std::fill(blocks.begin(), blocks.end(), 0.0);
        for (int64_t i = 0; i < n; i += tile_rows) {
            const int64_t rows = std::min(tile_rows, n - i);
            auto tile = tile_of(i);
            const bool known = m > 1 && kept_tiles == n_tiles;
            if (!known) tile_distances(rows, d, x + i * d, 1, &points[best], tile);
            const T* distance = tile[known ? best : 0];
            double sum = 0.0;
            for (int64_t r = 0; r < rows; r++) {
                nearest[i + r] = std::min(nearest[i + r], distance[r]);
                mass[i + r] = weight(w, i + r) * double(nearest[i + r]);
                sum += mass[i + r];
            }
            blocks[i / block_rows] += sum;  // a tile lies inside one block
        }
        total = 0.0;
        for (double b : blocks) total += b;
        if (!(total > 0)) {  // fewer distinct rows than seeds: the rest repeat by weight
            for (int64_t i = 0; i < n; i++) {
                mass[i] = weight(w, i);
                blocks[i / block_rows] += mass[i];
                total += mass[i];
            }
        }
    }
}

#define MAJORANT_INSTANTIATE(T)                                                                \
    template void sort_rows<T>(int64_t, int64_t, const T*, int64_t*, uint8_t*);                                    \
    template void standard_rows<T>(int64_t, int64_t, const T*, const int64_t*, double, const double*, T*);          \
    template void plus_plus<T>(int64_t, int64_t, int64_t, int64_t, const T*, const double*, const double*, int64_t*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
