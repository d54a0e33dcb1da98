// What differs between instruction sets: the namespace, the width of a vector and how many of them fit in registers.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if !defined(MAJORANT_ISA) || !defined(MAJORANT_UP_TO_V3)
#error "MAJORANT_ISA names the namespace of this build, MAJORANT_UP_TO_V3 that of the kernels that gain nothing from v4"
#endif

// A set uses the kernels that are compiled for narrower ones only: they are declared in the namespaces of these.
namespace majorant {
namespace baseline {}
namespace MAJORANT_UP_TO_V3 {}
namespace MAJORANT_ISA {
using namespace baseline;
using namespace MAJORANT_UP_TO_V3;
}  // namespace MAJORANT_ISA
}  // namespace majorant

namespace majorant::MAJORANT_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, registers = 32;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, registers = 16;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, registers = 32;
#else
constexpr int vector_bytes = 16, registers = 16;
#endif

template <class T>
struct Vector {
    static constexpr int lanes = vector_bytes / sizeof(T);
    using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    typedef T type __attribute__((vector_size(vector_bytes)));
    typedef Index index __attribute__((vector_size(vector_bytes)));

    static inline type load(const T* p) {
        type v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static inline void store(T* p, type v) { std::memcpy(p, &v, sizeof v); }
    static inline type broadcast(T a) { return type{} + a; }
};

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

inline double weight(const double* w, int64_t i) { return w ? w[i] : 1.0; }

}  // namespace majorant::MAJORANT_ISA
