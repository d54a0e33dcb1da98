#include "bags.hpp"

#include <cmath>

#include "elementary.hpp"
#include "stack.hpp"

namespace majorant::MAJORANT_ISA {

template struct DenseRows<float>;
template struct DenseRows<double>;

namespace {

int64_t largest(const Bags& bags) {
    int64_t most = 0;
    for (int64_t i = 0; i < bags.n; i++) most = std::max(most, bags.counts[i]);
    return most;
}

template <class T>
PerClass<T> read(const ClassWeights& weights, int64_t d) {
    PerClass<T> w(weights.classes, d);
    w.read(weights.w);
    return w;
}

}  // namespace

template <class T>
void bag_scores(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, double* best, int32_t* where,
                int64_t width, double* own) {
    const int64_t classes = weights.classes, first = weights.first;
    const auto w = read<T>(weights, stack.d);
    std::vector<T> table(largest(bags) * classes), top(classes);
    with_rows(stack, [&](const auto& rows) {
        for (int64_t i = 0; i < bags.n; i++) {
            const int64_t count = bags.counts[i];
            rows.scores(bags.starts[i], count, w, first, table.data());
            double* highest = best + i * classes;
            int32_t* at = where + i * classes;
            for (int64_t c = 0; c < first; c++) {
                highest[c] = 0.0;
                at[c] = 0;
            }
            for (int64_t c = first; c < classes; c++) {
                T high = table[c];
                int32_t row = 0;
                for (int64_t r = 1; r < count; r++)
                    if (table[r * classes + c] > high) {
                        high = table[r * classes + c];
                        row = int32_t(r);
                    }
                highest[c] = double(high);
                at[c] = row;
            }
            if (!own) continue;
            const int64_t code = bags.codes[i];
            double* mine = own + i * width;
            for (int64_t r = 0; r < width; r++)
                mine[r] = r >= count ? -infinity<double> : code < first ? 0.0 : double(table[r * classes + code]);
        }
    });
}

template <class T>
double bag_pooled(const Stack<T>& stack, const Bags& bags, const ClassWeights& weights, const double* shares,
                  const double* cost, double beta, double tau, double* gradient) {
    const int64_t classes = weights.classes, first = weights.first;
    const auto w = read<T>(weights, stack.d);
    PerClass<T, double> sums(classes, stack.d);
    std::vector<T> table(largest(bags) * classes), high(classes);
    std::vector<double> pool(classes), total(classes);
    double value = 0.0;
    with_rows(stack, [&](const auto& rows) {
        for (int64_t i = 0; i < bags.n; i++) {
            const int64_t count = bags.counts[i], code = bags.codes[i];
            rows.scores(bags.starts[i], count, w, first, table.data());
            for (int64_t c = first; c < classes; c++) {
                high[c] = table[c];
                total[c] = 0.0;
            }
            for (int64_t r = 0; r < count; r++)
                for (int64_t c = first; c < classes; c++) {
                    const T s = table[r * classes + c];
                    high[c] = s > high[c] ? s : high[c];
                    total[c] += double(s);
                }
            std::fill(pool.begin(), pool.begin() + first, 0.0);
            if (beta == 0) {  // every row has the same share of the mean
                for (int64_t c = first; c < classes; c++) {
                    pool[c] = total[c] / double(count);
                    total[c] = double(count);
                }
                std::fill(table.begin(), table.begin() + count * classes, T(1));
            } else {
                for (int64_t r = 0; r < count; r++)
                    for (int64_t c = first; c < classes; c++) table[r * classes + c] = T(beta) * (table[r * classes + c] - high[c]);
                if (first) // scores of these were never written
                    for (int64_t r = 0; r < count; r++) std::fill_n(table.begin() + r * classes, first, T(0));
                for (int64_t e = 0; e < count * classes; e++) table[e] = exp_of_negative(table[e]);
                for (int64_t c = first; c < classes; c++) total[c] = 0.0;
                for (int64_t r = 0; r < count; r++)
                    for (int64_t c = first; c < classes; c++) total[c] += double(table[r * classes + c]);
                for (int64_t c = first; c < classes; c++) pool[c] = double(high[c]) + std::log(total[c] / double(count)) / beta;
            }
            const double* loss = cost + code * classes;
            double top = pool[0] + loss[0];
            for (int64_t c = 1; c < classes; c++) top = std::max(top, pool[c] + loss[c]);
            double mass = 0.0;
            for (int64_t c = 0; c < classes; c++) mass += std::exp(tau * (pool[c] + loss[c] - top));
            value += shares[i] * (top + std::log(mass) / tau - pool[code]);
            for (int64_t c = first; c < classes; c++) {
                const double share = std::exp(tau * (pool[c] + loss[c] - top)) / mass - double(c == code);
                total[c] = shares[i] * share / total[c];
            }
            for (int64_t r = 0; r < count; r++)
                for (int64_t c = first; c < classes; c++) table[r * classes + c] *= T(total[c]);
            rows.collect(bags.starts[i], count, table.data(), first, sums);
        }
    });
    sums.write(gradient);
    return value;
}

#define MAJORANT_INSTANTIATE(T)                                                                                            \
    template void bag_scores<T>(const Stack<T>&, const Bags&, const ClassWeights&, double*, int32_t*, int64_t, double*);   \
    template double bag_pooled<T>(const Stack<T>&, const Bags&, const ClassWeights&, const double*, const double*, double, \
                                  double, double*);
MAJORANT_INSTANTIATE(float)
MAJORANT_INSTANTIATE(double)

}  // namespace majorant::MAJORANT_ISA
