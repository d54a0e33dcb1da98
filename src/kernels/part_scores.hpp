// Filters and table of a model of parts as the kernels use them, and the scores of one image.
#pragma once
#include "grids_interface.hpp"
#include "stack.hpp"

namespace majorant::MAJORANT_ISA {

// Parts are padded to whole vectors: filters with zeros, the table with minus infinity, so that padding is never the best.
template <class T>
struct PartWeights {
    using V = Vector<T>;
    using vec = typename V::type;

    int64_t classes, regions, parts, d, width;
    T scale;
    PerClass<T> filters;
    std::vector<T> table;

    PartWeights(const PartModel& model, int64_t regions, int64_t d)
        : classes(model.classes), regions(regions), parts(model.parts), d(d),
          width((parts + V::lanes - 1) / V::lanes * V::lanes), scale(T(model.scale)), filters(width, d),
          table(classes * regions * width, -infinity<T>) {}

    T* at(int64_t label, int64_t region) { return table.data() + (label * regions + region) * width; }
    const T* at(int64_t label, int64_t region) const { return table.data() + (label * regions + region) * width; }

    void read(const double* w) {
        for (int64_t p = 0; p < parts; p++)
            for (int64_t l = 0; l < d; l++) filters[p][l] = T(w[p * d + l]);
        w += parts * d;
        for (int64_t t = 0; t < classes * regions; t++)
            for (int64_t p = 0; p < parts; p++) table[t * width + p] = T(w[t * parts + p]);
    }
    void write(double* w) const {
        for (int64_t p = 0; p < parts; p++)
            for (int64_t l = 0; l < d; l++) w[p * d + l] = double(filters[p][l]);
        w += parts * d;
        for (int64_t t = 0; t < classes * regions; t++)
            for (int64_t p = 0; p < parts; p++) w[t * parts + p] = double(table[t * width + p]);
    }

    // The sum over regions of the best part's score under a class; products (regions, width) are those with the filters.
    double best(const T* products, int64_t label) const {
        const vec factor = V::broadcast(scale);
        double total = 0.0;
        for (int64_t r = 0; r < regions; r++) {
            const T *product = products + r * width, *entry = at(label, r);
            vec high = V::load(product) + factor * V::load(entry);
            for (int64_t p = V::lanes; p < width; p += V::lanes) {
                const vec value = V::load(product + p) + factor * V::load(entry + p);
                high = value > high ? value : high;
            }
            T most = high[0];
            for (int v = 1; v < V::lanes; v++) most = high[v] > most ? high[v] : most;
            total += double(most);
        }
        return total;
    }

    // The first best part of every region under a class.
    void parts_of(const T* products, int64_t label, int32_t* map) const {
        for (int64_t r = 0; r < regions; r++) {
            const T *product = products + r * width, *entry = at(label, r);
            int32_t where = 0;
            T high = product[0] + scale * entry[0];
            for (int64_t p = 1; p < parts; p++) {
                const T value = product[p] + scale * entry[p];
                if (value > high) {
                    high = value;
                    where = int32_t(p);
                }
            }
            map[r] = where;
        }
    }
};

// The regions of the images as rows of a stack.
template <class T>
Stack<T> stack_of(const Grids<T>& grids) {
    return {grids.d, T(0), grids.x, nullptr, nullptr};
}

// Scores of the classes, best (classes), and the label of highest score plus loss.
template <class T>
int32_t highest(const PartWeights<T>& weights, const T* products, const double* loss, double* best) {
    int32_t label = 0;
    for (int64_t c = 0; c < weights.classes; c++) {
        best[c] = weights.best(products, c);
        if (best[c] + loss[c] > best[label] + loss[label]) label = int32_t(c);
    }
    return label;
}

}  // namespace majorant::MAJORANT_ISA
