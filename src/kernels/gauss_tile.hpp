// Some points against all Gaussian components, the points in vector lanes.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "elementary.hpp"
#include "gauss_interface.hpp"
#include "isa.hpp"
#include "lanes.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
class GaussTile {
    using V = Vector<T>;
    using vec = typename V::type;
    static constexpr int lanes = V::lanes, unroll = registers == 32 ? 4 : 2, side = registers == 32 ? 4 : 3;
    static constexpr int64_t step = lanes * unroll;

public:
    GaussTile(int64_t k, int64_t d, Covariance type)
        : k_(k), d_(d), type_(type), capacity_(room(d)), means_(k * d), least_(capacity_), total_(capacity_),
          dot_(capacity_), relative_(capacity_), weights_(capacity_), sums_(padded(d)), squares_(padded(d)),
          numbers_(padded(d)), storage_((3 * d + k + 1) * capacity_ / lanes) {
        x_ = reinterpret_cast<T*>(storage_.data());
        difference_ = x_ + d * capacity_;
        weighted_ = difference_ + d * capacity_;
        table_ = weighted_ + d * capacity_;
        share_ = table_ + k * capacity_;
    }

    int64_t capacity() const { return capacity_; }
    int64_t components() const { return k_; }
    int64_t columns() const { return d_; }

    void set(const Gaussians& g) {
        set_means(g.means);
        const int64_t size = covariance_size(k_, d_, type_);
        if constexpr (std::is_same_v<T, double>) {
            factors_ = g.factors;
        } else {
            narrowed_.assign(g.factors, g.factors + size);
            factors_ = narrowed_.data();
        }
        offsets_ = g.offsets;
    }

    void set_means(const double* means) { std::copy(means, means + k_ * d_, means_.begin()); }

    // Takes up to capacity() rows. Weights are w / unit in the data's own type; padding repeats a row without weight.
    [[gnu::noinline]] void load(int64_t n, const T* rows, const double* w, double unit) {
        n_ = n;
        points_ = (n + step - 1) / step * step;
        for (int64_t l = 0; l < d_; l++) {
            T* column = x_ + l * capacity_;
            for (int64_t p = 0; p < n; p++) column[p] = rows[p * d_ + l];
            std::fill(column + n, column + points_, rows[(n - 1) * d_ + l]);
        }
        for (int64_t p = 0; p < n; p++) weights_[p] = weight(w, p);
        std::fill(weights_.begin() + n, weights_.begin() + points_, 0.0);
        const double per_unit = 1.0 / unit;
        for (int64_t p = 0; p < points_; p++) relative_[p] = T(weights_[p] * per_unit);
    }

    [[gnu::noinline]] void energies() {
        for (int64_t j = 0; j < k_; j++) {
            T* out = table_ + j * capacity_;
            std::fill_n(out, points_, T(0));
            differ(j);
            if (type_ == Covariance::diag || type_ == Covariance::spherical) {
                scaled_squares(type_ == Covariance::diag ? factors_ + j * d_ : factors_ + j, type_ == Covariance::diag, out);
            } else {
                triangle_squares(type_ == Covariance::full ? factors_ + j * d_ * d_ : factors_, out);
            }
            const T offset = T(offsets_[j]);
            for (int64_t p = 0; p < points_; p++) out[p] = offset + T(0.5) * out[p];
        }
    }

    // Energies become responsibilities; free energies go to `free` if it is not null. At an infinite beta the first
    // component of least energy takes all.
    [[gnu::noinline]] GaussTotals posteriors(double beta, double* free) {
        std::copy_n(table_, points_, least_.begin());
        for (int64_t j = 1; j < k_; j++) {
            const T* energy = table_ + j * capacity_;
            for (int64_t p = 0; p < points_; p++) least_[p] = std::min(least_[p], energy[p]);
        }
        std::fill_n(total_.begin(), points_, T(0));
        GaussTotals sums;
        if (std::isinf(beta)) {
            for (int64_t j = 0; j < k_; j++) {
                T* q = table_ + j * capacity_;
                for (int64_t p = 0; p < points_; p++) {
                    q[p] = T((q[p] == least_[p]) & (total_[p] == 0));
                    total_[p] += q[p];
                }
            }
            for (int64_t p = 0; p < points_; p++) sums.free += weights_[p] * double(least_[p]);
            if (free) std::copy_n(least_.begin(), n_, free);
            return sums;
        }
        std::fill_n(dot_.begin(), points_, T(0));
        const T minus_beta = T(-beta), lowest = sizeof(T) == 8 ? T(-700) : T(-64);
        for (int64_t j = 0; j < k_; j++) {
            T* q = table_ + j * capacity_;
            for (int64_t p = 0; p < points_; p++) {
                const T raised = minus_beta * (q[p] - least_[p]), exponent = raised > lowest ? raised : lowest;
                q[p] = exp_of_negative(exponent);
                total_[p] += q[p];
                dot_[p] += q[p] * exponent;
            }
        }
        const double temperature = 1.0 / beta;
        for (int64_t p = 0; p < points_; p++) {
            const double log_total = log_of_positive(double(total_[p]));
            total_[p] = total_[p] > 0 ? 1 / total_[p] : T(0);
            const double value = double(least_[p]) - temperature * log_total;
            sums.free += weights_[p] * value;
            sums.entropy += weights_[p] * temperature * (log_total - double(dot_[p] * total_[p]));
            if (free && p < n_) free[p] = value;
        }
        for (int64_t j = 0; j < k_; j++) {
            T* q = table_ + j * capacity_;
            for (int64_t p = 0; p < points_; p++) q[p] *= total_[p];
        }
        return sums;
    }

