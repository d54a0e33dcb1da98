// The Python face of passes over rows with missing entries: shapes and codes are checked, the interpreter lock is released.
#include <limits>
#include <memory>
#include <vector>

#include "binding.hpp"

using namespace majorant;

namespace {

template <class T, class Kernel>
void bind_gauss_gaps(nb::module_& m, Kernel kernel) {
    m.def("gauss_gaps", [kernel](Mat<const T> x, Weights w, Mat<const double> weights, Cube<const double> means,
                                 Mat<const double> covariances, int code, double beta, Cube<double> moments, Mat<double> totals) {
        const size_t n = x.shape(0), d = x.shape(1), runs = means.shape(0), k = means.shape(1);
        need(code >= 0 && code <= 3, "the covariance type must be 0, 1, 2 or 3");
        need(n > 0 && k > 0 && d > 0 && d <= 64, "there must be rows, components and 1 to 64 columns");
        const Covariance type = Covariance(code);
        product({runs, k, d + 2, d});
        need(means.shape(2) == d && weights.shape(0) == runs && weights.shape(1) == k,
             "means must be (runs, k, d), weights (runs, k)");
        const size_t size = covariance_size(k, d, type);
        need(covariances.shape(0) == runs && covariances.shape(1) == size, "covariances do not fit the covariance type");
        need(moments.shape(0) == runs && moments.shape(1) == k && moments.shape(2) == 2 + d + second_moments(d, type),
             "moments do not fit the covariance type");
        need(totals.shape(0) == runs && totals.shape(1) == 2, "totals must be (runs, 2)");
        need(beta > 0, "beta must be positive");
        const double* row_weights = data(w, n);
        std::vector<GaussMixture> mixtures;
        std::vector<GaussTotals> sums(runs);
        std::unique_ptr<bool[]> done(new bool[runs]);
        {
            nb::gil_scoped_release release;
            for (size_t r = 0; r < runs; r++)
                mixtures.push_back({int64_t(k), int64_t(d), type, weights.data() + r * k, means.data() + r * k * d,
                                    covariances.data() + r * size});
            if (runs)
                (chosen()->*kernel)(n, x.data(), row_weights, runs, mixtures.data(), beta, moments.data(), sums.data(), done.get());
            for (size_t r = 0; r < runs; r++) {
                totals.data()[2 * r] = done[r] ? sums[r].free : std::numeric_limits<double>::infinity();
                totals.data()[2 * r + 1] = done[r] ? sums[r].entropy : 0.0;
            }
        }
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("weights").noconvert(), nb::arg("means").noconvert(),
       nb::arg("covariances").noconvert(), nb::arg("covariance_type"), nb::arg("beta"), nb::arg("moments").noconvert(),
       nb::arg("totals").noconvert());
}

}  // namespace

void bind_gaps(nb::module_& m) {
    bind_gauss_gaps<float>(m, &Kernels::gauss_gaps_f32);
    bind_gauss_gaps<double>(m, &Kernels::gauss_gaps_f64);
}
