#include "grids.hpp"

#include <cmath>

#include "elementary.hpp"
#include "part_scores.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
void grid_infer(const Grids<T>& grids, const PartModel& model, const double* w, const double* cost, bool is_given,
                double* best, int32_t* label, int32_t* map, double* own) {
    const int64_t regions = grids.regions, classes = model.classes;
    PartWeights<T> weights(model, regions, grids.d);
    weights.read(w);
    const Stack<T> stack = stack_of(grids);
    const DenseRows<T> rows(stack);
    std::vector<T> products(regions * weights.width);
    for (int64_t i = 0; i < grids.n; i++) {
        const int64_t code = grids.codes[i];
        rows.scores(grids.starts[i], regions, weights.filters, 0, products.data());
        const int32_t found = highest(weights, products.data(), cost + code * classes, best + i * classes);
        if (!is_given) label[i] = found;
        weights.parts_of(products.data(), label[i], map + i * regions);
        if (!own) continue;
        for (int64_t r = 0; r < regions; r++) {
            const T *product = products.data() + r * weights.width, *entry = weights.at(code, r);
            double* out = own + (i * regions + r) * model.parts;
            for (int64_t p = 0; p < model.parts; p++) out[p] = double(product[p] + weights.scale * entry[p]);
        }
    }
}

template <class T>
double grid_pooled(const Grids<T>& grids, const PartModel& model, const double* w, const double* shares, const double* cost,
                   double beta, double tau, double* gradient) {
    const int64_t regions = grids.regions, classes = model.classes, parts = model.parts, d = grids.d;
    PartWeights<T> weights(model, regions, d);
    weights.read(w);
    const int64_t width = weights.width;
    const Stack<T> stack = stack_of(grids);
    const DenseRows<T> rows(stack);
    PerClass<T, double> filters(width, d);
    double* table = gradient + parts * d;
    std::fill_n(table, classes * regions * parts, 0.0);
    std::vector<T> products(regions * width), within(classes * regions * width), sums(regions * width);
    std::vector<double> pool(classes), share(classes);
    double value = 0.0;
    for (int64_t i = 0; i < grids.n; i++) {
        const int64_t code = grids.codes[i];
        rows.scores(grids.starts[i], regions, weights.filters, 0, products.data());
        // Shares of the parts of a region in its pool, for every class.
        for (int64_t c = 0; c < classes; c++) {
            pool[c] = 0.0;
            for (int64_t r = 0; r < regions; r++) {
                const T *product = products.data() + r * width, *entry = weights.at(c, r);
                T* q = within.data() + (c * regions + r) * width;
                T high = -infinity<T>;
                double total = 0.0;
                for (int64_t p = 0; p < parts; p++) {
                    q[p] = product[p] + weights.scale * entry[p];
                    high = q[p] > high ? q[p] : high;
                    total += double(q[p]);
                }
                if (beta == 0) {
                    pool[c] += total / double(parts);
                    std::fill_n(q, parts, T(1) / T(parts));
                } else {
                    for (int64_t p = 0; p < parts; p++) q[p] = exp_of_negative(T(beta) * (q[p] - high));
                    T mass = 0;
                    for (int64_t p = 0; p < parts; p++) mass += q[p];
                    pool[c] += double(high) + std::log(double(mass) / double(parts)) / beta;
                    for (int64_t p = 0; p < parts; p++) q[p] /= mass;
                }
            }
        }
        const double* loss = cost + code * classes;
        double top = pool[0] + loss[0];
        for (int64_t c = 1; c < classes; c++) top = std::max(top, pool[c] + loss[c]);
        double mass = 0.0;
        for (int64_t c = 0; c < classes; c++) mass += share[c] = std::exp(tau * (pool[c] + loss[c] - top));
        value += shares[i] * (top + std::log(mass) / tau - pool[code]);
        std::fill(sums.begin(), sums.end(), T(0));
        for (int64_t c = 0; c < classes; c++) {
            const double slope = shares[i] * (share[c] / mass - double(c == code));
            for (int64_t r = 0; r < regions; r++) {
                const T* q = within.data() + (c * regions + r) * width;
                T* sum = sums.data() + r * width;
                double* out = table + (c * regions + r) * parts;
                for (int64_t p = 0; p < parts; p++) {
                    sum[p] += T(slope) * q[p];
                    out[p] += slope * model.scale * double(q[p]);
                }
            }
        }
        rows.collect(grids.starts[i], regions, sums.data(), 0, filters);
    }
    for (int64_t p = 0; p < parts; p++) std::copy_n(filters[p], d, gradient + p * d);
    return value;
}

#define MAJORANT_INSTANTIATE(T)                                                                                             \
    template void grid_infer<T>(const Grids<T>&, const PartModel&, const double*, const double*, bool, double*, int32_t*,   \
                                int32_t*, double*);                                                                         \
    template double grid_pooled<T>(const Grids<T>&, const PartModel&, const double*, const double*, const double*, double,  \
                                   double, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
