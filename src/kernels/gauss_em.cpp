#include "gauss_em.hpp"

#include <cmath>

#include "gauss_pass.hpp"
#include "gauss_step.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

// Parameters of one mixture with all that follows from them.
struct State {
    std::vector<double> numbers;  // weights, means, covariances; then factors and offsets
    std::vector<uint8_t> floored;
    std::vector<double> moments;
    int64_t k, d, size;
    double likelihood = 0.0;

    State(int64_t k, int64_t d, Covariance type)
        : numbers(2 * k + k * d + 2 * covariance_size(k, d, type)), floored(k),
          moments(k * (1 + d + second_moments(d, type))), k(k), d(d), size(covariance_size(k, d, type)) {}

    // How many numbers are parameters: they come first.
    int64_t free() const { return k + k * d + size; }

    GaussParameters parameters() {
        double* p = numbers.data();
        return {p, p + k, p + k + k * d, p + free(), p + free() + size, floored.data()};
    }
};

template <class T>
class Runner {
public:
    Runner(int64_t n, const T* x, const double* w, const GaussSearch& search)
        : n_(n), x_(x), w_(w), unit_(largest(n, w)), search_(search), tile_(search.k, search.d, search.type),
          now_(make()), one_(make()), two_(make()), ahead_(make()) {}

    // False if a covariance of the start is singular.
    bool start(const GaussRuns& runs, int64_t run) {
        const int64_t k = search_.k, d = search_.d;
        const GaussParameters p = now_.parameters();
        std::fill(now_.floored.begin(), now_.floored.end(), 0);
        if (!runs.responsibilities) {
            std::copy_n(runs.weights + run * k, k, p.weights);
            std::copy_n(runs.means + run * k * d, k * d, p.means);
            std::copy_n(runs.covariances + run * now_.size, now_.size, p.covariances);
            return gauss_complete(k, d, search_.type, 0.0, p) && look(now_);
        }
        // Means first: moments about them lose no digits.
        const double* q = runs.responsibilities + run * n_ * k;
        std::fill_n(p.means, k * d, 0.0);
        for (int pass = 0; pass < 2; pass++) {
            clear(search_.k, search_.d, search_.type, now_.moments.data());
            add_given_moments(n_, x_, w_, unit_, p.means, q, tile_, now_.moments.data());
            const int64_t width = int64_t(now_.moments.size()) / k;
            for (int64_t j = 0; j < k && pass == 0; j++)
                for (int64_t l = 0; l < d; l++)
                    if (now_.moments[j * width] > 0)
                        p.means[j * d + l] = double(T(now_.moments[j * width + 1 + l] / now_.moments[j * width]));
        }
        set_apart(now_);
        const std::vector<double> reference(p.means, p.means + k * d);
        return step(now_.moments.data(), reference.data(), now_) && look(now_);
    }

    // Goes on until nothing is gained or the steps are used up; history has the first log-likelihood already.
    uint8_t go(double* history, int64_t* passes) {
        int64_t& t = *passes = 0;
        history[0] = now_.likelihood;
        while (t < search_.steps) {
            const double before = now_.likelihood;
            if (!advance(now_, one_)) return 2;
            history[++t] = one_.likelihood;
            if (search_.squared && t < search_.steps) {
                if (!follow(one_, two_)) return 2;
                if (extrapolate() && look(ahead_) && ahead_.likelihood >= one_.likelihood) std::swap(one_, ahead_);
                else if (look(two_)) std::swap(one_, two_);
                history[++t] = one_.likelihood;
            }
            std::swap(now_, one_);
            if (now_.likelihood - before <= search_.tolerance) return 1;
        }
        return 0;
    }

    void write(const GaussRuns& runs, int64_t run) {
        const GaussParameters p = now_.parameters();
        const int64_t k = search_.k, d = search_.d;
        std::copy_n(p.weights, k, runs.weights + run * k);
        std::copy_n(p.means, k * d, runs.means + run * k * d);
        std::copy_n(p.covariances, now_.size, runs.covariances + run * now_.size);
        std::copy_n(now_.floored.begin(), k, runs.floored + run * k);
    }

private:
    State make() const { return State(search_.k, search_.d, search_.type); }

