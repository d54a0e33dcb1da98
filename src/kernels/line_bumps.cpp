#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bump_search.hpp"
#include "bumps.hpp"
#include "normal_equations.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

using V = Vector<double>;
using vec = V::type;

// Places are coefficients c of lines, and the distance to a row (z, y) is its residual y - z'c. A box is one of rays
// (t, u), of which the line is u / t: one root holds the ordinary lines, t = 1 and u in a cube; the others hold the steep
// ones, with one entry of u at 1 or -1, the others between, and t from zero on.
struct Along {
    struct Points : Columns {  // y, z, heights, labels
        Points(int64_t p, int64_t n_partitions) : Columns(p + 2 + n_partitions, strip), p(p) {}
        double* height() { return column(p + 1); }
        const double* height() const { return column(p + 1); }
        const double* labels(int64_t q) const { return column(p + 2 + q); }
        const int64_t p;
    };

    static constexpr bool hermite_of_total = true;
    static constexpr int64_t first_axis = 1;
    static constexpr double longest_series = 26;  // exp of its square is still a number
    const int64_t d, axes;
    Points points;

    Along(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_partitions = 0,
          const int32_t* labels = nullptr, const double* given_caps = nullptr)
        : d(p), axes(p + 1), points(p, n_partitions), n_partitions(n_partitions), n_groups(n),
          caps(given_caps, given_caps + n_partitions * n), sizes(p + 1), centre(p, 0.0) {
        points.resize(n);
        std::copy(y, y + n, points.column(0));
        for (int64_t l = 0; l < p; l++)
            for (int64_t i = 0; i < n; i++) points.column(l + 1)[i] = z[i * p + l];
        std::copy(heights, heights + n, points.height());
        for (int64_t q = 0; q < n_partitions; q++)
            std::copy(labels + q * n, labels + (q + 1) * n, points.column(p + 2 + q));
        double farthest = 0;
        for (int64_t l = 0; l <= p; l++) {
            double square = 0;
            for (int64_t i = 0; i < n; i++) square += points.column(l)[i] * points.column(l)[i];
            sizes[l] = std::max(std::sqrt(square / double(n)), 1e-300);
        }
        for (int64_t i = 0; i < n; i++) farthest = std::max(farthest, std::abs(y[i]));
        reach = 2 * farthest + 8;
    }

    int64_t cost_of_look() const { return 2 * d + 22; }
    double size(int64_t l) const { return sizes[l]; }
    double pull(const Points& near, int64_t i, int64_t l) const { return std::abs(near.column(l + 1)[i]); }
    bool has_caps() const { return n_partitions > 0; }
    const double* first_centre() const { return centre.data(); }

    std::vector<std::unique_ptr<BumpBox>> roots() const {
        std::vector<std::unique_ptr<BumpBox>> all;
        all.push_back(std::make_unique<BumpBox>(axes, d));
        all[0]->middle()[0] = 1;
        std::fill_n(all[0]->half() + 1, d, reach);
        for (int64_t steep = 1; steep <= d; steep++)
            for (const double side : {-1.0, 1.0}) {
                all.push_back(std::make_unique<BumpBox>(axes, d));
                auto& box = *all.back();
                box.middle()[0] = box.half()[0] = 0.5 / reach * (1 + 8 * unit_roundoff);
                std::fill_n(box.half() + 1, d, 1.0);
                box.middle()[steep] = side;
                box.half()[steep] = 0;
            }
        return all;
    }

    bool is_tiny(BumpBox& box) const {
        const bool is_steep = box.half()[0] > 0;
        if (box.half()[0] > 64 * unit_roundoff / reach) return false;
        const double most = *std::max_element(box.half() + 1, box.half() + axes);
        return most <= 64 * unit_roundoff * (is_steep ? 1.0 : reach);
    }

    // g(c), and the line of least squares of the rows under their bumps.
    double sum_at(const double* c, double* line) const {
        std::vector<double> gram(pairs(d), 0.0), slope(d, 0.0), factor;
        double total = 0;
        for (int64_t first = 0; first < points.stride; first += strip) {
            double r[strip], value[strip];
            residuals(points, first, c, r);
            const double* height = points.height() + first;
            double sum = 0;
            for (int64_t v = 0; v < strip; v++) {
                value[v] = height[v] * exp_of_negative(-0.5 * r[v] * r[v]);
                sum += value[v];
            }
            if (sum == 0) continue;
            total += sum;
            for (int64_t l = 0; l < d; l++) {
                const double* a = points.column(l + 1) + first;
                double moment = 0;
                for (int64_t v = 0; v < strip; v++) moment += value[v] * a[v] * r[v];
                slope[l] += moment;
                for (int64_t m = 0; m <= l; m++) {
                    const double* b = points.column(m + 1) + first;
                    double product = 0;
                    for (int64_t v = 0; v < strip; v++) product += value[v] * a[v] * b[v];
                    gram[pairs(l) + m] += product;
                }
            }
        }
        std::copy(c, c + d, line);
        if (total <= 0) return total;
        std::vector<double> step(d);
        solve_normal(d, gram.data(), slope.data(), 1e-10, factor, step.data());
        for (int64_t l = 0; l < d; l++) line[l] += step[l];
        return total;
    }

