#include "latents.hpp"

#include <algorithm>
#include <vector>

#include "elementary.hpp"

namespace majorant::MAJORANT_ISA {

template <class T>
void row_minimum(int64_t n, int64_t states, const T* energies, T* least, int32_t* argument) {
    using V = Vector<T>;
    constexpr int64_t lanes = V::lanes;
    typename V::index lane;
    for (int v = 0; v < lanes; v++) lane[v] = v;
    const int64_t whole = states / lanes * lanes;
    for (int64_t i = 0; i < n; i++) {
        const T* row = energies + i * states;
        T best = row[0];
        int64_t at = 0;
        if (whole) {
            auto low = V::load(row);
            auto where = lane;
            for (int64_t z = lanes; z < whole; z += lanes) {
                const auto value = V::load(row + z);
                const auto lower = value < low;
                low = lower ? value : low;
                where = lower ? lane + typename V::Index(z) : where;
            }
            best = low[0];
            at = where[0];
            for (int v = 1; v < lanes; v++) {
                const bool wins = (low[v] < best) | ((low[v] == best) & (where[v] < at));
                best = wins ? low[v] : best;
                at = wins ? int64_t(where[v]) : at;
            }
        }
        for (int64_t z = whole; z < states; z++) {
            const bool lower = row[z] < best;
            best = lower ? row[z] : best;
            at = lower ? z : at;
        }
        least[i] = best;
        argument[i] = int32_t(at);
    }
}

template <class T>
double draw(int64_t n, int64_t states, const T* energies, const double* w, const T* least, const int32_t* argument,
            double price, const double* uniforms, int32_t* z, int64_t* moved) {
    constexpr int64_t strip = 16;  // lanes are rows
    std::vector<float> mass(states * strip);
    double excess = 0.0;
    int64_t changes = 0;
    for (int64_t first = 0; first < n; first += strip) {
        const int64_t m = std::min(strip, n - first);
        for (int64_t r = 0; r < m; r++) {
            const T* row = energies + (first + r) * states;
            const double scale = price * weight(w, first + r), low = double(least[first + r]);
            for (int64_t s = 0; s < states; s++) mass[s * strip + r] = float(scale * (low - double(row[s])));
            mass[argument[first + r] * strip + r] = -infinity<float>;  // the best state has a mass of one, and goes first
        }
        float others[strip] = {}, rest[strip], start[strip] = {};
        int32_t chosen[strip];
        for (int64_t s = 0; s < states; s++)
            for (int64_t r = 0; r < strip; r++) others[r] += mass[s * strip + r] = exp_of_negative(mass[s * strip + r]);
        for (int64_t r = 0; r < strip; r++) {
            const int64_t i = std::min(first + r, n - 1);
            rest[r] = float(uniforms[i] * (1.0 + double(others[r])) - 1.0);
            chosen[r] = argument[i];
        }
        // Inverse CDF: the last state with mass that begins before what is left of the uniform.
        for (int64_t s = 0; s < states; s++)
            for (int64_t r = 0; r < strip; r++) {
                const float next = mass[s * strip + r];
                chosen[r] = (next > 0.0f) & (start[r] <= rest[r]) ? int32_t(s) : chosen[r];
                start[r] += next;
            }
        for (int64_t r = 0; r < m; r++) {
            const int64_t i = first + r;
            z[i] = chosen[r];
            if (chosen[r] == argument[i]) continue;
            changes++;
            excess += weight(w, i) * (double(energies[i * states + chosen[r]]) - double(least[i]));
        }
    }
    *moved = changes;
    return excess;
}

template <class T>
void walk(int64_t n, int64_t states, const T* energies, const double* w, const T* least, double room, int64_t steps,
          const int64_t* sites, const double* picks, int32_t* z) {
    std::vector<int32_t> fits(states);
    auto regret = [&](int64_t i, int64_t s) {
        return weight(w, i) * (double(energies[i * states + s]) - double(least[i]));
    };
    double spent = 0.0;
    for (int64_t i = 0; i < n; i++) spent += regret(i, z[i]);
    for (int64_t step = 0; step < steps; step++) {
        const int64_t i = sites[step];
        const T* row = energies + i * states;
        const double others = spent - regret(i, z[i]), rest = room - others, wi = weight(w, i), low = double(least[i]);
        int64_t m = 0;
        for (int64_t s = 0; s < states; s++) {  // without branches, which would be guessed wrong
            fits[m] = int32_t(s);
            m += wi * (double(row[s]) - low) <= rest;
        }
        if (m == 0) continue;
        z[i] = fits[std::min<int64_t>(int64_t(picks[step] * double(m)), m - 1)];
        spent = others + regret(i, z[i]);
    }
}

template <class T>
void collect(int64_t n, int64_t p, int64_t k, const T* features, const double* w, const int32_t* labels, double* out) {
    std::fill(out, out + k * p, 0.0);
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0 || labels[i] >= k) continue;
        double* sum = out + labels[i] * p;
        const T* row = features + i * p;
        const double wi = weight(w, i);
        for (int64_t l = 0; l < p; l++) sum[l] += wi * double(row[l]);
    }
}

#define MAJORANT_INSTANTIATE(T)                                                                                      \
    template void row_minimum<T>(int64_t, int64_t, const T*, T*, int32_t*);                                          \
    template double draw<T>(int64_t, int64_t, const T*, const double*, const T*, const int32_t*, double, const double*,   \
                            int32_t*, int64_t*);                                                                     \
    template void walk<T>(int64_t, int64_t, const T*, const double*, const T*, double, int64_t, const int64_t*,           \
                          const double*, int32_t*);                                                                  \
    template void collect<T>(int64_t, int64_t, int64_t, const T*, const double*, const int32_t*, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
