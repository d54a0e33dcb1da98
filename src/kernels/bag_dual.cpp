// Dual coordinate descent of a structural SVM on bags: an output is a label and a row of the bag.
#include "bags.hpp"
#include "dual_planes.hpp"
#include "stack.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

template <class T, class Rows>
struct Steps {
    const Rows& rows;
    const Stack<T>& stack;
    PerClass<T>& w;
    int64_t first;
    std::vector<T> scores;

    T score(int64_t base, int32_t label, int32_t row) const {
        return label < first ? T(0) : rows.dot(base + row, w[label]) + stack.bias * w.constant[label];
    }
    T square(int64_t base, int32_t label, int32_t row) const {
        return label < first ? T(0) : rows.square(base + row) + stack.bias * stack.bias;
    }
    void add(int64_t base, int32_t label, int32_t row, T share) {
        if (label < first) return;
        rows.add(base + row, share, w[label]);
        w.constant[label] += share * stack.bias;
    }

    // Pairwise steps on one bag, from the lowest plane in use to the highest one; returns the first rise.
    double run(int64_t base, const Planes& planes, const double* loss, double step, int64_t most_steps) {
        const int64_t used = *planes.used;
        const int32_t *label = planes.label, *row = planes.values;
        for (int64_t j = 0; j < used; j++) scores[j] = score(base, label[j], row[j]) + T(loss[label[j]]);
        double begin = 0.0;
        for (int64_t t = 0;; t++) {
            const Pair pair(planes, scores.data());
            const int64_t p = pair.high, q = pair.low;
            if (t == 0) begin = pair.rise;
            if (t == most_steps || pair.is_done(begin)) return begin;
            const T apart = label[p] == label[q] && label[p] >= first
                                ? rows.distance(base + row[p], base + row[q])
                                : square(base, label[p], row[p]) + square(base, label[q], row[q]);
            const double moved = pair.shift(planes, step * double(apart));
            add(base, label[p], row[p], T(-step * moved));
            add(base, label[q], row[q], T(step * moved));
            if (t + 1 < most_steps)
                for (int64_t j = 0; j < used; j++)
                    if (label[j] == label[p] || label[j] == label[q])
                        scores[j] = score(base, label[j], row[j]) + T(loss[label[j]]);
        }
    }
};

}  // namespace

template <class T>
double bag_sweep(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const DualSweep& about,
                 int64_t n_order, const int64_t* order, const BagPlanes& planes, double* w, int64_t* lost) {
    PerClass<T> weights(classes, stack.d);
    weights.read(w);
    int64_t most = 0;
    for (int64_t t = 0; t < n_order; t++) most = std::max(most, bags.counts[order[t]]);
    std::vector<T> table(most * classes);
    double left = 0.0;
    *lost = 0;
    with_rows(stack, [&](const auto& rows) {
        Steps<T, std::decay_t<decltype(rows)>> steps{rows, stack, weights, first, std::vector<T>(planes.most)};
        for (int64_t t = 0; t < n_order; t++) {
            const int64_t i = order[t], base = bags.starts[i], count = bags.counts[i];
            const double* loss = about.cost + bags.codes[i] * classes;
            const Planes mine(planes, planes.row, 1, i);
            if (about.label) *lost += !mine.add(about.label[i], about.row + i);
            if (about.online) {
                rows.scores(base, count, weights, first, table.data());
                int32_t label = 0, row = 0;
                T high = first ? T(loss[0]) : table[0] + T(loss[0]);
                for (int64_t r = 0; r < count; r++)
                    for (int64_t c = 0; c < classes; c++) {
                        const T value = (c < first ? T(0) : table[r * classes + c]) + T(loss[c]);
                        if (value > high) {
                            high = value;
                            label = int32_t(c);
                            row = c < first ? 0 : int32_t(r);
                        }
                    }
                *lost += !mine.add(label, &row);
            }
            if (*mine.used) left += about.shares[i] * steps.run(base, mine, loss, about.shares[i] / about.alpha, about.most_steps);
        }
    });
    weights.write(w);
    return left;
}

template <class T>
double bag_mixture(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const double* shares,
                   const double* cost, const BagPlanes& planes, double* features) {
    PerClass<T, double> sum(classes, stack.d);
    double loss = 0.0;
    with_rows(stack, [&](const auto& rows) {
        for (int64_t i = 0; i < bags.n; i++) {
            const Planes mine(planes, planes.row, 1, i);
            for (int64_t j = 0; j < *mine.used; j++) {
                const double share = shares[i] * mine.share[j];
                const int32_t label = mine.label[j];
                if (share == 0.0) continue;
                loss += share * cost[bags.codes[i] * classes + label];
                if (label < first) continue;
                rows.add(bags.starts[i] + mine.values[j], share, sum[label]);
                sum.constant[label] += share * double(stack.bias);
            }
        }
    });
    sum.write(features);
    return loss;
}

#define MAJORANT_INSTANTIATE(T)                                                                                              \
    template double bag_sweep<T>(const Stack<T>&, const Bags&, int64_t, int64_t, const DualSweep&, int64_t, const int64_t*, \
                                 const BagPlanes&, double*, int64_t*);                                                       \
    template double bag_mixture<T>(const Stack<T>&, const Bags&, int64_t, int64_t, const double*, const double*,            \
                                   const BagPlanes&, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
