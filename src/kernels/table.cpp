// The table of one instruction set's kernels.
#include "assign.hpp"
#include "bags.hpp"
#include "bumps.hpp"
#include "categories.hpp"
#include "chains.hpp"
#include "cover.hpp"
#include "gate.hpp"
#include "gauss.hpp"
#include "gauss_em.hpp"
#include "gauss_gaps.hpp"
#include "gauss_step.hpp"
#include "grids.hpp"
#include "isa.hpp"
#include "kernels.hpp"
#include "latents.hpp"
#include "measure.hpp"
#include "medoids.hpp"
#include "regress.hpp"
#include "responses.hpp"
#include "softmax.hpp"
#include "swap.hpp"
#include "trim.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
constexpr Table<T> table{assign<T>, moments<T>, distances<T>, row_minimum<T>, draw<T>,
                         walk<T>,   collect<T>, sort_rows<T>, standard_rows<T>, plus_plus<T>,
                         regression_pass<T>, regression_em<T>, regression_concentrate<T>, regression_greedy<T>,
                         swap_search<T>, medoid_places<T>, medoid_replace<T>, medoid_swaps<T>, gauss_energies<T>, gauss_pass<T>, gauss_moments<T>, gauss_em<T>,
                         softmax_pass<T>, soft_moments<T>};

template <class T>
constexpr BagKernels<T> bags{bag_scores<T>, bag_pooled<T>, bag_sweep<T>, bag_mixture<T>};

template <class T>
constexpr GridKernels<T> grids{grid_infer<T>, grid_pooled<T>, grid_sweep<T>, grid_mixture<T>};

#define MAJORANT_NAME(x) #x
#define MAJORANT_STRING(x) MAJORANT_NAME(x)
extern const Kernels kernels;
const Kernels kernels{MAJORANT_STRING(MAJORANT_ISA), table<float>, table<double>, {cover_search, cover_climb},
                      {bump_search, bump_climb}, {line_search, line_climb}, gauss_step, gauss_factor, regression_step,
                      category_em, bit_losses, gate_pass, {response_losses, response_sums}, {chain_sums, chain_best, chain_draw, chain_pass}, bags<float>, bags<double>,
                      grids<float>, grids<double>, gauss_gaps<float>, gauss_gaps<double>};

}  // namespace majorant::MAJORANT_ISA
