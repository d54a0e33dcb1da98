// The planes of one sample of a structural SVM and pairwise steps among them; an output is a label and some latent values.
#pragma once
#include <algorithm>
#include <cstdint>

namespace majorant::MAJORANT_ISA {
namespace {

struct Planes {
    int64_t most, length;
    int32_t *label, *values, *used;
    double* share;

    // Those of sample i; `all` has the arrays of all samples, `values` its latent values, `length` an output.
    template <class All>
    Planes(const All& all, int32_t* values, int64_t length, int64_t i)
        : most(all.most), length(length), label(all.label + i * most), values(values + i * most * length), used(all.used + i),
          share(all.share + i * most) {}

    const int32_t* latent(int64_t j) const { return values + j * length; }

    // False: every place is taken by a plane in use.
    bool add(int32_t new_label, const int32_t* new_latent) const {
        int64_t place = *used;
        for (int64_t j = 0; j < *used; j++) {
            if (label[j] == new_label && std::equal(new_latent, new_latent + length, latent(j))) return true;
            if (*used == most && share[j] == 0.0) place = j;
        }
        if (place == most) return false;
        label[place] = new_label;
        std::copy_n(new_latent, length, values + place * length);
        share[place] = *used ? 0.0 : 1.0;
        if (place == *used) ++*used;
        return true;
    }
};

// The highest plane and the lowest one in use, and by how much they differ.
struct Pair {
    int64_t high = 0, low = -1;
    double rise = 0.0;

    template <class T>
    Pair(const Planes& planes, const T* scores) {
        for (int64_t j = 0; j < *planes.used; j++) {
            if (scores[j] > scores[high]) high = j;
            if (planes.share[j] > 0 && (low < 0 || scores[j] < scores[low])) low = j;
        }
        rise = double(scores[high]) - double(scores[low]);
    }

    bool is_done(double begin) const { return rise <= 0.01 * begin || high == low; }

    // Give the higher plane what it gains from of the lower one's share; returns how much.
    double shift(const Planes& planes, double curvature) const {
        const double share = planes.share[low];
        const double moved = rise >= curvature * share ? share : rise / curvature;
        planes.share[high] += moved;
        planes.share[low] = moved == share ? 0.0 : share - moved;
        return moved;
    }
};

}  // namespace
}  // namespace majorant::MAJORANT_ISA
