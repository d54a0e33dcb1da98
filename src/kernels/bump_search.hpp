// Branch and bound for the largest value of a sum of bumps, whatever they are bumps of: g(c) = sum_i height_i exp(-r_i(c)^2 / 2),
// r_i(c) a distance. A geometry says what a box of places is, how near to a point it comes, and what g's Taylor series are.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "box_search.hpp"
#include "elementary.hpp"
#include "polynomial.hpp"

namespace majorant::MAJORANT_ISA {

constexpr int64_t strip = 32;  // points whose exponentials are taken together
constexpr double cramer = 1.0866;  // |He_n(x)| exp(-x^2/2) <= cramer sqrt(n!) exp(-x^2/4)

// A box. Once it is small g is a polynomial there, from the points' Taylor series about the middle, but for what is bounded
// here: what the series leave out, what rounding may take, and the points too far away to be looked at.
struct BumpBox {
    int64_t axes;          // numbers in a middle
    double bound = 0;
    double far = 0;        // of the points left out, anywhere in the box: sum of their bumps
    double remainder = 0;  // what the series leave out
    double rounding = 0;   // of the coefficients, in all
    double size = 0;       // sum of the sizes of the coefficients
    int64_t split = 0;
    std::vector<double> numbers, coefficients;
    std::shared_ptr<const std::vector<int32_t>> members;  // null: all points

    BumpBox(int64_t axes, int64_t d) : axes(axes), numbers(2 * axes + 2 * d, 0.0) {}
    double* middle() { return numbers.data(); }
    double* half() { return numbers.data() + axes; }
    // Along each column of a place: slopes of the points left out, and of what the series leave out.
    double* far_slope() { return numbers.data() + 2 * axes; }
    double* slope_missing() { return far_slope() + (int64_t(numbers.size()) - 2 * axes) / 2; }
    int64_t bytes() const {
        return int64_t(8 * (numbers.size() + coefficients.size()) + (members ? 4 * members->size() : 0));
    }
};

// Moves c to `next`, which the geometry's sum names, and beyond it as long as g rises; g never falls. Returns g there and
// counts the sums.
template <class Geometry>
double climb(const Geometry& geometry, double* c, int64_t max_steps, double progress, int64_t* sums) {
    constexpr double longer = 1.7, longest = 50;
    const int64_t d = geometry.d;
    std::vector<double> aim(d), trial(d), next(d);
    double value = geometry.sum_at(c, aim.data()), stride = 1;
    ++*sums;
    for (int64_t step = 0; step < max_steps; step++) {
        for (int64_t l = 0; l < d; l++) trial[l] = c[l] + stride * (aim[l] - c[l]);
        const double better = geometry.sum_at(trial.data(), next.data());
        ++*sums;
        if (!(better > value)) {
            if (stride == 1) break;
            stride = 1;
            continue;
        }
        const bool settled = better - value <= progress * better;
        value = better;
        std::copy(trial.begin(), trial.end(), c);
        aim.swap(next);
        if (settled) break;
        stride = std::min(stride * longer, longest);
    }
    return value;
}

template <class Geometry>
int64_t climb_all(const Geometry& geometry, int64_t n_starts, double* centres, double* values, int64_t max_steps,
                  double progress) {
    int64_t sums = 0;
    for (int64_t s = 0; s < n_starts; s++)
        values[s] = climb(geometry, centres + s * geometry.d, max_steps, progress, &sums);
    return sums * geometry.points.count;
}

template <class Geometry>
class BumpSearch final : public BestFirst<BumpBox> {
public:
    BumpSearch(Geometry given, double tolerance)
        : BestFirst(given.d, tolerance), geometry(std::move(given)), near_points(geometry.points), slack(d) {
        double sum = 0;
        for (int64_t i = 0; i < geometry.points.count; i++) sum += geometry.points.height()[i];
        grain = std::max(tolerance, 1e-13 * sum);
        int64_t degree = 0;
        while (degree < Monomials::max_degree && Monomials::number(d, degree + 1) <= most_monomials) degree++;
        if (degree >= 2) {
            monomials.emplace(d, degree);
            for (auto* one : {&excess, &sizes}) one->resize(monomials->size());
            for (auto* one : {&products, &sums}) one->resize(monomials->size());
            powers.resize((d + 1) * (degree + 1));
        }
        if (sum == 0) return;
        for (auto& root : geometry.roots()) {
            root->bound = sum * (1 + rounding(geometry.points.count));
            split_longest(*root);
            push(std::move(root));
        }
        std::copy(geometry.first_centre(), geometry.first_centre() + d, best_centre.begin());
    }

    void propose(const double* c) override {
        std::vector<double> at(c, c + d);
        int64_t looks = 0;
        const double value = climb(geometry, at.data(), 20, 1e-2 * tolerance / std::max(best_value, 1e-300), &looks);
        n_tests += looks * geometry.points.stride * geometry.cost_of_look();
        note(value, at);
    }

private:
    using V = Vector<double>;
    using vec = V::type;
    using Points = typename Geometry::Points;
    static constexpr int64_t most_monomials = 800;

    Geometry geometry;
    Points near_points;
    std::optional<Monomials> monomials;
    double grain = 0;  // errors of its size may be made
    std::vector<double> slack, excess, sizes, squares, most;
    std::vector<vec> products, sums, powers;

    double rounding(int64_t m) const { return unit_roundoff * double(m + 1000 + 100 * d); }

    double longest(BumpBox& box) const {
        double most_of = 0;
        for (int64_t l = 0; l < geometry.axes; l++) most_of = std::max(most_of, box.half()[l] * geometry.size(l));
        return most_of;
    }

