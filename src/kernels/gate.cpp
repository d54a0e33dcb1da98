#include "gate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

constexpr int64_t tile = 128;

inline double sum_of(int64_t count, const double* a) {
    double sum = 0.0;
    for (int64_t t = 0; t < count; t++) sum += a[t];
    return sum;
}

inline double dot(int64_t count, const double* a, const double* b) {
    double sum = 0.0;
    for (int64_t t = 0; t < count; t++) sum += a[t] * b[t];
    return sum;
}

// The same rows under one run: tables (k, tile).
struct Tile {
    const Gate& gate;
    int64_t first = 0, count = 0;
    const double* w = nullptr;
    std::vector<double> prior, joint;
    double top[tile], total[tile], moved[tile], curvature[tile];

    explicit Tile(const Gate& gate) : gate(gate), prior(gate.k * tile), joint(gate.k * tile) {}

    const double* column(int64_t j) const { return gate.columns + j * gate.n + first; }

    // top = the largest of joint.
    void find_top() {
        std::copy_n(joint.data(), count, top);
        for (int64_t a = 1; a < gate.k; a++) {
            const double* x = joint.data() + a * tile;
            for (int64_t t = 0; t < count; t++) top[t] = x[t] > top[t] ? x[t] : top[t];
        }
    }

    // prior = exp(columns' coef) over its sum; what is left in joint is its logarithm.
    void weigh(const double* coef) {
        const int64_t k = gate.k;
        for (int64_t a = 0; a < k; a++) {
            double* logit = joint.data() + a * tile;
            std::fill_n(logit, count, 0.0);
            for (int64_t j = 0; j < gate.g; j++) {
                const double b = coef[a * gate.g + j], *x = column(j);
                for (int64_t t = 0; t < count; t++) logit[t] += b * x[t];
            }
        }
        find_top();
        std::fill_n(total, count, 0.0);
        for (int64_t a = 0; a < k; a++)
            for (int64_t t = 0; t < count; t++) total[t] += prior[a * tile + t] = exp_of_negative(joint[a * tile + t] - top[t]);
        for (int64_t t = 0; t < count; t++) {
            moved[t] = 1.0 / total[t];
            top[t] += log_of_positive(total[t]);
        }
        for (int64_t a = 0; a < k; a++)
            for (int64_t t = 0; t < count; t++) {
                prior[a * tile + t] *= moved[t];
                joint[a * tile + t] -= top[t];
            }
    }

    // q = exp(beta (joint + log_density)) over its sum, times the weights of the rows.
    void share(const double* log_density, double* q, double* log_sums) {
        const int64_t k = gate.k, n = gate.n;
        for (int64_t a = 0; a < k; a++)
            for (int64_t t = 0; t < count; t++) joint[a * tile + t] += log_density[a * n + t];
        find_top();
        const bool is_hard = std::isinf(gate.beta);
        const double beta = is_hard ? 1.0 : gate.beta;
        std::fill_n(total, count, 0.0);
        std::fill_n(moved, count, 0.0);  // becomes NaN where a density is
        for (int64_t a = 0; a < k; a++) {
            const double* x = joint.data() + a * tile;
            double* own = q + a * n;
            for (int64_t t = 0; t < count; t++) moved[t] += x[t] == x[t] ? 0.0 : x[t];
            if (is_hard)
                for (int64_t t = 0; t < count; t++) own[t] = x[t] == top[t] && total[t] == 0.0 ? 1.0 : 0.0;
            else
                for (int64_t t = 0; t < count; t++) own[t] = exp_of_negative(beta * (x[t] - top[t]));
            for (int64_t t = 0; t < count; t++) total[t] += own[t];
        }
        for (int64_t t = 0; t < count; t++) {
            const bool is_possible = total[t] > 0.0;  // else no component can have made the row
            log_sums[t] = top[t] + moved[t] + (is_possible ? log_of_positive(is_possible ? total[t] : 1.0) / beta : 0.0);
            top[t] = is_possible ? 0.0 : w[t] / double(k);
            total[t] = (is_possible ? w[t] / total[t] : 0.0) + moved[t];
        }
        for (int64_t a = 0; a < k; a++)
            for (int64_t t = 0; t < count; t++) q[a * n + t] = q[a * n + t] * total[t] + top[t];
    }

    // sums += [sum q, score (k - 1, g), information (lower triangles of pairs of components, and of covariates)]
    void add(const double* q, double* sums) {
        const int64_t k = gate.k, g = gate.g, n = gate.n;
        for (int64_t a = 0; a < k; a++) *sums++ += sum_of(count, q + a * n);
        for (int64_t a = 1; a < k; a++) {
            for (int64_t t = 0; t < count; t++) moved[t] = q[a * n + t] - w[t] * prior[a * tile + t];
            for (int64_t j = 0; j < g; j++) *sums++ += dot(count, moved, column(j));
        }
        for (int64_t a = 1; a < k; a++)
            for (int64_t b = 1; b <= a; b++) {
                const double one = a == b ? 1.0 : 0.0;
                for (int64_t t = 0; t < count; t++)
                    curvature[t] = w[t] * prior[a * tile + t] * (one - prior[b * tile + t]);
                for (int64_t i = 0; i < g; i++) {
                    const double* x = column(i);
                    for (int64_t t = 0; t < count; t++) moved[t] = curvature[t] * x[t];
                    for (int64_t j = 0; j <= i; j++) *sums++ += dot(count, moved, column(j));
                }
            }
    }
};

}  // namespace

void gate_pass(const Gate& gate, int64_t runs, const double* coef, const double* log_density, double* q, double* log_sums,
               double* sums) {
    const int64_t n = gate.n, k = gate.k, g = gate.g, width = k + (k - 1) * g + k * (k - 1) / 2 * (g * (g + 1) / 2);
    std::fill_n(sums, runs * width, 0.0);
    Tile at(gate);
    for (int64_t run = 0; run < runs; run++)
        for (at.first = 0; at.first < n; at.first += tile) {
            at.count = std::min(tile, n - at.first);
            at.w = gate.w + (gate.each_weighs ? run * n : 0) + at.first;
            at.weigh(coef + run * k * g);
            const int64_t here = run * k * n + at.first;
            if (log_density) at.share(log_density + here, q + here, log_sums + run * n + at.first);
            at.add(q + here, sums + run * width);
        }
}

}  // namespace majorant::MAJORANT_ISA
