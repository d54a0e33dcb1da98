// The search: rounds of greedy swaps, moves of single points, kicks out of a local optimum, and the last polish.
#pragma once
#include "measure.hpp"
#include "swap_assignment.hpp"
#include "swap_recombine.hpp"

namespace majorant::MAJORANT_ISA {

// Uniform draws: a function of the seed and of how many came before (SplitMix64).
class Draws {
public:
    explicit Draws(uint64_t seed) : seed_(seed) {}

    double uniform() {
        uint64_t z = seed_ + ++count_ * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        z ^= z >> 31;
        return double(z >> 11) * 0x1.0p-53;
    }
    int64_t below(int64_t m) { return std::min(int64_t(uniform() * double(m)), m - 1); }

private:
    uint64_t seed_, count_ = 0;
};

template <class T>
class Search final : public SwapSearch {
public:
    Search(int64_t n, int64_t d, int64_t k, const T* x, const double* w, uint64_t seed, bool on_sphere)
        : a_(n, d, k, x, w, on_sphere), d_(d), total_weight_(std::accumulate(w, w + n, 0.0)), draws_(mixed(seed)),
          chunk_costs_((n + chunk - 1) / chunk), loss_of_removal_(k) {}

    int64_t n() const override { return a_.n; }
    int64_t d() const override { return d_; }
    int64_t k() const override { return a_.k; }
    const SwapState& state() const override { return a_.state; }

    void centres(double* out) const override {
        for (int64_t j = 0; j < a_.k; j++) std::copy_n(a_.centre(j), d_, out + j * d_);
    }

    void seed() override {
        std::vector<double> uniforms(a_.k);
        for (double& u : uniforms) u = draws_.uniform();
        std::vector<int64_t> chosen(a_.k);
        plus_plus<T>(a_.n, d_, a_.k, 1, a_.points.row(0), a_.points.weights.data(), uniforms.data(), chosen.data());
        for (int64_t j = 0; j < a_.k; j++) a_.put_centre(j, chosen[j]);
        a_.assign_all();
        take_stock();
    }

    bool descend(int64_t limit, double tolerance) override {
        bool done = false;
        for (int64_t step = 0; step < limit && !done; step++) {
            const double before = a_.state.objective;
            done = !lloyd_step(0.1 * effort.still) || before - a_.state.objective <= tolerance * before;
        }
        take_stock();
        return done;
    }

    bool rounds(int64_t patience, int64_t limit) override {
        const int64_t m = effort.candidates;
        std::vector<int64_t> candidates(m);
        for (int64_t round = 0; round < limit && failures_ < patience; round++) {
            if (a_.k < 2 || !(a_.state.objective > 0)) return true;
            rounds_++;
            for (int64_t& c : candidates) c = draw_by_distance();
            const Swap swap = best_swap(candidates);
            const int64_t drawn = draw_by_distance(), divided = a_.state.nearest[drawn], merged = cheapest_but(divided);
            const double before = a_.state.objective, gain = divide(drawn);
            // Rows win little as centres where columns are many: then two halves of a cluster may win more.
            const bool splits = gain > 2.0 * swap.gain && loss_of_removal_[merged] - gain < swap.change;
            const bool accepted = splits ? attempt_split(divided, merged) : attempt(swap.centre, swap.point);
            const bool progress = accepted && a_.state.objective < before * (1 - effort.progress);
            failures_ = progress ? 0 : failures_ + 1;
        }
        const bool done = failures_ >= patience;
        if (done) failures_ = 0;
        return done;
    }

    bool attempt(int64_t centre, int64_t point) override {
        const double before = a_.state.objective;
        a_.begin();
        a_.replace(centre, point);
        return settles(before);
    }

    double evaluate(int64_t point, double* losses) override {
        const std::vector<int64_t> one{point};
        price(one);
        std::copy_n(losses_.begin(), a_.k, losses);
        return gains_[0];
    }

