// Sums, maxima and draws over the paths of linear chains.
#pragma once
#include "chains_interface.hpp"
#include "isa.hpp"

namespace majorant::MAJORANT_UP_TO_V3 {

void chain_sums(const ChainScores& scores, const double* w, const ChainSums& out);
void chain_best(const ChainScores& scores, int32_t* path, double* score);
void chain_draw(const ChainScores& scores, int64_t draws, const double* uniforms, int32_t* path);
void chain_pass(const ChainPass& pass);

}  // namespace majorant::MAJORANT_UP_TO_V3
