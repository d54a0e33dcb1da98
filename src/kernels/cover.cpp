#include "cover.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "box_search.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

using V = Vector<double>;
using vec = V::type;
constexpr int64_t strip = V::lanes;  // points handled at a time, one a lane

double sum_of(vec v) {
    double total = 0;
    for (int64_t r = 0; r < strip; r++) total += v[r];
    return total;
}

vec positive(vec v) { return v > vec{} ? v : vec{}; }

// Places, masses and reaches.
struct Disks : Columns {
    const int64_t d;

    explicit Disks(int64_t d) : Columns(d + 2, strip), d(d) {}

    double *mass() { return column(d); }
    double *reach() { return column(d + 1); }
    const double *mass() const { return column(d); }
    const double *reach() const { return column(d + 1); }
};

// All points, and which of them may be active at a centre: those within the largest reach along the first column,
// a run of strips where that column ascends.
struct Points : Disks {
    bool ascending = false;
    double radius = 0;
    mutable int64_t visits = 0;

    using Disks::Disks;

    void look_for_order() {
        ascending = std::is_sorted(column(0), column(0) + count);
        for (int64_t i = 0; i < count; i++) radius = std::max(radius, reach()[i]);
        radius = std::sqrt(radius) * (1 + 1e-12);
    }

    std::pair<int64_t, int64_t> near(double at) const {
        int64_t from = 0, to = stride;
        if (ascending) {
            const double *begin = column(0), *end = begin + count;
            const double margin = 4 * unit_roundoff * std::abs(at);
            from = (std::lower_bound(begin, end, at - radius - margin) - begin) / strip * strip;
            to = (std::upper_bound(begin, end, at + radius + margin) - begin + strip - 1) / strip * strip;
        }
        visits += std::max(to - from, strip);
        return {from, to};
    }
};

Points by_column(int64_t n, int64_t d, const double* x, const double* w, const double* reach) {
    Points out(d);
    out.set_rows(n, d, x);
    for (int64_t i = 0; i < n; i++) out.mass()[i] = weight(w, i);
    std::copy(reach, reach + n, out.reach());
    out.look_for_order();
    return out;
}

// h(c), and the mean of the points that are active there.
double cover_at(const Points& points, const double* c, double* mean, std::vector<vec>& sums) {
    const int64_t d = points.d;
    vec total{}, mass{};
    sums.assign(d, vec{});
    const auto [from, to] = points.near(c[0]);
    for (int64_t first = from; first < to; first += strip) {
        vec square{};
        for (int64_t l = 0; l < d; l++) {
            const vec t = V::load(points.column(l) + first) - c[l];
            square += t * t;
        }
        const vec height = V::load(points.reach() + first) - square;
        const vec active = height > vec{} ? V::load(points.mass() + first) : vec{};
        if (sum_of(active) == 0) continue;
        total += active * height;
        mass += active;
        for (int64_t l = 0; l < d; l++) sums[l] += active * (V::load(points.column(l) + first) - c[l]);
    }
    const double all = sum_of(mass);
    for (int64_t l = 0; l < d; l++) mean[l] = c[l] + (all > 0 ? sum_of(sums[l]) / all : 0.0);
    return sum_of(total);
}

// Moves c to the mean of its active points until h no longer grows; h never falls.
double climb(const Points& points, double* c, double* mean, int64_t max_steps) {
    std::vector<vec> sums;
    std::vector<double> next(points.d);
    double value = cover_at(points, c, mean, sums);
    for (int64_t step = 0; step < max_steps; step++) {
        const double better = cover_at(points, mean, next.data(), sums);
        if (!(better > value)) break;
        const bool settled = better - value <= 1e-13 * better;
        value = better;
        std::copy(mean, mean + points.d, c);
        std::copy(next.begin(), next.end(), mean);
        if (settled) break;
    }
    return value;
}

// A box, the points that are active in a part of it only, and moments about its middle of those active in all of it.
struct Box {
    double bound = 0, mass = 0, rest = 0;  // rest: sum w (reach - |x - middle|^2)
    int64_t split = 0;
    std::vector<double> numbers;
    std::vector<int32_t> members;

    explicit Box(int64_t d) : numbers(3 * d, 0.0) {}
    double* middle() { return numbers.data(); }
    double* half() { return numbers.data() + numbers.size() / 3; }
    double* sum() { return numbers.data() + 2 * (numbers.size() / 3); }
    int64_t bytes() const { return int64_t(4 * members.size()); }

