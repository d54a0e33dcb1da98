// The Python face of regressions: shapes are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

using Beside = std::optional<Vec<const double>>;

Responses checked(int family, double df, const Mat<const double>& columns, const Vec<const double>& y, const Beside& offset,
                  const Beside& trials) {
    const size_t p = columns.shape(0), n = columns.shape(1);
    need(family >= 0 && family <= int(Family::gamma), "family must be 0 to 4");
    need(Family(family) != Family::binomial || trials, "binomial targets need trials");
    need(y.shape(0) == n, "y must have one entry a row");
    product({p, n});
    return {Family(family), df, int64_t(n), int64_t(p), columns.data(), y.data(), data(offset, n), data(trials, n)};
}

}  // namespace

void bind_responses(nb::module_& m) {
    m.def("response_losses", [](int family, double df, Mat<const double> columns, Vec<const double> y, Beside offset,
                                Beside trials, Mat<const double> coef, Vec<const double> dispersions, Mat<double> out) {
        const Responses rows = checked(family, df, columns, y, offset, trials);
        const size_t models = coef.shape(0);
        product({models, size_t(rows.n)});
        need(coef.shape(1) == size_t(rows.p) && dispersions.shape(0) == models, "coef must be (m, p), dispersions (m)");
        need(out.shape(0) == models && out.shape(1) == size_t(rows.n), "out must be (m, n)");
        nb::gil_scoped_release release;
        chosen()->responses.losses(rows, models, coef.data(), dispersions.data(), out.data());
    }, nb::arg("family"), nb::arg("df"), nb::arg("columns").noconvert(), nb::arg("y").noconvert(), nb::arg("offset").noconvert().none(),
       nb::arg("trials").noconvert().none(), nb::arg("coef").noconvert(), nb::arg("dispersions").noconvert(), nb::arg("out").noconvert());

    m.def("response_sums", [](int family, double df, Mat<const double> columns, Vec<const double> y, Beside offset,
                              Beside trials, Mat<const double> coef, Vec<const double> dispersions, Mat<const double> q,
                              Mat<double> out) {
        const Responses rows = checked(family, df, columns, y, offset, trials);
        const size_t models = coef.shape(0), p = coef.shape(1), width = 2 + p + product({p, p + 1}) / 2;
        product({models, size_t(rows.n)});
        product({models, width});
        need(p == size_t(rows.p) && dispersions.shape(0) == models, "coef must be (m, p), dispersions (m)");
        need(q.shape(0) == models && q.shape(1) == size_t(rows.n), "q must be (m, n)");
        need(out.shape(0) == models && out.shape(1) == width, "out must be (m, 2 + p + p (p + 1) / 2)");
        nb::gil_scoped_release release;
        chosen()->responses.sums(rows, models, coef.data(), dispersions.data(), q.data(), out.data());
    }, nb::arg("family"), nb::arg("df"), nb::arg("columns").noconvert(), nb::arg("y").noconvert(), nb::arg("offset").noconvert().none(),
       nb::arg("trials").noconvert().none(), nb::arg("coef").noconvert(), nb::arg("dispersions").noconvert(), nb::arg("q").noconvert(), nb::arg("out").noconvert());
}
