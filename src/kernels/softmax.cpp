#include "softmax.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

constexpr int tile_rows = 16, together = 4;
constexpr int64_t most_factors = 512;  // numbers in [1, 2] whose product cannot overflow: one logarithm is enough for all
constexpr int lanes = Vector<double>::lanes;
using Lanes = Vector<double>::type;
static_assert(tile_rows % together == 0);

int64_t padded(int64_t count) { return (count + lanes - 1) / lanes * lanes; }

Lanes load(const double* from) { return Vector<double>::load(from); }

// A few rows with a one at their end, in double precision; rows and columns beyond the last are zero.
struct Tile {
    int64_t p, width, states;
    std::vector<double> x, scores, shares;
    double weights[tile_rows];

    Tile(int64_t p, int64_t k)
        : p(p), width(padded(p + 1)), states(padded(k)), x(tile_rows * width), scores(tile_rows * states),
          shares(tile_rows * states) {}

    template <class T>
    void read(int64_t rows, const T* from, const double* w, int64_t first) {
        for (int64_t r = 0; r < tile_rows; r++) {
            double* row = x.data() + r * width;
            const bool present = r < rows;
            weights[r] = present ? weight(w, first + r) : 0.0;
            if (!present) {
                std::fill(row, row + width, 0.0);
                continue;
            }
            for (int64_t j = 0; j < p; j++) row[j] = double(from[(first + r) * p + j]);
            row[p] = 1.0;
        }
    }

    // scores = x coef, coef (p + 1, states).
    void score(const double* coef) {
        for (int64_t r = 0; r < tile_rows; r += together)
            for (int64_t z = 0; z < states; z += lanes) {
                Lanes sums[together] = {};
                for (int64_t j = 0; j <= p; j++) {
                    const Lanes c = load(coef + j * states + z);
                    for (int i = 0; i < together; i++) sums[i] += x[(r + i) * width + j] * c;
                }
                for (int i = 0; i < together; i++) Vector<double>::store(&scores[(r + i) * states + z], sums[i]);
            }
    }

    // shares of row r = softmax of its scores; returns their log-sum-exp, -infinity where there is no finite score.
    double normalise(int64_t r, int64_t k) {
        const double* u = scores.data() + r * states;
        double* q = shares.data() + r * states;
        double most = u[0];
        for (int64_t z = 1; z < k; z++) most = u[z] > most ? u[z] : most;
        if (!(most > -infinity<double>)) {
            std::fill(q, q + states, 0.0);
            return most;
        }
        double total = 0.0;
        for (int64_t z = 0; z < k; z++) q[z] = exp_of_negative(u[z] - most);
        for (int64_t z = 0; z < k; z++) total += q[z];
        for (int64_t z = 0; z < k; z++) q[z] /= total;
        return most + log_of_positive(total);
    }

    // sums (p + 1, states) += x' (shares times weights).
    void add_moments(double* sums) const {
        for (int64_t z = 0; z < states; z += lanes)
            for (int64_t r = 0; r < tile_rows; r += together) {
                Lanes q[together];
                for (int i = 0; i < together; i++) q[i] = weights[r + i] * load(&shares[(r + i) * states + z]);
                for (int64_t j = 0; j <= p; j++) {
                    Lanes sum = load(sums + j * states + z);
                    for (int i = 0; i < together; i++) sum += x[(r + i) * width + j] * q[i];
                    Vector<double>::store(sums + j * states + z, sum);
                }
            }
    }

    // block (p + 1, width) += x' diag(c) x, what lies left of the diagonal's vector.
    void add_block(const double* c, double* block) const {
        for (int64_t r = 0; r < tile_rows; r += together)
            for (int64_t i = 0; i <= p; i++) {
                double a[together];
                for (int s = 0; s < together; s++) a[s] = c[r + s] * x[(r + s) * width + i];
                for (int64_t j = 0; j <= i; j += lanes) {
                    Lanes sum = load(block + i * width + j);
                    for (int s = 0; s < together; s++) sum += a[s] * load(&x[(r + s) * width + j]);
                    Vector<double>::store(block + i * width + j, sum);
                }
            }
    }

