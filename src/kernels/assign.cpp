#include "assign.hpp"

#include <algorithm>
#include <vector>

namespace majorant::MAJORANT_ISA {
namespace {

constexpr int64_t strip = 96;  // rows whose running minima stay in the first-level cache

template <class T>
struct NearestCentre {
    virtual void find(int64_t n, const T* x, int32_t* nearest) const = 0;  // of up to a strip of rows
};

// The nearest centre by |c|^2 - 2 x.c. Two loops, as either many centres or many columns fill a vector.

// Lanes are centres: `rows` rows against `vectors` vectors of centres, the running minimum kept by lane.
template <class T, int rows, int vectors>
struct ByCentre final : NearestCentre<T> {
    using V = Vector<T>;
    using vec = typename V::type;
    using ivec = typename V::index;
    static constexpr int64_t width = int64_t(V::lanes) * vectors;

    int64_t d, k, padded;
    std::vector<T> packed, offset;  // (tile, column, width) of -2 c, and |c|^2; padding is never nearest

    ByCentre(int64_t d, int64_t k, const T* centres)
        : d(d), k(k), padded((k + width - 1) / width * width), packed(padded * d, T(0)), offset(padded, infinity<T>) {
        for (int64_t j = 0; j < k; j++) {
            T square = 0;
            for (int64_t l = 0; l < d; l++) {
                const T c = centres[j * d + l];
                packed[(j / width * d + l) * width + j % width] = -2 * c;
                square += c * c;
            }
            offset[j] = square;
        }
    }

    void find(int64_t n, const T* x, int32_t* nearest) const override {
        vec least[strip];
        ivec argument[strip];
        ivec lane;
        for (int v = 0; v < V::lanes; v++) lane[v] = v;
        for (int64_t j = 0; j < padded; j += width) {
            const T* tile = packed.data() + j * d;
            const bool first = j == 0;
            for (int64_t i = 0; i < n; i += rows) {
                const T* row[rows];
#pragma GCC unroll 16
                for (int r = 0; r < rows; r++) row[r] = x + std::min<int64_t>(i + r, n - 1) * d;
                vec sum[rows][vectors];
#pragma GCC unroll 16
                for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
                    for (int v = 0; v < vectors; v++) sum[r][v] = V::load(offset.data() + j + v * V::lanes);
                for (int64_t l = 0; l < d; l++) {
                    vec c[vectors];
#pragma GCC unroll 16
                    for (int v = 0; v < vectors; v++) c[v] = V::load(tile + l * width + v * V::lanes);
#pragma GCC unroll 16
                    for (int r = 0; r < rows; r++) {
                        const T value = row[r][l];
#pragma GCC unroll 16
                        for (int v = 0; v < vectors; v++) sum[r][v] += c[v] * value;
                    }
                }
#pragma GCC unroll 16
                for (int r = 0; r < rows; r++) {
                    vec low = sum[r][0];
                    ivec at = lane + typename V::Index(j);
#pragma GCC unroll 16
                    for (int v = 1; v < vectors; v++) {
                        const ivec lower = sum[r][v] < low;
                        low = lower ? sum[r][v] : low;
                        at = lower ? lane + typename V::Index(j + v * V::lanes) : at;
                    }
                    const int64_t p = i + r;
                    if (!first) {
                        const ivec lower = low < least[p];
                        low = lower ? low : least[p];
                        at = lower ? at : argument[p];
                    }
                    least[p] = low;
                    argument[p] = at;
                }
            }
        }
        for (int64_t i = 0; i < n; i++) {  // across lanes; the first centre wins a tie
            T low = least[i][0];
            typename V::Index at = argument[i][0];
#pragma GCC unroll 16
            for (int v = 1; v < V::lanes; v++) {
                const T value = least[i][v];
                const typename V::Index index = argument[i][v];
                const bool wins = (value < low) | ((value == low) & (index < at));
                low = wins ? value : low;
                at = wins ? index : at;
            }
            nearest[i] = int32_t(std::min<int64_t>(at, k - 1));
        }
    }
};

// Lanes are columns: `rows` rows against `width` centres, for many columns and few centres.
template <class T, int rows, int width>
struct ByColumn final : NearestCentre<T> {
    using V = Vector<T>;
    using vec = typename V::type;

