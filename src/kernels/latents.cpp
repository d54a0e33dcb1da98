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
    constexpr double reach = 37.0;  // exp(-37) is out of reach of a 53-bit uniform
    constexpr int64_t lanes = 8;
    const int64_t blocks = (states + lanes - 1) / lanes, padded = blocks * lanes;
    std::vector<double> mass(padded), block_mass(blocks);
    double excess = 0.0;
    int64_t changes = 0;
    for (int64_t i = 0; i < n; i++) {
        const T* row = energies + i * states;
        const double wi = weight(w, i), scale = price * wi, low = double(least[i]);
        int64_t in_reach = 0;
        for (int64_t s = 0; s < states; s++) {
            mass[s] = double(row[s]);
            in_reach += scale * (mass[s] - low) < reach;
        }
        if (in_reach <= 1) {
            z[i] = argument[i];
            continue;
        }
        std::fill(mass.begin() + states, mass.end(), infinity<double>);
        for (int64_t s = 0; s < padded; s++) mass[s] = exp_of_negative(-scale * (mass[s] - low));
        double total = 0.0;
        for (int64_t c = 0; c < blocks; c++) {
            double sum = 0.0;
            for (int64_t v = 0; v < lanes; v++) sum += mass[c * lanes + v];
            block_mass[c] = sum;
            total += sum;
        }
        // The inverse CDF takes states in any order: the best one, which most rows keep, goes first.
        int32_t chosen = argument[i];
        double rest = uniforms[i] * total - mass[chosen];
        if (rest >= 0) {
            block_mass[chosen / lanes] -= mass[chosen];
            mass[chosen] = 0.0;
            int64_t c = 0;
            for (; c + 1 < blocks && rest >= block_mass[c]; c++) rest -= block_mass[c];
            for (int64_t s = c * lanes; s < std::min(states, (c + 1) * lanes); s++) {
                if (!(mass[s] > 0)) continue;
                chosen = int32_t(s);  // the last one with mass should rounding carry us past the end
                rest -= mass[s];
                if (rest < 0) break;
            }
        }
        z[i] = chosen;
        if (chosen != argument[i]) {
            changes++;
            excess += wi * (double(row[chosen]) - low);
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
        const double others = spent - regret(i, z[i]), rest = room - others;
        int64_t m = 0;
        for (int64_t s = 0; s < states; s++)
            if (regret(i, s) <= rest) fits[m++] = int32_t(s);
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