    // The table in rows of units, (n, k).
    void write_table(T* out) const {
        for (int64_t p = 0; p < n_; p++)
            for (int64_t j = 0; j < k_; j++) out[p * k_ + j] = table_[j * capacity_ + p];
    }

    void read_table(const double* in) {
        for (int64_t j = 0; j < k_; j++)
            for (int64_t p = 0; p < points_; p++) table_[j * capacity_ + p] = T(in[std::min(p, n_ - 1) * k_ + j]);
    }

    // Adds the moments about the means under the responsibilities in the table, times unit.
    [[gnu::noinline]] void add_moments(double unit, double* out) {
        const int64_t second = second_moments(d_, type_), width = 1 + d_ + second;
        for (int64_t j = 0; j < k_; j++) {
            double* moments = out + j * width;
            const double mass = take_shares(table_ + j * capacity_);
            if (!(mass > 0)) continue;
            moments[0] += unit * mass;
            if (type_ == Covariance::full || type_ == Covariance::tied) {
                add_columns<true>(j, unit, moments + 1, nullptr);
                add_triangle(unit, moments + 1 + d_);
            } else {
                add_columns<false>(j, unit, moments + 1, moments + 1 + d_);
            }
        }
    }

private:
    // Rows of each lane that are added up in T: 16, and fewer where rows are wide.
    static int64_t room(int64_t d) {
        int64_t vectors = 16;
        while (vectors > unroll && vectors * vector_bytes * d * 3 > (1 << 19)) vectors /= 2;
        return vectors * lanes;
    }

    static int64_t padded(int64_t d) { return (d + Vector<double>::lanes - 1) / Vector<double>::lanes * Vector<double>::lanes; }

    // Weighted responsibilities, and their sum.
    double take_shares(const T* q) {
        vec total[unroll] = {};
        for (int64_t p = 0; p < points_; p += step)
#pragma GCC unroll 4
            for (int64_t u = 0; u < step; u += lanes) {
                const vec share = V::load(q + p + u) * V::load(relative_.data() + p + u);
                V::store(share_ + p + u, share);
                total[u / lanes] += share;
            }
        Doubles sums[Vector<double>::lanes] = {};
        for (int u = 0; u < unroll; u++) sums[0] += widened(total[u]);
        return lane_sums(sums)[0];
    }

    // Adds the first moments of every column, and its squares or, where `keep`, leaves differences and weighted
    // differences for the products of columns.
    template <bool keep>
    void add_columns(int64_t j, double unit, double* first, double* second) {
        for (int64_t l = 0; l < d_; l++) {
            const T mean = means_[j * d_ + l], *x = x_ + l * capacity_;
            T *difference = difference_ + l * capacity_, *weighted = weighted_ + l * capacity_;
            vec sum[unroll] = {}, square[unroll] = {};
            for (int64_t p = 0; p < points_; p += step) {
#pragma GCC unroll 4
                for (int u = 0; u < unroll; u++) {
                    const vec moved = V::load(x + p + u * lanes) - mean, product = moved * V::load(share_ + p + u * lanes);
                    sum[u] += product;
                    if constexpr (keep) {
                        V::store(difference + p + u * lanes, moved);
                        V::store(weighted + p + u * lanes, product);
                    } else {
                        square[u] += product * moved;
                    }
                }
            }
#pragma GCC unroll 4
            for (int u = 1; u < unroll; u++) {
                sum[0] += sum[u];
                square[0] += square[u];
            }
            sums_[l] = widened(sum[0]);
            if (!keep) squares_[l] = widened(square[0]);
        }
        lane_sums(d_, sums_.data(), numbers_.data());
        for (int64_t l = 0; l < d_; l++) first[l] += unit * numbers_[l];
        if (keep) return;
        lane_sums(d_, squares_.data(), numbers_.data());
        for (int64_t l = 0; l < d_; l++) second[type_ == Covariance::diag ? l : 0] += unit * numbers_[l];
    }

