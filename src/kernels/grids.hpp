// Images as grids of regions with a part in each: scores, their pooling, and the dual of a structural SVM.
#pragma once
#include "grids_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
void grid_infer(const Grids<T>& grids, const PartModel& model, const double* w, const double* cost, bool is_given,
                double* best, int32_t* label, int32_t* map, double* own);
template <class T>
double grid_pooled(const Grids<T>& grids, const PartModel& model, const double* w, const double* shares, const double* cost,
                   double beta, double tau, double* gradient);
template <class T>
double grid_sweep(const Grids<T>& grids, const PartModel& model, const GridSweep& about, int64_t n_order,
                  const int64_t* order, const GridPlanes& planes, double* w, int64_t* lost);
template <class T>
double grid_mixture(const Grids<T>& grids, const PartModel& model, const double* shares, const double* cost,
                    const GridPlanes& planes, double* features);

}  // namespace majorant::MAJORANT_UP_TO_V3
