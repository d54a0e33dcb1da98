// The kernels, and the table through which one instruction set's build of them is reached.
//
// Kernels are serial, know no Python and take plain C-contiguous arrays: one block of rows. Those that run in every pass
// allocate only small buffers.
// Sums over rows are doubles, of partial sums over at most 16 rows in the data's own type. Data are float or double (T).
// Weights may be null: every row then weighs one.
#pragma once
#include <cstdint>

#include "bags_interface.hpp"
#include "chains_interface.hpp"
#include "gauss_interface.hpp"
#include "grids_interface.hpp"
#include "medoids_interface.hpp"
#include "regression.hpp"
#include "responses_interface.hpp"
#include "swap_interface.hpp"

namespace majorant {

template <class T>
struct Table {
    // Nearest centre of every row, and the moments of the rows of each centre about that centre:
    // moments is (k, d + 2), [sum w, sum w (x - c), sum w |x - c|^2], or null.
    // labels (n) are read, to count how many change, and written; nearest (n) gets the squared distances, or is null.
    int64_t (*assign)(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres,
                      double* moments, int32_t* labels, T* nearest);

    // The same moments for given labels. A label outside [0, k) is left out.
    void (*moments)(int64_t n, int64_t d, int64_t k, const T* x, const double* w, const T* centres,
                    const int32_t* labels, double* moments);

    // Squared distances (n, k), from differences.
    void (*distances)(int64_t n, int64_t d, int64_t k, const T* x, const T* centres, T* out);

    // Smallest entry of every row of a table (n, states) and its first position.
    void (*row_minimum)(int64_t n, int64_t states, const T* energies, T* least, int32_t* argument);

    // One latent a row from softmax(-price w (energy - least)) by inverse CDF at uniforms (n).
    // Returns the summed excess sum w (energy[z] - least); *moved counts rows with z != argument.
    double (*draw)(int64_t n, int64_t states, const T* energies, const double* w, const T* least, const int32_t* argument,
                   double price, const double* uniforms, int32_t* z, int64_t* moved);

    // Uniform walk over the configurations whose summed regret w (energy - least) is at most room, from z:
    // at every step one row takes a state drawn among all that fit.
    void (*walk)(int64_t n, int64_t states, const T* energies, const double* w, const T* least, double room,
                 int64_t steps, const int64_t* sites, const double* picks, int32_t* z);

    // Sums of the rows of features (n, p) by label, out (k, p). A label outside [0, k) is left out.
    void (*collect)(int64_t n, int64_t p, int64_t k, const T* features, const double* w, const int32_t* labels, double* out);

    // Lexicographic order of the rows (equal rows by position; no NaN), and for each place in it whether its row
    // differs from the one before.
    void (*sort_rows)(int64_t n, int64_t d, const T* x, int64_t* order, uint8_t* is_new);

    // x * scale - shift, computed in double precision, of the rows named by order.
    void (*standard_rows)(int64_t n, int64_t d, const T* x, const int64_t* order, double scale, const double* shift,
                          T* out);

    // Greedy k-means++: `trials` candidates a step by inverse CDF of w * (squared distance), the best is kept.
    void (*plus_plus)(int64_t n, int64_t d, int64_t k, int64_t trials, const T* x, const double* w,
                      const double* uniforms, int64_t* chosen);

    // Mixture of linear regressions, y = x coef + noise. The free energy of all rows at inverse temperature beta
    // (infinity: the best component), and what is not null of: the table of energies (n, k), the responsibilities (n, k),
    // and the statistics (k, 2 + p + p (p + 1) / 2) about the current coefficients, r = y - x coef:
    // [sum q, sum q r^2, sum q r x, sum q x x' (lower triangle)].
    double (*regression_pass)(const Regressions& mixture, int64_t n, const T* x, const T* y, const double* w, double beta,
                              double* statistics, T* energies, T* responsibilities);

    // EM from parameters, in place, until what is left to gain is predicted to be below the tolerance; returns the free
    // energy. After the first steps each pair is followed by its squared extrapolation, where that gains. A run holds a
    // copy of all rows in double precision, by columns.
    // path (max_steps, 2) gets the free energy and the bound after every step, or is null.
    double (*regression_em)(const VarianceRule& rule, int64_t n, int64_t p, int64_t k, const T* x, const T* y,
                            const double* w, int64_t max_steps, double tolerance, double* weights, double* coef,
                            double* variances, double* path, int64_t* steps, bool* converged);

    // A line through some drawn rows, then `steps` times through the rows of smallest squared residual (over their odds,
    // unless null), up to a mass. Returns the largest squared residual among the rows of that mass nearest to the line.
    double (*regression_concentrate)(int64_t n, int64_t p, const T* x, const T* y, const double* w, const double* odds,
                                     int64_t n_drawn, const int64_t* drawn, double mass, int64_t steps, double* coef);

