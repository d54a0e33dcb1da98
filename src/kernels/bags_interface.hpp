// Bags of rows: scores of the rows of each bag under one weight vector a class, pooled, and duals of a structural SVM.
#pragma once
#include <cstdint>

namespace majorant {

// A stack of rows, dense or CSR (indices is not null, ascending in each row), with one more column of `bias` behind.
template <class T>
struct Stack {
    int64_t d;
    T bias;
    const T* x;
    const int64_t* edges;    // CSR: row r has the entries edges[r] to edges[r + 1] - 1
    const int32_t* indices;  // CSR: their columns
};

// Bag i has counts[i] > 0 rows of the stack, from starts[i] on, and the class codes[i].
struct Bags {
    int64_t n;
    const int64_t* starts;
    const int64_t* counts;
    const int32_t* codes;
};

// One vector of d + 1 weights a class, w (classes, d + 1). Those of the classes before `first` are zero and stay so.
struct ClassWeights {
    int64_t classes, first;
    const double* w;
};

// Planes of every bag: (label, row of the bag), each with a share; the first used[i] of `most` are there.
struct BagPlanes {
    int64_t most;
    int32_t *label, *row;  // (n, most)
    double* share;         // (n, most)
    int32_t* used;         // (n)
};

// What one pass of coordinate steps is about: the objective's shares of the bags, costs (classes, classes) by true class and
// label, the penalty, and which planes come in before the steps on a bag: given ones, (n) each or null, and then, online,
// the one that is highest.
struct DualSweep {
    const double* shares;
    const double* cost;
    double alpha;
    const int32_t *label, *row;
    bool online;
    int64_t most_steps;
};

template <class T>
struct BagKernels {
    // The highest score of every class among the rows of every bag, best (n, classes), and where it is first.
    // own (n, width) gets the scores of a bag's own class, -inf from counts[i] on, or is null.
    void (*scores)(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, double* best, int32_t* where,
                   int64_t width, double* own);

    // Sum over bags of share ((1/tau) log sum_y exp(tau (pool_y + cost[code, y])) - pool_code), where pool is the
    // log-mean-exp of a class's scores at inverse temperature beta (0: their mean), and its gradient (classes, d + 1).
    double (*pooled)(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, const double* shares,
                     const double* cost, double beta, double tau, double* gradient);

    // Steps on the bags in `order`, w (classes, d + 1) in place. Returns the sum over them of share times how far the
    // highest plane was above the lowest one in use; *lost counts planes for which there was no room.
    double (*sweep)(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const DualSweep& about,
                    int64_t n_order, const int64_t* order, const BagPlanes& planes, double* w, int64_t* lost);

    // Features (classes, d + 1) of the planes, summed with their shares times those of the bags; returns their loss.
    double (*mixture)(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const double* shares,
                      const double* cost, const BagPlanes& planes, double* features);
};

}  // namespace majorant