    int64_t single_moves(int64_t sweeps) override {
        int64_t all = 0;
        for (int64_t sweep = 0; sweep < sweeps && a_.k > 1; sweep++) {
            a_.forget();
            a_.sum_up();
            if (a_.move_to_means(-1.0)) a_.refresh();
            const int64_t moves = with_squares(a_.points, [&](auto squares) { return sweep_single_moves(squares); });
            all += moves;
            if (!moves) break;
        }
        take_stock();
        return all;
    }

    void kick(int64_t strength, bool anywhere) override {
        failures_ = 0;
        if (a_.k < 2 || !(a_.state.objective > 0)) return;
        for (int64_t q = 0; q < strength; q++) {
            const int64_t point = anywhere ? draws_.below(a_.n) : draw_by_distance();
            const int64_t one = draws_.below(a_.k), other = draws_.below(a_.k);
            a_.forget();
            a_.replace(loss_of_removal_[other] < loss_of_removal_[one] ? other : one, point);
            for (int64_t step = 0; step < 2; step++) {
                if (!a_.move_to_means(still())) break;
                a_.refresh();
            }
            take_stock();
        }
        descend(10, 1e-4);
    }

    bool polish(int64_t limit) override {
        for (int64_t pass = 0; pass < limit; pass++) {
            a_.forget();
            a_.sum_up();
            bool settled = false;
            for (int64_t step = 0; step < 20 && !settled; step++) {
                const double before = a_.state.objective;
                settled = !lloyd_step(0.0) || !(a_.state.objective < before);
            }
            if (settled && single_moves(1) == 0 && is_fixed_point()) return true;
        }
        take_stock();
        return false;
    }

    bool recombine() override {
        const SwapState& s = a_.state;
        if (kept_.nearest.empty()) return false;
        std::vector<double> change(a_.n);
        for (int64_t i = 0; i < a_.n; i++)
            change[i] = a_.points.weights[i] * (s.first_square[i] - kept_.first_square[i]);
        const std::vector<char> taken = better_parts(a_.n, a_.k, s.nearest.data(), kept_.nearest.data(), change.data(),
                                                     1e-9 * kept_.objective);
        if (taken.empty()) return false;
        std::vector<double> centres;
        for (int64_t j = 0; j < 2 * a_.k; j++) {
            const double* c = j < a_.k ? a_.centre(j) : kept_.centres.data() + (j - a_.k) * a_.stride;
            if (taken[j]) centres.insert(centres.end(), c, c + a_.stride);
        }
        a_.state.centres.swap(centres);
        a_.assign_all();
        take_stock();
        return true;
    }

    void keep() override { kept_ = a_.state; }
    void restore() override {
        failures_ = 0;
        if (kept_.nearest.empty()) return;
        a_.state = kept_;
        take_stock();
    }

private:
    struct Swap {
        int64_t centre, point;
        double gain, change;  // of the new centre alone, and of the swap, before any centre has moved
    };

    static constexpr int64_t chunk = 256;
    static constexpr double hopeless = 1.0;  // local steps end when this many like the last would not bring the objective back

    Assignment<T> a_;
    const int64_t d_;
    const double total_weight_;
    Draws draws_;
    std::vector<double> chunk_costs_;      // the objective over every `chunk` points
    std::vector<double> loss_of_removal_;  // what the objective rises by when a centre goes
    std::vector<int64_t> members_;         // of a cluster to be divided
    std::vector<double> halves_;           // the centres of its halves: (2, stride)
    std::vector<double> losses_, gains_;   // of the candidates of a round: (candidates, k), (candidates)
    SwapState kept_;
    int64_t failures_ = 0;  // rounds in a row without progress

    static uint64_t mixed(uint64_t seed) { return (seed + 1) * 0xD1342543DE82EF95ull; }

    double still() const { return effort.still * a_.state.objective / total_weight_; }

    [[gnu::noinline]] bool lloyd_step(double share) {
        if (!a_.move_to_means(share * a_.state.objective / total_weight_)) return false;
        a_.forget();
        a_.refresh();
        return true;
    }

