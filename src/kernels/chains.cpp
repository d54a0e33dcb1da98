#include "chains.hpp"

#include <algorithm>
#include <vector>

#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {

namespace {

constexpr double nothing = -infinity<double>;

const double* step_into(const ChainScores& c, int64_t position) {
    return c.transitions + (c.table ? int64_t(c.table[position]) : 0) * c.states * c.states;
}

int64_t longest(const ChainScores& c) {
    int64_t most = 0;
    for (int64_t i = 0; i < c.n; i++) most = std::max(most, c.offsets[i + 1] - c.offsets[i]);
    return most;
}

// Scores to probabilities, in place; returns the log of their summed exponentials.
template <int64_t S>
double normalise(int64_t states, double* row) {
    const int64_t n = S ? S : states;
    double most = nothing;
    for (int64_t s = 0; s < n; s++) most = std::max(most, row[s]);
    if (most == nothing) {
        std::fill(row, row + n, 0.0);
        return nothing;
    }
    double total = 0.0;
    for (int64_t s = 0; s < n; s++) total += row[s] = exp_of_negative(row[s] - most);
    const double share = 1.0 / total;
    for (int64_t s = 0; s < n; s++) row[s] *= share;
    return most + log_of_positive(total);
}

// A chain as a Markov process. From the last position back: what may follow a state, summed in `rest`, makes the
// probabilities of the state at the first position, and steps[t - first] (states, states) of the step into position t.
struct Process {
    std::vector<double> first, rest, scores, steps;

    explicit Process(const ChainScores& c)
        : first(c.states), rest(c.states), scores(c.states), steps(longest(c) * c.states * c.states) {}

    template <int64_t S>
    double learn(const ChainScores& c, int64_t begin, int64_t end) {
        const int64_t n = S ? S : c.states;
        std::fill(rest.begin(), rest.end(), 0.0);
        for (int64_t t = end - 1; t > begin; t--) {
            const double* transition = step_into(c, t);
            double* step = steps.data() + (t - begin) * n * n;
            for (int64_t s = 0; s < n; s++) scores[s] = c.unary[t * n + s] + rest[s];
            for (int64_t r = 0; r < n; r++) {
                for (int64_t s = 0; s < n; s++) step[r * n + s] = transition[r * n + s] + scores[s];
                rest[r] = normalise<S>(n, step + r * n);
            }
        }
        for (int64_t s = 0; s < n; s++) first[s] = c.unary[begin * n + s] + rest[s];
        return normalise<S>(n, first.data());
    }
};

double entropy_of(const double* p, int64_t n) {
    double sum = 0.0;
    for (int64_t s = 0; s < n; s++) {
        const bool there = p[s] > 1e-300;
        sum -= there ? p[s] * log_of_positive(there ? p[s] : 1.0) : 0.0;
    }
    return sum;
}

template <int64_t S>
void sums(const ChainScores& c, const double* w, const ChainSums& out) {
    const int64_t n = S ? S : c.states;
    Process process(c);
    std::vector<double> here(n), next(n);
    for (int64_t i = 0; i < c.n; i++) {
        const int64_t begin = c.offsets[i], end = c.offsets[i + 1];
        out.log_partition[i] = 0.0;
        if (out.entropy) out.entropy[i] = 0.0;
        if (begin == end) continue;
        out.log_partition[i] = process.learn<S>(c, begin, end);
        if (!out.entropy && !out.marginals && !out.steps && !out.pairs) continue;
        if (out.pairs) std::fill(out.pairs + begin * n * n, out.pairs + end * n * n, 0.0);
        here = process.first;
        double entropy = out.entropy ? entropy_of(here.data(), n) : 0.0;
        if (out.marginals) std::copy_n(here.data(), n, out.marginals + begin * n);
        for (int64_t t = begin + 1; t < end; t++) {
            const double* step = process.steps.data() + (t - begin) * n * n;
            double* count = out.steps ? out.steps + (step_into(c, t) - c.transitions) : nullptr;
            std::fill(next.begin(), next.end(), 0.0);
            for (int64_t r = 0; r < n; r++) {
                const double mass = here[r], counted = weight(w, i) * mass;
                if (!(mass > 0.0)) continue;
                for (int64_t s = 0; s < n; s++) next[s] += mass * step[r * n + s];
                if (count)
                    for (int64_t s = 0; s < n; s++) count[r * n + s] += counted * step[r * n + s];
                if (out.pairs)
                    for (int64_t s = 0; s < n; s++) out.pairs[(t * n + r) * n + s] = mass * step[r * n + s];
                if (out.entropy) entropy += mass * entropy_of(step + r * n, n);
            }
            here.swap(next);
            if (out.marginals) std::copy_n(here.data(), n, out.marginals + t * n);
        }
        if (out.entropy) out.entropy[i] = entropy;
    }
}

int32_t inverse_cdf(const double* p, int64_t n, double u) {
    int32_t chosen = 0;
    for (int64_t s = 0; s < n; s++) {
        if (!(p[s] > 0.0)) continue;
        chosen = int32_t(s);  // the last one with mass should rounding carry us past the end
        u -= p[s];
        if (u < 0.0) break;
    }
    return chosen;
}

}  // namespace

