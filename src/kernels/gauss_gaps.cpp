#include "gauss_gaps.hpp"

#include <memory>
#include <numeric>

#include "gauss_pass.hpp"
#include "gauss_step.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

// Rows in the order of their patterns of missing columns, whole rows first: rows [first[g], first[g + 1]) of `rows` have
// pattern g, of which bit l of `missing` is column l.
struct Patterns {
    std::vector<uint64_t> missing;
    std::vector<int64_t> first, rows;
};

Patterns patterns(int64_t n, int64_t d, const double* x) {
    size_t room = 64;
    while (room < size_t(2 * n)) room *= 2;
    std::vector<int32_t> places(room, -1), number(n);
    std::vector<uint64_t> met;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = 0;
        for (int64_t l = 0; l < d; l++) key |= uint64_t(std::isnan(x[i * d + l])) << l;
        size_t at = size_t((key * 0x9e3779b97f4a7c15u) >> 20) & (room - 1);
        while (places[at] >= 0 && met[places[at]] != key) at = (at + 1) & (room - 1);
        if (places[at] < 0) {
            places[at] = int32_t(met.size());
            met.push_back(key);
        }
        number[i] = places[at];
    }
    std::vector<int32_t> order(met.size()), rank(met.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return met[a] < met[b]; });
    Patterns found{{}, std::vector<int64_t>(met.size() + 1, 0), std::vector<int64_t>(n)};
    for (size_t g = 0; g < order.size(); g++) {
        rank[order[g]] = int32_t(g);
        found.missing.push_back(met[order[g]]);
    }
    for (int64_t i = 0; i < n; i++) found.first[rank[number[i]] + 1]++;
    std::partial_sum(found.first.begin(), found.first.end(), found.first.begin());
    std::vector<int64_t> next(found.first.begin(), found.first.end() - 1);
    for (int64_t i = 0; i < n; i++) found.rows[next[rank[number[i]]]++] = i;
    return found;
}

int64_t triangle(int64_t a, int64_t b) { return a >= b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a; }

// Adds to the moments of whole rows what those of their observed columns tell of them.
class Completion {
public:
    Completion(const GaussMixture& g, const std::vector<int64_t>& there, const std::vector<int64_t>& gone)
        : g_(g), there_(there), gone_(gone), p_(there.size()), m_(gone.size()), across_(m_ * p_), slopes_(m_ * p_),
          product_(m_ * p_), rest_(m_ * m_) {}

    // Slopes of the missing columns on the observed ones, and the covariance that is left.
    void regress(const double* covariance, const double* factor) {
        const int64_t d = g_.d;
        for (int64_t a = 0; a < m_; a++)
            for (int64_t q = 0; q < p_; q++) {
                double sum = 0.0;
                for (int64_t o = 0; o <= q; o++) sum += covariance[gone_[a] * d + there_[o]] * factor[o * p_ + q];
                across_[a * p_ + q] = sum;
            }
        for (int64_t a = 0; a < m_; a++) {
            for (int64_t o = 0; o < p_; o++) {
                double sum = 0.0;
                for (int64_t q = o; q < p_; q++) sum += across_[a * p_ + q] * factor[o * p_ + q];
                slopes_[a * p_ + o] = sum;
            }
            for (int64_t b = 0; b <= a; b++) {
                double sum = covariance[gone_[a] * d + gone_[b]];
                for (int64_t q = 0; q < p_; q++) sum -= across_[a * p_ + q] * across_[b * p_ + q];
                rest_[a * m_ + b] = sum;
            }
        }
    }

