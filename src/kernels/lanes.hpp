// Sums over the lanes of several vectors at a time.
#pragma once
#include <utility>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

using Doubles = Vector<double>::type;

// The lanes of a vector in as many doubles as a register holds; those of single precision are added in pairs.
inline Doubles widened(Vector<double>::type v) { return v; }
template <size_t... lane>
inline Doubles widened(Vector<float>::type v, std::index_sequence<lane...>) {
    return __builtin_convertvector(__builtin_shufflevector(v, v, lane...), Doubles) +
           __builtin_convertvector(__builtin_shufflevector(v, v, (lane + sizeof...(lane))...), Doubles);
}
inline Doubles widened(Vector<float>::type v) { return widened(v, std::make_index_sequence<Vector<double>::lanes>()); }

// Adds neighbours `width` lanes apart: of a in the even groups of lanes, of b in the odd ones.
template <int width, size_t... lane>
inline Doubles folded(Doubles a, Doubles b, std::index_sequence<lane...>) {
    constexpr int lanes = sizeof...(lane);
    return __builtin_shufflevector(a, b, (lane / width % 2 == 0 ? lane : lanes + lane - width)...) +
           __builtin_shufflevector(a, b, (lane / width % 2 == 0 ? lane + width : lanes + lane)...);
}

// Lane i of the result is the sum over the lanes of v[i].
template <int count = Vector<double>::lanes>
inline Doubles lane_sums(const Doubles* v) {
    if constexpr (count == 1)
        return v[0];
    else
        return folded<count / 2>(lane_sums<count / 2>(v), lane_sums<count / 2>(v + count / 2),
                                 std::make_index_sequence<Vector<double>::lanes>());
}

// The sums of `count` vectors; v is read up to the next multiple of the number of lanes.
inline void lane_sums(int64_t count, const Doubles* v, double* out) {
    constexpr int lanes = Vector<double>::lanes;
    for (int64_t i = 0; i < count; i += lanes) {
        const Doubles sums = lane_sums(v + i);
        std::memcpy(out + i, &sums, sizeof sums);
    }
}

}  // namespace majorant::MAJORANT_ISA
