// Which centre is nearest to every point, kept exact while centres move, with all that is needed to go back.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>

#include "swap_interface.hpp"
#include "swap_points.hpp"

namespace majorant::MAJORANT_ISA {

// What is called from several places and takes long is not inlined: it would be compiled as often.
template <class T>
class Assignment {
public:
    static constexpr int64_t most_in_table = 1024;
    const int64_t n, k, stride;  // stride: columns of centres and rows, with zeros up to whole vectors
    const bool on_sphere;        // centres of length one: the directions of sums, not the means
    const bool has_table;        // whether distances between centres are kept: not of thousands of centres
    const Points<T> points;
    SwapState state;
    std::vector<int32_t> moved;  // the centres that `refresh` has to look at

    Assignment(int64_t n, int64_t d, int64_t k, const T* x, const double* w, bool on_sphere)
        : n(n), k(k), stride(d > 3 ? whole_packs(d) : d), on_sphere(on_sphere), has_table(k <= most_in_table),
          points(n, d, x, w), is_moved_(k), first_relevant_(k + 1), stamp_(n, 0), log_(n / 8 + 1) {
        const int64_t padded = points.n_blocks * lanes;
        SwapState& s = state;
        for (auto* v : {&s.centres, &s.sums}) v->assign(size_t(k) * stride, 0.0);
        s.mass.assign(k, 0.0);
        s.members.assign(k, 0);
        if (has_table) s.between.assign(size_t(k) * k, 0.0);
        s.reach.assign(k, 0.0);
        for (auto* v : {&s.nearest, &s.second}) v->assign(padded, 0);
        for (auto* v : {&s.first_square, &s.second_square, &s.third_bound}) v->assign(padded, 0.0);
        moved.reserve(k);
        const auto [least, most] = std::minmax_element(points.weights.begin(), points.weights.begin() + n);
        sums_cancel_ = *most > 1e6 * *least;
    }

    double* centre(int64_t j) { return state.centres.data() + j * stride; }
    const double* centre(int64_t j) const { return state.centres.data() + j * stride; }

    void put_centre(int64_t j, int64_t point) {
        std::copy_n(points.row(point), points.d, centre(j));
    }

    void all_moved() {
        moved.resize(k);
        std::iota(moved.begin(), moved.end(), 0);
    }

    // From the centres alone.
    void assign_all() {
        forget();
        all_moved();
        update_between();
        with_squares(points, [&](auto squares) { refresh_densely(squares); });
        sum_up();
    }

    // Masses and sums of the clusters, afresh.
    [[gnu::noinline]] void sum_up() {
        std::fill(state.sums.begin(), state.sums.end(), 0.0);
        std::fill(state.mass.begin(), state.mass.end(), 0.0);
        std::fill(state.members.begin(), state.members.end(), 0);
        for (int64_t i = 0; i < n; i++) add_to_sums(i, state.nearest[i], points.weights[i], 1);
    }

    void sum_objective() {
        double sum = 0.0;
        for (int64_t i = 0; i < n; i++) sum += points.weights[i] * state.first_square[i];
        state.objective = sum;
    }

    // What a sum is divided by to be a centre: its mass or, on the sphere, its length; 0 where it has no direction.
    double size_of(int64_t j) const {
        if (!on_sphere) return state.mass[j];
        const double* sum = state.sums.data() + j * stride;
        const double length = std::sqrt(std::inner_product(sum, sum + stride, sum, 0.0));
        return length > 1e-12 * state.mass[j] ? length : 0.0;
    }

    // Centres farther than sqrt(still) from their means go there and become `moved`. False if none does.
    [[gnu::noinline]] bool move_to_means(double still) {
        moved.clear();
        for (int64_t j = 0; j < k; j++) {
            if (state.members[j] == 0) continue;
            double* c = centre(j);
            const double* sum = state.sums.data() + j * stride;
            const double size = size_of(j);
            if (!(size > 0)) continue;
            const double share = 1.0 / size;
            double shift = 0.0;
            for (int64_t l = 0; l < stride; l++) shift += (sum[l] * share - c[l]) * (sum[l] * share - c[l]);
            if (!(shift > still)) continue;
            for (int64_t l = 0; l < stride; l++) c[l] = sum[l] * share;
            moved.push_back(int32_t(j));
        }
        return !moved.empty();
    }