    int64_t d, k, padded;
    std::vector<T> packed, offset;

    ByColumn(int64_t d, int64_t k, const T* centres)
        : d(d), k(k), padded((k + width - 1) / width * width), packed(padded * d, T(0)), offset(padded, infinity<T>) {
        std::copy(centres, centres + k * d, packed.begin());
        for (int64_t j = 0; j < k; j++) {
            T square = 0;
            for (int64_t l = 0; l < d; l++) square += centres[j * d + l] * centres[j * d + l];
            offset[j] = square;
        }
    }

    void find(int64_t n, const T* x, int32_t* nearest) const override {
        const int64_t whole = d / V::lanes * V::lanes;
        for (int64_t i = 0; i < n; i += rows) {
            const T* row[rows];
            T least[rows];
            int32_t argument[rows];
            for (int r = 0; r < rows; r++) {
                row[r] = x + std::min<int64_t>(i + r, n - 1) * d;
                least[r] = infinity<T>;
                argument[r] = 0;
            }
            for (int64_t j = 0; j < padded; j += width) {
                vec sum[rows][width] = {};
                for (int64_t l = 0; l < whole; l += V::lanes) {
                    vec value[rows];
#pragma GCC unroll 16
                    for (int r = 0; r < rows; r++) {
                        value[r] = V::load(row[r] + l);
                        if (j == 0) __builtin_prefetch(row[r] + rows * d + l);  // long rows leave their page too soon
                    }
#pragma GCC unroll 16
                    for (int q = 0; q < width; q++) {
                        const vec c = V::load(packed.data() + (j + q) * d + l);
#pragma GCC unroll 16
                        for (int r = 0; r < rows; r++) sum[r][q] += value[r] * c;
                    }
                }
                for (int r = 0; r < rows; r++)
                    for (int q = 0; q < width; q++) {
                        T dot = 0;
                        for (int v = 0; v < V::lanes; v++) dot += sum[r][q][v];
                        for (int64_t l = whole; l < d; l++) dot += row[r][l] * packed[(j + q) * d + l];
                        const T value = offset[j + q] - 2 * dot;
                        if (value < least[r]) {
                            least[r] = value;
                            argument[r] = int32_t(j + q);
                        }
                    }
            }
            for (int r = 0; r < rows && i + r < n; r++) nearest[i + r] = argument[r];
        }
    }
};

// By differences: slower, and exact where centres lie so far out that |c|^2 - 2 x.c has no digits left for their rows.
template <class T>
struct ByDifference final : NearestCentre<T> {
    using V = Vector<T>;
    int64_t d, k, padded;
    std::vector<T> packed;  // (vector of centres, column, lane)

    ByDifference(int64_t d, int64_t k, const T* centres)
        : d(d), k(k), padded((k + V::lanes - 1) / V::lanes * V::lanes), packed(padded * d, T(0)) {
        for (int64_t j = 0; j < k; j++)
            for (int64_t l = 0; l < d; l++)
                packed[(j / V::lanes * d + l) * V::lanes + j % V::lanes] = centres[j * d + l];
    }

    typename V::type squares(const T* row, int64_t j) const {
        typename V::type sum = {};
        const T* tile = packed.data() + j * d;
        for (int64_t l = 0; l < d; l++) {
            const auto difference = V::load(tile + l * V::lanes) - row[l];
            sum += difference * difference;
        }
        return sum;
    }