    // k lines one after the other, coef (k, p): of `candidates` lines through p + 1 rows, drawn by inverse CDF among the
    // rows that no line fits yet and concentrated, the one that leaves the least sum of log residuals.
    // mass (k, candidates), uniforms (k, candidates, p + 1).
    void (*regression_greedy)(int64_t n, int64_t p, int64_t k, const T* x, const T* y, const double* w, int64_t candidates,
                              int64_t steps, const double* mass, const double* uniforms, double* coef);

    // k-means by swaps of centres; weights are not null. The arrays must outlive the search. On the sphere, rows and
    // centres have length one, and centres are the directions of sums in place of means.
    SwapSearch* (*swap_search)(int64_t n, int64_t d, int64_t k, const T* x, const double* w, uint64_t seed, bool on_sphere);

    // Medoids: the nearest two of every row, from the medoids alone; the same after the medoid at a position has become a
    // row; exact swaps with m candidates in turn, which end after `tests` of them or when none helps by more than `least`.
    void (*medoid_places)(const MedoidPlaces<T>& p);
    void (*medoid_replace)(const MedoidPlaces<T>& p, int64_t position, int64_t row);
    MedoidSwaps (*medoid_swaps)(const MedoidPlaces<T>& p, int64_t m, const int64_t* candidates, MedoidSwaps from,
                                int64_t tests, double least);

    // Energies (n, k) of rows under Gaussian components.
    void (*gauss_energies)(int64_t n, const T* x, const Gaussians& components, T* out);

    // Free energies at inverse temperature beta, responsibilities and weighted moments about the means in one pass:
    // moments is (k, 1 + d + second moments), free (n), q (n, k); each may be null.
    GaussTotals (*gauss_pass)(int64_t n, const T* x, const double* w, const Gaussians& components, double beta,
                              double* moments, double* free, T* q);

    // The same moments for given responsibilities (n, k).
    void (*gauss_moments)(int64_t n, int64_t k, int64_t d, Covariance type, const T* x, const double* w,
                          const double* means, const double* q, double* moments);

    // Runs of EM from given parameters or responsibilities.
    void (*gauss_em)(int64_t n, const T* x, const double* w, const GaussSearch& search, const GaussRuns& runs);

    // Multinomial logit: u = [x, 1] coef + offsets, coef (p + 1, k), offsets (n, k) or null. Returns sum w logsumexp(u), and
    // what is not null of: the moments sum w [x, 1]' softmax(u) (p + 1, k), for each pair of states a < b the block
    // sum w q_a q_b [x, 1]' [x, 1] of the Hessian (k (k - 1) / 2, (p + 1) (p + 1)), softmax(u) (n, k) and its logarithm.
    double (*softmax_pass)(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* coef,
                           const double* offsets, double* moments, double* blocks, double* probabilities, double* logs);

    // The same moments for given probabilities (n, k).
    void (*soft_moments)(int64_t n, int64_t p, int64_t k, const T* x, const double* w, const double* q, double* moments);
};

// Branch and bound for the largest value of a function of a place.
struct BoxSearch {
    virtual ~BoxSearch() = default;
    // Climbs from c; the value that it reaches prunes from then on.
    virtual void propose(const double* c) = 0;
    // Goes on for about so many point-box tests; true once nothing above lower() + tolerance is left, or memory has run out.
    virtual bool advance(int64_t tests) = 0;
    virtual double lower() const = 0;  // the value at centre()
    virtual double upper() const = 0;  // nothing is above it, at any time
    virtual const double* centre() const = 0;
    virtual int64_t tests() const = 0;
    virtual int64_t boxes() const = 0;
    virtual int64_t columns() const = 0;
};

// The largest cover: h(c) = sum_i w_i (reach_i - |x_i - c|^2)_+.
struct Cover {
    BoxSearch* (*search)(int64_t n, int64_t d, const double* x, const double* w, const double* reach, double tolerance);

    // Local maxima of h: each of the centres (n_starts, d) moves to the mean of its active points until h stops growing.
    // values get h. Stops after the first value above `enough`; returns how many starts were climbed, and in *tests how many
    // points were looked at. Quicker where the first column ascends.
    int64_t (*climb)(int64_t n, int64_t d, const double* x, const double* w, const double* reach, int64_t n_starts,
                     double* centres, double* values, int64_t max_steps, double enough, int64_t* tests);
};

// The M-step of a Gaussian mixture: parameters that minimise <moments, energies> among those whose covariances have no
// eigenvalue below the floor. Moments are about `reference`. A component without mass keeps its reference as mean and the
// covariance that it has in `out`. Where `single`, means are rounded to single precision.
using GaussStepKernel = GaussStep (*)(int64_t k, int64_t d, Covariance type, double floor, const double* moments,
                                      const double* reference, bool single, const GaussParameters& out);

// Factors of covariances, and -log N(mean; mean, covariance); returns the first singular component, or -1.
using GaussFactorKernel = int64_t (*)(int64_t k, int64_t d, Covariance type, const double* covariances, double* factors,
                                      double* constants);
// M-step of a mixture of regressions from statistics about `coef`: parameters in place; returns the statistics' energy there.
using RegressionStep = double (*)(const VarianceRule& rule, int64_t k, int64_t p, const double* statistics,
                                  double* weights, double* coef, double* variances);

// The highest place of a sum of Gaussian bumps: g(c) = sum_i height_i exp(-|x_i - c|^2 / 2), heights not negative.
struct Bumps {
    BoxSearch* (*search)(int64_t n, int64_t d, const double* x, const double* heights, double tolerance);

