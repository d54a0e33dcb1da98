#include "medoids.hpp"

#include "lower_lanes.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace majorant::MAJORANT_ISA {

namespace {

// The nearest medoid of a row among those at other positions than one, which may be none.
template <class T>
std::pair<int32_t, T> nearest_but(const MedoidPlaces<T>& p, int64_t i, int32_t not_this) {
    const T* own = p.table + i * p.k;
    std::pair<int32_t, T> best{-1, infinity<T>};
    for (int32_t j = 0; j < p.k; j++)
        if (j != not_this && (own[j] < best.second || best.first < 0)) best = {j, own[j]};
    return best;
}

// What the objective rises by when a medoid goes.
template <class T>
void removal_losses(const MedoidPlaces<T>& p, std::vector<double>& losses) {
    losses.assign(p.k, 0.0);
    for (int64_t i = 0; i < p.n; i++) losses[p.nearest[i]] += p.w[i] * (double(p.next[i]) - double(p.first[i]));
}

}  // namespace

template <class T>
void medoid_places(const MedoidPlaces<T>& p) {
    for (int64_t j = 0; j < p.k; j++) {
        const T* row = p.distances + p.medoids[j] * p.n;
        for (int64_t i = 0; i < p.n; i++) p.table[i * p.k + j] = row[i];
    }
    for (int64_t i = 0; i < p.n; i++) {
        std::tie(p.nearest[i], p.first[i]) = nearest_but(p, i, -1);
        std::tie(p.second[i], p.next[i]) = nearest_but(p, i, p.nearest[i]);
    }
}

template <class T>
void medoid_replace(const MedoidPlaces<T>& p, int64_t position, int64_t row) {
    const int32_t j = int32_t(position);
    const T* to_row = p.distances + row * p.n;
    p.medoids[j] = row;
    for (int64_t i = 0; i < p.n; i++) {
        const T d = to_row[i];
        p.table[i * p.k + j] = d;
        if (p.nearest[i] == j) {
            if (d <= p.next[i]) {
                p.first[i] = d;
                continue;
            }
            p.nearest[i] = p.second[i];
            p.first[i] = p.next[i];
            std::tie(p.second[i], p.next[i]) = nearest_but(p, i, p.nearest[i]);
        } else if (d < p.first[i]) {
            p.second[i] = p.nearest[i];
            p.next[i] = p.first[i];
            p.nearest[i] = j;
            p.first[i] = d;
        } else if (p.second[i] == j && d > p.next[i]) {
            std::tie(p.second[i], p.next[i]) = nearest_but(p, i, p.nearest[i]);
        } else if (d < p.next[i] || p.second[i] == j) {
            p.second[i] = j;
            p.next[i] = d;
        }
    }
}

// FasterPAM (Schubert and Rousseeuw 2021): every candidate is priced in the place of all medoids at once, over the rows that
// are nearer to it than to their second medoid, and takes the best place at once where that helps.
template <class T>
MedoidSwaps medoid_swaps(const MedoidPlaces<T>& p, int64_t m, const int64_t* candidates, MedoidSwaps from, int64_t tests,
                         double least) {
    using V = Vector<T>;
    const int64_t n = p.n;
    std::vector<double> losses, change(p.k);
    double gain;
    const auto weigh = [&](int64_t i, double d) {  // what a row that is nearer to the candidate than to its second says
        const double first = p.first[i], next = p.next[i];
        gain += p.w[i] * std::max(first - d, 0.0);
        change[p.nearest[i]] -= p.w[i] * (next - std::max(first, d));
    };
    std::vector<char> is_medoid(n, 0);
    for (int64_t j = 0; j < p.k; j++) is_medoid[p.medoids[j]] = 1;
    removal_losses(p, losses);
    for (; tests > 0 && from.quiet < m; tests--) {
        const int64_t c = candidates[from.at];
        from.at = from.at + 1 == m ? 0 : from.at + 1;
        from.quiet++;
        if (is_medoid[c]) continue;
        const T* to_row = p.distances + c * n;
        std::copy(losses.begin(), losses.end(), change.begin());
        gain = 0.0;
        int64_t i = 0;
        for (; i + V::lanes <= n; i += V::lanes)
            for (unsigned below = lower_lanes(V::load(to_row + i), V::load(p.next + i)); below; below &= below - 1)
                weigh(i + __builtin_ctz(below), to_row[i + __builtin_ctz(below)]);
        for (; i < n; i++)
            if (to_row[i] < p.next[i]) weigh(i, to_row[i]);
        const int64_t best = std::min_element(change.begin(), change.end()) - change.begin();
        if (!(change[best] - gain < -least)) continue;
        is_medoid[p.medoids[best]] = 0;
        is_medoid[c] = 1;
        medoid_replace(p, best, c);
        removal_losses(p, losses);
        from.quiet = 0;
        from.swaps++;
    }
    return from;
}

#define MAJORANT_MEDOIDS(T)                                             \
    template void medoid_places<T>(const MedoidPlaces<T>&);             \
    template void medoid_replace<T>(const MedoidPlaces<T>&, int64_t, int64_t); \
    template MedoidSwaps medoid_swaps<T>(const MedoidPlaces<T>&, int64_t, const int64_t*, MedoidSwaps, int64_t, double);
MAJORANT_MEDOIDS(float)
MAJORANT_MEDOIDS(double)

}  // namespace majorant::MAJORANT_ISA
