// The Python face of mixtures of categorical columns: shapes and codes are checked, the interpreter lock is released.
#include <algorithm>

#include "binding.hpp"

using namespace majorant;

void bind_categories(nb::module_& m) {
    m.def("category_em", [](Mat<const int32_t> codes, Vec<const int64_t> first, Weights w, double tolerance,
                            Vec<double> weights, Mat<double> probabilities, Vec<double> path) {
        const size_t n = codes.shape(0), d = codes.shape(1), k = weights.shape(0), all = probabilities.shape(1);
        need(n > 0 && d > 0 && k > 0 && probabilities.shape(0) == k, "codes must be (n, d), probabilities (k, codes)");
        need(first.shape(0) == d + 1 && first(0) == 0 && size_t(first(d)) == all, "first must have d + 1 entries up to all codes");
        product({n, d});
        product({all, k});
        for (size_t j = 0; j < d; j++) {
            need(first(j) <= first(j + 1), "first must not fall");
            for (size_t i = 0; i < n; i++)
                need(codes(i, j) < 0 || (codes(i, j) >= first(j) && codes(i, j) < first(j + 1)), "a code is not of its column");
        }
        const Categories rows{int64_t(n), int64_t(d), int64_t(all), codes.data(), first.data(), data(w, n)};
        int64_t steps = 0;
        bool converged = false;
        double free;
        {
            nb::gil_scoped_release release;
            free = chosen()->category_em(rows, k, path.shape(0), tolerance, weights.data(), probabilities.data(), path.data(),
                                         &steps, &converged);
        }
        return nb::make_tuple(free, steps, converged);
    }, nb::arg("codes").noconvert(), nb::arg("first").noconvert(), nb::arg("w").none(), nb::arg("tolerance"),
       nb::arg("weights").noconvert(), nb::arg("probabilities").noconvert(), nb::arg("path").noconvert());
}
