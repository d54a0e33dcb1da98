#include "latents.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace majorant::MAJORANT_ISA {

template <class T>
void row_minimum(int64_t n, int64_t states, const T* energies, T* least, int32_t* argument) {
    for (int64_t i = 0; i < n; i++) {
        const T* row = energies + i * states;
        T best = row[0];
        int32_t at = 0;
        for (int64_t z = 1; z < states; z++) {
            const bool lower = row[z] < best;
            best = lower ? row[z] : best;
            at = lower ? int32_t(z) : at;
        }
        least[i] = best;
        argument[i] = at;
    }
}

template <class T>
double draw(int64_t n, int64_t states, const T* energies, const double* w, const T* least, const int32_t* argument,
            double price, const double* uniforms, int32_t* z, int64_t* moved) {
    // Below exp(-40) a state is out of reach of a 53-bit uniform.
    constexpr double reach = 40.0;
    std::vector<int32_t> states_in_reach(states);
    std::vector<double> cumulative(states);
    double excess = 0.0;
    int64_t changes = 0;
    for (int64_t i = 0; i < n; i++) {
        const T* row = energies + i * states;
        const double wi = weight(w, i), scale = price * wi;
        const T limit = scale > 0 ? T(least[i] + reach / scale) : infinity<T>;
        int64_t m = 0;
        for (int64_t s = 0; s < states; s++) {
            states_in_reach[m] = int32_t(s);
            m += row[s] <= limit;
        }
        int32_t chosen = argument[i];
        if (m > 1) {
            double total = 0.0;
            int64_t finite = 0;
            for (int64_t c = 0; c < m; c++) {
                const double regret = double(row[states_in_reach[c]]) - double(least[i]);
                if (!(regret < infinity<double>)) continue;
                total += std::exp(-scale * regret);
                cumulative[finite] = total;
                states_in_reach[finite++] = states_in_reach[c];
            }
            const double u = uniforms[i] * total;
            for (int64_t c = 0; c < finite; c++)
                if (u < cumulative[c] || c + 1 == finite) {
                    chosen = states_in_reach[c];
                    break;
                }
        }
        z[i] = chosen;
        if (chosen != argument[i]) {
            changes++;
            excess += wi * (double(row[chosen]) - double(least[i]));
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