void chain_sums(const ChainScores& scores, const double* w, const ChainSums& out) {
    scores.states == 2 ? sums<2>(scores, w, out) : sums<0>(scores, w, out);
}

void chain_best(const ChainScores& c, int32_t* path, double* score) {
    const int64_t n = c.states;
    std::vector<double> rest(n), scores(n);
    std::vector<int32_t> follows(longest(c) * n);
    for (int64_t i = 0; i < c.n; i++) {
        const int64_t begin = c.offsets[i], end = c.offsets[i + 1];
        score[i] = 0.0;
        if (begin == end) continue;
        std::fill(rest.begin(), rest.end(), 0.0);
        for (int64_t t = end - 1; t > begin; t--) {
            const double* transition = step_into(c, t);
            for (int64_t s = 0; s < n; s++) scores[s] = c.unary[t * n + s] + rest[s];
            for (int64_t r = 0; r < n; r++) {
                double most = nothing;
                int32_t at = 0;
                for (int64_t s = 0; s < n; s++) {
                    const double value = transition[r * n + s] + scores[s];
                    if (value > most) {
                        most = value;
                        at = int32_t(s);
                    }
                }
                rest[r] = most;
                follows[(t - begin) * n + r] = at;
            }
        }
        for (int64_t s = 0; s < n; s++) scores[s] = c.unary[begin * n + s] + rest[s];
        const auto most = std::max_element(scores.begin(), scores.end());
        score[i] = *most;
        path[begin] = int32_t(most - scores.begin());
        for (int64_t t = begin + 1; t < end; t++) path[t] = follows[(t - begin) * n + path[t - 1]];
    }
}

void chain_draw(const ChainScores& c, int64_t draws, const double* uniforms, int32_t* path) {
    const int64_t n = c.states, positions = c.offsets[c.n];
    Process process(c);
    for (int64_t i = 0; i < c.n; i++) {
        const int64_t begin = c.offsets[i], end = c.offsets[i + 1];
        if (begin == end) continue;
        process.learn<0>(c, begin, end);
        for (int64_t d = 0; d < draws; d++) {
            const double* u = uniforms + d * positions;
            int32_t* drawn = path + d * positions;
            drawn[begin] = inverse_cdf(process.first.data(), n, u[begin]);
            for (int64_t t = begin + 1; t < end; t++)
                drawn[t] = inverse_cdf(process.steps.data() + ((t - begin) * n + drawn[t - 1]) * n, n, u[t]);
        }
    }
}

}  // namespace majorant::MAJORANT_ISA
