// The best of two solutions, part by part.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// Two solutions of k clusters each fall into parts: the fewest sets of clusters that hold the same points in both. Chooses one
// solution in every part, so that the sum is least and k clusters remain. `labels` are those of the points in either solution,
// `change` what each point costs more in the first. Returns whether each cluster, of the first and then of the second solution,
// is taken; nothing where a mixture is not below both by more than `least`.
inline std::vector<char> better_parts(int64_t n, int64_t k, const int32_t* first, const int32_t* second, const double* change,
                                      double least) {
    constexpr int64_t most = 4, width = 2 * most + 1;  // clusters that a choice may lack, or have too many, on the way
    std::vector<int32_t> part(2 * k);
    std::iota(part.begin(), part.end(), 0);
    const auto part_of = [&](int64_t j) {
        while (part[j] != j) j = part[j] = part[part[j]];
        return j;
    };
    for (int64_t i = 0; i < n; i++) part[part_of(first[i])] = int32_t(part_of(k + second[i]));
    std::vector<double> costs(2 * k, 0.0);
    std::vector<int64_t> more(2 * k, 0), parts;
    for (int64_t i = 0; i < n; i++) costs[part_of(first[i])] += change[i];
    for (int64_t j = 0; j < k; j++) more[part_of(j)]++, more[part_of(k + j)]--;
    for (int64_t j = 0; j < 2 * k; j++)
        if (part_of(j) == j && (costs[j] != 0 || more[j])) parts.push_back(j);
    std::vector<double> best(width, std::numeric_limits<double>::infinity());
    best[most] = 0.0;
    std::vector<char> by_first(parts.size() * width, 0), taken;
    for (size_t q = 0; q < parts.size(); q++) {
        const std::vector<double> before = best;
        for (int64_t from = 0; from < width; from++) {
            const int64_t to = from + more[parts[q]];
            const double sum = before[from] + costs[parts[q]];
            if (to < 0 || to >= width || !(sum < best[to])) continue;
            best[to] = sum;
            by_first[q * width + to] = 1;
        }
    }
    if (!(best[most] < std::min(0.0, std::accumulate(change, change + n, 0.0)) - least)) return taken;
    std::vector<char> is_first(2 * k, 0);
    int64_t at = most;
    for (size_t q = parts.size(); q-- > 0;) {
        is_first[parts[q]] = by_first[q * width + at];
        if (is_first[parts[q]]) at -= more[parts[q]];
    }
    taken.resize(2 * k);
    for (int64_t j = 0; j < 2 * k; j++) taken[j] = is_first[part_of(j)] == (j < k);
    return taken;
}

}  // namespace majorant::MAJORANT_ISA