    // The bookkeeping after the centres in `moved` have moved.
    [[gnu::noinline]] void refresh() {
        update_between();
        with_squares(points, [&](auto squares) {
            if (sparse_cost(squares) > dense_cost()) {
                refresh_densely(squares);
            } else {
                refresh_sparsely(squares);
            }
        });
        if (sums_cancel_) {
            sum_up();
            sum_objective();
        }
    }

    void replace(int64_t j, int64_t point) {
        put_centre(j, point);
        moved.assign(1, int32_t(j));
        refresh();
    }

    void replace_two(int64_t one, int64_t other, const double* centres) {
        std::copy_n(centres, stride, centre(one));
        std::copy_n(centres + stride, stride, centre(other));
        moved.assign({int32_t(std::min(one, other)), int32_t(std::max(one, other))});
        refresh();
    }

    // From here on every change can be undone.
    void begin() {
        forget();
        can_undo_ = true;
        copy_clusters(state, saved_);
    }

    // From here on nothing need be undone.
    void forget() {
        can_undo_ = all_saved_ = false;
        epoch_++;
        logged_ = 0;
    }

    void undo() {
        if (all_saved_) copy_places(saved_, state);
        for (int64_t q = 0; q < logged_; q++) {
            const Entry& e = log_[q];
            state.nearest[e.point] = e.nearest;
            state.second[e.point] = e.second;
            state.first_square[e.point] = e.first_square;
            state.second_square[e.point] = e.second_square;
            state.third_bound[e.point] = e.third_bound;
        }
        moved.clear();
        for (int64_t j = 0; j < k; j++)
            if (!std::equal(centre(j), centre(j) + stride, saved_.centres.data() + j * stride)) moved.push_back(int32_t(j));
        copy_clusters(saved_, state);
        update_between();  // distances of centres are bitwise the same either way round
        forget();
    }

private:
    struct Three {  // of each row of a block
        Pack first, second, third;
        PackIndex at_first, at_second;
    };
    struct Entry {
        int32_t point, nearest, second;
        double first_square, second_square, third_bound;
    };

    std::vector<char> is_moved_;
    std::vector<int32_t> relevant_;       // moved centres that may matter to the points of each cluster, cluster by cluster
    std::vector<size_t> first_relevant_;  // (k + 1) where those of each begin
    std::vector<int32_t> stamp_;       // the epoch in which a point was logged
    std::vector<Entry> log_;
    std::vector<double> new_reach_;
    SwapState saved_;
    int64_t logged_ = 0;
    int32_t epoch_ = 0;
    bool can_undo_ = false, all_saved_ = false;
    bool sums_cancel_ = false;  // weights so unequal that sums cannot be kept by adding and subtracting

    // The table of distances between centres, where there is one, after the centres in `moved` have moved.
    [[gnu::noinline]] void update_between() {
        if (!has_table) return;
        with_squares(points, [&](auto squares) {
            for (const int64_t a : moved)
                for (int64_t j = 0; j < k; j++) {
                    const double distance = std::sqrt(squares.apart(centre(a), centre(j)));
                    state.between[a * k + j] = distance;
                    state.between[j * k + a] = distance;
                }
        });
    }

    static void copy_clusters(const SwapState& from, SwapState& to) {
        to.centres = from.centres;
        to.sums = from.sums;
        to.mass = from.mass;
        to.members = from.members;
        to.reach = from.reach;
        to.objective = from.objective;
    }

    static void copy_places(const SwapState& from, SwapState& to) {
        to.nearest = from.nearest;
        to.second = from.second;
        to.first_square = from.first_square;
        to.second_square = from.second_square;
        to.third_bound = from.third_bound;
    }

    // Places of all points, where any change may have to be undone: what was logged before goes on top.
    void save_all() {
        if (!can_undo_ || all_saved_) return;
        copy_places(state, saved_);
        all_saved_ = true;
    }

    void add_to_sums(int64_t i, int64_t j, double w, int64_t count) {
        double* sum = state.sums.data() + j * stride;
        const T* row = points.row(i);
        for (int64_t l = 0; l < points.d; l++) sum[l] += w * row[l];
        state.mass[j] += w;
        state.members[j] += count;
    }

    void take_from_sums(int64_t i, int64_t j, double w) {
        add_to_sums(i, j, -w, -1);
        if (state.members[j] == 0) {
            std::fill_n(state.sums.data() + j * stride, stride, 0.0);
            state.mass[j] = 0.0;
        }
    }

