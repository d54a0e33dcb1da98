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

// Some rows by columns, of places that are a multiple of sixteen; those past the last row repeat it with no weight.
struct Rows {
    int64_t first, n, width;
    std::vector<double> x, y, w;

    template <class T>
    void load(int64_t at, int64_t end, int64_t p, const T* all_x, const T* all_y, const double* all_w) {
        first = at;
        n = end - at;
        width = (n + 15) / 16 * 16;
        x.resize(p * width);
        y.resize(width);
        w.resize(width);
        for (int64_t t = 0; t < width; t++) {
            const int64_t i = first + std::min(t, n - 1);
            y[t] = double(all_y[i]);
            w[t] = t < n ? weight(all_w, i) : 0.0;
            for (int64_t j = 0; j < p; j++) x[j * width + t] = double(all_x[i * p + j]);
        }
    }
};

// Residuals and responsibilities of a tile of rows under each component.
class Tile {
public:
    Tile(int64_t p, int64_t k) : p_(p), k_(k), residual_(k * tile), q_(k * tile) {}

    // Residuals and energies of each component.
    void measure(const Rows& rows, const Regressions& m) {
        for (int64_t c = 0; c < k_; c++) measure(rows, m, c);
    }

    // Energies become responsibilities; returns the weighted free energy.
    double respond(const Rows& rows, double beta) {
        const int64_t width = rows.width;
        const double* w = rows.w.data();
        double least[tile], total[tile];
        std::copy(q(0), q(0) + width, least);
        for (int64_t c = 1; c < k_; c++) {
            const double* e = q(c);
            for (int64_t t = 0; t < width; t++) least[t] = e[t] < least[t] ? e[t] : least[t];
        }
        std::fill(total, total + width, 0.0);
        const bool hard = std::isinf(beta);
        for (int64_t c = 0; c < k_; c++) {
            double* e = q(c);
            if (hard)
                for (int64_t t = 0; t < width; t++) {
                    e[t] = (e[t] == least[t]) & (total[t] == 0.0) ? 1.0 : 0.0;
                    total[t] += e[t];
                }
            else
                for (int64_t t = 0; t < width; t++) {
                    e[t] = exp_of_negative(beta * (least[t] - e[t]));
                    total[t] += e[t];
                }
        }
        double free = 0.0;
        for (int64_t t = 0; t < width; t++) free += w[t] * least[t];
        if (hard) return free;
        double logs = 0.0;
        for (int64_t t = 0; t < width; t++) logs += w[t] * log_of_positive(total[t]);
        for (int64_t t = 0; t < width; t++) total[t] = 1.0 / total[t];
        for (int64_t c = 0; c < k_; c++) {
            double* e = q(c);
            for (int64_t t = 0; t < width; t++) e[t] *= total[t];
        }
        return free - logs / beta;
    }

    // Adds to the statistics of each component.
    void add(const Rows& rows, double* statistics) {
        for (int64_t c = 0; c < k_; c++) add(rows, c, statistics + c * row_length(p_));
    }

    double* q(int64_t c) { return &q_[c * tile]; }

private:
    double* residual(int64_t c) { return &residual_[c * tile]; }

    void measure(const Rows& rows, const Regressions& m, int64_t c) {
        const int64_t width = rows.width;
        double* r = residual(c);
        double* e = q(c);
        std::copy(rows.y.begin(), rows.y.end(), r);
        for (int64_t j = 0; j < p_; j++) {
            const double b = m.coef[c * p_ + j];
            const double* column = &rows.x[j * width];
            for (int64_t t = 0; t < width; t++) r[t] -= b * column[t];
        }
        const double half = 0.5 / m.variances[c];
        const double constant = 0.5 * (log_two_pi + std::log(m.variances[c])) - std::log(m.weights[c]);
        if (m.weights[c] > 0)
            for (int64_t t = 0; t < width; t++) e[t] = constant + half * r[t] * r[t];
        else
            std::fill(e, e + width, infinity<double>);
    }

