// Points in two layouts: row by row, for one point against one centre, and in blocks of one vector's rows, column by
// column, for many points against one centre.
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

// D is the number of columns, or one more, where it is known to the compiler, else 0. Rows of single precision are held as
// doubles, in which distances are computed anyway: one search serves both.
template <int D>
class Points {
public:
    const int64_t n, d, stride, n_blocks;
    std::vector<double> weights;  // zero for the rows that fill the last block

    template <class T>
    Points(int64_t n, int64_t d, const T* x, const double* w)
        : n(n), d(d), stride(D ? D : whole_packs(d)), n_blocks(whole_packs(n) / lanes), weights(whole_packs(n), 0.0),
          rows_(size_t(n) * stride, 0.0), blocks_(size_t(n_blocks) * columns() * lanes, 0.0) {
        for (int64_t i = 0; i < n; i++) {
            weights[i] = weight(w, i);
            for (int64_t l = 0; l < d; l++) {
                rows_[i * stride + l] = x[i * d + l];
                blocks_[(i / lanes * columns() + l) * lanes + i % lanes] = x[i * d + l];
            }
        }
    }

    const double* row(int64_t i) const { return rows_.data() + i * stride; }

    // Squared distance of a point, and of a centre, to a centre; centres have `stride` columns.
    double to(int64_t i, const double* c) const { return square(row(i), c); }
    double apart(const double* a, const double* c) const { return square(a, c); }

    // Squared distances of a block of rows to a centre. Once all are above `limit` the sum may stop.
    Pack block_to(int64_t b, const double* c, Pack limit) const {
        const double* x = block(b);
        Pack sum{};
        if constexpr (D) {
#pragma GCC unroll 8
            for (int l = 0; l < D; l++) {
                const Pack difference = Vector<double>::load(x + l * lanes) - c[l];
                sum += difference * difference;
            }
        } else {
            constexpr int64_t stretch = 12;
            for (int64_t from = 0; from < d; from += stretch) {
                const int64_t to = std::min(d, from + stretch);
                for (int64_t l = from; l < to; l++) {
                    const Pack difference = Vector<double>::load(x + l * lanes) - c[l];
                    sum += difference * difference;
                }
                if (to < d && !lower_lanes(sum, limit)) break;
            }
        }
        return sum;
    }

    // A block of rows, column by column.
    const double* block(int64_t b) const { return blocks_.data() + b * columns() * lanes; }

    int64_t columns() const { return D ? D : d; }

private:
    std::vector<double> rows_, blocks_;

    double square(const double* a, const double* c) const {
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
            for (int64_t l = 0; l < stride; l += lanes) {
                const Pack difference = Vector<double>::load(a + l) - Vector<double>::load(c + l);
                sum += difference * difference;
            }
            return total(sum);
        }
    }
};

}  // namespace majorant::MAJORANT_ISA