    void find(int64_t n, const T* x, int32_t* nearest) const override {
        for (int64_t i = 0; i < n; i++) {
            T least = infinity<T>;
            nearest[i] = 0;
            for (int64_t j = 0; j < k; j += V::lanes) {
                const auto found = squares(x + i * d, j);
                for (int64_t v = 0; v < V::lanes && j + v < k; v++)
                    if (found[v] < least) {
                        least = found[v];
                        nearest[i] = int32_t(j + v);
                    }
            }
        }
    }
};

// Adds one row to the moments of its centre, about that centre.
template <class T>
inline void add_row(int64_t d, const T* x, const T* c, double w, double* moments) {
    T square = 0;
    double* sum = moments + 1;
    for (int64_t l = 0; l < d; l++) {
        const T difference = x[l] - c[l];
        square += difference * difference;
        sum[l] += w * double(difference);
    }
    moments[0] += w;
    moments[d + 1] += w * double(square);
}

template <class T>
inline T squared_distance(int64_t d, const T* x, const T* c) {
    T square = 0;
    for (int64_t l = 0; l < d; l++) {
        const T difference = x[l] - c[l];
        square += difference * difference;
    }
    return square;
}

// Adds rows of one centre to its moments, a vector of columns at a time: sums stay in registers over up to `group` rows.
// A row weighs `unit` w: weights are doubles and may be far beyond the range of T, those of a group relative to each other
// are not.
constexpr int64_t group = 16;

template <class T>
void add_group(int64_t m, int64_t d, const T* const* rows, const T* w, double unit, const T* c, double* moments) {
    using V = Vector<T>;
    constexpr int unroll = 4;
    constexpr int64_t width = unroll * V::lanes;
    const int64_t whole = d / width * width;
    double squares[V::lanes] = {};
    for (int64_t l = 0; l < whole; l += width) {
        typename V::type centre[unroll], sum[unroll] = {}, square[unroll] = {};
#pragma GCC unroll 4
        for (int u = 0; u < unroll; u++) centre[u] = V::load(c + l + u * V::lanes);
        for (int64_t r = 0; r < m; r++) {
            const T* row = rows[r] + l;
            const auto wr = V::broadcast(w[r]);
#pragma GCC unroll 4
            for (int u = 0; u < unroll; u++) {
                const auto difference = V::load(row + u * V::lanes) - centre[u];
                const auto weighted = difference * wr;
                sum[u] += weighted;
                square[u] += weighted * difference;
            }
        }
        for (int u = 0; u < unroll; u++)
            for (int v = 0; v < V::lanes; v++) {
                moments[1 + l + u * V::lanes + v] += unit * double(sum[u][v]);
                squares[v] += double(square[u][v]);
            }
    }
    for (int64_t l = whole; l < d; l++)
        for (int64_t r = 0; r < m; r++) {
            const T difference = rows[r][l] - c[l];
            moments[1 + l] += unit * double(w[r] * difference);
            squares[0] += double(w[r] * difference * difference);
        }
    for (double square : squares) moments[d + 1] += unit * square;
}

// Adds the rows of a strip to the moments of their centres, rows of one centre together.
template <class T>
void add_strip(int64_t m, int64_t d, int64_t k, const T* x, const double* w, const T* centres, const int32_t* labels,
               std::vector<int32_t>& head, double* moments) {
    int32_t next[strip];
    std::fill(head.begin(), head.begin() + k, -1);
    for (int64_t r = m - 1; r >= 0; r--) {  // a linked list of rows for each centre, in order
        next[r] = head[labels[r]];
        head[labels[r]] = int32_t(r);
    }
    for (int64_t r = 0; r < m; r++) {
        const int32_t j = labels[r];
        const T* rows[group];
        double weights[group];
        T relative[group];
        for (int32_t at = head[j]; at >= 0;) {
            int64_t g = 0;
            double largest = 0.0;
            for (; at >= 0 && g < group; at = next[at], g++) {
                rows[g] = x + at * d;
                weights[g] = weight(w, at);
                largest = std::max(largest, weights[g]);
                moments[j * (d + 2)] += weights[g];
            }
            if (largest == 0) continue;
            for (int64_t i = 0; i < g; i++) relative[i] = T(weights[i] / largest);
            add_group(g, d, rows, relative, largest, centres + j * d, moments + j * (d + 2));
        }
        head[j] = -1;
    }
}

template <class T>
[[gnu::noinline]] int64_t run(const NearestCentre<T>& search, int64_t n, int64_t d, int64_t k, const T* x, const double* w,
                              const T* centres, double* moments, int32_t* labels, T* nearest) {
    if (moments) std::fill(moments, moments + k * (d + 2), 0.0);
    const bool grouped = d >= 64 && k <= strip;
    std::vector<int32_t> head(grouped ? k : 0);
    int64_t changed = 0;
    int32_t found[strip];
    for (int64_t first = 0; first < n; first += strip) {
        const int64_t m = std::min(strip, n - first);
        const T* rows = x + first * d;
        search.find(m, rows, found);
        for (int64_t r = 0; r < m; r++) {
            changed += labels[first + r] != found[r];
            labels[first + r] = found[r];
        }
        if (moments && grouped) {
            add_strip(m, d, k, rows, w ? w + first : nullptr, centres, found, head, moments);
        } else if (moments) {
            for (int64_t r = 0; r < m; r++)
                add_row(d, rows + r * d, centres + found[r] * d, weight(w, first + r), moments + found[r] * (d + 2));
        }
        if (nearest)
            for (int64_t r = 0; r < m; r++)
                nearest[first + r] = squared_distance(d, rows + r * d, centres + found[r] * d);
    }
    return changed;
}

// Whether rounding of |c|^2 - 2 x.c could show in the sum of squares that it led to.
template <class T>
bool is_blurred(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres, const double* moments,
                const int32_t* labels) {
    constexpr double shown = sizeof(T) == 8 ? 1e-7 : 1e-2, rounding = 8 * double(std::numeric_limits<T>::epsilon());
    double farthest = 0.0, mass = 0.0, sum = 0.0;
    for (int64_t j = 0; j < k; j++) {
        double square = 0.0;
        for (int64_t l = 0; l < d; l++) square += double(centres[j * d + l]) * double(centres[j * d + l]);
        farthest = std::max(farthest, square);
    }
    if (moments) {
        for (int64_t j = 0; j < k; j++) {
            mass += moments[j * (d + 2)];
            sum += moments[j * (d + 2) + d + 1];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            mass += weight(w, i);
            sum += weight(w, i) * double(squared_distance(d, x + i * d, centres + labels[i] * d));
        }
    }
    return rounding * farthest * mass > shown * sum;
}

}  // namespace

template <class T>
int64_t assign(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres, double* moments,
               int32_t* labels, T* nearest) {
    constexpr int64_t lanes = Vector<T>::lanes;
    constexpr int widest = registers == 32 ? 4 : 2;
    auto go = [&](const NearestCentre<T>& search) {
        const std::vector<int32_t> before(labels, labels + n);
        const int64_t changed = run(search, n, d, k, x, w, centres, moments, labels, nearest);
        if (!is_blurred(n, d, k, x, w, centres, moments, labels)) return changed;
        std::copy(before.begin(), before.end(), labels);
        return run(ByDifference<T>(d, k, centres), n, d, k, x, w, centres, moments, labels, nearest);
    };
    if (d >= 64 && k <= 32) {
        if constexpr (registers == 32)
            return go(ByColumn<T, 4, 5>(d, k, centres));
        else
            return go(ByColumn<T, 3, 4>(d, k, centres));
    }
    if (k <= lanes) return go(ByCentre<T, 8, 1>(d, k, centres));
    if (k <= 2 * lanes || widest == 2) return go(ByCentre<T, 6, 2>(d, k, centres));
    return go(ByCentre<T, 6, widest>(d, k, centres));
}

template <class T>
void moments(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres, const int32_t* labels,
             double* out) {
    std::fill(out, out + k * (d + 2), 0.0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = labels[i];
        if (j >= 0 && j < k) add_row(d, x + i * d, centres + j * d, weight(w, i), out + j * (d + 2));
    }
}

template <class T>
void distances(int64_t n, int64_t d, int64_t k, const T* x, const T* centres, T* out) {
    using V = Vector<T>;
    const ByDifference<T> search(d, k, centres);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j += V::lanes) {
            const auto found = search.squares(x + i * d, j);
            if (j + V::lanes <= k) {
                V::store(out + i * k + j, found);
            } else {
                for (int64_t v = 0; v < k - j; v++) out[i * k + j + v] = found[v];
            }
        }
}

#define MAJORANT_INSTANTIATE(T)                                                                                   \
    template int64_t assign<T>(int64_t, int64_t, int64_t, const T*, const double*, const T*, double*, int32_t*,  \
                               T*);                                                                               \
    template void moments<T>(int64_t, int64_t, int64_t, const T*, const double*, const T*, const int32_t*,        \
                             double*);                                                                            \
    template void distances<T>(int64_t, int64_t, int64_t, const T*, const T*, T*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