    // The objective afresh, and what draws and swaps need to know.
    [[gnu::noinline]] void take_stock() {
        SwapState& s = a_.state;
        const bool several = a_.k > 1;
        std::fill(loss_of_removal_.begin(), loss_of_removal_.end(), 0.0);
        s.objective = 0.0;
        for (int64_t from = 0, c = 0; from < a_.n; from += chunk, c++) {
            double cost = 0.0;
            for (int64_t i = from; i < std::min(a_.n, from + chunk); i++) {
                const double w = a_.points.weights[i];
                cost += w * s.first_square[i];
                if (several) loss_of_removal_[s.nearest[i]] += w * (s.second_square[i] - s.first_square[i]);
            }
            chunk_costs_[c] = cost;
            s.objective += cost;
        }
    }

    // A point drawn with probability proportional to its share of the objective.
    [[gnu::noinline]] int64_t draw_by_distance() {
        double rest = draws_.uniform() * a_.state.objective;
        size_t c = 0;
        while (c + 1 < chunk_costs_.size() && rest >= chunk_costs_[c]) rest -= chunk_costs_[c++];
        int64_t last = -1;
        for (int64_t i = c * chunk; i < std::min<int64_t>(a_.n, (c + 1) * chunk); i++) {
            const double cost = a_.points.weights[i] * a_.state.first_square[i];
            if (!(cost > 0)) continue;
            last = i;
            rest -= cost;
            if (rest < 0) break;
        }
        return std::max<int64_t>(last, 0);
    }

    // For every candidate point the exact gain of adding it as a centre, and the exact loss of removing each centre then.
    void price(const std::vector<int64_t>& candidates) {
        with_squares(a_.points, [&](auto squares) { price(squares, candidates); });
    }

    template <int D>
    [[gnu::noinline]] void price(Squares<D, T> squares, const std::vector<int64_t>& candidates) {
        const SwapState& s = a_.state;
        const int64_t m = candidates.size(), k = a_.k;
        losses_.resize(m * k);
        gains_.assign(m, 0.0);
        std::vector<double> at(m * a_.stride);
        for (int64_t q = 0; q < m; q++) {
            std::copy(loss_of_removal_.begin(), loss_of_removal_.end(), losses_.begin() + q * k);
            std::copy_n(a_.points.row(candidates[q]), d_, at.begin() + q * a_.stride);
        }
        double square[lanes];
        for (int64_t b = 0; b < a_.points.n_blocks; b++) {
            const Pack limit = Vector<double>::load(s.second_square.data() + b * lanes);
            for (int64_t q = 0; q < m; q++) {
                const Pack to_candidate = squares.block_to(b, at.data() + q * a_.stride, limit);
                unsigned below = lower_lanes(to_candidate, limit);
                if (!below) continue;
                Vector<double>::store(square, to_candidate);
                double* loss = losses_.data() + q * k;
                for (; below; below &= below - 1) {
                    const int v = __builtin_ctz(below);
                    const int64_t i = b * lanes + v;
                    const double w = a_.points.weights[i], first = s.first_square[i], second = s.second_square[i];
                    if (square[v] < first) {
                        gains_[q] += w * (first - square[v]);
                        loss[s.nearest[i]] -= w * (second - first);
                    } else {
                        loss[s.nearest[i]] -= w * (second - square[v]);
                    }
                }
            }
        }
    }

    Swap best_swap(const std::vector<int64_t>& candidates) {
        price(candidates);
        Swap best{0, candidates[0], 0.0, infinity<double>};
        for (size_t q = 0; q < candidates.size(); q++)
            for (int64_t j = 0; j < a_.k; j++) {
                const double change = losses_[q * a_.k + j] - gains_[q];
                if (change < best.change) best = {j, candidates[q], gains_[q], change};
            }
        return best;
    }

    // What a cluster costs more, over the weight w, when a point at this squared distance joins it and its centre follows.
    double joining(double size, double w, double square) const {
        const double all = size + w;
        if (!a_.on_sphere) return square * (size / all);
        return 2.0 * size * square / (all + std::sqrt(std::max(all * all - w * size * square, 0.0)));
    }

    // What it costs less when the point leaves, and what is left of its size.
    std::pair<double, double> leaving(double size, double w, double square) const {
        const double left = size - w;
        if (!a_.on_sphere) return {size / left * square, left};
        const double length = std::sqrt(left * left + w * size * square);
        return {left > 0 ? 2.0 * size * square / (left + length) : 2.0 * (length - left) / w, length};
    }

