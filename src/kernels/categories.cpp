#include "categories.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

// As in engine/descent.py and engine/mixture.py.
constexpr int64_t plain_steps = 6;
constexpr double longest_extrapolation = 64.0, least_share = 0.1, tiny = 1e-300;

using Numbers = std::vector<double>;

using Lanes = Vector<double>::type;
constexpr int64_t lanes = Vector<double>::lanes;

// Parameters, and what a pass finds there. Tables of codes have the codes as rows and the components as columns; components
// fill whole vectors: those beyond the last have no weight.
struct Point {
    Numbers weights, probabilities, mass, counts;
    double free = 0.0;
};

struct Runner {
    const Categories& rows;
    const int64_t k, padded;
    Numbers log_weights, logs;

    Runner(const Categories& rows, int64_t k)
        : rows(rows), k(k), padded((k + lanes - 1) / lanes * lanes), log_weights(padded), logs(rows.codes_of_all * padded) {}

    void pass(Point& at) {
        for (int64_t c = 0; c < padded; c++) log_weights[c] = std::log(at.weights[c]);
        for (size_t i = 0; i < logs.size(); i++) logs[i] = log_of_positive(std::max(at.probabilities[i], tiny));
        at.mass.assign(padded, 0.0);
        at.counts.assign(logs.size(), 0.0);
        switch (padded / lanes) {
            case 1: return sums<1>(at);
            case 2: return sums<2>(at);
            case 3: return sums<3>(at);
            case 4: return sums<4>(at);
            default: return sums<0>(at);
        }
    }

    // The components fill `vectors` vectors; 0: any number of them.
    template <int vectors>
    void sums(Point& at) {
        const int64_t count = vectors ? vectors : padded / lanes;
        Lanes few[vectors ? vectors : 1];
        std::vector<Lanes> many(vectors ? 0 : count);
        Lanes* joint = vectors ? few : many.data();
        const auto load = [](const double* from, int64_t v) { return Vector<double>::load(from + v * lanes); };
        const auto add = [](double* to, int64_t v, Lanes value) {
            Vector<double>::store(to + v * lanes, Vector<double>::load(to + v * lanes) + value);
        };
        double free = 0.0;
        for (int64_t i = 0; i < rows.n; i++) {
            const int32_t* code = rows.codes + i * rows.d;
            for (int64_t v = 0; v < count; v++) joint[v] = load(log_weights.data(), v);
            for (int64_t j = 0; j < rows.d; j++) {
                if (code[j] < 0) continue;
                for (int64_t v = 0; v < count; v++) joint[v] += load(logs.data() + code[j] * padded, v);
            }
            double top = joint[0][0];
            for (int64_t v = 0; v < count; v++)
                for (int64_t c = 0; c < lanes; c++) top = std::max(top, joint[v][c]);
            double total = 0.0;
            for (int64_t v = 0; v < count; v++) {
                double own[lanes];
                Vector<double>::store(own, joint[v] - top);
                for (int64_t c = 0; c < lanes; c++) own[c] = exp_of_negative(own[c]);
                for (int64_t c = 0; c < lanes; c++) total += own[c];
                joint[v] = Vector<double>::load(own);
            }
            const double w = weight(rows.w, i), share = w / total;
            if (w > 0) free -= w * (top + log_of_positive(total));
            for (int64_t v = 0; v < count; v++) add(at.mass.data(), v, joint[v] *= share);
            for (int64_t j = 0; j < rows.d; j++) {
                if (code[j] < 0) continue;
                for (int64_t v = 0; v < count; v++) add(at.counts.data() + code[j] * padded, v, joint[v]);
            }
        }
        at.free = free;
    }

    // The parameters at which sums are expected; a component without a cell of a column keeps its probabilities.
    void solve(const Numbers& mass, const Numbers& counts, const Point& old, Point& out) const {
        double all = 0.0;
        for (double one : mass) all += one;
        out.weights.resize(padded);
        out.probabilities.resize(counts.size());
        for (int64_t c = 0; c < k; c++) {
            out.weights[c] = mass[c] / all;
            for (int64_t j = 0; j < rows.d; j++) {
                double cells = 0.0;
                for (int64_t s = rows.first[j]; s < rows.first[j + 1]; s++) cells += counts[s * padded + c];
                for (int64_t s = rows.first[j]; s < rows.first[j + 1]; s++)
                    out.probabilities[s * padded + c] = cells > tiny ? counts[s * padded + c] / cells : old.probabilities[s * padded + c];
            }
        }
    }

    void step(const Point& from, Point& to) {
        solve(from.mass, from.counts, from, to);
        pass(to);
    }
};

// The sums of two steps of EM extrapolated by their squared step length; no positive one falls below a share of itself.
Numbers further(const Numbers& a, const Numbers& b, const Numbers& c) {
    double moved = 0.0, bent = 0.0;
    for (size_t i = 0; i < a.size(); i++) {
        const double move = b[i] - a[i], bend = (c[i] - b[i]) - move;
        moved += move * move;
        bent += bend * bend;
    }
    const double size = std::sqrt(bent);
    const double length = std::clamp(size > 0 ? std::sqrt(moved) / size : 1.0, 1.0, longest_extrapolation);
    Numbers out(a.size());
    for (size_t i = 0; i < a.size(); i++) {
        const double move = b[i] - a[i], bend = (c[i] - b[i]) - move;
        const double value = a[i] + 2 * length * move + length * length * bend;
        out[i] = c[i] > 0 ? std::max(value, least_share * c[i]) : value;
    }
    return out;
}

// Whether what is left to gain, by the rate of the last two gains, is within a limit.
bool is_done(double a, double b, double c, double limit) {
    const double first = std::abs(a - b), second = std::abs(b - c);
    const double rate = first > 0 ? second / first : 1.0;
    if (rate < 1 && second * rate / (1 - rate) <= limit) return true;
    if (second <= 1e-14 * std::abs(c)) return true;
    return (a - b) * (b - c) <= 0 && std::max(first, second) <= limit;  // up and down by rounding
}

}  // namespace

double category_em(const Categories& rows, int64_t k, int64_t max_steps, double tolerance, double* weights,
                   double* probabilities, double* path, int64_t* steps, bool* converged) {
    Runner run(rows, k);
    const int64_t m = rows.codes_of_all;
    Point one, two, three, tried;
    one.weights.assign(weights, weights + k);
    one.weights.resize(run.padded);
    one.probabilities.resize(m * run.padded);
    for (int64_t s = 0; s < m; s++)
        for (int64_t c = 0; c < k; c++) one.probabilities[s * run.padded + c] = probabilities[c * m + s];
    run.pass(one);
    *steps = 0;
    *converged = false;
    while (*steps < max_steps && !*converged) {
        run.step(one, two);
        path[(*steps)++] = two.free;
        if (*steps == max_steps) {
            std::swap(one, two);
            break;
        }
        run.step(two, three);
        path[(*steps)++] = three.free;
        *converged = is_done(one.free, two.free, three.free, tolerance);
        if (!*converged && *steps >= plain_steps && *steps < max_steps) {
            run.solve(further(one.mass, two.mass, three.mass), further(one.counts, two.counts, three.counts), three, tried);
            run.pass(tried);
            if (tried.free < three.free) std::swap(three, tried);
        }
        std::swap(one, three);
    }
    std::copy_n(one.weights.begin(), k, weights);
    for (int64_t s = 0; s < m; s++)
        for (int64_t c = 0; c < k; c++) probabilities[c * m + s] = one.probabilities[s * run.padded + c];
    return one.free;
}

}  // namespace majorant::MAJORANT_ISA
