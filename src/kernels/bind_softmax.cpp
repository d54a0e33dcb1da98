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
    m.def("gate_pass", [](Mat<const double> columns, Mat<const double> w, double beta, Cube<const double> coef,
                          std::optional<Cube<const double>> log_density, Cube<double> q, std::optional<Mat<double>> log_sums,
                          Mat<double> sums) {
        const size_t g = columns.shape(0), n = columns.shape(1), runs = coef.shape(0), k = coef.shape(1);
        need(k > 0 && coef.shape(2) == g, "coef must be (runs, k, g) with k > 0");
        need(beta > 0, "beta must be positive");
        need((w.shape(0) == 1 || w.shape(0) == runs) && w.shape(1) == n, "w must be (1, n) or (runs, n)");
        product({runs, k, n});
        product({g, n});
        const size_t width = k + product({k - 1, g}) + product({k, k - 1}) / 2 * (product({g, g + 1}) / 2);
        product({runs, width});
        const auto fits = [&](const auto& table) {
            return table.shape(0) == runs && table.shape(1) == k && table.shape(2) == n;
        };
        need(fits(q) && (!log_density || fits(*log_density)), "tables of rows must be (runs, k, n)");
        need(!log_density || (log_sums && log_sums->shape(0) == runs && log_sums->shape(1) == n), "log_sums must be (runs, n)");
        need(sums.shape(0) == runs && sums.shape(1) == width, "sums must be (runs, k + (k - 1) g + pairs of both)");
        const Gate gate{int64_t(n), int64_t(g), int64_t(k), columns.data(), w.data(), w.shape(0) != 1, beta};
        nb::gil_scoped_release release;
        chosen()->gate_pass(gate, runs, coef.data(), log_density ? log_density->data() : nullptr, q.data(),
                            log_sums ? log_sums->data() : nullptr, sums.data());
    }, nb::arg("columns").noconvert(), nb::arg("w").noconvert(), nb::arg("beta"), nb::arg("coef").noconvert(),
       nb::arg("log_density").noconvert().none(), nb::arg("q").noconvert(), nb::arg("log_sums").noconvert().none(),
       nb::arg("sums").noconvert());
}
