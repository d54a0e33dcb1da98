#include <algorithm>
#include <vector>

#include "chains.hpp"
#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {

namespace {

constexpr double least = 1e-250;  // below it, products may have lost digits
constexpr double shut = 1e-30;    // a smaller step is closed
constexpr int64_t piece = 128;    // rows whose exponentials are taken at once; a multiple of `stride`
constexpr int64_t stride = 4;     // rows from one scaling to the next

template <int N>
struct RowOf;
template <>
struct RowOf<2> {
    typedef double type __attribute__((vector_size(16)));
};
template <>
struct RowOf<4> {
    typedef double type __attribute__((vector_size(32)));
};
template <>
struct RowOf<8> {
    typedef double type __attribute__((vector_size(64)));
};

// Chains of one run with its own parameters. Densities are over the largest of their row, and v, the probability of the
// states and of the rows so far, is scaled once in a few rows by its sum of two rows before, which no row waits for.
template <int S>
struct SmallPass {
    static constexpr int N = S <= 2 ? 2 : S <= 4 ? 4 : 8;
    using Row = typename RowOf<N>::type;  // one vector; lanes beyond the states hold zeros

    const ChainPass& p;
    Row start = {}, rows[S], columns[S];  // of the steps
    bool has_closed_steps = false;
    double tops[piece], sums[piece];
    alignas(64) double densities[piece * N];

    SmallPass(const ChainPass& pass, int64_t run) : p(pass) {
        const double *first = pass.start + run * S, *steps = pass.steps + run * S * S;
        for (int i = 0; i < S; i++) {
            start[i] = first[i];
            rows[i] = columns[i] = Row{};
            for (int j = 0; j < S; j++) {
                rows[i][j] = steps[i * S + j];
                columns[i][j] = steps[j * S + i];
                has_closed_steps |= !(steps[i * S + j] > shut);
            }
        }
    }

    static Row loaded(const double* from) {
        Row out = {};
        std::memcpy(&out, from, S * sizeof(double));
        return out;
    }
    static void store(double* to, Row v) { std::memcpy(to, &v, S * sizeof(double)); }

    // The sum of v[i] matrix[i], in two chains so that neither is long.
    static Row times(Row v, const Row* matrix) {
        Row even = v[0] * matrix[0], odd = {};
        if constexpr (S > 1) odd = v[1] * matrix[1];
#pragma GCC unroll 4
        for (int i = 2; i + 1 < S; i += 2) {
            even += v[i] * matrix[i];
            odd += v[i + 1] * matrix[i + 1];
        }
        if constexpr (S > 2 && S % 2) even += v[S - 1] * matrix[S - 1];
        return even + odd;
    }

    static double sum(Row v) {
        double out = 0.0;
        for (int k = 0; k < S; k++) out += v[k];
        return out;
    }

    // Densities over the largest of their row; `tops` has the logarithms of these. False where one is no number.
    bool scale(const double* log_density, int64_t size) {
        int64_t odd = 0;
        for (int64_t t = 0; t < size; t++) {
            const double* row = log_density + t * S;
            double top = -infinity<double>;
            for (int k = 0; k < S; k++) {
                top = row[k] > top ? row[k] : top;
                odd += row[k] != row[k];
            }
            tops[t] = top;
            for (int k = 0; k < N; k++) densities[t * N + k] = k < S ? row[k] - top : -infinity<double>;
        }
        for (int64_t i = 0; i < size * N; i++) densities[i] = exp_of_negative(densities[i]);
        return odd == 0;
    }

    // v of every row into q, or its probabilities where these are asked for, and the log density of the rows; NaN where
    // digits may have been lost, as a state that cannot be reached from the others has become too improbable to tell.
    // With every step open another path is better.
    double forward(const double* log_density, double* q, int64_t begin, int64_t end) {
        const bool filters = !p.first;
        double total = 0.0, reference = 1.0, last = 1.0;
        Row v = {};
        for (int64_t at = begin; at < end; at += piece) {
            const int64_t size = std::min(end - at, piece);
            bool is_safe = scale(log_density + at * S, size);
            double smallest = 1.0;
            int64_t n_scaled = 0;
            for (int64_t t = 0; t < size; t++) {
                Row next = at + t == begin ? start : times(v, rows);
                if (t % stride == 0) {
                    next *= 1.0 / reference;
                    sums[n_scaled++] = reference;
                }
                Row density;
                std::memcpy(&density, densities + t * N, sizeof density);
                v = next * density;
                last = sum(v);
                if (t % stride == 1) reference = last;
                smallest = last < smallest ? last : smallest;
                if (has_closed_steps) {
                    const double* row = log_density + (at + t) * S;
                    for (int k = 0; k < S; k++)
                        is_safe &= !(next[k] > 0.0 && row[k] > -infinity<double> && (v[k] <= least || next[k] <= least));
                }
                store(q + (at + t) * S, filters ? v * (1.0 / last) : v);
            }
            if (!is_safe || !(smallest > least)) return std::numeric_limits<double>::quiet_NaN();
            for (int64_t t = 0; t < size; t++) total += tops[t];
            for (int64_t i = 0; i < n_scaled; i++) total += log_of_positive(sums[i]);
        }
        return total + log_of_positive(last);
    }

