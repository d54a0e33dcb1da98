// Images as grids of regions, a part in each: scores, their pooling over parts, and duals of a structural SVM.
#pragma once
#include <cstdint>

namespace majorant {

// Image i has the regions x[starts[i]], ..., x[starts[i] + regions - 1], rows of d features, and the class codes[i].
template <class T>
struct Grids {
    int64_t n, regions, d;
    const T* x;
    const int64_t* starts;
    const int32_t* codes;
};

// A class scores an image with the parts z by sum_r <filter[z_r], x_r> + scale table[class, r, z_r].
// Weights are the filters (parts, d) and behind them the table (classes, regions, parts).
struct PartModel {
    int64_t classes, parts;
    double scale;
};

// Planes of every image: (label, parts of the regions), each with a share; the first used[i] of `most` are there.
struct GridPlanes {
    int64_t most;
    int32_t* label;  // (n, most)
    int32_t* map;    // (n, most, regions)
    double* share;   // (n, most)
    int32_t* used;   // (n)
};

// What one pass of coordinate steps is about, as for bags; `map` is (n, regions).
struct GridSweep {
    const double* shares;
    const double* cost;
    double alpha;
    const int32_t *label, *map;
    bool online;
    int64_t most_steps;
};

template <class T>
struct GridKernels {
    // The best score of every class, best (n, classes); label (n), where it is not given the one of highest score plus cost
    // (classes, classes); the best parts under it, map (n, regions); own (n * regions, parts), the terms of the scores under
    // the image's class, or null.
    void (*infer)(const Grids<T>& grids, const PartModel& model, const double* w, const double* cost, bool is_given,
                  double* best, int32_t* label, int32_t* map, double* own);

    // Sum over images of share ((1/tau) log sum_y exp(tau (pool_y + cost[code, y])) - pool_code), where pool is the sum over
    // regions of the log-mean-exp over parts at inverse temperature beta (0: their mean), and its gradient.
    double (*pooled)(const Grids<T>& grids, const PartModel& model, const double* w, const double* shares, const double* cost,
                     double beta, double tau, double* gradient);

    // Steps on the images in `order`, w in place; returns and counts what it does for bags.
    double (*sweep)(const Grids<T>& grids, const PartModel& model, const GridSweep& about, int64_t n_order,
                    const int64_t* order, const GridPlanes& planes, double* w, int64_t* lost);

    // Features of the planes, summed with their shares times those of the images; returns their loss.
    double (*mixture)(const Grids<T>& grids, const PartModel& model, const double* shares, const double* cost,
                      const GridPlanes& planes, double* features);
};

}  // namespace majorant
