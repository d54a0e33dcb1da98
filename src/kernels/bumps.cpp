#include "bumps.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "box_search.hpp"
#include "elementary.hpp"
#include "polynomial.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

using V = Vector<double>;
using vec = V::type;
constexpr int64_t strip = 32;  // points whose exponentials are taken together

struct Points : Columns {
    const int64_t d;

    explicit Points(int64_t d) : Columns(d + 1, strip), d(d) {}

    double* height() { return column(d); }
    const double* height() const { return column(d); }
};

Points by_column(int64_t n, int64_t d, const double* x, const double* heights) {
    Points out(d);
    out.set_rows(n, d, x);
    std::copy(heights, heights + n, out.height());
    return out;
}

// g(c), and the mean of the points under their bumps.
double sum_at(const Points& points, const double* c, double* mean) {
    double total = 0;
    std::fill(mean, mean + points.d, 0.0);
    for (int64_t first = 0; first < points.stride; first += strip) {
        double value[strip] = {};
        for (int64_t l = 0; l < points.d; l++) {
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
        for (int64_t l = 0; l < points.d; l++) {
            const double *x = points.column(l) + first, at = c[l];
            double moment = 0;
            for (int64_t v = 0; v < strip; v++) moment += value[v] * (x[v] - at);
            mean[l] += moment;
        }
    }
    for (int64_t l = 0; l < points.d; l++) mean[l] = c[l] + (total > 0 ? mean[l] / total : 0.0);
    return total;
}

// Moves c towards the mean of the points under their bumps, and beyond it as long as g rises; g never falls. Returns g
// there and counts the sums.
double climb(const Points& points, double* c, int64_t max_steps, double progress, int64_t* sums) {
    constexpr double longer = 1.7, longest = 50;
    std::vector<double> mean(points.d), trial(points.d), next(points.d);
    double value = sum_at(points, c, mean.data()), stride = 1;
    ++*sums;
    for (int64_t step = 0; step < max_steps; step++) {
        for (int64_t l = 0; l < points.d; l++) trial[l] = c[l] + stride * (mean[l] - c[l]);
        const double better = sum_at(points, trial.data(), next.data());
        ++*sums;
        if (!(better > value)) {
            if (stride == 1) break;
            stride = 1;
            continue;
        }
        const bool settled = better - value <= progress * better;
        value = better;
        std::copy(trial.begin(), trial.end(), c);
        mean.swap(next);
        if (settled) break;
        stride = std::min(stride * longer, longest);
    }
    return value;
}

// A box. Once it is small g is a polynomial there, from the points' Taylor series about the middle, but for what is bounded
// here: what the series leave out, what rounding may take, and the points too far away to be looked at.
struct Box {
    double bound = 0;
    double far = 0, far_slope = 0;            // of the points left out, anywhere in the box: sum of their bumps and of their slopes
    double remainder = 0, slope_missing = 0;  // what the series leave out, and their derivatives along a unit vector
    double rounding = 0;                      // of the coefficients, in all
    double size = 0;                          // sum of the sizes of the coefficients
    int64_t split = 0;
    std::vector<double> numbers, coefficients;
    std::shared_ptr<const std::vector<int32_t>> members;  // null: all points

    explicit Box(int64_t d) : numbers(2 * d, 0.0) {}
    double* middle() { return numbers.data(); }
    double* half() { return numbers.data() + numbers.size() / 2; }
    int64_t bytes() const {
        return int64_t(8 * (numbers.size() + coefficients.size()) + (members ? 4 * members->size() : 0));
    }
};

class Search final : public BestFirst<Box> {
public:
    Search(int64_t n, int64_t d, const double* x, const double* heights, double tolerance)
        : BestFirst(d, tolerance), points(by_column(n, d, x, heights)), near_points(d), slack(d) {
        auto root = std::make_unique<Box>(d);
        surround(points, root->middle(), root->half());
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += heights[i];
        root->bound = sum * (1 + rounding(n));
        grain = std::max(tolerance, 1e-13 * sum);
        int64_t degree = 0;
        while (degree < Monomials::max_degree && Monomials::number(d, degree + 1) <= most_monomials) degree++;
        if (degree >= 2) {
            monomials.emplace(d, degree);
            for (auto* one : {&excess, &sizes}) one->resize(monomials->size());
            for (auto* one : {&products, &sums}) one->resize(monomials->size());
            powers.resize(d * (degree + 1));
        }
        split_longest(*root);
        if (sum > 0) push(std::move(root));
    }

    void propose(const double* c) override {
        std::vector<double> at(c, c + d);
        int64_t looks = 0;
        const double value = climb(points, at.data(), 20, 1e-2 * tolerance / std::max(best_value, 1e-300), &looks);
        n_tests += looks * points.stride * cost_of_look();
        note(value, at);
    }

private:
    static constexpr int64_t most_monomials = 800;
    static constexpr double cramer = 1.0866;  // |He_n(x)| exp(-x^2/2) <= cramer sqrt(n!) exp(-x^2/4)

    Points points, near_points;
    std::optional<Monomials> monomials;
    double grain = 0;  // errors of its size may be made
    std::vector<double> slack, excess, sizes, most;
    std::vector<vec> products, sums, powers;

    int64_t cost_of_look() const { return d + 20; }
    double rounding(int64_t m) const { return unit_roundoff * double(m + 1000 + 100 * d); }

    void split_longest(Box& box) const {
        box.split = std::max_element(box.half(), box.half() + d) - box.half();
    }

    void expand(Box& box) override {
        const int64_t l = box.split;
        const bool is_polynomial = !box.coefficients.empty();
        if (!is_polynomial && box.members) near_points.gather(points, *box.members);
        const Points& near = box.members ? near_points : points;
        for (const double side : {-1.0, 1.0}) {
            auto child = std::make_unique<Box>(box);
            child->middle()[l] += side * box.half()[l] / 2;
            if (is_polynomial) {
                child->half()[l] = box.half()[l] / 2;
                monomials->halve(child->coefficients.data(), l, side);
                child->rounding += 4 * double(monomials->degree + 2) * unit_roundoff * box.size;
                n_boxes++;
                n_tests += monomials->size() * (monomials->degree / 2 + d + 2);
                enclose(std::move(child));
            } else {
                child->half()[l] = halved(box.half()[l]);
                visit(std::move(child), near);
            }
        }
    }

    // Bounds g over a box by the distances of the points to it.
    void visit(std::unique_ptr<Box> box, const Points& near) {
        n_boxes++;
        n_tests += near.stride * cost_of_look();
        most.resize(near.stride);
        double sum = 0, wide = 0;
        for (int64_t first = 0; first < near.stride; first += strip) {
            double value[strip] = {};
            for (int64_t l = 0; l < d; l++) {
                const double *x = near.column(l) + first, at = box->middle()[l], half = box->half()[l];
                for (int64_t v = 0; v < strip; v++) {
                    const double less = std::max(std::abs(x[v] - at) - half, 0.0);
                    value[v] += less * less;
                }
            }
            const double* height = near.height() + first;
            for (int64_t v = 0; v < strip; v++) {
                const double root = exp_of_negative(-0.25 * value[v]), wider = height[v] * root, bump = wider * root;
                wide += wider;
                sum += bump;
                most[first + v] = bump;
            }
        }
        box->bound = std::min(box->bound, sum * (1 + rounding(near.count)) + box->far);
        if (!may_matter(box->bound)) return drop(box->bound);
        double square = 0, longest = 0;
        for (int64_t l = 0; l < d; l++) {
            square += box->half()[l] * box->half()[l];
            longest = std::max(longest, box->half()[l]);
        }
        if (longest <= 64 * unit_roundoff * diameter) return drop(box->bound);
        if (monomials) {
            // Lagrange's remainder along the ray from the middle, with Cramer's bound on Hermite polynomials.
            const double q = double(monomials->degree), radius = std::sqrt(square) * (1 + 1e-12);
            const double per_factorial = std::exp(q * std::log(radius) - 0.5 * std::lgamma(q + 1)) * wide;
            const double remainder = cramer * radius / std::sqrt(q + 1) * per_factorial;
            if (remainder <= std::max(grain / 8, 0.1 * (box->bound - best_value))) {
                box->remainder = remainder * (1 + 1e-9);
                box->rounding = rounding(near.count) * std::exp(square) * sum;
                box->slope_missing = cramer * cramer * std::sqrt(q + 2) * per_factorial * (1 + 1e-9);
                develop(*box, near);
                return enclose(std::move(box));
            }
        }
        leave_out_far(*box, near);
        split_longest(*box);
        push(std::move(box));
    }

    // Leaves out points whose bumps are nowhere in the box of a size that counts, where that makes the list much shorter.
    void leave_out_far(Box& box, const Points& near) {
        const double each = (grain / 8 - box.far) / (4 * double(near.count));
        const int64_t few = std::count_if(most.begin(), most.begin() + near.count, [&](double m) { return m > each; });
        if (few > near.count - near.count / 4) return;
        auto kept = std::make_shared<std::vector<int32_t>>();
        kept->reserve(few);
        for (int64_t i = 0; i < near.count; i++) {
            if (most[i] > each) {
                kept->push_back(box.members ? (*box.members)[i] : int32_t(i));
                continue;
            }
            double square = 0;
            for (int64_t l = 0; l < d; l++) {
                const double less = std::max(std::abs(near.column(l)[i] - box.middle()[l]) - box.half()[l], 0.0);
                square += less * less;
            }
            box.far += most[i];
            box.far_slope += most[i] * std::max(std::sqrt(square), 1.0);
        }
        box.members = std::move(kept);
    }

    // The Taylor series of g about the middle: exp(-(u - t)^2 / 2) = exp(-u^2 / 2) sum_n He_n(u) t^n / n! in every column.
    void develop(Box& box, const Points& near) {
        const int64_t degree = monomials->degree, count = monomials->size();
        std::fill(sums.begin(), sums.end(), vec{});
        n_tests += near.stride * (count + d * degree + cost_of_look());
        for (int64_t first = 0; first < near.stride; first += strip) {
            double value[strip] = {};
            for (int64_t l = 0; l < d; l++) {
                const double *x = near.column(l) + first, at = box.middle()[l];
                for (int64_t v = 0; v < strip; v++) value[v] += (x[v] - at) * (x[v] - at);
            }
            const double* height = near.height() + first;
            for (int64_t v = 0; v < strip; v++) value[v] = height[v] * exp_of_negative(-0.5 * value[v]);
            for (int64_t part = 0; part < strip; part += V::lanes) {
                for (int64_t l = 0; l < d; l++) {
                    const double half = box.half()[l];
                    const vec u = V::load(near.column(l) + first + part) - box.middle()[l];
                    vec* p = &powers[l * (degree + 1)];
                    p[0] = vec{} + 1.0;
                    p[1] = half * u;
                    for (int64_t n = 1; n < degree; n++) p[n + 1] = (half / double(n + 1)) * (u * p[n] - half * p[n - 1]);
                }
                products[0] = V::load(value + part);
                sums[0] += products[0];
                int64_t i = 1;
                for (const auto& step : monomials->steps) {
                    products[i] = products[step.parent] * powers[step.axis * (degree + 1) + step.power];
                    sums[i] += products[i];
                    i++;
                }
            }
        }
        box.coefficients.resize(count);
        for (int64_t i = 0; i < count; i++) {
            double total = 0;
            for (int64_t v = 0; v < V::lanes; v++) total += sums[i][v];
            box.coefficients[i] = total;
        }
    }

    // Bounds g over a box by its polynomial there. The largest value lies where g turns.
    void enclose(std::unique_ptr<Box> box) {
        for (int64_t l = 0; l < d; l++)
            slack[l] = box->half()[l] * (box->slope_missing + box->far_slope) + double(monomials->degree) * box->rounding;
        const auto found = monomials->enclose(box->coefficients.data(), slack.data(), excess.data(), sizes.data());
        box->size = found.size;
        box->split = found.split;
        box->bound = std::min(box->bound, found.upper + box->remainder + box->rounding + box->far);
        if (!may_matter(box->bound)) return drop(box->bound);
        if (!found.may_turn) return;
        if (box->coefficients[0] > best_value + 0.01 * tolerance) {
            propose(box->middle());
            if (!may_matter(box->bound)) return drop(box->bound);
        }
        const double range = found.upper - box->coefficients[0];
        if (range <= box->rounding) return drop(box->bound);
        if (box->remainder > grain / 8 && box->remainder > 0.5 * range) {  // its parts get series of their own
            box->coefficients = {};
            box->remainder = box->rounding = box->slope_missing = 0;
        }
        push(std::move(box));
    }
};

}  // namespace

BoxSearch* bump_search(int64_t n, int64_t d, const double* x, const double* heights, double tolerance) {
    return new Search(n, d, x, heights, tolerance);
}

int64_t bump_climb(int64_t n, int64_t d, const double* x, const double* heights, int64_t n_starts, double* centres,
                   double* values, int64_t max_steps, double progress) {
    const Points points = by_column(n, d, x, heights);
    int64_t sums = 0;
    for (int64_t s = 0; s < n_starts; s++) values[s] = climb(points, centres + s * d, max_steps, progress, &sums);
    return sums * n;
}

}  // namespace majorant::MAJORANT_ISA
