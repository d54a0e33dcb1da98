// What the files share that give the kernels their Python face.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "kernels.hpp"

namespace nb = nanobind;

template <class T> using Vec = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Mat = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Weights = std::optional<Vec<const double>>;

inline void need(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

// How many numbers a table of these sizes has. Refused where it is more than any memory has, and before it overflows. An
// axis of nothing counts as one for that: an empty array may have any other size, and the kernels' own tables have it too.
inline size_t product(std::initializer_list<size_t> sizes) {
    constexpr size_t most = size_t(1) << 46;
    size_t total = 1, room = most;
    for (const size_t size : sizes) {
        need(size <= room, "the sizes of these arrays are larger than any memory");
        if (size) room /= size;
        total *= size;
    }
    return total;
}

inline const double* data(const Weights& w, size_t n) {
    if (!w) return nullptr;
    need(w->shape(0) == n, "weights must have one entry a row");
    return w->data();
}

const majorant::Kernels* chosen();  // the kernels of the instruction set in use

template <class T>
const majorant::Table<T>& table() {
    if constexpr (sizeof(T) == sizeof(float))
        return chosen()->f32;
    else
        return chosen()->f64;
}

void bind_bags(nb::module_& m);
void bind_box_searches(nb::module_& m);
void bind_categories(nb::module_& m);
void bind_chains(nb::module_& m);
void bind_flows(nb::module_& m);
void bind_gaps(nb::module_& m);
void bind_grids(nb::module_& m);
void bind_intervals(nb::module_& m);
void bind_medoids(nb::module_& m);
void bind_responses(nb::module_& m);
void bind_softmax(nb::module_& m);
void bind_swap(nb::module_& m);