    void add_matrix(const double* observed, double* out) {
        const double mass = observed[0], *first = observed + 1, *second = first + p_;
        double *sums = out + 1, *squares = sums + g_.d;
        out[0] += mass;
        for (int64_t o = 0; o < p_; o++) {
            sums[there_[o]] += first[o];
            for (int64_t q = 0; q <= o; q++) squares[triangle(there_[o], there_[q])] += second[triangle(o, q)];
        }
        for (int64_t a = 0; a < m_; a++) {
            const double* slope = slopes_.data() + a * p_;
            for (int64_t o = 0; o < p_; o++) {
                sums[gone_[a]] += slope[o] * first[o];
                double sum = 0.0;
                for (int64_t q = 0; q < p_; q++) sum += slope[q] * second[triangle(o, q)];
                product_[a * p_ + o] = sum;
                squares[triangle(gone_[a], there_[o])] += sum;
            }
            for (int64_t b = 0; b <= a; b++) {
                double sum = mass * rest_[a * m_ + b];
                for (int64_t o = 0; o < p_; o++) sum += product_[a * p_ + o] * slopes_[b * p_ + o];
                squares[triangle(gone_[a], gone_[b])] += sum;
            }
        }
    }

    void add_variances(int64_t j, const double* observed, double* out) const {
        const double mass = observed[0], *first = observed + 1, *second = first + p_;
        double *sums = out + 1, *squares = sums + g_.d;
        const bool by_column = g_.type == Covariance::diag;
        out[0] += mass;
        for (int64_t o = 0; o < p_; o++) {
            sums[there_[o]] += first[o];
            if (by_column) squares[there_[o]] += second[o];
        }
        if (!by_column) squares[0] += second[0];
        for (const int64_t l : gone_) squares[by_column ? l : 0] += mass * g_.covariances[by_column ? j * g_.d + l : j];
    }

private:
    const GaussMixture& g_;
    const std::vector<int64_t>&there_, &gone_;
    int64_t p_, m_;
    std::vector<double> across_, slopes_, product_, rest_;
};

// Covariances of some columns.
void take_columns(const GaussMixture& g, const std::vector<int64_t>& columns, std::vector<double>& out) {
    const int64_t p = columns.size(), d = g.d;
    out.resize(covariance_size(g.k, p, g.type));
    double* to = out.data();
    if (g.type == Covariance::spherical) std::copy_n(g.covariances, g.k, to);
    else if (g.type == Covariance::diag)
        for (int64_t j = 0; j < g.k; j++)
            for (const int64_t l : columns) *to++ = g.covariances[j * d + l];
    else
        for (int64_t j = 0; j < (g.type == Covariance::full ? g.k : 1); j++)
            for (const int64_t l : columns)
                for (const int64_t r : columns) *to++ = g.covariances[(j * d + l) * d + r];
}

// Free energies and entropies of rows without entries, and their masses, `own` numbers apart: the weights to the power beta.
GaussTotals prior_pass(int64_t k, const double* weights, double mass, double beta, int64_t own, double* masses) {
    const double most = *std::max_element(weights, weights + k);
    double total = 0.0, dot = 0.0;
    for (int64_t j = 0; j < k; j++) {
        const bool is_first = weights[j] == most && total == 0.0;
        const double power = std::isinf(beta) ? double(is_first) : weights[j] > 0 ? std::pow(weights[j] / most, beta) : 0.0;
        masses[j * own] = power;
        total += power;
        dot += power > 0 ? power * std::log(power) : 0.0;
    }
    for (int64_t j = 0; j < k; j++) masses[j * own] *= mass / total;
    const double free = -std::log(most) - std::log(total) / beta;
    return {mass * free, std::isinf(beta) ? 0.0 : mass * (std::log(total) - dot / total) / beta};
}

}  // namespace

