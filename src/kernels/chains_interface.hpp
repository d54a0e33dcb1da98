// Linear chains: scores of paths in, sums, maxima and draws over all paths out.
#pragma once
#include <cstdint>

namespace majorant {

// A path's score is the sum over its positions of unary[t, s_t] and, from the second position on, of
// transitions[table[t], s_(t-1), s_t]. Minus infinity forbids; NaN and plus infinity must not occur.
struct ChainScores {
    int64_t n, states;          // chains, states
    const int64_t* offsets;     // (n + 1): chain c has the positions offsets[c] to offsets[c + 1] - 1
    const double* unary;        // (positions, states)
    const double* transitions;  // (tables, states, states), from row to column
    const int32_t* table;       // (positions): the table of the step into a position; null: table 0 for all
};

// Of the law exp(score) over paths; each but the first may be null. Chains of no finite score get -inf and zeros.
struct ChainSums {
    double* log_partition;  // (n)
    double* entropy;        // (n)
    double* marginals;      // (positions, states)
    double* steps;          // (tables, states, states): expected steps, weighted by w; the caller clears it
    double* pairs;          // (positions, states, states): of the states before and at a position; zeros at first ones
};

// Hidden Markov models of several runs side by side, by probabilities instead of scores: faster, but not for every chain.
struct ChainPass {
    int64_t runs, n, states, rows;  // runs, chains of each, states, rows of all chains
    const int64_t* offsets;         // (n + 1)
    const double* start;            // (runs, states)
    const double* steps;            // (runs, states, states), from row to column
    const double* log_density;      // (runs, rows, states)
    const double* w;                // (n), or (runs, n) where run_weights is n instead of 0; null: one each
    int64_t run_weights;
    double* q;              // (runs, rows, states): probabilities given all rows, times the weight; given the rows so far
                            // where first is null
    double* log_partition;  // (runs, n): NaN, and the chain in no other sum, where digits may have been lost
    double* first;          // (runs, states): expected first states are added
    double* counts;         // (runs, states, states): expected steps are added
};

struct Chains {
    void (*sums)(const ChainScores& scores, const double* w, const ChainSums& out);

    // The path of largest score of every chain, and that score. Of equal ones the first in lexicographic order.
    void (*best)(const ChainScores& scores, int32_t* path, double* score);

    // Paths (draws, positions) by inverse CDF at uniforms (draws, positions).
    void (*draw)(const ChainScores& scores, int64_t draws, const double* uniforms, int32_t* path);

    void (*pass)(const ChainPass& pass);
};

}  // namespace majorant