    void split_longest(BumpBox& box) const {
        const double edge = longest(box);
        box.split = 0;
        while (box.half()[box.split] * geometry.size(box.split) < edge) box.split++;
    }

    void expand(BumpBox& box) override {
        const int64_t l = box.split;
        const bool is_polynomial = !box.coefficients.empty();
        if (!is_polynomial && box.members) near_points.gather(geometry.points, *box.members);
        const Points& near = box.members ? near_points : geometry.points;
        const double half = box.half()[l];
        for (const double side : {-1.0, 1.0}) {
            auto child = std::make_unique<BumpBox>(box);
            child->middle()[l] += side * half / 2;
            if (is_polynomial) {
                child->half()[l] = half / 2;
                monomials->halve(child->coefficients.data(), l - geometry.first_axis, side);
                child->rounding += 4 * double(monomials->degree + 2) * unit_roundoff * box.size;
                n_boxes++;
                n_tests += monomials->size() * (monomials->degree / 2 + d + 2);
                enclose(std::move(child));
            } else {  // wider by what rounding may take from the middle, so that the two halves leave no crack
                child->half()[l] = half / 2 + 4 * unit_roundoff * (std::abs(box.middle()[l]) + half);
                visit(std::move(child), near);
            }
        }
    }

    // Bounds g over a box by the distances of the points to it.
    void visit(std::unique_ptr<BumpBox> box, const Points& near) {
        n_boxes++;
        n_tests += near.stride * geometry.cost_of_look();
        squares.resize(near.stride);
        most.resize(near.stride);
        double sum = 0;
        for (int64_t first = 0; first < near.stride; first += strip) {
            double* square = &squares[first];
            geometry.least_squares(near, first, *box, square);
            const double* height = near.height() + first;
            for (int64_t v = 0; v < strip; v++) {
                most[first + v] = height[v] * exp_of_negative(-0.5 * square[v]);
                sum += most[first + v];
            }
        }
        box->bound = std::min(box->bound, sum * (1 + rounding(near.count)) + box->far);
        if (!may_matter(box->bound)) return drop(box->bound);
        if (geometry.has_caps()) {
            box->bound = std::min(box->bound, geometry.capped(near, most.data()) * (1 + rounding(near.count)) + box->far);
            if (!may_matter(box->bound)) return drop(box->bound);
        }
        if (geometry.is_tiny(*box)) return drop(box->bound);
        if (monomials && geometry.may_develop(*box)) {
            box->rounding = 0;
            // Lagrange's remainder along the ray from the middle, with Cramer's bound on Hermite polynomials.
            geometry.remainders(near, *box, monomials->degree, squares.data(), most.data(), rounding(near.count));
            if (box->remainder <= std::max(grain / 8, 0.1 * (box->bound - best_value))) {
                develop(*box, near);
                return enclose(std::move(box));
            }
        }
        leave_out_far(*box, near);
        split_longest(*box);
        push(std::move(box));
    }

    // Leaves out points whose bumps are nowhere in the box of a size that counts, where that makes the list much shorter.
    void leave_out_far(BumpBox& box, const Points& near) {
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
            box.far += most[i];
            const double slope = most[i] * std::max(std::sqrt(squares[i]), 1.0);
            for (int64_t l = 0; l < d; l++) box.far_slope()[l] += slope * geometry.pull(near, i, l);
        }
        box.members = std::move(kept);
    }

    // The Taylor series of g about the middle.
    void develop(BumpBox& box, const Points& near) {
        const int64_t degree = monomials->degree, count = monomials->size();
        std::fill(sums.begin(), sums.end(), vec{});
        n_tests += near.stride * (count + d * degree + geometry.cost_of_look());
        vec* const hermite = &powers[d * (degree + 1)];
        for (int64_t first = 0; first < near.stride; first += strip) {
            double value[strip];
            geometry.squares(near, first, box, value);
            const double* height = near.height() + first;
            for (int64_t v = 0; v < strip; v++) value[v] = height[v] * exp_of_negative(-0.5 * value[v]);
            for (int64_t part = 0; part < strip; part += V::lanes) {
                geometry.series(near, first + part, box, degree, powers.data());
                products[0] = V::load(value + part);
                sums[0] += products[0];
                int64_t i = 1;
                for (const auto& step : monomials->steps) {
                    products[i] = products[step.parent] * powers[step.axis * (degree + 1) + step.power];
                    if constexpr (Geometry::hermite_of_total)
                        sums[i] += products[i] * hermite[step.total];
                    else
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
    void enclose(std::unique_ptr<BumpBox> box) {
        const double* half = box->half() + geometry.first_axis;
        for (int64_t l = 0; l < d; l++)
            slack[l] =
                half[l] * (box->slope_missing()[l] + box->far_slope()[l]) + double(monomials->degree) * box->rounding;
        const auto found = monomials->enclose(box->coefficients.data(), slack.data(), excess.data(), sizes.data());
        box->size = found.size;
        box->split = found.split + geometry.first_axis;
        box->bound = std::min(box->bound, found.upper + box->remainder + box->rounding + box->far);
        if (!may_matter(box->bound)) return drop(box->bound);
        if (!found.may_turn) return;
        if (box->coefficients[0] > best_value + 0.01 * tolerance) {
            propose(box->middle() + geometry.first_axis);
            if (!may_matter(box->bound)) return drop(box->bound);
        }
        const double range = found.upper - box->coefficients[0];
        if (range <= box->rounding) return drop(box->bound);
        if (box->remainder > grain / 8 && box->remainder > 0.5 * range) {  // its parts get series of their own
            box->coefficients = {};
            box->remainder = box->rounding = 0;
        }
        push(std::move(box));
    }
};

}  // namespace majorant::MAJORANT_ISA
