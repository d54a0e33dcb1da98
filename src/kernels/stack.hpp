// Rows of a stack, dense or CSR, against one vector of weights a class: scores, steps, weighted sums.
#pragma once
#include <algorithm>
#include <vector>

#include "bags_interface.hpp"
#include "isa.hpp"
#include "lanes.hpp"

namespace majorant::MAJORANT_ISA {

// One vector a class, padded with zeros to whole vectors, the weight of the constant column apart.
template <class T, class W = T>
struct PerClass {
    int64_t classes, d, stride;
    std::vector<W> columns, constant;

    PerClass(int64_t classes, int64_t d)
        : classes(classes), d(d), stride((d + Vector<T>::lanes - 1) / Vector<T>::lanes * Vector<T>::lanes),
          columns(classes * stride, W(0)), constant(classes, W(0)) {}

    W* operator[](int64_t c) { return columns.data() + c * stride; }
    const W* operator[](int64_t c) const { return columns.data() + c * stride; }

    void read(const double* w) {
        for (int64_t c = 0; c < classes; c++) {
            const double* row = w + c * (d + 1);
            for (int64_t l = 0; l < d; l++) (*this)[c][l] = W(row[l]);
            constant[c] = W(row[d]);
        }
    }
    void write(double* w) const {
        for (int64_t c = 0; c < classes; c++) {
            double* row = w + c * (d + 1);
            for (int64_t l = 0; l < d; l++) row[l] = double((*this)[c][l]);
            row[d] = double(constant[c]);
        }
    }
};

template <class T>
struct DenseRows {
    using V = Vector<T>;
    using vec = typename V::type;
    static constexpr int tile_rows = registers == 32 ? 4 : 3, tile_classes = registers == 32 ? 5 : 4;
    static constexpr int64_t group = 16;  // rows whose sum is made in T

    const Stack<T>& stack;
    explicit DenseRows(const Stack<T>& stack) : stack(stack) {}

    const T* at(int64_t row) const { return stack.x + row * stack.d; }

    static vec part(const T* p, int64_t count) {
        T padded[V::lanes] = {};
        std::copy_n(p, count, padded);
        return V::load(padded);
    }

    T dot(int64_t row, const T* w) const {
        const T* x = at(row);
        T sum = 0;
        for (int64_t l = 0; l < stack.d; l++) sum += x[l] * w[l];
        return sum;
    }
    template <class W>
    void add(int64_t row, W share, W* out) const {
        const T* x = at(row);
        for (int64_t l = 0; l < stack.d; l++) out[l] += share * W(x[l]);
    }
    T square(int64_t row) const { return dot(row, at(row)); }
    T distance(int64_t a, int64_t b) const {
        const T *x = at(a), *y = at(b);
        T sum = 0;
        for (int64_t l = 0; l < stack.d; l++) sum += (x[l] - y[l]) * (x[l] - y[l]);
        return sum;
    }

    // Scores of `count` rows from `row` on under the classes from `first` on, out (count, classes).
    [[gnu::noinline]] void scores(int64_t row, int64_t count, const PerClass<T>& w, int64_t first, T* out) const {
        int64_t c = first;
        for (; c + tile_classes <= w.classes; c += tile_classes) strip<tile_classes>(row, count, w, c, out);
        rest<tile_classes - 1>(row, count, w, c, out);
    }

    // out[c] += sum over the rows of share (count, classes) times the row, for the classes from `first` on.
    [[gnu::noinline]] void collect(int64_t row, int64_t count, const T* share, int64_t first, PerClass<T, double>& out) const {
        for (int64_t r = 0; r < count; r += group) {
            const int64_t rows = std::min(group, count - r);
            for (int64_t c = first; c < out.classes; c += 4) sums(row + r, rows, share + r * out.classes, c, out);
        }
    }

private:
    template <int left>
    void rest(int64_t row, int64_t count, const PerClass<T>& w, int64_t c, T* out) const {
        if constexpr (left > 0) {
            if (w.classes - c == left) return strip<left>(row, count, w, c, out);
            rest<left - 1>(row, count, w, c, out);
        }
    }

