#include "responses.hpp"

#include <algorithm>
#include <type_traits>

#include "elementary.hpp"
#include "normal_equations.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

constexpr int64_t tile = 128;
constexpr double log_two = 0.6931471805599453, largest = 700.0;

// A whole number k and x - k log 2, of size log(2) / 2 at most, for x within +-`largest`.
struct Reduced {
    int32_t power;
    double rest;
};
inline Reduced reduced(double x) {
    const int32_t power = int32_t(x * 1.4426950408889634 + 1024.5) - 1024;  // truncation rounds a positive number to nearest
    return {power, x - double(power) * log_two};
}
inline double two_to(int32_t power) { return bits_as<double>(int64_t(power + 1023) << 52); }

// exp(f) - 1 - f by its series, exact to the last digits of itself.
inline double series(double f) {
    double value = 1.0 / 6227020800.0;
    constexpr double factorials[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                     720.0,       120.0,      24.0,      6.0,      2.0};
#pragma GCC unroll 11
    for (double factorial : factorials) value = value * f + 1.0 / factorial;
    return value * f * f;
}

// Of what is not a number, a bound: it has no nearest whole number.
inline double clipped(double x) { return std::min(largest, std::max(-largest, x)); }

inline double exp_of(double x) {
    const Reduced at = reduced(clipped(x));
    const double value = two_to(at.power) * (series(at.rest) + at.rest + 1.0);
    return x == x ? value : x;
}

// exp(x) - 1 - x: near zero the difference has as many digits as the exponential.
inline double excess(double x) {
    const Reduced at = reduced(clipped(x));
    const double scale = two_to(at.power), small = series(at.rest);
    const double value = at.power == 0 ? small : scale * small + (scale * at.rest + (scale - 1.0)) - x;
    return x == x ? value : x;
}

// log(1 + e) for e in [0, 1], to the last digits of itself.
inline double log_of_one_and(double e) {
    const bool upper = e > 0.41421356237309503;
    const double s = upper ? (e - 1.0) / (e + 3.0) : e / (e + 2.0), square = s * s;
    double sum = 1.0 / 21.0;
#pragma GCC unroll 10
    for (int n = 19; n > 0; n -= 2) sum = sum * square + 1.0 / n;
    return 2.0 * s * sum + (upper ? log_two : 0.0);
}

// log(1 + x) for any x >= 0.
inline double log_of_one_and_any(double x) {
    const double above = x < infinity<double> ? log_of_positive(1.0 + x) : x;
    return x <= 1.0 ? log_of_one_and(x) : above;
}

// The same places of all columns of a tile of rows, and what depends on the rows alone.
struct Tile {
    explicit Tile(const Responses& rows) : all(rows) {}

    const Responses& all;
    int64_t first = 0, count = 0;
    double log_y[tile], log_misses[tile], eta[tile];  // of a binomial target logarithms of shares

    const double* y() const { return all.y + first; }
    const double* trials() const { return all.trials + first; }

    template <Family family>
    void load(int64_t at) {
        first = at;
        count = std::min(tile, all.n - first);
        if constexpr (family == Family::gaussian || family == Family::student) return;
        const double* y = this->y();
        // a count of zero has no logarithm, and its loss needs none
        for (int64_t t = 0; t < count; t++) log_y[t] = log_of_positive(y[t] > 0 ? y[t] : 1.0);
        if constexpr (family == Family::binomial)
            for (int64_t t = 0; t < count; t++) {
                const double log_trials = log_of_positive(trials()[t]), misses = trials()[t] - y[t];
                log_y[t] -= log_trials;
                log_misses[t] = log_of_positive(misses > 0 ? misses : 1.0) - log_trials;
            }
    }

    void predict(const double* coef) {
        if (all.offset)
            std::copy_n(all.offset + first, count, eta);
        else
            std::fill_n(eta, count, 0.0);
        for (int64_t j = 0; j < all.p; j++) {
            const double b = coef[j];
            const double* column = all.columns + j * all.n + first;
            for (int64_t t = 0; t < count; t++) eta[t] += b * column[t];
        }
    }

    template <Family family>
    void losses(double dispersion, double* out) const {
        const double* y = this->y();
        const double precision = 1.0 / dispersion, df = all.df;
        for (int64_t t = 0; t < count; t++) {
            const double r = y[t] - eta[t];
            if constexpr (family == Family::gaussian) {
                out[t] = 0.5 * precision * r * r;
            } else if constexpr (family == Family::student) {
                out[t] = 0.5 * (df + 1.0) * log_of_one_and_any(precision * r * r / df);
            } else if constexpr (family == Family::gamma) {
                out[t] = precision * excess(log_y[t] - eta[t]);
            } else if constexpr (family == Family::poisson) {
                const double some = y[t] * excess(eta[t] - log_y[t]), none = exp_of(eta[t]);
                out[t] = y[t] > 0 ? some : none;
            } else {
                const double x = eta[t], misses = trials()[t] - y[t];
                const double less = log_of_one_and(exp_of(x < 0 ? x : -x));
                const double log_p = (x < 0 ? x : 0.0) - less, log_q = (x < 0 ? 0.0 : -x) - less;
                const double hit = y[t] * excess(log_p - log_y[t]), no_hit = trials()[t] * exp_of(log_p);
                const double miss = misses * excess(log_q - log_misses[t]), no_miss = trials()[t] * exp_of(log_q);
                out[t] = (y[t] > 0 ? hit : no_hit) + (misses > 0 ? miss : no_miss);
            }
        }
    }