    // Covariances for components without mass.
    void set_apart(State& state) {
        double* covariances = state.parameters().covariances;
        const double one = std::max(1.0, search_.floor);
        const int64_t d = search_.d, matrices = search_.type == Covariance::full ? search_.k : 0;
        std::fill_n(covariances, state.size, matrices ? 0.0 : one);
        for (int64_t j = 0; j < matrices; j++)
            for (int64_t l = 0; l < d; l++) covariances[j * d * d + l * d + l] = one;
    }

    bool step(const double* moments, const double* reference, State& next) {
        return gauss_step(search_.k, search_.d, search_.type, search_.floor, moments, reference, sizeof(T) == 4,
                          next.parameters()).singular < 0;
    }

    // The M-step from one state to the next, and the pass there.
    bool follow(State& from, State& to) {
        const GaussParameters old = from.parameters(), p = to.parameters();
        std::copy_n(old.covariances, from.size, p.covariances);
        return step(from.moments.data(), old.means, to);
    }
    bool advance(State& from, State& to) { return follow(from, to) && look(to); }

    // Log-likelihood and moments at a state.
    bool look(State& state) {
        const GaussParameters p = state.parameters();
        clear(search_.k, search_.d, search_.type, state.moments.data());
        const Gaussians g{search_.k, search_.d, search_.type, p.means, p.factors, p.offsets};
        tile_.set(g);
        state.likelihood = -add_pass<T>(n_, x_, w_, unit_, 1.0, tile_, state.moments.data(), nullptr, nullptr).free;
        return std::isfinite(state.likelihood);
    }

    // SQUAREM: from now, one and two steps on to where the path seems to lead, if there are such parameters.
    bool extrapolate() {
        const int64_t size = now_.free();
        double first = 0.0, bend = 0.0;
        for (int64_t i = 0; i < size; i++) {
            const double r = one_.numbers[i] - now_.numbers[i], v = two_.numbers[i] - one_.numbers[i] - r;
            first += r * r;
            bend += v * v;
        }
        double length = bend > 0 ? std::sqrt(first / bend) : 1.0;
        for (; length > 1.0; length = length > 1.5 ? 0.5 * (length + 1.0) : 0.0) {
            bool feasible = true;
            for (int64_t i = 0; i < size; i++) {
                const double r = one_.numbers[i] - now_.numbers[i], v = two_.numbers[i] - one_.numbers[i] - r;
                double value = now_.numbers[i] + 2.0 * length * r + length * length * v;
                const bool is_mean = i >= search_.k && i < search_.k + search_.k * search_.d;
                if (is_mean) value = double(T(value));
                ahead_.numbers[i] = value;
                feasible &= i >= search_.k || value >= 0;
            }
            std::fill(ahead_.floored.begin(), ahead_.floored.end(), 0);
            feasible = feasible && gauss_complete(search_.k, search_.d, search_.type, search_.floor, ahead_.parameters());
            if (feasible) return true;
        }
        return false;
    }

    int64_t n_;
    const T* x_;
    const double* w_;
    double unit_;
    GaussSearch search_;
    GaussTile<T> tile_;
    State now_, one_, two_, ahead_;
};

}  // namespace

template <class T>
void gauss_em(int64_t n, const T* x, const double* w, const GaussSearch& search, const GaussRuns& runs) {
    Runner<T> runner(n, x, w, search);
    for (int64_t run = 0; run < runs.n_runs; run++) {
        double* history = runs.history + run * (search.steps + 1);
        runs.passes[run] = 0;
        if (!runner.start(runs, run)) {
            runs.status[run] = 2;
            continue;
        }
        runs.status[run] = runner.go(history, runs.passes + run);
        runner.write(runs, run);
    }
}

template void gauss_em<float>(int64_t, const float*, const double*, const GaussSearch&, const GaussRuns&);
template void gauss_em<double>(int64_t, const double*, const double*, const GaussSearch&, const GaussRuns&);

}  // namespace majorant::MAJORANT_ISA
