// Small symmetric matrices: Cholesky factors, their inverses, eigenvalues. All row-major.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// The lower triangle L of L L' = a - shift I; false if that matrix is not positive definite.
inline bool cholesky(int64_t d, const double* a, double shift, double* lower) {
    for (int64_t i = 0; i < d; i++) {
        double* row = lower + i * d;
        for (int64_t j = 0; j < i; j++) {
            double rest = a[i * d + j];
            for (int64_t l = 0; l < j; l++) rest -= row[l] * lower[j * d + l];
            row[j] = rest / lower[j * d + j];
        }
        double square = 0.0;
        for (int64_t l = 0; l < i; l++) square += row[l] * row[l];
        const double pivot = a[i * d + i] - shift - square;
        // A pivot of rounding alone is none.
        if (!(pivot > std::numeric_limits<double>::epsilon() * std::fabs(a[i * d + i])) || !std::isfinite(pivot)) return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

// The transpose of the inverse of a lower triangle: upper, zeros below. Returns the sum of its squares.
inline double transposed_inverse(int64_t d, const double* lower, double* upper) {
    double squares = 0.0;
    std::fill_n(upper, d * d, 0.0);
    for (int64_t c = 0; c < d; c++) {  // column c of the inverse is row c of the result
        double* row = upper + c * d;
        row[c] = 1.0 / lower[c * d + c];
        for (int64_t i = c + 1; i < d; i++) {
            double rest = 0.0;
            for (int64_t l = c; l < i; l++) rest -= lower[i * d + l] * row[l];
            row[i] = rest / lower[i * d + i];
        }
        for (int64_t i = c; i < d; i++) squares += row[i] * row[i];
    }
    return squares;
}

// Eigenvalues of a finite symmetric matrix and, as the rows of `a`, its eigenvectors: Householder's reduction to a
// tridiagonal matrix, then QL steps with implicit shifts (Golub and Van Loan, Matrix Computations, chapter 8). Entries are
// first scaled by a power of two, so that no square of them vanishes.
inline void eigen(int64_t d, double* a, double* values) {
    double largest = 0.0;
    int exponent;
    for (int64_t i = 0; i < d * d; i++) largest = std::max(largest, std::fabs(a[i]));
    std::frexp(largest, &exponent);
    for (int64_t i = 0; i < d * d; i++) a[i] = std::ldexp(a[i], -exponent);
    std::vector<double> beside(d, 0.0), axis(d), image(d), vectors(d * d, 0.0);
    for (int64_t i = 0; i < d; i++) vectors[i * d + i] = 1.0;
    for (int64_t c = 0; c + 1 < d; c++) {  // column c below the diagonal becomes one number
        double square = 0.0;
        for (int64_t i = c + 1; i < d; i++) square += a[i * d + c] * a[i * d + c];
        const double head = a[(c + 1) * d + c], length = std::sqrt(square);
        beside[c] = head > 0 ? -length : length;
        if (length == 0.0 || c + 2 == d) {
            beside[c] = head;
            continue;
        }
        std::fill(axis.begin(), axis.end(), 0.0);
        for (int64_t i = c + 1; i < d; i++) axis[i] = a[i * d + c];
        axis[c + 1] -= beside[c];
        const double norm = std::sqrt(2.0 * (square + std::fabs(head) * length));
        for (int64_t i = c + 1; i < d; i++) axis[i] /= norm;
        double along = 0.0;
        for (int64_t i = c + 1; i < d; i++) {
            double dot = 0.0;
            for (int64_t l = c + 1; l < d; l++) dot += a[i * d + l] * axis[l];
            image[i] = dot;
            along += dot * axis[i];
        }
        for (int64_t i = c + 1; i < d; i++) image[i] -= along * axis[i];
        for (int64_t i = c + 1; i < d; i++)
            for (int64_t l = c + 1; l < d; l++) a[i * d + l] -= 2.0 * (axis[i] * image[l] + image[i] * axis[l]);
        // Rows of `vectors` are the columns of the product of reflections.
        std::fill(image.begin(), image.end(), 0.0);
        for (int64_t i = c + 1; i < d; i++)
            for (int64_t l = 0; l < d; l++) image[l] += axis[i] * vectors[i * d + l];
        for (int64_t i = c + 1; i < d; i++)
            for (int64_t l = 0; l < d; l++) vectors[i * d + l] -= 2.0 * axis[i] * image[l];
    }
    for (int64_t i = 0; i < d; i++) values[i] = a[i * d + i];
    for (int64_t first = 0; first < d; first++) {
        for (int sweep = 0; sweep < 60; sweep++) {
            int64_t last = first;
            for (; last + 1 < d; last++) {
                const double size = std::fabs(values[last]) + std::fabs(values[last + 1]);
                if (std::fabs(beside[last]) <= std::numeric_limits<double>::epsilon() * size) break;
            }
            if (last == first) break;
            double g = (values[first + 1] - values[first]) / (2.0 * beside[first]), r = std::hypot(g, 1.0);
            g = values[last] - values[first] + beside[first] / (g + std::copysign(r, g));
            double s = 1.0, c = 1.0, p = 0.0;
            int64_t i = last - 1;
            for (; i >= first; i--) {
                const double f = s * beside[i], b = c * beside[i];
                r = std::hypot(f, g);
                beside[i + 1] = r;
                if (r == 0.0) {
                    values[i + 1] -= p;
                    beside[last] = 0.0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = values[i + 1] - p;
                r = (values[i] - g) * s + 2.0 * c * b;
                p = s * r;
                values[i + 1] = g + p;
                g = c * r - b;
                double *low = vectors.data() + i * d, *high = low + d;
                for (int64_t l = 0; l < d; l++) {
                    const double old = high[l];
                    high[l] = s * low[l] + c * old;
                    low[l] = c * low[l] - s * old;
                }
            }
            if (r == 0.0 && i >= first) continue;
            values[first] -= p;
            beside[first] = g;
            beside[last] = 0.0;
        }
    }
    for (int64_t i = 0; i < d; i++) values[i] = std::ldexp(values[i], exponent);
    std::copy(vectors.begin(), vectors.end(), a);
}

}  // namespace majorant::MAJORANT_ISA
