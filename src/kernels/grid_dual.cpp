// Dual coordinate descent of a structural SVM on images: an output is a label and a part for every region.
#include "dual_planes.hpp"
#include "grids.hpp"
#include "part_scores.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

template <class T>
struct Steps {
    const DenseRows<T>& rows;
    PartWeights<T>& w;
    PerClass<T> apart;  // difference of the filters' features of two planes; zero between steps
    std::vector<T> scores;
    std::vector<T> products, changes;  // of the regions of the image at hand with the filters, and with `apart`

    Steps(const DenseRows<T>& rows, PartWeights<T>& w, int64_t planes)
        : rows(rows), w(w), apart(w.width, w.d), scores(planes), products(w.regions * w.width), changes(products.size()) {}

    T score(int32_t label, const int32_t* parts) const {
        T sum = 0;
        for (int64_t r = 0; r < w.regions; r++)
            sum += products[r * w.width + parts[r]] + w.scale * w.at(label, r)[parts[r]];
        return sum;
    }

    // Squared distance of the features of two planes, whose difference in the filters' is left in `apart`.
    T distance(int64_t base, int32_t label, const int32_t* parts, int32_t from_label, const int32_t* from_parts) {
        int64_t entries = 0;
        for (int64_t r = 0; r < w.regions; r++) {
            const bool differs = parts[r] != from_parts[r];
            entries += 2 * (differs || label != from_label);
            if (!differs) continue;
            rows.add(base + r, T(1), apart[parts[r]]);
            rows.add(base + r, T(-1), apart[from_parts[r]]);
        }
        T sum = 0;
        for (const T value : apart.columns) sum += value * value;
        return sum + w.scale * w.scale * T(entries);
    }

    void move(int64_t base, int32_t label, const int32_t* parts, int32_t from_label, const int32_t* from_parts, T step) {
        rows.scores(base, w.regions, apart, 0, changes.data());
        for (size_t e = 0; e < products.size(); e++) products[e] -= step * changes[e];
        for (size_t l = 0; l < apart.columns.size(); l++) {
            w.filters.columns[l] -= step * apart.columns[l];
            apart.columns[l] = T(0);
        }
        for (int64_t r = 0; r < w.regions; r++) {
            w.at(label, r)[parts[r]] -= step * w.scale;
            w.at(from_label, r)[from_parts[r]] += step * w.scale;
        }
    }

    // Pairwise steps on the image at hand, from the lowest plane in use to the highest one; returns the first rise.
    double run(int64_t base, const Planes& planes, const double* loss, double step, int64_t most_steps) {
        double begin = 0.0;
        for (int64_t t = 0;; t++) {
            for (int64_t j = 0; j < *planes.used; j++)
                scores[j] = score(planes.label[j], planes.latent(j)) + T(loss[planes.label[j]]);
            const Pair pair(planes, scores.data());
            if (t == 0) begin = pair.rise;
            if (t == most_steps || pair.is_done(begin)) return begin;
            const int32_t to = planes.label[pair.high], from = planes.label[pair.low];
            const int32_t *to_parts = planes.latent(pair.high), *from_parts = planes.latent(pair.low);
            const double moved = pair.shift(planes, step * double(distance(base, to, to_parts, from, from_parts)));
            move(base, to, to_parts, from, from_parts, T(step * moved));
            if (t + 1 == most_steps) return begin;
        }
    }
};

}  // namespace

template <class T>
double grid_sweep(const Grids<T>& grids, const PartModel& model, const GridSweep& about, int64_t n_order,
                  const int64_t* order, const GridPlanes& planes, double* w, int64_t* lost) {
    const int64_t regions = grids.regions, classes = model.classes;
    PartWeights<T> weights(model, regions, grids.d);
    weights.read(w);
    const Stack<T> stack = stack_of(grids);
    const DenseRows<T> rows(stack);
    Steps<T> steps(rows, weights, planes.most);
    std::vector<double> best(classes);
    std::vector<int32_t> map(regions);
    double left = 0.0;
    *lost = 0;
    for (int64_t t = 0; t < n_order; t++) {
        const int64_t i = order[t], base = grids.starts[i];
        const double* loss = about.cost + grids.codes[i] * classes;
        const Planes mine(planes, planes.map, regions, i);
        if (about.label) *lost += !mine.add(about.label[i], about.map + i * regions);
        rows.scores(base, regions, weights.filters, 0, steps.products.data());
        if (about.online) {
            const int32_t label = highest(weights, steps.products.data(), loss, best.data());
            weights.parts_of(steps.products.data(), label, map.data());
            *lost += !mine.add(label, map.data());
        }
        if (*mine.used) left += about.shares[i] * steps.run(base, mine, loss, about.shares[i] / about.alpha, about.most_steps);
    }
    weights.write(w);
    return left;
}

template <class T>
double grid_mixture(const Grids<T>& grids, const PartModel& model, const double* shares, const double* cost,
                    const GridPlanes& planes, double* features) {
    const int64_t regions = grids.regions, classes = model.classes, parts = model.parts;
    const Stack<T> stack = stack_of(grids);
    const DenseRows<T> rows(stack);
    double* table = features + parts * grids.d;
    std::fill_n(features, parts * grids.d + classes * regions * parts, 0.0);
    double loss = 0.0;
    for (int64_t i = 0; i < grids.n; i++) {
        const Planes mine(planes, planes.map, regions, i);
        for (int64_t j = 0; j < *mine.used; j++) {
            const double share = shares[i] * mine.share[j];
            const int32_t label = mine.label[j], *map = mine.latent(j);
            if (share == 0.0) continue;
            loss += share * cost[grids.codes[i] * classes + label];
            for (int64_t r = 0; r < regions; r++) {
                rows.add(grids.starts[i] + r, share, features + map[r] * grids.d);
                table[(label * regions + r) * parts + map[r]] += share * model.scale;
            }
        }
    }
    return loss;
}

#define MAJORANT_INSTANTIATE(T)                                                                                             \
    template double grid_sweep<T>(const Grids<T>&, const PartModel&, const GridSweep&, int64_t, const int64_t*,             \
                                  const GridPlanes&, double*, int64_t*);                                                    \
    template double grid_mixture<T>(const Grids<T>&, const PartModel&, const double*, const double*, const GridPlanes&, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
