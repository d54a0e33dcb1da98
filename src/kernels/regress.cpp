#include "regress.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "elementary.hpp"
#include "normal_equations.hpp"

namespace majorant::MAJORANT_ISA {

namespace {

constexpr double log_two_pi = 1.8378770664093453;
constexpr int64_t tile = 128;

constexpr int64_t row_length(int64_t p) { return 2 + p + pairs(p); }

// Statistics of one component, about the coefficients at which they were taken (r = y - x coef):
// [sum q, sum q r^2, sum q r x (p), sum q x x' (lower triangle)].
struct Row {
    const double* s;
    int64_t p;
    double mass() const { return s[0]; }
    double squares() const { return s[1]; }
    const double* slope() const { return s + 2; }
    const double* gram() const { return s + 2 + p; }
};

inline double dot(const double* a, const double* b) {
    double sum = 0.0;
    for (int64_t t = 0; t < tile; t++) sum += a[t] * b[t];
    return sum;
}

// A tile of rows, by columns; places past the last row repeat it with no weight.
class Tile {
public:
    Tile(int64_t p, int64_t k) : p_(p), k_(k), x_(p * tile), y_(tile), w_(tile), residual_(k * tile), q_(k * tile) {}

    template <class T>
    void load(int64_t first, int64_t n, const T* x, const T* y, const double* w) {
        rows_ = std::min(tile, n - first);
        for (int64_t t = 0; t < tile; t++) {
            const int64_t i = first + std::min(t, rows_ - 1);
            y_[t] = double(y[i]);
            w_[t] = t < rows_ ? weight(w, i) : 0.0;
            for (int64_t j = 0; j < p_; j++) x_[j * tile + t] = double(x[i * p_ + j]);
        }
    }

    // Residuals and energies of component c.
    void measure(const Regressions& m, int64_t c) {
        double* r = residual(c);
        double* e = q(c);
        std::copy(y_.begin(), y_.end(), r);
        for (int64_t j = 0; j < p_; j++) {
            const double b = m.coef[c * p_ + j];
            const double* column = &x_[j * tile];
            for (int64_t t = 0; t < tile; t++) r[t] -= b * column[t];
        }
        const double half = 0.5 / m.variances[c];
        const double constant = 0.5 * (log_two_pi + std::log(m.variances[c])) - std::log(m.weights[c]);
        if (m.weights[c] > 0)
            for (int64_t t = 0; t < tile; t++) e[t] = constant + half * r[t] * r[t];
        else
            std::fill(e, e + tile, infinity<double>);
    }

    // Energies become responsibilities; returns the weighted free energy.
    double respond(double beta) {
        double least[tile], total[tile];
        std::copy(q(0), q(0) + tile, least);
        for (int64_t c = 1; c < k_; c++) {
            const double* e = q(c);
            for (int64_t t = 0; t < tile; t++) least[t] = e[t] < least[t] ? e[t] : least[t];
        }
        std::fill(total, total + tile, 0.0);
        const bool hard = std::isinf(beta);
        for (int64_t c = 0; c < k_; c++) {
            double* e = q(c);
            if (hard)
                for (int64_t t = 0; t < tile; t++) {
                    e[t] = (e[t] == least[t]) & (total[t] == 0.0) ? 1.0 : 0.0;
                    total[t] += e[t];
                }
            else
                for (int64_t t = 0; t < tile; t++) {
                    e[t] = exp_of_negative(beta * (least[t] - e[t]));
                    total[t] += e[t];
                }
        }
        double free = 0.0;
        for (int64_t t = 0; t < tile; t++) free += w_[t] * least[t];
        if (hard) return free;
        double logs = 0.0;
        for (int64_t t = 0; t < tile; t++) logs += w_[t] * log_of_positive(total[t]);
        for (int64_t t = 0; t < tile; t++) total[t] = 1.0 / total[t];
        for (int64_t c = 0; c < k_; c++) {
            double* e = q(c);
            for (int64_t t = 0; t < tile; t++) e[t] *= total[t];
        }
        return free - logs / beta;
    }