    // Lists, for every cluster, the moved centres that may come among the nearest three of one of its points: those
    // nearer to its centre than `reach`, unless the centre itself has moved. Returns an estimate of the time that looking
    // at those takes, in the unit of `dense_cost`; it ends where that is too much.
    template <int D>
    double sparse_cost(Squares<D, T> squares) {
        std::fill(is_moved_.begin(), is_moved_.end(), 0);
        for (const int32_t a : moved) is_moved_[a] = 1;
        const double most = dense_cost(), pair = D ? 5.0 : 7.0 + 0.3 * double(points.d);
        double work = 3.0 * double(n);
        size_t m = 0;
        for (int64_t j = 0; j < k && work <= most; j++) {
            const double* between = has_table ? state.between.data() + j * k : nullptr;
            const double reach = state.reach[j];
            if (relevant_.size() < m + moved.size()) relevant_.resize(2 * (m + moved.size()));
            const size_t first = first_relevant_[j] = m;
            for (const int32_t a : moved) {
                relevant_[m] = a;
                m += a != j && (is_moved_[j] || (has_table ? between[a] : std::sqrt(squares.apart(centre(a), centre(j)))) < reach);
            }
            if (m > first || is_moved_[j]) work += double(state.members[j]) * (40.0 + double(m - first) * pair);
            if (!has_table && !is_moved_[j]) work += double(moved.size()) * pair;
        }
        first_relevant_[k] = m;
        return work;
    }

    double dense_cost() const {
        const double pair = (10.0 + 2.0 * double(points.d)) / (2.0 * lanes) / 3.0;
        return double(n) * (12.0 + pair * double(k));
    }

    // Writes the new places of a point, and what follows for sums, objective and reach.
    void settle(int64_t i, int32_t nearest, double first_square, int32_t second, double second_square, double third) {
        SwapState& s = state;
        const int32_t before = s.nearest[i];
        if (logged_ == int64_t(log_.size())) save_all();
        if (can_undo_ && !all_saved_ && stamp_[i] != epoch_) {
            stamp_[i] = epoch_;
            log_[logged_++] = {int32_t(i),        before, s.second[i], s.first_square[i], s.second_square[i],
                               s.third_bound[i]};
        }
        s.objective += points.weights[i] * (first_square - s.first_square[i]);
        s.nearest[i] = nearest;
        s.second[i] = second;
        s.first_square[i] = first_square;
        s.second_square[i] = second_square;
        s.third_bound[i] = third;
        if (before != nearest) {
            take_from_sums(i, before, points.weights[i]);
            add_to_sums(i, nearest, points.weights[i], 1);
        }
    }

    template <int D>
    [[gnu::noinline]] void refresh_densely(Squares<D, T> squares) {
        using V = Vector<double>;
        SwapState& s = state;
        save_all();
        std::fill(s.reach.begin(), s.reach.end(), 0.0);
        Pack objective{};
        for (int64_t b = 0; b < points.n_blocks; b++) {
            const int64_t from = b * lanes, rows = std::min<int64_t>(lanes, n - from);
            const Three found = three_nearest(squares, b);
            const Pack third = root(found.third), reach = root(found.first) + third;
            objective += V::load(points.weights.data() + from) * found.first;
            V::store(s.first_square.data() + from, found.first);
            V::store(s.second_square.data() + from, found.second);
            V::store(s.third_bound.data() + from, third);
            for (int64_t v = 0; v < rows; v++) {
                const int64_t i = from + v;
                const int32_t before = s.nearest[i], now = int32_t(found.at_first[v]);
                s.second[i] = int32_t(found.at_second[v]);
                s.reach[now] = std::max(s.reach[now], reach[v]);
                if (now == before) continue;
                s.nearest[i] = now;
                take_from_sums(i, before, points.weights[i]);
                add_to_sums(i, now, points.weights[i], 1);
            }
        }
        s.objective = total(objective);
        for (auto* places : {&s.first_square, &s.second_square, &s.third_bound})  // of no point
            std::fill(places->begin() + n, places->end(), 0.0);
    }

