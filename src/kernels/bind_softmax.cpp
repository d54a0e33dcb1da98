// The Python face of logits: shapes are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

template <class T>
void bind_rows(nb::module_& m) {
    using Out = std::optional<Mat<double>>;
    m.def("softmax_pass", [](Mat<const T> x, Weights w, Mat<const double> coef, std::optional<Mat<const double>> offsets,
                             Out moments, Out blocks, Out probabilities, Out logs) {
        const size_t n = x.shape(0), p = x.shape(1), k = coef.shape(1), d = p + 1;
        need(k > 0 && coef.shape(0) == d, "coef must be (p + 1, k) with k > 0");
        product({d, k});
        product({n, k});
        const size_t pairs = product({k, k - 1}) / 2;
        if (blocks) product({pairs, d, d});
        const auto fits = [](const auto& table, size_t rows, size_t columns) {
            return !table || (table->shape(0) == rows && table->shape(1) == columns);
        };
        need(fits(offsets, n, k) && fits(probabilities, n, k) && fits(logs, n, k), "tables of rows must be (n, k)");
        need(fits(moments, d, k) && fits(blocks, pairs, d * d), "moments must be (p + 1, k), blocks (pairs, (p + 1)^2)");
        const double* w_data = data(w, n);
        const auto at = [](const Out& table) { return table ? table->data() : nullptr; };
        nb::gil_scoped_release release;
        return table<T>().softmax_pass(n, p, k, x.data(), w_data, coef.data(), offsets ? offsets->data() : nullptr, at(moments),
                                       at(blocks), at(probabilities), at(logs));
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("coef").noconvert(), nb::arg("offsets").noconvert().none(),
       nb::arg("moments").noconvert().none() = nb::none(), nb::arg("blocks").noconvert().none() = nb::none(),
       nb::arg("probabilities").noconvert().none() = nb::none(), nb::arg("logs").noconvert().none() = nb::none());

    m.def("soft_moments", [](Mat<const T> x, Weights w, Mat<const double> q, Mat<double> moments) {
        const size_t n = x.shape(0), p = x.shape(1), k = q.shape(1);
        product({p + 1, k});
        need(q.shape(0) == n && moments.shape(0) == p + 1 && moments.shape(1) == k, "q must be (n, k), moments (p + 1, k)");
        const double* w_data = data(w, n);
        nb::gil_scoped_release release;
        table<T>().soft_moments(n, p, k, x.data(), w_data, q.data(), moments.data());
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("q").noconvert(), nb::arg("moments").noconvert());
}

}  // namespace

void bind_softmax(nb::module_& m) {
    bind_rows<float>(m);
    bind_rows<double>(m);
    m.def("bit_losses", [](Mat<double> eta, Vec<double> softplus) {
        const size_t n = eta.shape(0), p = eta.shape(1);
        product({n, p});
        need(softplus.shape(0) == n, "softplus must be (n)");
        nb::gil_scoped_release release;
        chosen()->bit_losses(n, p, eta.data(), softplus.data());
    }, nb::arg("eta").noconvert(), nb::arg("softplus").noconvert());
}