    void add(int64_t c, double* out) {
        const double* r = residual(c);
        double weighted[tile], moved[tile];
        double mass = 0.0;
        for (int64_t t = 0; t < tile; t++) {
            weighted[t] = q(c)[t] * w_[t];
            moved[t] = weighted[t] * r[t];
            mass += weighted[t];
        }
        out[0] += mass;
        out[1] += dot(moved, r);
        double* gram = out + 2 + p_;
        for (int64_t j = 0; j < p_; j++) {
            double column[tile];
            const double* x = &x_[j * tile];
            for (int64_t t = 0; t < tile; t++) column[t] = weighted[t] * x[t];
            out[2 + j] += dot(moved, x);
            int64_t l = 0;
            for (; l + 4 <= j + 1; l += 4, gram += 4) {
                const double* a = &x_[l * tile];
                double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
                for (int64_t t = 0; t < tile; t++) {
                    s0 += column[t] * a[t];
                    s1 += column[t] * a[t + tile];
                    s2 += column[t] * a[t + 2 * tile];
                    s3 += column[t] * a[t + 3 * tile];
                }
                gram[0] += s0;
                gram[1] += s1;
                gram[2] += s2;
                gram[3] += s3;
            }
            for (; l <= j; l++, gram++) *gram += dot(column, &x_[l * tile]);
        }
    }