    // blocks += x' diag(w q_a q_b) x of each pair of states a < b.
    void add_blocks(int64_t k, double* blocks) const {
        double c[tile_rows];
        for (int64_t a = 0; a < k; a++)
            for (int64_t b = a + 1; b < k; b++, blocks += (p + 1) * width) {
                for (int r = 0; r < tile_rows; r++) c[r] = weights[r] * shares[r * states + a] * shares[r * states + b];
                add_block(c, blocks);
            }
    }
};

void unpad(int64_t rows, int64_t columns, int64_t width, const double* from, double* to) {
    for (int64_t r = 0; r < rows; r++) std::copy_n(from + r * width, columns, to + r * columns);
}

}  // namespace

template <class T>
double softmax_pass(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* coef, const double* offsets,
                    double* moments, double* blocks, double* probabilities, double* logs) {
    Tile tile(p, k);
    const int64_t states = tile.states, width = tile.width, d = p + 1, pairs = k * (k - 1) / 2;
    std::vector<double> table(d * states), sums(moments ? d * states : 0), hessian(blocks ? pairs * d * width : 0);
    for (int64_t j = 0; j < d; j++) std::copy_n(coef + j * k, k, table.data() + j * states);
    double total = 0.0;
    for (int64_t first = 0; first < n; first += tile_rows) {
        const int64_t rows = std::min<int64_t>(tile_rows, n - first);
        tile.read(rows, x, w, first);
        tile.score(table.data());
        for (int64_t r = 0; r < rows; r++) {
            double* u = tile.scores.data() + r * states;
            if (offsets)
                for (int64_t z = 0; z < k; z++) u[z] += offsets[(first + r) * k + z];
            const double value = tile.normalise(r, k);
            total += tile.weights[r] * value;
            if (probabilities) std::copy_n(tile.shares.data() + r * states, k, probabilities + (first + r) * k);
            if (logs)
                for (int64_t z = 0; z < k; z++) logs[(first + r) * k + z] = u[z] - value;
        }
        if (moments) tile.add_moments(sums.data());
        if (blocks) tile.add_blocks(k, hessian.data());
    }
    if (moments) unpad(d, k, states, sums.data(), moments);
    if (blocks) {
        unpad(pairs * d, d, width, hessian.data(), blocks);
        for (int64_t a = 0; a < pairs; a++, blocks += d * d)
            for (int64_t i = 0; i < d; i++)
                for (int64_t j = i + 1; j < d; j++) blocks[i * d + j] = blocks[j * d + i];
    }
    return total;
}

template <class T>
void soft_moments(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* q, double* moments) {
    Tile tile(p, k);
    const int64_t states = tile.states;
    std::vector<double> sums((p + 1) * states);
    for (int64_t first = 0; first < n; first += tile_rows) {
        const int64_t rows = std::min<int64_t>(tile_rows, n - first);
        tile.read(rows, x, w, first);
        for (int64_t r = 0; r < rows; r++) std::copy_n(q + (first + r) * k, k, tile.shares.data() + r * states);
        tile.add_moments(sums.data());
    }
    unpad(p + 1, k, states, sums.data(), moments);
}

void bit_losses(int64_t n, int64_t p, double* eta, double* softplus) {
    for (int64_t r = 0; r < n; r++, eta += p) {
        double twice_positive = 0.0, logs = 0.0;
        for (int64_t first = 0; first < p; first += most_factors) {
            const int64_t end = std::min(p, first + most_factors);
            double product = 1.0;
            for (int64_t j = first; j < end; j++) {
                const double x = eta[j], size = std::fabs(x), e = exp_of_negative(-size);
                twice_positive += x + size;
                product *= 1.0 + e;
                eta[j] = (x > 0 ? -1.0 : -e) / (1.0 + e);
            }
            logs += log_of_positive(product);
        }
        softplus[r] = 0.5 * twice_positive + logs;
    }
}

#define MAJORANT_INSTANTIATE(T)                                                                                      \
    template double softmax_pass<T>(int64_t, int64_t, int64_t, const T*, const double*, const double*, const double*, \
                                    double*, double*, double*, double*);                                              \
    template void soft_moments<T>(int64_t, int64_t, int64_t, const T*, const double*, const double*, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
