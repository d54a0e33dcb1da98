// The Python face of passes over rows with missing entries: shapes and codes are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

template <class T, class Kernel>
void bind_gauss_gaps(nb::module_& m, Kernel kernel) {
    m.def("gauss_gaps", [kernel](Mat<const T> x, Weights w, Vec<const double> weights, Mat<const double> means,
                                 Vec<const double> covariances, int code, double beta, Mat<double> moments) {
        const size_t n = x.shape(0), d = x.shape(1), k = means.shape(0);
        need(code >= 0 && code <= 3, "the covariance type must be 0, 1, 2 or 3");
        need(n > 0 && k > 0 && d > 0 && d <= 64, "there must be rows, components and 1 to 64 columns");
        const Covariance type = Covariance(code);
        product({k, d + 2, d});
        need(means.shape(1) == d && weights.shape(0) == k, "means must be (k, d), weights (k,)");
        need(int64_t(covariances.shape(0)) == covariance_size(k, d, type), "covariances do not fit the covariance type");
        need(moments.shape(0) == k && int64_t(moments.shape(1)) == 2 + int64_t(d) + second_moments(d, type),
             "moments do not fit the covariance type");
        need(beta > 0, "beta must be positive");
        const double* row_weights = data(w, n);
        GaussTotals totals;
        bool is_done;
        {
            nb::gil_scoped_release release;
            const GaussMixture mixture{int64_t(k), int64_t(d), type, weights.data(), means.data(), covariances.data()};
            is_done = (chosen()->*kernel)(n, x.data(), row_weights, mixture, beta, moments.data(), &totals);
        }
        return nb::make_tuple(is_done, totals.free, totals.entropy);
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("weights").noconvert(), nb::arg("means").noconvert(),
       nb::arg("covariances").noconvert(), nb::arg("covariance_type"), nb::arg("beta"), nb::arg("moments").noconvert());
}

}  // namespace

void bind_gaps(nb::module_& m) {
    bind_gauss_gaps<float>(m, &Kernels::gauss_gaps_f32);
    bind_gauss_gaps<double>(m, &Kernels::gauss_gaps_f64);
}