    // Times the dispersion, the derivative of the log density by the predictor, and a positive curvature of minus it: the
    // expected one, or that of a quadratic bound.
    template <Family family>
    void derivatives(double dispersion, double* score, double* curvature) const {
        const double* y = this->y();
        for (int64_t t = 0; t < count; t++) {
            const double r = y[t] - eta[t];
            if constexpr (family == Family::gaussian) {
                score[t] = r;
                curvature[t] = 1.0;
            } else if constexpr (family == Family::student) {
                curvature[t] = dispersion * (all.df + 1.0) / (all.df * dispersion + r * r);
                score[t] = curvature[t] * r;
            } else if constexpr (family == Family::gamma) {
                score[t] = exp_of(log_y[t] - eta[t]) - 1.0;
                curvature[t] = 1.0;
            } else if constexpr (family == Family::poisson) {
                curvature[t] = exp_of(eta[t]);
                score[t] = y[t] - curvature[t];
            } else {
                const double e = exp_of(eta[t] < 0 ? eta[t] : -eta[t]), more = 1.0 / (1.0 + e), fewer = e * more;
                score[t] = y[t] - trials()[t] * (eta[t] < 0 ? fewer : more);
                curvature[t] = trials()[t] * more * fewer;
            }
        }
    }

    // What the mean of which gives the dispersion, from losses or scores.
    template <Family family>
    double spread(const double* q, const double* score) const {
        double sum = 0.0;
        if constexpr (family == Family::gaussian || family == Family::student)
            for (int64_t t = 0; t < count; t++) sum += q[t] * score[t] * (y()[t] - eta[t]);
        if constexpr (family == Family::gamma) {
            double lost[tile];
            losses<family>(1.0, lost);
            for (int64_t t = 0; t < count; t++) sum += 2.0 * q[t] * lost[t];
        }
        (void)score;
        return sum;
    }
};

inline double dot(int64_t count, const double* a, const double* b) {
    double sum = 0.0;
    for (int64_t t = 0; t < count; t++) sum += a[t] * b[t];
    return sum;
}

template <Family family>
void losses(const Responses& rows, int64_t m, const double* coef, const double* dispersions, double* out) {
    Tile at(rows);
    for (int64_t first = 0; first < rows.n; first += tile) {
        at.load<family>(first);
        for (int64_t i = 0; i < m; i++) {
            at.predict(coef + i * rows.p);
            at.losses<family>(dispersions[i], out + i * rows.n + first);
        }
    }
}

template <Family family>
void sums(const Responses& rows, int64_t m, const double* coef, const double* dispersions, const double* q, double* out) {
    const int64_t p = rows.p, width = 2 + p + pairs(p);
    std::fill_n(out, m * width, 0.0);
    Tile at(rows);
    double score[tile], curvature[tile], moved[tile];
    for (int64_t first = 0; first < rows.n; first += tile) {
        at.load<family>(first);
        for (int64_t i = 0; i < m; i++) {
            at.predict(coef + i * p);
            at.derivatives<family>(dispersions[i], score, curvature);
            const double* own = q + i * rows.n + first;
            double* to = out + i * width;
            double mass = 0.0;
            for (int64_t t = 0; t < at.count; t++) mass += own[t];
            to[0] += mass;
            to[1] += at.spread<family>(own, score);
            for (int64_t t = 0; t < at.count; t++) {
                score[t] *= own[t];
                curvature[t] *= own[t];
            }
            double* gram = to + 2 + p;
            for (int64_t j = 0; j < p; j++) {
                const double* column = rows.columns + j * rows.n + first;
                to[2 + j] += dot(at.count, score, column);
                for (int64_t t = 0; t < at.count; t++) moved[t] = curvature[t] * column[t];
                for (int64_t l = 0; l <= j; l++) *gram++ += dot(at.count, moved, rows.columns + l * rows.n + first);
            }
        }
    }
}

// The call for the family of some rows.
template <class Call>
void by_family(const Responses& rows, const Call& call) {
    switch (rows.family) {
        case Family::gaussian: return call(std::integral_constant<Family, Family::gaussian>());
        case Family::student: return call(std::integral_constant<Family, Family::student>());
        case Family::poisson: return call(std::integral_constant<Family, Family::poisson>());
        case Family::binomial: return call(std::integral_constant<Family, Family::binomial>());
        case Family::gamma: return call(std::integral_constant<Family, Family::gamma>());
    }
}

}  // namespace

void response_losses(const Responses& rows, int64_t m, const double* coef, const double* dispersions, double* out) {
    by_family(rows, [&](auto family) { losses<family()>(rows, m, coef, dispersions, out); });
}

void response_sums(const Responses& rows, int64_t m, const double* coef, const double* dispersions, const double* q, double* out) {
    by_family(rows, [&](auto family) { sums<family()>(rows, m, coef, dispersions, q, out); });
}

}  // namespace majorant::MAJORANT_ISA
