// Exponential and logarithm of one number, without branches, so that a loop of them becomes vector code.
#pragma once
#include <cstdint>
#include <cstring>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// The same bits as another type: C++17 has no std::bit_cast.
template <class To, class From>
inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// exp(x) for x <= 0 to about 1e-15, zero below -700 and for NaN (no weight times an absent state).
inline double exp_of_negative(double x) {
    const double clipped = x > -700.0 ? x : -700.0;
    const int32_t power = int32_t(clipped * 1.4426950408889634 - 0.5);  // truncation rounds a negative number to nearest
    const double f = clipped - double(power) * 0.6931471805599453;
    double value = 1.0 / 479001600.0;
    constexpr double factorials[] = {39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0,
                                     120.0,      24.0,      6.0,      2.0,     1.0,    1.0};
#pragma GCC unroll 12
    for (double factorial : factorials) value = value * f + 1.0 / factorial;
    const double scale = bits_as<double>(int64_t(power + 1023) << 52);
    return value * scale * double(x > -700.0);
}

// The same to about 1e-7, zero below -64: products of smaller numbers would be subnormal, and slow.
inline float exp_of_negative(float x) {
    const float clipped = x > -64.0f ? x : -64.0f;
    const int32_t power = int32_t(clipped * 1.44269504f - 0.5f);
    const float f = clipped - float(power) * 0.693147181f;
    float value = 1.0f / 5040.0f;
    constexpr float factorials[] = {720.0f, 120.0f, 24.0f, 6.0f, 2.0f, 1.0f, 1.0f};
#pragma GCC unroll 7
    for (float factorial : factorials) value = value * f + 1.0f / factorial;
    const float scale = bits_as<float>((power + 127) << 23);
    return value * scale * float(x > -64.0f);
}

// log(x) for a normal positive number to about 1e-16 relative to the larger of the result and one.
inline double log_of_positive(double x) {
    const uint64_t bits = bits_as<uint64_t>(x);
    const double mantissa = bits_as<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);  // in [1, 2)
    const bool upper = mantissa > 1.4142135623730951;
    const double power = double(int32_t(bits >> 52) - 1023 + int32_t(upper));
    const double m = upper ? 0.5 * mantissa : mantissa, s = (m - 1.0) / (m + 1.0), square = s * s;
    double series = 1.0 / 21.0;
#pragma GCC unroll 10
    for (int n = 19; n > 0; n -= 2) series = series * square + 1.0 / n;
    return power * 0.6931471805599453 + 2.0 * s * series;
}

}  // namespace majorant::MAJORANT_ISA
