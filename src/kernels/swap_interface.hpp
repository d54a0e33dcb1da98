// k-means by swaps of centres: what the search offers, whatever the type of the data and the instruction set.
#pragma once
#include <cstdint>
#include <vector>

namespace majorant {

// How hard one descent by swaps tries.
struct SwapEffort {
    int64_t candidates = 3;     // points that might become a centre, drawn for every round
    int64_t local_steps = 4;    // moves of centres to their means after a swap
    double still = 1e-5;        // a centre whose squared shift is below this share of the mean squared distance stays
    double accepted = 1e-7;     // least relative decrease of a round
    double progress = 1e-5;     // a smaller relative decrease counts as a failure
};

// Everything that an exact undo must bring back. Copying it is saving it.
struct SwapState {
    std::vector<double> centres, sums, mass;           // (k, stride), (k, stride), (k)
    std::vector<int64_t> members;                      // (k) number of points
    std::vector<double> between;                       // (k, k) distances of centres; empty where there are too many
    std::vector<double> reach;                         // (k) the largest sqrt(first) + third among a cluster's points
    std::vector<int32_t> nearest, second;              // (n)
    std::vector<double> first_square, second_square;   // (n) squared distances to these two
    std::vector<double> third_bound;                   // (n) no other centre is nearer than this
    double objective = 0.0;
};

class SwapSearch {
public:
    SwapEffort effort;

    virtual ~SwapSearch() = default;

    virtual int64_t n() const = 0;
    virtual int64_t d() const = 0;
    virtual int64_t k() const = 0;
    virtual void centres(double* out) const = 0;  // (k, d)

    // k-means++ and the nearest centres of all points.
    virtual void seed() = 0;
    // At most `limit` Lloyd steps; true when the last one won less than `tolerance` of the objective.
    virtual bool descend(int64_t limit, double tolerance) = 0;
    // At most `limit` rounds of swaps; true when `patience` of them in a row have failed.
    virtual bool rounds(int64_t patience, int64_t limit) = 0;
    // Moves of single points, each an improvement after both means have moved: at most `sweeps` passes. Returns the moves.
    virtual int64_t single_moves(int64_t sweeps) = 0;
    // Leave a local optimum: `strength` times the cheaper of two random centres goes to a point drawn by squared distance,
    // or to any point.
    virtual void kick(int64_t strength, bool anywhere) = 0;
    // Lloyd steps and single moves until neither finds anything, or `limit` passes are over; true when nothing is left
    // and the centres are exactly the means of the points nearest to them.
    virtual bool polish(int64_t limit) = 0;
    // Remember this solution as the best one; go back to it.
    virtual void keep() = 0;
    virtual void restore() = 0;
    // Where clusters of this solution and of the kept one hold the same points, the better ones are taken; false, and nothing
    // has changed, when that gives no better solution than both.
    virtual bool recombine() = 0;

    // One swap with its local steps: kept if the objective falls, else undone.
    virtual bool attempt(int64_t centre, int64_t point) = 0;
    // What the objective falls by when a point becomes a further centre, and what it then rises by when centre j goes.
    virtual double evaluate(int64_t point, double* losses) = 0;

    virtual const SwapState& state() const = 0;
    const std::vector<double>& accepted() const { return accepted_; }  // the objective after every accepted round
    void forget_accepted() { accepted_.clear(); }
    int64_t n_rounds() const { return rounds_; }

protected:
    std::vector<double> accepted_;
    int64_t rounds_ = 0;
};

}  // namespace majorant