    void move(int64_t l, double by) {
        rest += by * (2 * sum()[l] - mass * by);
        sum()[l] -= mass * by;
        middle()[l] += by;
    }
};

class Search final : public BestFirst<Box> {
public:
    Search(int64_t n, int64_t d, const double* x, const double* w, const double* reach, double tolerance)
        : BestFirst(d, tolerance), points(by_column(n, d, x, w, reach)), near_points(d), mean(d), shift(d), both(d) {
        auto root = std::make_unique<Box>(d);
        diameter = surround(points, d, root->middle(), root->half());
        std::copy_n(root->middle(), d, best_centre.begin());
        for (int64_t i = 0; i < n; i++) {
            root->bound += std::max(points.mass()[i] * points.reach()[i], 0.0);
            if (points.reach()[i] > 0) root->members.push_back(int32_t(i));
        }
        for (int64_t l = 1; l < d; l++)
            if (root->half()[l] > root->half()[root->split]) root->split = l;
        if (!root->members.empty()) push(std::move(root));
    }

    void propose(const double* c) override {
        std::vector<double> at(c, c + d);
        const int64_t before = points.visits;
        const double value = climb(points, at.data(), mean.data(), 100);
        n_tests += points.visits - before;
        note(value, at);
    }

private:
    Points points;
    Disks near_points;
    std::vector<double> mean, shift, both;
    std::vector<double> share, kept, undecided, kink;  // of the point in the box: see visit

    void expand(Box& box) override {
        near_points.gather(points, box.members);
        for (auto* one : {&share, &kept, &undecided, &kink}) one->resize(near_points.stride);
        const int64_t l = box.split;
        const double half = box.half()[l] / 2;
        for (const double side : {-1.0, 1.0}) {
            auto child = std::make_unique<Box>(d);
            child->numbers = box.numbers;
            child->mass = box.mass;
            child->rest = box.rest;
            child->move(l, side * half);
            child->half()[l] = halved(box.half()[l]);
            visit(std::move(child), box);
        }
    }

    // Bounds h over a child and keeps it if the largest value may lie there.
    //
    // Over the box the height g = reach - |x - c|^2 of a point lies between low and up. Where low >= 0 its term is g itself.
    // Where low < 0 < up, max(g, 0) <= share (g - low) with share = up / (up - low): the chord of a convex function.
    // So h is at most one concave quadratic in c, whose largest value in the box lies at its mean clipped to the box.
    void visit(std::unique_ptr<Box> child, const Box& parent) {
        const double *middle = child->middle(), *half = child->half();
        const int64_t stride = near_points.stride;
        vec masses{}, rests{}, at_middles{}, kept_masses{}, kept_rests{};
        n_boxes++;
        n_tests += stride + 16;
        for (int64_t first = 0; first < stride; first += strip) {
            vec nearest{}, farthest{}, square{};
            for (int64_t l = 0; l < d; l++) {
                const vec t = V::load(near_points.column(l) + first) - middle[l], size = t > vec{} ? t : -t;
                const vec more = size + half[l], less = positive(size - half[l]);
                square += t * t;
                farthest += more * more;
                nearest += less * less;
            }
            const vec w = V::load(near_points.mass() + first), reach = V::load(near_points.reach() + first);
            const vec up = positive(reach - nearest), low = reach - farthest, height = reach - square;
            const auto whole = low >= vec{};
            const vec slope = whole ? vec{} + 1.0 : up / (up - (whole ? vec{} - 1.0 : low));
            const vec s = w * slope, k = whole ? w : vec{}, m = whole || up <= vec{} ? vec{} : w;
            V::store(&share[first], s);
            V::store(&kept[first], k);
            V::store(&undecided[first], m);
            V::store(&kink[first], m * slope * (1.0 - slope));
            masses += s;
            rests += s * (height - (whole ? vec{} : low));
            at_middles += w * positive(height);
            kept_masses += k;
            kept_rests += k * height;
        }
        const double mass = child->mass + sum_of(masses), at_middle = child->rest + sum_of(at_middles);
        double bound = child->rest + sum_of(rests);
        for (int64_t l = 0; l < d; l++) {
            const double* column = near_points.column(l);
            vec of_share{}, of_kept{};
            for (int64_t first = 0; first < stride; first += strip) {
                const vec t = V::load(column + first) - middle[l];
                of_share += V::load(&share[first]) * t;
                of_kept += V::load(&kept[first]) * t;
            }
            both[l] = child->sum()[l] + sum_of(of_share);
            child->sum()[l] += sum_of(of_kept);
            const double e = mass > 0 ? std::clamp(both[l] / mass, -half[l], half[l]) : 0.0;
            shift[l] = middle[l] + e;
            bound += e * (2 * both[l] - mass * e);
        }
        child->mass += sum_of(kept_masses);
        child->rest += sum_of(kept_rests);
        child->bound = std::min(bound, parent.bound);
        if (at_middle > best_value) propose(middle);
        if (!may_matter(child->bound)) return drop(child->bound);
        if (!contract(*child)) return;
        for (int64_t i = 0; i < near_points.count; i++)
            if (undecided[i] > 0) child->members.push_back(parent.members[i]);
        if (child->members.empty()) {  // the bound is a value of h
            propose(shift.data());
            return drop(child->bound);
        }
        double widest = 0;
        for (int64_t l = 0; l < d; l++) widest = std::max(widest, half[l]);
        if (widest <= 64 * unit_roundoff * diameter) return drop(child->bound);
        push(std::move(child));
    }