    // Squares of the least residuals of a strip of rows from any line of a box.
    void least_squares(const Points& near, int64_t first, BumpBox& box, double* value) const {
        double r[strip] = {}, wide[strip] = {};
        for (int64_t l = 0; l < axes; l++) {
            const double *a = near.column(l) + first, at = l == 0 ? box.middle()[0] : -box.middle()[l];
            const double edge = box.half()[l] + error(box, l);
            for (int64_t v = 0; v < strip; v++) {
                r[v] += at * a[v];
                wide[v] += edge * std::abs(a[v]);
            }
        }
        const double steepest = 1 / (box.middle()[0] + box.half()[0]);
        for (int64_t v = 0; v < strip; v++) {
            const double less = std::max(std::abs(r[v]) - wide[v], 0.0) * steepest;
            value[v] = less * less;
        }
    }

    void squares(const Points& near, int64_t first, BumpBox& box, double* value) const {
        residuals(near, first, box.middle() + 1, value);
        for (int64_t v = 0; v < strip; v++) value[v] *= value[v];
    }

    bool may_develop(BumpBox& box) const {
        double square = 0;
        for (int64_t l = 1; l < axes; l++) square += box.half()[l] * box.half()[l];
        return box.half()[0] == 0 && square < 9;
    }

    // exp(-(r - s)^2 / 2) = exp(-r^2 / 2) sum_n He_n(r) s^n / n! with s = z'(c - middle): powers of its parts over
    // factorials, and He_n(r) after them.
    void series(const Points& near, int64_t at, BumpBox& box, int64_t degree, vec* powers) const {
        vec r = V::load(near.column(0) + at);
        for (int64_t l = 0; l < d; l++) {
            const vec a = V::load(near.column(l + 1) + at), part = box.half()[l + 1] * a;
            r -= box.middle()[l + 1] * a;
            vec* p = &powers[l * (degree + 1)];
            p[0] = vec{} + 1.0;
            for (int64_t n = 0; n < degree; n++) p[n + 1] = p[n] * part / double(n + 1);
        }
        vec* hermite = &powers[d * (degree + 1)];
        hermite[0] = vec{} + 1.0;
        hermite[1] = r;
        for (int64_t n = 1; n < degree; n++) hermite[n + 1] = r * hermite[n] - double(n) * hermite[n - 1];
    }

    void remainders(const Points& near, BumpBox& box, int64_t degree, const double* squares, const double* most,
                    double rounding) const {
        const double q = double(degree), scale = cramer * std::exp(-0.5 * std::lgamma(q + 2)) * (1 + 1e-9);
        const double* height = near.height();
        double left_out = 0, lost = 0;
        double* missing = box.slope_missing();
        std::fill_n(missing, d, 0.0);
        for (int64_t i = 0; i < near.count; i++) {
            if (height[i] == 0) continue;
            double wide = 0, wrong = 0;
            for (int64_t l = 0; l < axes; l++) {
                wide += box.half()[l] * std::abs(near.column(l)[i]);
                wrong += error(box, l) * std::abs(near.column(l)[i]);
            }
            wide += wrong;
            if (wide > longest_series) {
                box.remainder = infinity<double>;
                return;
            }
            double power = 1;
            for (int64_t n = 0; n < degree; n++) power *= wide;
            const double each = scale * height[i] * exp_of_negative(-0.25 * squares[i]) * power;
            left_out += each * wide;
            for (int64_t l = 0; l < d; l++) missing[l] += (q + 1) * each * pull(near, i, l);
            lost += most[i] * (rounding * std::exp(wide * wide) + 40 * wrong);
        }
        box.remainder = left_out;
        box.rounding = lost;
    }

    // The sum of the bumps, those of a group together no more than its cap; of all partitions into groups the least.
    double capped(const Points& near, const double* most) const {
        double least = infinity<double>;
        std::vector<double> sums(n_groups);
        for (int64_t q = 0; q < n_partitions; q++) {
            std::fill(sums.begin(), sums.end(), 0.0);
            const double* label = near.labels(q);
            for (int64_t i = 0; i < near.count; i++) sums[int64_t(label[i])] += most[i];
            double total = 0;
            for (int64_t g = 0; g < n_groups; g++) total += std::min(sums[g], caps[q * n_groups + g]);
            least = std::min(least, total);
        }
        return least;
    }

private:
    int64_t n_partitions, n_groups;
    std::vector<double> caps, sizes, centre;
    double reach;

    // What rounding may take from an entry of the middle times that of a row.
    double error(BumpBox& box, int64_t l) const { return 2 * double(d + 2) * unit_roundoff * std::abs(box.middle()[l]); }

    void residuals(const Points& near, int64_t first, const double* c, double* r) const {
        std::copy_n(near.column(0) + first, strip, r);
        for (int64_t l = 0; l < d; l++) {
            const double *a = near.column(l + 1) + first, at = c[l];
            for (int64_t v = 0; v < strip; v++) r[v] -= at * a[v];
        }
    }
};

}  // namespace

BoxSearch* line_search(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_partitions,
                       const int32_t* labels, const double* caps, double tolerance) {
    return new BumpSearch<Along>(Along(n, p, z, y, heights, n_partitions, labels, caps), tolerance);
}

int64_t line_climb(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_starts,
                   double* lines, double* values, int64_t max_steps, double progress) {
    return climb_all(Along(n, p, z, y, heights), n_starts, lines, values, max_steps, progress);
}

}  // namespace majorant::MAJORANT_ISA