    // The centre of a cluster of this size after weight w has come to it (or has left it, below zero); its new size.
    [[gnu::noinline]] double shift_centre(double* centre, double size, double w, const T* row) const {
        const int64_t columns = d_;
        if (!a_.on_sphere) {
            for (int64_t l = 0; l < columns; l++) centre[l] += w / (size + w) * (row[l] - centre[l]);
            return size + w;
        }
        for (int64_t l = 0; l < columns; l++) centre[l] = size * centre[l] + w * row[l];
        const double length = std::sqrt(std::inner_product(centre, centre + columns, centre, 0.0));
        for (int64_t l = 0; l < columns; l++) centre[l] /= length;
        return length;
    }

    // Size and centre of a cluster without one of its points, from the others.
    [[gnu::noinline]] double without(int64_t point, int64_t cluster, const std::vector<int32_t>& labels, std::vector<double>& centre) const {
        double mass = 0.0;
        std::fill(centre.begin(), centre.end(), 0.0);
        for (int64_t i = 0; i < a_.n; i++) {
            if (labels[i] != cluster || i == point) continue;
            mass += a_.points.weights[i];
            for (int64_t l = 0; l < d_; l++) centre[l] += a_.points.weights[i] * a_.points.row(i)[l];
        }
        const double size =
            a_.on_sphere ? std::sqrt(std::inner_product(centre.begin(), centre.end(), centre.begin(), 0.0)) : mass;
        for (double& c : centre) c /= size;
        return size;
    }

    int64_t cheapest_but(int64_t cluster) const {
        int64_t best = cluster == 0 ? 1 : 0;
        for (int64_t j = 0; j < a_.k; j++)
            if (j != cluster && loss_of_removal_[j] < loss_of_removal_[best]) best = j;
        return best;
    }

    // Divides the cluster of a point in two, by a few Lloyd steps among its own points: the point against what lies opposite
    // to it. A row alone is a poor centre where columns are many, but the means of two halves are good ones. Returns what
    // the objective falls by; the centres are in `halves_`.
    double divide(int64_t point) {
        return with_squares(a_.points, [&](auto squares) { return divide(squares, point); });
    }

    template <int D>
    [[gnu::noinline]] double divide(Squares<D, T> squares, int64_t point) {
        const SwapState& s = a_.state;
        const int64_t stride = a_.stride, cluster = s.nearest[point];
        members_.clear();
        for (int64_t i = 0; i < a_.n; i++)
            if (s.nearest[i] == cluster) members_.push_back(i);
        const double* centre = a_.centre(cluster);
        const T* row = a_.points.row(point);
        const double along = a_.on_sphere ? 2.0 - s.first_square[point] : 2.0;  // a reflection, on the sphere too
        halves_.resize(2 * stride);
        for (int64_t l = 0; l < d_; l++) {
            halves_[l] = row[l];
            halves_[stride + l] = along * centre[l] - row[l];
        }
        std::vector<double> sums(2 * stride);
        double gain = 0.0;
        for (int step = 0; step < 3; step++) {
            std::fill(sums.begin(), sums.end(), 0.0);
            double mass[2] = {0.0, 0.0};
            gain = 0.0;
            for (const int64_t i : members_) {
                const double one = squares.to(i, halves_.data()), other = squares.to(i, halves_.data() + stride);
                const int side = other < one;
                const double w = a_.points.weights[i];
                gain += w * (s.first_square[i] - std::min(one, other));
                mass[side] += w;
                for (int64_t l = 0; l < d_; l++) sums[side * stride + l] += w * a_.points.row(i)[l];
            }
            for (int side = 0; side < 2; side++) {
                const double* sum = sums.data() + side * stride;
                const double size = a_.on_sphere ? std::sqrt(std::inner_product(sum, sum + stride, sum, 0.0)) : mass[side];
                if (!(size > 1e-12 * mass[side])) continue;
                for (int64_t l = 0; l < stride; l++) halves_[side * stride + l] = sum[l] / size;
            }
        }
        return gain;
    }