    // Where h is largest, sum over the active points of w (x - c) vanishes (the kinks of h are convex, so the largest value
    // lies on none). False if that happens nowhere in the box; otherwise the box shrinks to where it may, and gets the
    // edge to be split: the one along which the heights of its undecided points vary most.
    bool contract(Box& box) {
        const int64_t stride = near_points.stride;
        vec all{};
        for (int64_t first = 0; first < stride; first += strip) all += V::load(&undecided[first]);
        const double mass = sum_of(all), slack = double(stride + 64) * unit_roundoff * (mass + box.mass) * diameter;
        double best_score = -1;
        for (int64_t l = 0; l < d; l++) {
            const double *column = near_points.column(l), at = box.middle()[l], h = box.half()[l];
            vec sums{}, lefts{}, rights{}, scores{};
            for (int64_t first = 0; first < stride; first += strip) {
                const vec t = V::load(column + first) - at, w = V::load(&undecided[first]);
                sums += w * t;
                lefts += w * positive(t + h);
                rights += w * positive(t - h);
                scores += V::load(&kink[first]) * (t > vec{} ? t : -t);
            }
            const double sum = sum_of(sums), above_left = sum_of(lefts), above_right = sum_of(rights);
            // The sum at c = middle + e lies between least(e) and most(e): every undecided point counts, or does not.
            const double inner = box.sum()[l];
            const double most_left = inner + box.mass * h + above_left + slack;
            const double most_right = inner - box.mass * h + above_right + slack;
            const double least_left = inner + box.mass * h + (sum + mass * h - above_left) - slack;
            const double least_right = inner - box.mass * h + (sum - mass * h - above_right) - slack;
            if (most_left < 0 || least_right > 0) return false;
            // most is convex and least concave: a secant's zero lies outside theirs.
            double from = -h, to = h;
            if (most_right < 0) to = -h + 2 * h * (most_left / (most_left - most_right));
            if (least_left > 0) from = -h + 2 * h * (least_left / (least_left - least_right));
            if (from > to) return false;
            const double score = sum_of(scores) * (to - from);
            if (score > best_score) {
                best_score = score;
                box.split = l;
            }
            if (to - from < 1.9 * h) {
                box.half()[l] = (to - from) / 2 + 4 * unit_roundoff * diameter;
                box.move(l, (from + to) / 2);
            }
        }
        return true;
    }
};

}  // namespace

BoxSearch* cover_search(int64_t n, int64_t d, const double* x, const double* w, const double* reach, double tolerance) {
    return new Search(n, d, x, w, reach, tolerance);
}

int64_t cover_climb(int64_t n, int64_t d, const double* x, const double* w, const double* reach, int64_t n_starts,
                    double* centres, double* values, int64_t max_steps, double enough, int64_t* tests) {
    const Points points = by_column(n, d, x, w, reach);
    std::vector<double> mean(d);
    int64_t done = 0;
    while (done < n_starts) {
        values[done] = climb(points, centres + done * d, mean.data(), max_steps);
        if (values[done++] > enough) break;
    }
    *tests = points.visits;
    return done;
}

}  // namespace majorant::MAJORANT_ISA