    void add(const Rows& rows, int64_t c, double* out) {
        const int64_t width = rows.width;
        const double* r = residual(c);
        auto dot = [width](const double* a, const double* b) {
            double sum = 0.0;
            for (int64_t t = 0; t < width; t++) sum += a[t] * b[t];
            return sum;
        };
        double weighted[tile], moved[tile];
        double mass = 0.0;
        for (int64_t t = 0; t < width; t++) {
            weighted[t] = q(c)[t] * rows.w[t];
            moved[t] = weighted[t] * r[t];
            mass += weighted[t];
        }
        out[0] += mass;
        out[1] += dot(moved, r);
        double* gram = out + 2 + p_;
        for (int64_t j = 0; j < p_; j++) {
            double column[tile];
            const double* x = &rows.x[j * width];
            for (int64_t t = 0; t < width; t++) column[t] = weighted[t] * x[t];
            out[2 + j] += dot(moved, x);
            int64_t l = 0;
            for (; l + 4 <= j + 1; l += 4, gram += 4) {
                const double* a = &rows.x[l * width];
                double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
                for (int64_t t = 0; t < width; t++) {
                    s0 += column[t] * a[t];
                    s1 += column[t] * a[t + width];
                    s2 += column[t] * a[t + 2 * width];
                    s3 += column[t] * a[t + 3 * width];
                }
                gram[0] += s0;
                gram[1] += s1;
                gram[2] += s2;
                gram[3] += s3;
            }
            for (; l <= j; l++, gram++) *gram += dot(column, &rows.x[l * width]);
        }
    }

    int64_t p_, k_;
    std::vector<double> residual_, q_;
};

