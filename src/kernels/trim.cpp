#include "trim.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "normal_equations.hpp"

namespace majorant::MAJORANT_ISA {

namespace {

template <class T>
struct Rows {
    int64_t n, p;
    const T *x, *y;
    const double* w;

    double deviance(int64_t i, const double* coef) const {
        double r = double(y[i]);
        for (int64_t j = 0; j < p; j++) r -= coef[j] * double(x[i * p + j]);
        return r * r;
    }
};

// Room for the fits of one call.
struct Workspace {
    std::vector<double> gram, slope, factor, deviances;
    std::vector<std::pair<double, int64_t>> ranked;
    explicit Workspace(int64_t n, int64_t p) : gram(pairs(p)), slope(p), deviances(n), ranked(n) {}
};

// Least squares through some rows; the ridge decides where they leave a direction open.
template <class T, class Index>
void fit(const Rows<T>& rows, int64_t m, Index index, double ridge, Workspace& room, double* coef) {
    std::fill(room.gram.begin(), room.gram.end(), 0.0);
    std::fill(room.slope.begin(), room.slope.end(), 0.0);
    for (int64_t s = 0; s < m; s++) {
        const int64_t i = index(s);
        const T* x = rows.x + i * rows.p;
        const double wi = weight(rows.w, i);
        double* gram = room.gram.data();
        for (int64_t j = 0; j < rows.p; j++) {
            const double wx = wi * double(x[j]);
            room.slope[j] += wx * double(rows.y[i]);
            for (int64_t l = 0; l <= j; l++) *gram++ += wx * double(x[l]);
        }
    }
    solve_normal(rows.p, room.gram.data(), room.slope.data(), ridge, room.factor, coef);
}

// Moves the rows of smallest deviance (over their odds, if there are any), up to a mass, to the front of `ranked`; returns
// how many they are. Quickselect on the weights.
template <class T>
int64_t nearest(const Rows<T>& rows, const double* coef, const double* odds, double mass, Workspace& room) {
    auto& ranked = room.ranked;
    for (int64_t i = 0; i < rows.n; i++) {
        const double d = rows.deviance(i, coef);
        ranked[i] = {odds ? d / odds[i] : d, i};
    }
    if (!rows.w) {
        const int64_t m = std::clamp<int64_t>(int64_t(std::ceil(mass)), 1, rows.n);
        std::nth_element(ranked.begin(), ranked.begin() + (m - 1), ranked.end());
        return m;
    }
    int64_t low = 0, high = rows.n;
    double below = 0.0;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        std::nth_element(ranked.begin() + low, ranked.begin() + middle, ranked.begin() + high);
        double here = 0.0;
        for (int64_t s = low; s < middle; s++) here += weight(rows.w, ranked[s].second);
        if (below + here >= mass) high = middle;
        else below += here, low = middle;
    }
    return high;
}

template <class T>
void concentrate(const Rows<T>& rows, const double* odds, int64_t n_drawn, const int64_t* drawn, double mass,
                 int64_t steps, Workspace& room, double* coef) {
    fit(rows, n_drawn, [&](int64_t s) { return drawn[s]; }, 1e-4, room, coef);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t m = nearest(rows, coef, odds, mass, room);
        fit(rows, m, [&](int64_t s) { return room.ranked[s].second; }, 1e-6, room, coef);
    }
}

}  // namespace

template <class T>
double regression_concentrate(int64_t n, int64_t p, const T* x, const T* y, const double* w, const double* odds,
                              int64_t n_drawn, const int64_t* drawn, double mass, int64_t steps, double* coef) {
    const Rows<T> rows{n, p, x, y, w};
    Workspace room(n, p);
    concentrate(rows, odds, n_drawn, drawn, mass, steps, room, coef);
    double last = 0.0;
    const int64_t m = nearest(rows, coef, static_cast<const double*>(nullptr), mass, room);
    for (int64_t s = 0; s < m; s++) last = std::max(last, room.ranked[s].first);
    return last;
}

template <class T>
void regression_greedy(int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w, int64_t candidates,
                       int64_t steps, const double* mass, const double* uniforms, double* coef) {
    const Rows<T> rows{n, p, x, y, w};
    Workspace room(n, p);
    std::vector<double> best(n, infinity<double>), chosen(n), odds(n), cumulated(n), candidate(p), zero(p, 0.0);
    std::vector<int64_t> drawn(p + 1);
    double total = 0.0, mean = 0.0;
    for (int64_t i = 0; i < n; i++) {
        total += weight(w, i);
        mean += weight(w, i) * rows.deviance(i, zero.data());
    }
    mean /= total;
    const double small = 0.01 * mean + 1e-300;
    for (int64_t c = 0; c < k; c++) {
        double sum = 0.0;
        for (int64_t i = 0; i < n; i++) {
            odds[i] = c ? std::min(best[i], 4.0 * mean) + 1e-3 * mean + 1e-300 : 1.0;
            sum += odds[i] * weight(w, i);
            cumulated[i] = sum;
        }
        double least = infinity<double>;
        for (int64_t m = 0; m < candidates; m++, uniforms += p + 1) {
            for (int64_t s = 0; s <= p; s++) {
                const auto at = std::upper_bound(cumulated.begin(), cumulated.end(), uniforms[s] * sum);
                drawn[s] = std::min<int64_t>(at - cumulated.begin(), n - 1);
            }
            concentrate(rows, c ? odds.data() : nullptr, p + 1, drawn.data(), *mass++, steps, room, candidate.data());
            double score = 0.0;
            for (int64_t i = 0; i < n; i++) {
                const double d = std::min(rows.deviance(i, candidate.data()), best[i]);
                room.deviances[i] = d;
                score += weight(w, i) * std::log(small + d);
            }
            if (score < least) {
                least = score;
                std::copy(candidate.begin(), candidate.end(), coef + c * p);
                std::copy(room.deviances.begin(), room.deviances.end(), chosen.begin());
            }
        }
        best.swap(chosen);
    }
}

#define MAJORANT_INSTANTIATE(T)                                                                                          \
    template double regression_concentrate<T>(int64_t, int64_t, const T*, const T*, const double*, const double*, int64_t, \
                                              const int64_t*, double, int64_t, double*);                                  \
    template void regression_greedy<T>(int64_t, int64_t, int64_t, const T*, const T*, const double*, int64_t, int64_t,    \
                                       const double*, const double*, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
