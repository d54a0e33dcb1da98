// Medoids on a matrix of distances: where every row stands, whatever the type of the data and the instruction set.
#pragma once
#include <cstdint>

namespace majorant {

// The nearest and the second medoid of every row; there are at least two medoids.
template <class T>
struct MedoidPlaces {
    int64_t n, k;
    const T* distances;         // (n, n): row c has the distances of a medoid c to all rows
    const double* w;            // (n)
    int64_t* medoids;           // (k) rows
    int32_t *nearest, *second;  // (n) positions among the medoids
    T *first, *next;            // (n) distances to these
    T* table;                   // (n, k) distances to all medoids
};

// Where a search among candidates stands.
struct MedoidSwaps {
    int64_t at, quiet, swaps;  // the next candidate, how many in a row did not help, how many became medoids
};

}  // namespace majorant