template <>
void gauss_gaps(int64_t n, const double* x, const double* w, int64_t runs, const GaussMixture* mixtures, double beta,
                double* moments, GaussTotals* totals, bool* done) {
    const int64_t k = mixtures->k, d = mixtures->d, width = 2 + d + second_moments(d, mixtures->type);
    const Covariance type = mixtures->type;
    const bool matrix = type == Covariance::full || type == Covariance::tied;
    const double unit = largest(n, w);
    std::fill_n(moments, runs * k * width, 0.0);
    std::vector<double> whole(runs * k), parts, covariances, factors(covariance_size(k, d, type)), means, constants(k), offsets(k);
    for (int64_t r = 0; r < runs; r++)
        done[r] = gauss_factor(k, d, type, mixtures[r].covariances, factors.data(), whole.data() + r * k) < 0;
    std::vector<double> rows, weights;
    std::vector<int64_t> there, gone;
    std::vector<std::unique_ptr<GaussTile<double>>> tiles(d + 1);  // by how many columns are observed
    const Patterns found = patterns(n, d, x);
    auto complete = [&](int64_t r) {
        const GaussMixture& g = mixtures[r];
        const int64_t p = there.size(), own = 1 + p + second_moments(p, type);
        Completion completion(g, there, gone);
        for (int64_t j = 0; j < k; j++) {
            const double* observed = parts.data() + j * own;
            double* out = moments + (r * k + j) * width;
            if (matrix) {
                const int64_t at = type == Covariance::full ? j : 0;
                if (at == j) completion.regress(g.covariances + at * d * d, factors.data() + at * p * p);
                completion.add_matrix(observed, out);
            } else {
                completion.add_variances(j, observed, out);
            }
            out[width - 1] -= observed[0] * (0.5 * double(gone.size()) + whole[r * k + j] - constants[j]);
        }
    };
    for (size_t pattern = 0; pattern < found.missing.size(); pattern++) {
        there.clear();
        gone.clear();
        for (int64_t l = 0; l < d; l++) (found.missing[pattern] >> l & 1 ? gone : there).push_back(l);
        const int64_t p = there.size(), begin = found.first[pattern], count = found.first[pattern + 1] - begin;
        const int64_t own = 1 + p + second_moments(p, type);
        double mass = 0.0;
        rows.resize(count * p);
        weights.resize(w ? count : 0);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = found.rows[begin + i];
            for (int64_t o = 0; o < p; o++) rows[i * p + o] = double(x[row * d + there[o]]);
            if (w) weights[i] = w[row];
            mass += w ? w[row] : 1.0;
        }
        for (int64_t r = 0; r < runs; r++) {
            if (!done[r]) continue;
            const GaussMixture& g = mixtures[r];
            parts.assign(k * own, 0.0);
            GaussTotals part;
            if (p == 0) {  // nothing is known of these rows but how many they are
                part = prior_pass(k, g.weights, mass, beta, own, parts.data());
                std::fill(constants.begin(), constants.end(), 0.0);
                factors.clear();
            } else {
                take_columns(g, there, covariances);
                factors.resize(covariances.size());
                done[r] = gauss_factor(k, p, type, covariances.data(), factors.data(), constants.data()) < 0;
                if (!done[r]) continue;
                means.resize(k * p);
                for (int64_t j = 0; j < k; j++) {
                    offsets[j] = g.weights[j] > 0 ? constants[j] - std::log(g.weights[j]) : infinity<double>;
                    for (int64_t o = 0; o < p; o++) means[j * p + o] = g.means[j * d + there[o]];
                }
                if (!tiles[p]) tiles[p] = std::make_unique<GaussTile<double>>(k, p, type);
                tiles[p]->set({k, p, type, means.data(), factors.data(), offsets.data()});
                part = add_pass<double>(count, rows.data(), w ? weights.data() : nullptr, unit, beta, *tiles[p], parts.data(),
                                        nullptr, nullptr);
            }
            totals[r].free += part.free;
            totals[r].entropy += part.entropy;
            complete(r);
        }
    }
    for (int64_t r = 0; r < runs; r++)
        if (!done[r]) std::fill_n(moments + r * k * width, k * width, 0.0);
}

template <>
void gauss_gaps(int64_t n, const float* x, const double* w, int64_t runs, const GaussMixture* mixtures, double beta,
                double* moments, GaussTotals* totals, bool* done) {
    gauss_gaps(n, std::vector<double>(x, x + n * mixtures->d).data(), w, runs, mixtures, beta, moments, totals, done);
}

}  // namespace majorant::MAJORANT_ISA
