// Points in two layouts: row by row as they were given, for one point against one centre, and in blocks of one vector's
// rows, column by column, for many points against one centre.
#pragma once
#include <algorithm>
#include <vector>

#include "lower_lanes.hpp"

namespace majorant::MAJORANT_ISA {

using Pack = Vector<double>::type;
using PackIndex = Vector<double>::index;
constexpr int lanes = Vector<double>::lanes;

inline int64_t whole_packs(int64_t m) { return (m + lanes - 1) / lanes * lanes; }

template <class V>
inline double total(V v) {
    constexpr int m = sizeof(V) / sizeof(double);
    typedef double Two __attribute__((vector_size(16)));
    Two t;
    if constexpr (m == 8) {
        t = (__builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 4, 5)) +
            (__builtin_shufflevector(v, v, 2, 3) + __builtin_shufflevector(v, v, 6, 7));
    } else if constexpr (m == 4) {
        t = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
    } else {
        t = __builtin_shufflevector(v, v, 0, 1);
    }
    return t[0] + t[1];
}

inline Pack root(Pack v) {
    double values[lanes];
    Vector<double>::store(values, v);
    for (double& value : values) value = __builtin_sqrt(value);
    return Vector<double>::load(values);
}

// As many numbers as a vector of doubles has.
inline Pack pack(const double* p) { return Vector<double>::load(p); }
inline Pack pack(const float* p) {
    typedef float Half __attribute__((vector_size(lanes * sizeof(float))));
    Half v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Pack);
}

// The rows must stay. Of more than three columns, `stride` is up to whole vectors.
template <class T>
class Points {
public:
    const int64_t n, d, stride, n_blocks;
    std::vector<double> weights;  // zero for the rows that fill the last block

    Points(int64_t n, int64_t d, const T* x, const double* w)
        : n(n), d(d), stride(d > 3 ? whole_packs(d) : d), n_blocks(whole_packs(n) / lanes), weights(w, w + n), x_(x),
          last_row_(x + (n - 1) * d, x + n * d), blocks_(size_t(n_blocks) * d * lanes, T(0)) {
        weights.resize(n_blocks * lanes, 0.0);
        last_row_.resize(stride, T(0));
        for (int64_t i = 0; i < n; i++)
            for (int64_t l = 0; l < d; l++) blocks_[(i / lanes * d + l) * lanes + i % lanes] = x[i * d + l];
    }

    // The numbers of a row; whole vectors of them can be read, the last of which may hold some of the next row.
    const T* row(int64_t i) const { return i + 1 < n ? x_ + i * d : last_row_.data(); }

    // A block of rows, column by column.
    const T* block(int64_t b) const { return blocks_.data() + b * d * lanes; }

private:
    const T* const x_;
    std::vector<T> last_row_, blocks_;
};

// Squared distances of points, computed in doubles. D is the number of columns where it is known beforehand, else 0.
template <int D, class T>
class Squares {
public:
    explicit Squares(const Points<T>& points) : p_(points), x_(points.row(0)) {
        for (int l = 0; l < lanes; l++) is_column_[l] = p_.stride - lanes + l < p_.d ? -1 : 0;
    }

    int64_t columns() const { return D ? D : p_.d; }

    // Squared distance of a point, and of a centre, to a centre; centres have `stride` columns.
    double to(int64_t i, const double* c) const { return square(D ? x_ + i * D : p_.row(i), c); }
    double apart(const double* a, const double* c) const { return square(a, c); }

    // Squared distances of a block of rows to a centre. Once all are above `limit` the sum may stop.
    Pack block_to(int64_t b, const double* c, Pack limit) const {
        const T* x = p_.block(b);
        Pack sum{};
        if constexpr (D) {
#pragma GCC unroll 8
            for (int l = 0; l < D; l++) {
                const Pack difference = pack(x + l * lanes) - c[l];
                sum += difference * difference;
            }
        } else {
            constexpr int64_t stretch = 12;
            for (int64_t from = 0; from < p_.d; from += stretch) {
                const int64_t to = std::min(p_.d, from + stretch);
                for (int64_t l = from; l < to; l++) {
                    const Pack difference = pack(x + l * lanes) - c[l];
                    sum += difference * difference;
                }
                if (to < p_.d && !lower_lanes(sum, limit)) break;
            }
        }
        return sum;
    }

private:
    const Points<T>& p_;
    const T* const x_;
    PackIndex is_column_{};  // in the last vector of a row

    template <class U>
    double square(const U* a, const double* c) const {
        if constexpr (D) {
            double sum = 0.0;
#pragma GCC unroll 8
            for (int l = 0; l < D; l++) {
                const double difference = a[l] - c[l];
                sum += difference * difference;
            }
            return sum;
        } else {
            Pack sum{};
            int64_t l = 0;
            for (; l < p_.stride - lanes; l += lanes) {
                const Pack difference = pack(a + l) - pack(c + l);
                sum += difference * difference;
            }
            const Pack difference = is_column_ ? pack(a + l) - pack(c + l) : Pack{};
            return total(sum + difference * difference);
        }
    }
};

// Calls what needs squared distances: it alone is compiled for each number of columns.
template <class T, class F>
inline auto with_squares(const Points<T>& points, F call) {
    switch (points.d) {
        case 1: return call(Squares<1, T>(points));
        case 2: return call(Squares<2, T>(points));
        case 3: return call(Squares<3, T>(points));
        default: return call(Squares<0, T>(points));
    }
}

}  // namespace majorant::MAJORANT_ISA