    template <int width>
    void strip(int64_t row, int64_t count, const PerClass<T>& w, int64_t c, T* out) const {
        constexpr int lanes = Vector<double>::lanes, tile = tile_rows * width;
        const int64_t d = stack.d, whole = d / V::lanes * V::lanes;
        const T* weights[width];
        for (int q = 0; q < width; q++) weights[q] = w[c + q];
        for (int64_t i = 0; i < count; i += tile_rows) {
            const T* x[tile_rows];
            for (int r = 0; r < tile_rows; r++) x[r] = at(row + std::min<int64_t>(i + r, count - 1));
            vec sum[tile_rows][width] = {};
            vec value[tile_rows];
            const auto multiply = [&](int64_t l) {
#pragma GCC unroll 16
                for (int q = 0; q < width; q++) {
                    const vec v = V::load(weights[q] + l);
#pragma GCC unroll 16
                    for (int r = 0; r < tile_rows; r++) sum[r][q] += value[r] * v;
                }
            };
            for (int64_t l = 0; l < whole; l += V::lanes) {
#pragma GCC unroll 16
                for (int r = 0; r < tile_rows; r++) value[r] = V::load(x[r] + l);
                multiply(l);
            }
            if (whole < d) {
                for (int r = 0; r < tile_rows; r++) value[r] = part(x[r] + whole, d - whole);
                multiply(whole);
            }
            Doubles wide[(tile + lanes - 1) / lanes * lanes] = {};
            double total[(tile + lanes - 1) / lanes * lanes];
            for (int r = 0; r < tile_rows; r++)
                for (int q = 0; q < width; q++) wide[r * width + q] = widened(sum[r][q]);
            lane_sums(tile, wide, total);
            for (int r = 0; r < tile_rows && i + r < count; r++)
                for (int q = 0; q < width; q++)
                    out[(i + r) * w.classes + c + q] = T(total[r * width + q]) + stack.bias * w.constant[c + q];
        }
    }

    void sums(int64_t row, int64_t rows, const T* share, int64_t c, PerClass<T, double>& out) const {
        const int64_t d = stack.d, classes = out.classes, most = classes - 1;
        for (int64_t l = 0; l < d; l += V::lanes) {
            vec sum[4] = {};
            const bool is_whole = l + V::lanes <= d;
            for (int64_t r = 0; r < rows; r++) {
                const vec x = is_whole ? V::load(at(row + r) + l) : part(at(row + r) + l, d - l);
#pragma GCC unroll 4
                for (int q = 0; q < 4; q++) sum[q] += x * share[r * classes + std::min(c + q, most)];
            }
            for (int q = 0; q < 4 && c + q < classes; q++)
                for (int v = 0; v < V::lanes; v++) out[c + q][l + v] += double(sum[q][v]);
        }
        for (int q = 0; q < 4 && c + q < classes; q++)
            for (int64_t r = 0; r < rows; r++) out.constant[c + q] += double(stack.bias) * double(share[r * classes + c + q]);
    }
};

extern template struct DenseRows<float>;  // compiled once, in bags.cpp
extern template struct DenseRows<double>;

template <class T>
struct SparseRows {
    const Stack<T>& stack;
    explicit SparseRows(const Stack<T>& stack) : stack(stack) {}

    T dot(int64_t row, const T* w) const {
        T sum = 0;
        for (int64_t e = stack.edges[row]; e < stack.edges[row + 1]; e++) sum += stack.x[e] * w[stack.indices[e]];
        return sum;
    }
    template <class W>
    void add(int64_t row, W share, W* out) const {
        for (int64_t e = stack.edges[row]; e < stack.edges[row + 1]; e++) out[stack.indices[e]] += share * W(stack.x[e]);
    }
    T square(int64_t row) const {
        T sum = 0;
        for (int64_t e = stack.edges[row]; e < stack.edges[row + 1]; e++) sum += stack.x[e] * stack.x[e];
        return sum;
    }
    T distance(int64_t a, int64_t b) const {
        int64_t e = stack.edges[a], f = stack.edges[b];
        const int64_t last_e = stack.edges[a + 1], last_f = stack.edges[b + 1];
        T sum = 0;
        while (e < last_e || f < last_f) {
            const bool only_a = f == last_f || (e < last_e && stack.indices[e] < stack.indices[f]);
            const bool only_b = e == last_e || (f < last_f && stack.indices[f] < stack.indices[e]);
            const T difference = (only_b ? T(0) : stack.x[e]) - (only_a ? T(0) : stack.x[f]);
            sum += difference * difference;
            e += !only_b;
            f += !only_a;
        }
        return sum;
    }
    void scores(int64_t row, int64_t count, const PerClass<T>& w, int64_t first, T* out) const {
        for (int64_t r = 0; r < count; r++)
            for (int64_t c = first; c < w.classes; c++)
                out[r * w.classes + c] = dot(row + r, w[c]) + stack.bias * w.constant[c];
    }
    void collect(int64_t row, int64_t count, const T* share, int64_t first, PerClass<T, double>& out) const {
        for (int64_t r = 0; r < count; r++)
            for (int64_t c = first; c < out.classes; c++) {
                const double weight = double(share[r * out.classes + c]);
                add(row + r, weight, out[c]);
                out.constant[c] += weight * double(stack.bias);
            }
    }
};

// Calls f with the rows in the form that they have.
template <class T, class F>
auto with_rows(const Stack<T>& stack, F f) {
    return stack.indices ? f(SparseRows<T>(stack)) : f(DenseRows<T>(stack));
}

}  // namespace majorant::MAJORANT_ISA
