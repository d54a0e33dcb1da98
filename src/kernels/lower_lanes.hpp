// Where is one vector below another?
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// Bit l is set where a[l] < b[l].
inline unsigned lower_lanes(Vector<double>::type a, Vector<double>::type b) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(__m512d(a), __m512d(b), _CMP_LT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(__m256d(a), __m256d(b), _CMP_LT_OQ)));
#else
    unsigned mask = 0;
    for (int l = 0; l < Vector<double>::lanes; l++) mask |= unsigned(a[l] < b[l]) << l;
    return mask;
#endif
}

inline unsigned lower_lanes(Vector<float>::type a, Vector<float>::type b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_LT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_LT_OQ)));
#else
    unsigned mask = 0;
    for (int l = 0; l < Vector<float>::lanes; l++) mask |= unsigned(a[l] < b[l]) << l;
    return mask;
#endif
}

}  // namespace majorant::MAJORANT_ISA