    int64_t rows() const { return rows_; }
    double* q(int64_t c) { return &q_[c * tile]; }
    double* residual(int64_t c) { return &residual_[c * tile]; }

private:
    int64_t p_, k_, rows_ = 0;
    std::vector<double> x_, y_, w_, residual_, q_;
};

template <class T>
void copy_out(Tile& rows, int64_t k, int64_t first, T* out) {
    for (int64_t t = 0; t < rows.rows(); t++)
        for (int64_t c = 0; c < k; c++) out[(first + t) * k + c] = T(rows.q(c)[t]);
}

template <class T>
double sweep(Tile& rows, const Regressions& m, int64_t n, const T* x, const T* y, const double* w, double beta,
             double* statistics, T* energies, T* responsibilities) {
    if (statistics) std::fill(statistics, statistics + m.k * row_length(m.p), 0.0);
    double free = 0.0;
    for (int64_t first = 0; first < n; first += tile) {
        rows.load(first, n, x, y, w);
        for (int64_t c = 0; c < m.k; c++) rows.measure(m, c);
        if (energies) copy_out(rows, m.k, first, energies);
        free += rows.respond(beta);
        if (responsibilities) copy_out(rows, m.k, first, responsibilities);
        if (statistics)
            for (int64_t c = 0; c < m.k; c++) rows.add(c, statistics + c * row_length(m.p));
    }
    return free;
}

// A step of least squares from the coefficients of the statistics; returns by how much it lowers the sum of squares.
// The small ridge keeps directions that a component does not see where they are.
double newton(const Row& row, std::vector<double>& factor, double* step) {
    const int64_t p = row.p;
    const double* gram = row.gram();
    solve_normal(p, gram, row.slope(), 1e-11, factor, step);
    double gain = 0.0;
    for (int64_t j = 0; j < p; j++) {
        double product = 0.0;
        for (int64_t l = 0; l < p; l++) product += step[l] * gram[j < l ? pairs(l) + j : pairs(j) + l];
        gain += step[j] * (2.0 * row.slope()[j] - product);
    }
    return gain;
}

double cost(double mass, double squares, double variance) {
    return mass > 0 ? 0.5 * (mass * (log_two_pi + std::log(variance)) + squares / variance) : 0.0;
}

// The variances in [m, ratio m] of least cost, for the best m: between two neighbours of the sorted {d, d / ratio} the
// same ones are clipped, so that the best m there is known.
void bounded(const VarianceRule& rule, int64_t k, const double* mass, const double* squares, double* variances) {
    std::vector<double> own(k), edges;
    double low = infinity<double>, high = 0.0;
    for (int64_t c = 0; c < k; c++) {
        own[c] = mass[c] > 0 ? squares[c] / mass[c] : variances[c];
        if (mass[c] > 0) {
            low = std::min(low, own[c]);
            high = std::max(high, own[c]);
            edges.push_back(own[c]);
            if (std::isfinite(rule.ratio)) edges.push_back(own[c] / rule.ratio);
        }
    }
    auto place = [&](double m) {
        m = std::max(m, rule.floor);
        for (int64_t c = 0; c < k; c++) variances[c] = std::clamp(own[c], m, std::max(m, rule.ratio * m));
    };
    if (std::max(high, rule.floor) <= rule.ratio * std::max(low, rule.floor)) return place(std::max(low, rule.floor));
    edges.push_back(rule.floor);
    std::sort(edges.begin(), edges.end());
    std::vector<double> candidates = edges;
    for (size_t e = 0; e + 1 < edges.size(); e++) {
        const double middle = 0.5 * (edges[e] + edges[e + 1]);
        double sum = 0.0, total = 0.0;
        for (int64_t c = 0; c < k; c++) {
            if (!(mass[c] > 0)) continue;
            if (own[c] < middle) sum += squares[c], total += mass[c];
            else if (own[c] > rule.ratio * middle) sum += squares[c] / rule.ratio, total += mass[c];
        }
        if (total > 0) candidates.push_back(std::clamp(sum / total, edges[e], edges[e + 1]));
    }
    double best = infinity<double>, at = rule.floor;
    for (double m : candidates) {
        if (m < rule.floor) continue;
        place(m);
        double value = 0.0;
        for (int64_t c = 0; c < k; c++) value += cost(mass[c], squares[c], variances[c]);
        if (value < best) best = value, at = m;
    }
    place(at);
}

}  // namespace

template <class T>
double regression_pass(const Regressions& m, int64_t n, const T* x, const T* y, const double* w, double beta,
                       double* statistics, T* energies, T* responsibilities) {
    Tile rows(m.p, m.k);
    return sweep(rows, m, n, x, y, w, beta, statistics, energies, responsibilities);
}

double regression_step(const VarianceRule& rule, int64_t k, int64_t p, const double* statistics, double* weights,
                       double* coef, double* variances) {
    std::vector<double> factor, step(p), mass(k), squares(k);
    double total = 0.0, sum = 0.0;
    for (int64_t c = 0; c < k; c++) {
        const Row row{statistics + c * row_length(p), p};
        mass[c] = row.mass();
        squares[c] = 0.0;
        total += mass[c];
        if (!(mass[c] > 0)) continue;
        const double gain = newton(row, factor, step.data());
        if (gain > 0)
            for (int64_t j = 0; j < p; j++) coef[c * p + j] += step[j];
        squares[c] = std::max(row.squares() - std::max(gain, 0.0), 0.0);
        sum += squares[c];
    }
    if (rule.common)
        std::fill(variances, variances + k, std::max(sum / total, rule.floor));
    else
        bounded(rule, k, mass.data(), squares.data(), variances);
    double value = 0.0;
    for (int64_t c = 0; c < k; c++) {
        weights[c] = mass[c] / total;
        value += cost(mass[c], squares[c], variances[c]);
        if (mass[c] > 0) value -= mass[c] * std::log(weights[c]);
    }
    return value;
}

template <class T>
double regression_em(const VarianceRule& rule, int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w,
                     int64_t max_steps, double tolerance, double* weights, double* coef, double* variances,
                     double* path, int64_t* steps, bool* converged) {
    Tile rows(p, k);
    std::vector<double> statistics(k * row_length(p));
    const Regressions m{k, p, weights, coef, variances};
    auto expected = [&] {  // of the energies at the parameters where the statistics were taken
        double sum = 0.0;
        for (int64_t c = 0; c < k; c++) {
            const Row row{&statistics[c * row_length(p)], p};
            sum += cost(row.mass(), row.squares(), variances[c]);
            if (row.mass() > 0) sum -= row.mass() * std::log(weights[c]);
        }
        return sum;
    };
    double free = sweep(rows, m, n, x, y, w, 1.0, statistics.data(), static_cast<T*>(nullptr), static_cast<T*>(nullptr));
    double last = infinity<double>;
    *steps = 0;
    *converged = false;
    while (*steps < max_steps) {
        const double entropy = expected() - free;
        const double value = regression_step(rule, k, p, statistics.data(), weights, coef, variances);
        const double next = sweep(rows, m, n, x, y, w, 1.0, statistics.data(), static_cast<T*>(nullptr), static_cast<T*>(nullptr));
        if (path) {
            path[2 * *steps] = next;
            path[2 * *steps + 1] = value - entropy;
        }
        const double fall = free - next;
        free = next;
        ++*steps;
        // Falls shrink by a constant factor near an optimum: what is left of the sum of a geometric series.
        const double rate = fall / last;
        last = fall;
        *converged = fall <= 1e-14 * std::abs(next) ||
                     (rate < 1.0 && fall <= tolerance && fall * rate <= tolerance * (1.0 - rate));
        if (*converged) break;
    }
    return free;
}

#define MAJORANT_INSTANTIATE(T)                                                                                       \
    template double regression_pass<T>(const Regressions&, int64_t, const T*, const T*, const double*, double, double*, \
                                       T*, T*);                                                                        \
    template double regression_em<T>(const VarianceRule&, int64_t, int64_t, int64_t, const T*, const T*, const double*, \
                                     int64_t, double, double*, double*, double*, double*, int64_t*,   \
                                     bool*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