// Rows of each of the fewest tiles, about equally many, so that few places are empty.
int64_t rows_of_tile(int64_t n) {
    const int64_t tiles = std::max<int64_t>(1, (n + tile - 1) / tile);
    return (n + tiles - 1) / tiles;
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
    Tile work(m.p, m.k);
    Rows rows;
    auto copy_out = [&](T* out) {
        if (!out) return;
        for (int64_t t = 0; t < rows.n; t++)
            for (int64_t c = 0; c < m.k; c++) out[(rows.first + t) * m.k + c] = T(work.q(c)[t]);
    };
    if (statistics) std::fill(statistics, statistics + m.k * row_length(m.p), 0.0);
    double free = 0.0;
    for (int64_t first = 0, each = rows_of_tile(n); first < n; first += each) {
        rows.load(first, std::min(first + each, n), m.p, x, y, w);
        work.measure(rows, m);
        copy_out(energies);
        free += work.respond(rows, beta);
        copy_out(responsibilities);
        if (statistics) work.add(rows, statistics);
    }
    return free;
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

namespace {

// What a step of EM changes: weights, coefficients and variances, of which the extrapolation takes logarithms if
// positive. Squared extrapolation of two steps: Varadhan and Roland (2008), "Simple and globally convergent methods".
class Extrapolation {
public:
    Extrapolation(const VarianceRule& rule, int64_t k, int64_t p, double* weights, double* coef, double* variances)
        : rule_(rule), k_(k), p_(p), weights_(weights), coef_(coef), variances_(variances) {
        for (auto& point : points_) point.resize(k * (p + 2));
    }

    // Keeps the parameters as point 0, 1 or 2 of a pair of steps.
    void keep(int at) {
        double* out = points_[at].data();
        std::copy(coef_, coef_ + k_ * p_, out);
        std::transform(variances_, variances_ + k_, out + k_ * p_, [](double v) { return std::log(v); });
        std::transform(weights_, weights_ + k_, out + k_ * (p_ + 1), [](double v) { return std::log(v); });
    }

    // Puts the extrapolated parameters in place; false, and nothing is moved, where they cannot be had.
    bool go() {
        const auto& [a, b, c] = points_;
        double moved = 0.0, bent = 0.0;
        for (size_t i = 0; i < a.size(); i++) {
            const double move = b[i] - a[i], bend = (c[i] - b[i]) - move;
            moved += move * move;
            bent += bend * bend;
        }
        const double length = std::min(std::sqrt(moved / bent), longest);
        if (!(length > 1.0)) return false;  // no further than the steps went, or a weight is zero, or nothing moves
        std::vector<double> ahead(a.size());
        for (size_t i = 0; i < a.size(); i++) {
            const double move = b[i] - a[i], bend = (c[i] - b[i]) - move;
            ahead[i] = a[i] + length * (2.0 * move + length * bend);
        }
        const double* logs = &ahead[k_ * p_];
        const auto [low, high] = std::minmax_element(logs, logs + k_);
        if (*low < std::log(rule_.floor) || *high - *low > std::log(rule_.ratio) + 1e-12) return false;
        std::copy(ahead.begin(), ahead.begin() + k_ * p_, coef_);
        put(logs);
        return true;
    }

    // Returns to the last point.
    void back() {
        const double* last = points_[2].data();
        std::copy(last, last + k_ * p_, coef_);
        std::copy(variances_before_.begin(), variances_before_.end(), variances_);
        std::copy(weights_before_.begin(), weights_before_.end(), weights_);
    }

private:
    static constexpr double longest = 64.0;

    void put(const double* logs) {
        variances_before_.assign(variances_, variances_ + k_);
        weights_before_.assign(weights_, weights_ + k_);
        double total = 0.0;
        for (int64_t c = 0; c < k_; c++) total += weights_[c] = std::exp(std::min(logs[k_ + c], 0.0));
        for (int64_t c = 0; c < k_; c++) {
            weights_[c] /= total;
            variances_[c] = rule_.common ? std::exp(logs[0]) : std::exp(logs[c]);
        }
    }

    VarianceRule rule_;
    int64_t k_, p_;
    double *weights_, *coef_, *variances_;
    std::vector<double> points_[3], variances_before_, weights_before_;
};

}  // namespace

template <class T>
double regression_em(const VarianceRule& rule, int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w,
                     int64_t max_steps, double tolerance, double* weights, double* coef, double* variances,
                     double* path, int64_t* steps, bool* converged) {
    constexpr int64_t plain_steps = 6;  // before the first extrapolation
    constexpr int64_t settling = 8;     // after the last one: falls shrink fast at first, and no rate can be told
    const Regressions m{k, p, weights, coef, variances};
    Tile work(p, k);
    std::vector<Rows> rows;
    for (int64_t first = 0, each = rows_of_tile(n); first < n; first += each)
        rows.emplace_back().load(first, std::min(first + each, n), p, x, y, w);
    auto pass = [&](std::vector<double>& statistics) {
        statistics.assign(k * row_length(p), 0.0);
        double free = 0.0;
        for (const Rows& part : rows) {
            work.measure(part, m);
            free += work.respond(part, 1.0);
            work.add(part, statistics.data());
        }
        return free;
    };
    std::vector<double> statistics, ahead;
    auto expected = [&] {  // of the energies at the parameters where the statistics were taken
        double sum = 0.0;
        for (int64_t c = 0; c < k; c++) {
            const Row row{&statistics[c * row_length(p)], p};
            sum += cost(row.mass(), row.squares(), variances[c]);
            if (row.mass() > 0) sum -= row.mass() * std::log(weights[c]);
        }
        return sum;
    };
    Extrapolation extrapolation(rule, k, p, weights, coef, variances);
    double free = pass(statistics), last = infinity<double>;
    int64_t since = settling;  // steps since the last extrapolation
    *steps = 0;
    *converged = false;
    extrapolation.keep(0);
    for (int64_t kept = 1; *steps < max_steps; kept++) {
        const double entropy = expected() - free;
        const double value = regression_step(rule, k, p, statistics.data(), weights, coef, variances);
        const double next = pass(statistics);
        if (path) {
            path[2 * *steps] = next;
            path[2 * *steps + 1] = value - entropy;
        }
        const double fall = free - next;
        free = next;
        ++*steps;
        // Falls shrink by a constant factor near an optimum: what is left of the sum of a geometric series.
        const double rate = fall / last;
        const bool is_near = rate < 1.0 && fall <= tolerance && fall * rate <= tolerance * (1.0 - rate);
        last = fall;
        since++;
        *converged = fall <= 1e-14 * std::abs(next) || (is_near && since >= settling);
        if (*converged) break;
        extrapolation.keep(kept);
        if (kept < 2) continue;
        kept = 0;
        if (!is_near && *steps >= plain_steps && *steps < max_steps && extrapolation.go()) {
            const double there = pass(ahead);
            if (there < free) {
                free = there;
                since = 0;
                std::swap(statistics, ahead);
            } else
                extrapolation.back();
        }
        extrapolation.keep(0);
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
