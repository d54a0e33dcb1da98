#include "bumps.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bump_search.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

using V = Vector<double>;
using vec = V::type;

// Places are points, and boxes are boxes of them.
struct Around {
    struct Points : Columns {
        explicit Points(int64_t d) : Columns(d + 1, strip), d(d) {}
        double* height() { return column(d); }
        const double* height() const { return column(d); }
        const int64_t d;
    };

    static constexpr bool hermite_of_total = false;
    static constexpr int64_t first_axis = 0;
    const int64_t d, axes;
    Points points;

    Around(int64_t n, int64_t d, const double* x, const double* heights) : d(d), axes(d), points(d), middle(d), half(d) {
        points.set_rows(n, d, x);
        std::copy(heights, heights + n, points.height());
        diameter = surround(points, d, middle.data(), half.data());
    }

    int64_t cost_of_look() const { return d + 20; }
    double size(int64_t) const { return 1.0; }
    double pull(const Points&, int64_t, int64_t) const { return 1.0; }
    bool has_caps() const { return false; }
    double capped(const Points&, const double*) const { return infinity<double>; }
    bool may_develop(BumpBox&) const { return true; }
    const double* first_centre() const { return middle.data(); }

    std::vector<std::unique_ptr<BumpBox>> roots() const {
        std::vector<std::unique_ptr<BumpBox>> all;
        all.push_back(std::make_unique<BumpBox>(axes, d));
        std::copy(middle.begin(), middle.end(), all[0]->middle());
        std::copy(half.begin(), half.end(), all[0]->half());
        return all;
    }

    bool is_tiny(BumpBox& box) const {
        return *std::max_element(box.half(), box.half() + d) <= 64 * unit_roundoff * diameter;
    }

    // g(c), and the mean of the points under their bumps.
    double sum_at(const double* c, double* mean) const {
        double total = 0;
        std::fill(mean, mean + d, 0.0);
        for (int64_t first = 0; first < points.stride; first += strip) {
            double value[strip] = {};
            for (int64_t l = 0; l < d; l++) {
                const double *x = points.column(l) + first, at = c[l];
                for (int64_t v = 0; v < strip; v++) value[v] += (x[v] - at) * (x[v] - at);
            }
            const double* height = points.height() + first;
            double sum = 0;
            for (int64_t v = 0; v < strip; v++) {
                value[v] = height[v] * exp_of_negative(-0.5 * value[v]);
                sum += value[v];
            }
            if (sum == 0) continue;
            total += sum;
            for (int64_t l = 0; l < d; l++) {
                const double *x = points.column(l) + first, at = c[l];
                double moment = 0;
                for (int64_t v = 0; v < strip; v++) moment += value[v] * (x[v] - at);
                mean[l] += moment;
            }
        }
        for (int64_t l = 0; l < d; l++) mean[l] = c[l] + (total > 0 ? mean[l] / total : 0.0);
        return total;
    }

    // Squared distances of a strip of points to the nearest place of a box.
    void least_squares(const Points& near, int64_t first, BumpBox& box, double* value) const {
        std::fill(value, value + strip, 0.0);
        for (int64_t l = 0; l < d; l++) {
            const double *x = near.column(l) + first, at = box.middle()[l], edge = box.half()[l];
            for (int64_t v = 0; v < strip; v++) {
                const double less = std::max(std::abs(x[v] - at) - edge, 0.0);
                value[v] += less * less;
            }
        }
    }

    // The same to its middle.
    void squares(const Points& near, int64_t first, BumpBox& box, double* value) const {
        std::fill(value, value + strip, 0.0);
        for (int64_t l = 0; l < d; l++) {
            const double *x = near.column(l) + first, at = box.middle()[l];
            for (int64_t v = 0; v < strip; v++) value[v] += (x[v] - at) * (x[v] - at);
        }
    }

    // exp(-(u - t)^2 / 2) = exp(-u^2 / 2) sum_n He_n(u) t^n / n! in every column.
    void series(const Points& near, int64_t at, BumpBox& box, int64_t degree, vec* powers) const {
        for (int64_t l = 0; l < d; l++) {
            const double edge = box.half()[l];
            const vec u = V::load(near.column(l) + at) - box.middle()[l];
            vec* p = &powers[l * (degree + 1)];
            p[0] = vec{} + 1.0;
            p[1] = edge * u;
            for (int64_t n = 1; n < degree; n++) p[n + 1] = (edge / double(n + 1)) * (u * p[n] - edge * p[n - 1]);
        }
    }

    void remainders(const Points& near, BumpBox& box, int64_t degree, const double*, const double* most,
                    double rounding) const {
        double square = 0, sum = 0, wide = 0;
        for (int64_t l = 0; l < d; l++) square += box.half()[l] * box.half()[l];
        const double* height = near.height();
        for (int64_t i = 0; i < near.count; i++) {
            sum += most[i];
            wide += std::sqrt(height[i] * most[i]);
        }
        const double q = double(degree), radius = std::sqrt(square) * (1 + 1e-12);
        const double per_factorial = std::exp(q * std::log(radius) - 0.5 * std::lgamma(q + 1)) * wide * (1 + 1e-9);
        box.remainder = cramer * radius / std::sqrt(q + 1) * per_factorial;
        std::fill_n(box.slope_missing(), d, cramer * cramer * std::sqrt(q + 2) * per_factorial);
        box.rounding = rounding * std::exp(square) * sum;
    }

private:
    std::vector<double> middle, half;  // of all points
    double diameter;
};

}  // namespace

BoxSearch* bump_search(int64_t n, int64_t d, const double* x, const double* heights, double tolerance) {
    return new BumpSearch<Around>(Around(n, d, x, heights), tolerance);
}

int64_t bump_climb(int64_t n, int64_t d, const double* x, const double* heights, int64_t n_starts, double* centres,
                   double* values, int64_t max_steps, double progress) {
    return climb_all(Around(n, d, x, heights), n_starts, centres, values, max_steps, progress);
}

}  // namespace majorant::MAJORANT_ISA
