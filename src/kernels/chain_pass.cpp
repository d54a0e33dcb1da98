#include <algorithm>
#include <vector>

#include "chains.hpp"
#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {

namespace {

constexpr double least = 1e-280;  // below it, products may have lost digits
constexpr int64_t piece = 128;    // rows whose exponentials are taken at once

// One chain with its own parameters. Rows are scaled: v is the probability of the states given the rows so far, times the
// density of its row given those before it. That density divides the next v, off the path that each row waits for.
template <int64_t S>
struct Pass {
    const ChainPass& p;
    const double *start, *steps;
    int64_t n;
    bool has_closed_steps = false;
    std::vector<double> tops, sums, here, next, ratio, pairs, back;  // back: the steps, from column to row

    Pass(const ChainPass& pass, int64_t run)
        : p(pass), start(pass.start + run * pass.states), steps(pass.steps + run * pass.states * pass.states),
          n(S ? S : pass.states), tops(piece), sums(piece), here(n), next(n), ratio(n), pairs(n * n), back(n * n) {
        for (int64_t i = 0; i < n * n; i++) has_closed_steps |= !(steps[i] > 1e-30);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) back[j * n + i] = steps[i * n + j];
    }

    void times(const double* from, const double* matrix, double* to) const {
        for (int64_t j = 0; j < n; j++) to[j] = 0.0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) to[j] += from[i] * matrix[i * n + j];
    }

    // Densities over the largest of their row into q; `tops` has the logarithms of these. False where one is no number.
    bool scale(const double* log_density, double* q, int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        int64_t odd = 0;
        std::fill_n(tops.data(), size, -infinity<double>);
        for (int64_t k = 0; k < n; k++) {
            const double* row = log_density + k * p.rows + begin;
            for (int64_t t = 0; t < size; t++) {
                tops[t] = row[t] > tops[t] ? row[t] : tops[t];
                odd += row[t] != row[t];
            }
        }
        for (int64_t k = 0; k < n; k++) {
            const double* row = log_density + k * p.rows + begin;
            double* out = q + k * p.rows + begin;
            for (int64_t t = 0; t < size; t++) out[t] = exp_of_negative(row[t] - tops[t]);
        }
        return odd == 0;
    }

    // Filtered probabilities into q, and the log density of the rows; NaN where digits may have been lost, as a state that
    // cannot be reached from the others has become too improbable to tell. With every step open another path is better.
    double forward(const double* log_density, double* q, int64_t begin, int64_t end) {
        double total = 0.0, inverse = 1.0;
        bool is_safe = true;
        for (int64_t first = begin; first < end; first += piece) {
            const int64_t last = std::min(end, first + piece);
            is_safe &= scale(log_density, q, first, last);
            for (int64_t t = first; t < last; t++) {
                if (t == begin)
                    std::copy_n(start, n, next.data());
                else
                    times(here.data(), steps, next.data());
                double sum = 0.0;
                for (int64_t k = 0; k < n; k++) sum += here[k] = next[k] * inverse * q[k * p.rows + t];
                is_safe &= sum > least;
                const double before = inverse;
                inverse = 1.0 / sum;
                for (int64_t k = 0; k < n; k++) q[k * p.rows + t] = here[k] * inverse;
                if (has_closed_steps)
                    for (int64_t k = 0; k < n; k++)
                        is_safe &= !(next[k] > 0.0 && log_density[k * p.rows + t] > -infinity<double> &&
                                     (here[k] <= least * sum || next[k] * before <= least));
                sums[t - first] = sum;
            }
            if (!is_safe) return std::numeric_limits<double>::quiet_NaN();
            for (int64_t t = 0; t < last - first; t++) total += tops[t] + log_of_positive(sums[t]);
        }
        return total;
    }

    // Filtered probabilities in q become smoothed ones, times the weight; expected first states and steps are added.
    void backward(double* q, int64_t begin, int64_t end, double w, double* first, double* counts) {
        std::fill(pairs.begin(), pairs.end(), 0.0);
        for (int64_t k = 0; k < n; k++) next[k] = q[k * p.rows + end - 1];
        for (int64_t t = end - 1; t > begin; t--) {
            for (int64_t k = 0; k < n; k++) {
                q[k * p.rows + t] = w * next[k];
                here[k] = q[k * p.rows + t - 1];
            }
            times(here.data(), steps, ratio.data());
            for (int64_t k = 0; k < n; k++) ratio[k] = ratio[k] > 0.0 ? 1.0 / ratio[k] : 0.0;  // waits for no other row
            for (int64_t k = 0; k < n; k++) ratio[k] *= next[k];
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) pairs[i * n + j] += here[i] * ratio[j];
            times(ratio.data(), back.data(), next.data());
            for (int64_t k = 0; k < n; k++) next[k] *= here[k];
        }
        for (int64_t k = 0; k < n; k++) {
            q[k * p.rows + begin] = w * next[k];
            first[k] += w * next[k];
        }
        for (int64_t i = 0; i < n * n; i++) counts[i] += w * steps[i] * pairs[i];
    }
};

template <int64_t S>
void all_runs(const ChainPass& p) {
    for (int64_t run = 0; run < p.runs; run++) {
        Pass<S> pass(p, run);
        const double* log_density = p.log_density + run * p.states * p.rows;
        double* q = p.q + run * p.states * p.rows;
        for (int64_t i = 0; i < p.n; i++) {
            const int64_t begin = p.offsets[i], end = p.offsets[i + 1];
            double& found = p.log_partition[run * p.n + i];
            found = pass.forward(log_density, q, begin, end);
            if (p.first && found == found)
                pass.backward(q, begin, end, weight(p.w ? p.w + run * p.run_weights : nullptr, i), p.first + run * p.states,
                              p.counts + run * p.states * p.states);
        }
    }
}

}  // namespace

void chain_pass(const ChainPass& pass) {
    switch (pass.states) {
        case 1: return all_runs<1>(pass);
        case 2: return all_runs<2>(pass);
        case 3: return all_runs<3>(pass);
        case 4: return all_runs<4>(pass);
        case 5: return all_runs<5>(pass);
        case 6: return all_runs<6>(pass);
        default: return all_runs<0>(pass);
    }
}

}  // namespace majorant::MAJORANT_ISA
