// What branch and bound over boxes of places needs whatever is bounded: points by column, and the queue of boxes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "isa.hpp"
#include "kernels.hpp"

namespace majorant::MAJORANT_ISA {

constexpr double unit_roundoff = 2.3e-16;

// Numbers by column, in whole runs of points; padding is zero.
struct Columns {
    int64_t width, run, stride = 0, count = 0;
    std::vector<double> numbers;

    Columns(int64_t width, int64_t run) : width(width), run(run) {}

    double* column(int64_t l) { return numbers.data() + l * stride; }
    const double* column(int64_t l) const { return numbers.data() + l * stride; }

    void resize(int64_t m) {
        count = m;
        stride = (m + run - 1) / run * run;
        if (int64_t(numbers.size()) < stride * width) numbers.resize(size_t(stride) * width);
        for (int64_t l = 0; l < width; l++) std::fill(column(l) + m, column(l) + stride, 0.0);
    }

    // The first columns, from rows.
    void set_rows(int64_t n, int64_t d, const double* x) {
        resize(n);
        for (int64_t l = 0; l < d; l++)
            for (int64_t i = 0; i < n; i++) column(l)[i] = x[i * d + l];
    }

    void gather(const Columns& all, const std::vector<int32_t>& members) {
        resize(int64_t(members.size()));
        for (int64_t l = 0; l < width; l++) {
            const double* from = all.column(l);
            double* to = column(l);
            for (int64_t i = 0; i < count; i++) to[i] = from[members[i]];
        }
    }
};

// The box of all points, as middle and half edges; returns its diameter.
inline double surround(const Columns& points, int64_t d, double* middle, double* half) {
    double square = 0;
    for (int64_t l = 0; l < d; l++) {
        const auto [low, high] = std::minmax_element(points.column(l), points.column(l) + points.count);
        middle[l] = *low / 2 + *high / 2;
        half[l] = *high / 2 - *low / 2 + 4 * unit_roundoff * (std::abs(*low) + std::abs(*high));
        square += 4 * half[l] * half[l];
    }
    return std::sqrt(square);
}

// Best-first search: a box has a bound, `numbers` (middle and half edges first) and says what memory it holds.
template <class Box>
class BestFirst : public BoxSearch {
public:
    bool advance(int64_t tests) final {
        const int64_t until = n_tests + tests;
        while (!finished() && n_tests < until) {
            std::pop_heap(live.begin(), live.end(), below);
            const auto box = std::move(live.back());
            live.pop_back();
            n_bytes -= box->bytes();
            expand(*box);
        }
        return finished();
    }

    double lower() const final { return best_value; }
    double upper() const final {
        const double at_most = std::max(best_value, dropped);
        return live.empty() ? at_most : std::max(at_most, live.front()->bound);
    }
    const double* centre() const final { return best_centre.data(); }
    int64_t tests() const final { return n_tests; }
    int64_t boxes() const final { return n_boxes; }
    int64_t columns() const final { return d; }

protected:
    const int64_t d;
    double tolerance, diameter = 0, best_value = 0;
    std::vector<double> best_centre;
    int64_t n_tests = 0, n_boxes = 0;

    BestFirst(int64_t d, double tolerance) : d(d), tolerance(tolerance), best_centre(d) {}

    // Pushes the parts of a box in which the largest value may lie, and drops the others.
    virtual void expand(Box& box) = 0;

    // Half of a half edge, wider by what rounding may take from the middle, so that the two halves leave no crack.
    double halved(double half) const { return half / 2 + 4 * unit_roundoff * diameter; }

    void push(std::unique_ptr<Box> box) {
        n_bytes += box->bytes();
        live.push_back(std::move(box));
        std::push_heap(live.begin(), live.end(), below);
    }

    void drop(double bound) { dropped = std::max(dropped, bound); }

    bool may_matter(double bound) const { return bound > best_value + tolerance; }

    void note(double value, const std::vector<double>& at) {
        if (!(value > best_value)) return;
        best_value = value;
        best_centre = at;
    }

private:
    static constexpr int64_t most_bytes = int64_t(256) << 20;
    std::vector<std::unique_ptr<Box>> live;
    double dropped = 0;
    int64_t n_bytes = 0;

    static bool below(const std::unique_ptr<Box>& a, const std::unique_ptr<Box>& b) { return a->bound < b->bound; }

    bool finished() const { return live.empty() || !may_matter(live.front()->bound) || n_bytes > most_bytes; }
};

}  // namespace majorant::MAJORANT_ISA