    // v in q becomes smoothed probabilities, times the weight; expected first states and steps are added. The scale of v
    // cancels.
    void backward(double* q, int64_t begin, int64_t end, double w, double* first, double* counts) const {
        Row pairs[S] = {}, next = loaded(q + (end - 1) * S);
        next *= 1.0 / sum(next);
        for (int64_t t = end - 1; t > begin; t--) {
            const Row before = loaded(q + (t - 1) * S), ahead = times(before, rows);
            store(q + t * S, w * next);
            const Row ratio = (ahead > 0.0 ? 1.0 / ahead : Row{}) * next;
#pragma GCC unroll 8
            for (int i = 0; i < S; i++) pairs[i] += before[i] * ratio;
            next = times(ratio, columns) * before;
        }
        store(q + begin * S, w * next);
        for (int i = 0; i < S; i++) {
            first[i] += w * next[i];
            for (int j = 0; j < S; j++) counts[i * S + j] += w * rows[i][j] * pairs[i][j];
        }
    }
};

// The same for any number of states; v is scaled in every row.
struct LargePass {
    const ChainPass& p;
    const double *start, *steps;
    int64_t n;
    bool has_closed_steps = false;
    std::vector<double> here, next, ratio, pairs, back;  // back: the steps, from column to row

    LargePass(const ChainPass& pass, int64_t run)
        : p(pass), start(pass.start + run * pass.states), steps(pass.steps + run * pass.states * pass.states),
          n(pass.states), here(n), next(n), ratio(n), pairs(n * n), back(n * n) {
        for (int64_t i = 0; i < n * n; i++) has_closed_steps |= !(steps[i] > shut);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) back[j * n + i] = steps[i * n + j];
    }

    void times(const double* from, const double* matrix, double* to) const {
        std::fill_n(to, n, 0.0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) to[j] += from[i] * matrix[i * n + j];
    }

    double forward(const double* log_density, double* q, int64_t begin, int64_t end) {
        double total = 0.0;
        bool is_safe = true;
        for (int64_t t = begin; t < end; t++) {
            const double* row = log_density + t * n;
            double *out = q + t * n, top = -infinity<double>, sum = 0.0;
            for (int64_t k = 0; k < n; k++) {
                top = row[k] > top ? row[k] : top;
                is_safe &= row[k] == row[k];
            }
            for (int64_t k = 0; k < n; k++) out[k] = exp_of_negative(row[k] - top);
            if (t == begin)
                std::copy_n(start, n, next.data());
            else
                times(here.data(), steps, next.data());
            for (int64_t k = 0; k < n; k++) sum += here[k] = next[k] * out[k];
            is_safe &= sum > least;
            if (has_closed_steps)
                for (int64_t k = 0; k < n; k++)
                    is_safe &= !(next[k] > 0.0 && row[k] > -infinity<double> && (here[k] <= least * sum || next[k] <= least));
            if (!is_safe) return std::numeric_limits<double>::quiet_NaN();
            const double inverse = 1.0 / sum;
            for (int64_t k = 0; k < n; k++) out[k] = here[k] *= inverse;
            total += top + log_of_positive(sum);
        }
        return total;
    }

    void backward(double* q, int64_t begin, int64_t end, double w, double* first, double* counts) {
        std::fill(pairs.begin(), pairs.end(), 0.0);
        std::copy_n(q + (end - 1) * n, n, next.data());
        for (int64_t t = end - 1; t > begin; t--) {
            const double* before = q + (t - 1) * n;
            for (int64_t k = 0; k < n; k++) q[t * n + k] = w * next[k];
            times(before, steps, ratio.data());
            for (int64_t k = 0; k < n; k++) ratio[k] = (ratio[k] > 0.0 ? 1.0 / ratio[k] : 0.0) * next[k];
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) pairs[i * n + j] += before[i] * ratio[j];
            times(ratio.data(), back.data(), next.data());
            for (int64_t k = 0; k < n; k++) next[k] *= before[k];
        }
        for (int64_t k = 0; k < n; k++) {
            q[begin * n + k] = w * next[k];
            first[k] += w * next[k];
        }
        for (int64_t i = 0; i < n * n; i++) counts[i] += w * steps[i] * pairs[i];
    }
};

template <class Pass>
void all_runs(const ChainPass& p) {
    for (int64_t run = 0; run < p.runs; run++) {
        Pass pass(p, run);
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
        case 1: return all_runs<SmallPass<1>>(pass);
        case 2: return all_runs<SmallPass<2>>(pass);
        case 3: return all_runs<SmallPass<3>>(pass);
        case 4: return all_runs<SmallPass<4>>(pass);
        case 5: return all_runs<SmallPass<5>>(pass);
        case 6: return all_runs<SmallPass<6>>(pass);
        case 7: return all_runs<SmallPass<7>>(pass);
        case 8: return all_runs<SmallPass<8>>(pass);
        default: return all_runs<LargePass>(pass);
    }
}

}  // namespace majorant::MAJORANT_ISA
