// Scores of the rows of bags, pooled by bag, and the dual of a structural SVM on bags.
#pragma once
#include "bags_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

template <class T>
void bag_scores(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, double* best, int32_t* where,
                int64_t width, double* own);
template <class T>
double bag_pooled(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, const double* shares,
                  const double* cost, double beta, double tau, double* gradient);
template <class T>
double bag_sweep(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const DualSweep& about,
                 int64_t n_order, const int64_t* order, const BagPlanes& planes, double* w, int64_t* lost);
template <class T>
double bag_mixture(const Stack<T>& stack, const Bags& bags, int64_t classes, int64_t first, const double* shares,
                   const double* cost, const BagPlanes& planes, double* features);

}  // namespace majorant::MAJORANT_UP_TO_V3