    // Local maxima of g by mean shift: each of the centres (n_starts, d) moves to the mean of the points under their bumps,
    // or beyond it, until g grows by less than progress, relative. values get g. Returns how many points were looked at.
    int64_t (*climb)(int64_t n, int64_t d, const double* x, const double* heights, int64_t n_starts, double* centres,
                     double* values, int64_t max_steps, double progress);
};

// The same of lines: g(c) = sum_i height_i exp(-(y_i - z_i'c)^2 / 2), over all coefficients c.
struct LineBumps {
    // Partitions of the rows into groups: labels (n_partitions, n) from 0 to n - 1, and caps (n_partitions, n) by label. The
    // bumps of a group are known to add up to its cap at most, wherever the line is: what keeps steep lines, which meet all
    // rows of one z, from being taken to be near all of them at once.
    BoxSearch* (*search)(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_partitions,
                         const int32_t* labels, const double* caps, double tolerance);
    // Local maxima by least squares of the rows under their bumps.
    int64_t (*climb)(int64_t n, int64_t p, const double* z, const double* y, const double* heights, int64_t n_starts,
                     double* lines, double* values, int64_t max_steps, double progress);
};

// Rows of categorical columns: codes (n, d) count through all columns, from first[j] in column j; -1 is a missing cell.
struct Categories {
    int64_t n, d, codes_of_all;
    const int32_t* codes;
    const int64_t* first;  // (d + 1)
    const double* w;       // null: one each
};

// EM of a mixture of such columns with squared extrapolation, from weights (k) and probabilities (k, codes), in place, until
// what is left to gain is predicted to be within the tolerance. Returns minus the log-likelihood, path (max_steps) has it
// after every step.
using CategoryEm = double (*)(const Categories& rows, int64_t k, int64_t max_steps, double tolerance, double* weights,
                              double* probabilities, double* path, int64_t* steps, bool* converged);

// Of logits eta (n, p) the sums over each row of log(1 + exp(eta)); eta becomes -1 / (1 + exp(-eta)).
using BitLosses = void (*)(int64_t n, int64_t p, double* eta, double* softplus);

// Logits of k components by g covariates: columns (g, n), weights (n), or (runs, n) where each run has its own, and the
// inverse temperature of responsibilities.
struct Gate {
    int64_t n, g, k;
    const double *columns, *w;
    bool each_weighs;
    double beta;
};

// For each run, coef (runs, k, g): from log densities (runs, k, n) the responsibilities q (runs, k, n) times weights, and
// log_sums (runs, n); where log densities are null, q is read. sums (runs, width) are the sums of q, then score and
// information of the logits of all components but the first, lower triangles of pairs of components and of covariates.
using GatePass = void (*)(const Gate& gate, int64_t runs, const double* coef, const double* log_density, double* q,
                          double* log_sums, double* sums);

// Rows with missing entries (NaN) of at most 64 columns: the pass of `gauss_pass`, of the densities of observed entries.
// Moments are those of completed rows as they are expected given these, and each component has a last number, minus the
// entropies of its missing entries: (k, 2 + d + second moments). False where a covariance is
// singular.
template <class T>
using GaussGaps = void (*)(int64_t n, const T* x, const double* w, int64_t runs, const GaussMixture* mixtures, double beta,
                           double* moments, GaussTotals* totals, bool* done);

struct Kernels {
    const char* isa;
    Table<float> f32;
    Table<double> f64;
    Cover cover;
    Bumps bumps;
    LineBumps line_bumps;
    GaussStepKernel gauss_step;
    GaussFactorKernel gauss_factor;
    RegressionStep regression_step;
    CategoryEm category_em;
    BitLosses bit_losses;
    GatePass gate_pass;
    ResponseKernels responses;
    Chains chains;
    BagKernels<float> bags_f32;
    BagKernels<double> bags_f64;
    GridKernels<float> grids_f32;
    GridKernels<double> grids_f64;
    GaussGaps<float> gauss_gaps_f32;
    GaussGaps<double> gauss_gaps_f64;
};

namespace baseline { extern const Kernels kernels; }
namespace v3 { extern const Kernels kernels; }
namespace v4 { extern const Kernels kernels; }

}  // namespace majorant