    void differ(int64_t j) {
        for (int64_t l = 0; l < d_; l++) {
            const T mean = means_[j * d_ + l], *x = x_ + l * capacity_;
            T* difference = difference_ + l * capacity_;
            for (int64_t p = 0; p < points_; p += lanes) V::store(difference + p, V::load(x + p) - mean);
        }
    }

    void scaled_squares(const T* scale, bool by_column, T* out) const {
        for (int64_t p = 0; p < points_; p += step) {
            vec square[unroll] = {};
            for (int64_t l = 0; l < d_; l++) {
                const T factor = scale[by_column ? l : 0], *difference = difference_ + l * capacity_ + p;
#pragma GCC unroll 4
                for (int u = 0; u < unroll; u++) {
                    const vec scaled = V::load(difference + u * lanes) * factor;
                    square[u] += scaled * scaled;
                }
            }
#pragma GCC unroll 4
            for (int u = 0; u < unroll; u++) V::store(out + p + u * lanes, square[u]);
        }
    }

    // |U' difference|^2: four of its entries at a time.
    void triangle_squares(const T* u, T* out) const {
        int64_t a = 0;
        for (; a + 4 <= d_; a += 4) entries<4>(u, a, out);
        if (d_ - a == 3) entries<3>(u, a, out);
        if (d_ - a == 2) entries<2>(u, a, out);
        if (d_ - a == 1) entries<1>(u, a, out);
    }

    template <int count>
    void entries(const T* u, int64_t a, T* out) const {
        for (int64_t p = 0; p < points_; p += step) {
            vec sum[count][unroll] = {};
            auto column = [&](int64_t b, int first) __attribute__((always_inline)) {
                const T *difference = difference_ + b * capacity_ + p, *factor = u + b * d_ + a;
                vec value[unroll];
#pragma GCC unroll 4
                for (int v = 0; v < unroll; v++) value[v] = V::load(difference + v * lanes);
#pragma GCC unroll 4
                for (int r = first; r < count; r++)
#pragma GCC unroll 4
                    for (int v = 0; v < unroll; v++) sum[r][v] += value[v] * factor[r];
            };
            for (int64_t b = 0; b < a; b++) column(b, 0);
#pragma GCC unroll 4
            for (int b = 0; b < count; b++) column(a + b, b);
#pragma GCC unroll 4
            for (int v = 0; v < unroll; v++) {
                vec square = V::load(out + p + v * lanes);
#pragma GCC unroll 4
                for (int r = 0; r < count; r++) square += sum[r][v] * sum[r][v];
                V::store(out + p + v * lanes, square);
            }
        }
    }

    // Sums of weighted[a] * difference[b] for b <= a, by squares of `side` rows and columns.
    void add_triangle(double unit, double* triangle) const {
        int64_t a = 0;
        for (; a + side <= d_; a += side) band<side>(a, unit, triangle);
        if (d_ - a == 3) band<3>(a, unit, triangle);
        if (d_ - a == 2) band<2>(a, unit, triangle);
        if (d_ - a == 1) band<1>(a, unit, triangle);
    }

    template <int count>
    void band(int64_t a, double unit, double* triangle) const {
        for (int64_t b = 0; b < a; b += side) products<count, side, false>(a, b, unit, triangle);
        products<count, count, true>(a, a, unit, triangle);
    }

    template <int rows, int columns, bool corner>
    void products(int64_t a, int64_t b, double unit, double* triangle) const {
        vec total[rows][columns] = {};
        for (int64_t p = 0; p < points_; p += lanes) {
            vec right[columns];
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++) right[c] = V::load(difference_ + (b + c) * capacity_ + p);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const vec left = V::load(weighted_ + (a + r) * capacity_ + p);
#pragma GCC unroll 4
                for (int c = 0; c < columns; c++)
                    if (!corner || c <= r) total[r][c] += left * right[c];
            }
        }
        constexpr int room = (rows * columns + Vector<double>::lanes - 1) / Vector<double>::lanes * Vector<double>::lanes;
        Doubles sums[room] = {};
        double numbers[room];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++) sums[r * columns + c] = widened(total[r][c]);
        lane_sums(rows * columns, sums, numbers);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                if (!corner || c <= r) triangle[(a + r) * (a + r + 1) / 2 + b + c] += unit * numbers[r * columns + c];
    }

    int64_t k_, d_;
    Covariance type_;
    int64_t capacity_, n_ = 0, points_ = 0;
    std::vector<T> means_, narrowed_, least_, total_, dot_, relative_;
    std::vector<double> weights_;
    std::vector<Doubles> sums_, squares_;  // by column, room for whole vectors of their sums
    std::vector<double> numbers_;
    std::vector<vec> storage_;
    T *x_, *difference_, *weighted_, *table_, *share_;
    const T* factors_ = nullptr;
    const double* offsets_ = nullptr;
};

extern template class GaussTile<float>;  // compiled once, in gauss.cpp
extern template class GaussTile<double>;

}  // namespace majorant::MAJORANT_ISA
