// The best division of sorted numbers into intervals: k-means of one column, exactly, by dynamic programming.
#include <algorithm>
#include <cmath>
#include <vector>

#include "binding.hpp"

using namespace majorant;

namespace {

// A sum of two doubles with twice their digits: costs are differences of sums over all numbers, which cancel.
struct Wide {
    double high = 0.0, low = 0.0;

    Wide operator+(const Wide& other) const {
        const double sum = high + other.high, back = sum - high;
        const double lost = (high - (sum - back)) + (other.high - back) + low + other.low;
        return {sum + lost, lost - ((sum + lost) - sum)};
    }
    Wide operator-() const { return {-high, -low}; }
    Wide operator*(double factor) const {
        const double product = high * factor, lost = std::fma(high, factor, -product) + low * factor;
        return {product + lost, lost - ((product + lost) - product)};
    }
};

class Intervals {
public:
    Intervals(int64_t n, int64_t k, const double* x, const double* w)
        : n_(n), k_(k), weight_(n + 1), sum_(n + 1), square_(n + 1), cost_(n), before_(n), first_((k - 1) * n) {
        for (int64_t i = 0; i < n; i++) {
            const double one = w ? w[i] : 1.0;
            const Wide moment = Wide{one, 0.0} * x[i];
            weight_[i + 1] = weight_[i] + Wide{one, 0.0};
            sum_[i + 1] = sum_[i] + moment;
            square_[i + 1] = square_[i] + moment * x[i];
        }
    }

    // first[j]: where interval j begins.
    double divide(int64_t* first) {
        for (int64_t j = 0; j < n_; j++) cost_[j] = within(0, j + 1);
        for (int64_t q = 1; q < k_; q++) {
            before_.swap(cost_);
            const int64_t from = q + 1 < k_ ? q : n_ - 1;  // of all k intervals only the whole is asked for
            layer(q, from, n_, q, n_);
        }
        int64_t end = n_ - 1;
        for (int64_t q = k_ - 1; q > 0; q--) {
            first[q] = first_[(q - 1) * n_ + end];
            end = first[q] - 1;
        }
        first[0] = 0;
        return cost_[n_ - 1];
    }

private:
    const int64_t n_, k_;
    std::vector<Wide> weight_, sum_, square_;  // of the numbers before each
    std::vector<double> cost_, before_;        // of the first numbers, up to each, in the best intervals of one number and of one less
    std::vector<int32_t> first_;               // (k - 1, n) where the last of them begins

    // The sum of squares of numbers [from, to) about their mean.
    double within(int64_t from, int64_t to) const {
        if (to - from == 1) return 0.0;
        const Wide w = weight_[to] + -weight_[from], s = sum_[to] + -sum_[from], q = square_[to] + -square_[from];
        const double mean = s.high / w.high;
        const Wide left = s + -(w * mean);  // what rounding leaves in the mean
        const Wide about = q + -(s + left) * mean;
        return std::max(about.high - left.high * left.high / w.high, 0.0);
    }

    // The best beginning of the last interval moves only up with its end: halve the ends, and with them the beginnings.
    void layer(int64_t q, int64_t from, int64_t to, int64_t low, int64_t high) {
        if (from >= to) return;
        const int64_t end = from + (to - from) / 2;
        double least = INFINITY;
        int64_t best = low;
        for (int64_t i = low; i < std::min(high, end + 1); i++) {
            const double cost = before_[i - 1] + within(i, end + 1);
            if (cost < least) least = cost, best = i;
        }
        cost_[end] = least;
        first_[(q - 1) * n_ + end] = int32_t(best);
        layer(q, from, end, low, best + 1);
        layer(q, end + 1, to, best, high);
    }
};

}  // namespace

void bind_intervals(nb::module_& m) {
    m.def("best_intervals", [](Vec<const double> x, Weights w, Vec<int64_t> first) {
        const int64_t n = x.shape(0), k = first.shape(0);
        need(k > 0 && k <= n && n <= INT32_MAX, "first must have between one and n entries");
        product({size_t(n), size_t(k)});
        for (int64_t i = 1; i < n; i++) need(x(i - 1) <= x(i), "x must ascend");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        return Intervals(n, k, x.data(), weights).divide(first.data());
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("first").noconvert(),
       "Write where each of the k intervals of least sum of squares begins; return that sum.");
}