    // The halves of a divided cluster take its centre and that of another: kept if the objective falls, else undone.
    bool attempt_split(int64_t divided, int64_t merged) {
        const double before = a_.state.objective;
        a_.begin();
        a_.replace_two(divided, merged, halves_.data());
        return settles(before);
    }

    // Moves centres on after an attempt; whether the objective has fallen enough. If not, all is as before.
    bool settles(double before) {
        for (int64_t step = 0; step < effort.local_steps; step++) {
            if (!a_.move_to_means(still())) break;
            const double last = a_.state.objective;
            a_.refresh();
            if (a_.state.objective > before && a_.state.objective - before > hopeless * (last - a_.state.objective)) break;
        }
        if (a_.state.objective < before * (1 - effort.accepted)) {
            take_stock();
            accepted_.push_back(a_.state.objective);
            return true;
        }
        a_.undo();
        return false;
    }

    // One pass over the points; each goes to the cluster where the objective ends lowest after both centres have moved.
    template <int D>
    int64_t sweep_single_moves(Squares<D, T> squares) {
        SwapState& s = a_.state;
        const int64_t n = a_.n, k = a_.k, stride = a_.stride;
        std::vector<int32_t> labels(s.nearest.begin(), s.nearest.begin() + n);
        std::vector<double> sizes(k), centre_without(stride);
        for (int64_t j = 0; j < k; j++) sizes[j] = a_.size_of(j);
        std::vector<int64_t> members = s.members;
        std::vector<char> touched(k, 0);
        double least_size = *std::min_element(sizes.begin(), sizes.end());
        int64_t moves = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t from = labels[i];
            if (members[from] <= 1) continue;
            const double w = a_.points.weights[i];
            // The least that joining another cluster can cost is above what leaving this one wins.
            if (joining(least_size, w, s.second_square[i]) >= leaving(sizes[from], w, s.first_square[i]).first) continue;
            auto [won, left] = leaving(sizes[from], w, squares.to(i, a_.centre(from)));
            const bool is_most = left < 1e-6 * sizes[from];  // then the centre says nothing of the cluster's other points
            if (is_most) {
                left = without(i, from, labels, centre_without);
                if (!(left > 0)) continue;
                won = joining(left, w, squares.to(i, centre_without.data()));
            }
            double least = won * (1 - 1e-10);
            int64_t to = -1;
            // All others but the second are no nearer than the third was: where that is too far, the second is looked at.
            const double third = s.third_bound[i] * s.third_bound[i];
            const bool is_second = joining(least_size, w, third) >= won;
            for (int64_t j = is_second ? s.second[i] : 0, end = is_second ? j + 1 : k; j < end; j++) {
                if (j == from) continue;
                const double cost = joining(sizes[j], w, squares.to(i, a_.centre(j)));
                if (cost < least) {
                    least = cost;
                    to = j;
                }
            }
            if (to < 0) continue;
            moves++;
            const T* row = a_.points.row(i);
            if (is_most) {
                std::copy(centre_without.begin(), centre_without.end(), a_.centre(from));
                sizes[from] = left;
            } else {
                sizes[from] = shift_centre(a_.centre(from), sizes[from], -w, row);
            }
            sizes[to] = shift_centre(a_.centre(to), sizes[to], w, row);
            members[from]--;
            members[to]++;
            labels[i] = int32_t(to);
            touched[from] = touched[to] = 1;
            least_size = std::min({least_size, sizes[from], sizes[to]});
        }
        if (moves) {
            a_.moved.clear();
            for (int64_t j = 0; j < k; j++)
                if (touched[j]) a_.moved.push_back(int32_t(j));
            a_.refresh();
        }
        return moves;
    }

    // Whether the centres are the means of the points nearest to them, as recomputed from nothing.
    bool is_fixed_point() {
        const std::vector<int32_t> before = a_.state.nearest;
        a_.sum_up();
        a_.move_to_means(0.0);
        a_.assign_all();
        take_stock();
        return before == a_.state.nearest;
    }
};

}  // namespace majorant::MAJORANT_ISA