    template <int D>
    [[gnu::noinline]] void refresh_sparsely(Squares<D, T> squares) {
        SwapState& s = state;
        new_reach_.assign(k, 0.0);
        for (int64_t j = 0; j < k; j++)
            if (!is_moved_[j] && first_relevant_[j] == first_relevant_[j + 1]) new_reach_[j] = s.reach[j];
        for (int64_t i = 0; i < n; i++) {
            const int32_t old_nearest = s.nearest[i], old_second = s.second[i];
            const bool first_moved = is_moved_[old_nearest], second_moved = is_moved_[old_second];
            const size_t from = first_relevant_[old_nearest], to = first_relevant_[old_nearest + 1];
            if (!first_moved && !second_moved && from == to) continue;
            int32_t nearest = old_nearest, second = old_second;
            const double bound = s.third_bound[i];
            double first_square = first_moved ? squares.to(i, centre(nearest)) : s.first_square[i];
            double second_square = second_moved && k > 1 ? squares.to(i, centre(second)) : s.second_square[i];
            const double radius = std::sqrt(first_square);
            double third_square = bound * bound, horizon = radius + bound;
            bool changed = first_moved || second_moved;
            if (second_square < first_square) {
                std::swap(first_square, second_square);
                std::swap(nearest, second);
            }
            const double* between = has_table ? s.between.data() + old_nearest * k : nullptr;
            for (size_t t = from; t < to; t++) {
                const int32_t a = relevant_[t];
                if (a == old_second || (has_table && between[a] >= horizon)) continue;
                const double square = squares.to(i, centre(a));
                if (square >= third_square) continue;
                changed = true;
                insert(square, a, first_square, nearest, second_square, second, third_square);
                horizon = radius + std::sqrt(third_square);
            }
            double third = third_square == bound * bound ? bound : std::sqrt(third_square);
            if (second_square > third_square)
                third = std::sqrt(rescan(squares, i, first_square, nearest, second_square, second));
            if (changed) settle(i, nearest, first_square, second, second_square, third);
            double& reach = new_reach_[nearest];
            reach = std::max(reach, std::sqrt(first_square) + third);
        }
        s.reach.swap(new_reach_);
    }

    // A square below the third takes its place among the three.
    static void insert(double square, int32_t a, double& first, int32_t& nearest, double& second_square, int32_t& second,
                       double& third) {
        if (square >= second_square) {
            third = square;
            return;
        }
        third = std::min(third, second_square);
        if (square < first) {
            second_square = first;
            second = nearest;
            first = square;
            nearest = a;
        } else {
            second_square = square;
            second = a;
        }
    }

    // The second may no longer be second: looks at every centre that is near enough. Returns the third square.
    template <int D>
    double rescan(Squares<D, T> squares, int64_t i, double& first, int32_t& nearest, double& second_square,
                  int32_t& second) {
        const int32_t p = nearest, q = second;
        const double* between = has_table ? state.between.data() + p * k : nullptr;
        const double radius = std::sqrt(first);
        double third = infinity<double>, horizon = infinity<double>;
        for (int32_t e = 0; e < k; e++) {
            if (e == p || e == q || (has_table && between[e] >= horizon)) continue;
            const double square = squares.to(i, centre(e));
            if (square >= third) continue;
            insert(square, e, first, nearest, second_square, second, third);
            horizon = radius + std::sqrt(third);
        }
        return third;
    }

    // The nearest three centres of all rows of a block; of equal ones those that come first.
    template <int D>
    Three three_nearest(Squares<D, T> squares, int64_t b) {
        using V = Vector<double>;
        const int64_t columns = squares.columns();
        const T* block = points.block(b);
        Pack first = V::broadcast(infinity<double>), second = first, third = first;
        PackIndex at_first{}, at_second{};
        const auto consider = [&](Pack square, int64_t j) {
            const PackIndex index = PackIndex{} + j, below_first = square < first, below_second = square < second;
            const Pack after_first = square > first ? square : first, after_second = square > second ? square : second;
            third = after_second < third ? after_second : third;
            second = after_first < second ? after_first : second;
            first = square < first ? square : first;
            at_second = below_first ? at_first : (below_second ? index : at_second);
            at_first = below_first ? index : at_first;
        };
        int64_t j = 0;
        for (; j + 4 <= k; j += 4) {
            const double* c = centre(j);
            Pack sum[4] = {};
            for (int64_t l = 0; l < columns; l++) {
                const Pack x = pack(block + l * lanes);
#pragma GCC unroll 4
                for (int q = 0; q < 4; q++) {
                    const Pack difference = x - c[q * stride + l];
                    sum[q] += difference * difference;
                }
            }
            for (int q = 0; q < 4; q++) consider(sum[q], j + q);
        }
        for (; j < k; j++) {
            const double* c = centre(j);
            Pack sum{};
            for (int64_t l = 0; l < columns; l++) {
                const Pack difference = pack(block + l * lanes) - c[l];
                sum += difference * difference;
            }
            consider(sum, j);
        }
        return {first, second, third, at_first, at_second};
    }
};

}  // namespace majorant::MAJORANT_ISA
