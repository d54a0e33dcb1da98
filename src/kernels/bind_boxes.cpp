// The Python face of branch and bound over boxes: shapes are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

void bind_search(nb::module_& m) {
    nb::class_<BoxSearch>(m, "BoxSearch")
        .def("propose", [](BoxSearch& self, Vec<const double> centre) {
            need(int64_t(centre.shape(0)) == self.columns(), "centre must have one entry a column");
            nb::gil_scoped_release release;
            self.propose(centre.data());
        }, nb::arg("centre").noconvert())
        .def("advance", [](BoxSearch& self, int64_t tests) {
            nb::gil_scoped_release release;
            return self.advance(tests);
        }, nb::arg("tests"))
        .def_prop_ro("lower", &BoxSearch::lower)
        .def_prop_ro("upper", &BoxSearch::upper)
        .def_prop_ro("tests", &BoxSearch::tests)
        .def_prop_ro("boxes", &BoxSearch::boxes)
        .def("write_centre", [](const BoxSearch& self, Vec<double> out) {
            need(int64_t(out.shape(0)) == self.columns(), "out must have one entry a column");
            std::copy(self.centre(), self.centre() + self.columns(), out.data());
        }, nb::arg("out").noconvert());
}

void bind_cover(nb::module_& m) {
    m.def("cover_search", [](Mat<const double> x, Weights w, Vec<const double> reach, double tolerance) {
        const size_t n = x.shape(0), d = x.shape(1);
        need(n > 0 && d > 0 && n < (size_t(1) << 31), "x must be (n, d) with 0 < n < 2^31 and d > 0");
        product({n, d + 2});
        need(reach.shape(0) == n && tolerance >= 0, "reach must have n entries, tolerance must not be negative");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        return chosen()->cover.search(n, d, x.data(), weights, reach.data(), tolerance);
    }, nb::rv_policy::take_ownership, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("reach").noconvert(),
       nb::arg("tolerance"));

    m.def("cover_climb", [](Mat<const double> x, Weights w, Vec<const double> reach, Mat<double> centres, Vec<double> values,
                            int64_t max_steps, double enough) {
        const size_t n = x.shape(0), d = x.shape(1), starts = centres.shape(0);
        need(n > 0 && d > 0 && reach.shape(0) == n, "reach must have n > 0 entries");
        product({n, d + 2});
        need(centres.shape(1) == d && values.shape(0) == starts, "centres must be (starts, d), values (starts,)");
        const double* weights = data(w, n);
        int64_t done, tests = 0;
        {
            nb::gil_scoped_release release;
            done = chosen()->cover.climb(n, d, x.data(), weights, reach.data(), starts, centres.data(), values.data(),
                                        max_steps, enough, &tests);
        }
        return nb::make_tuple(done, tests);
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("reach").noconvert(), nb::arg("centres").noconvert(),
       nb::arg("values").noconvert(), nb::arg("max_steps"), nb::arg("enough"));
}

void bind_bumps(nb::module_& m) {
    m.def("bump_search", [](Mat<const double> x, Vec<const double> heights, double tolerance) {
        const size_t n = x.shape(0), d = x.shape(1);
        need(n > 0 && d > 0 && n < (size_t(1) << 31), "x must be (n, d) with 0 < n < 2^31 and d > 0");
        product({n, d + 2});
        need(heights.shape(0) == n && tolerance >= 0, "heights must have n entries, tolerance must not be negative");
        nb::gil_scoped_release release;
        return chosen()->bumps.search(n, d, x.data(), heights.data(), tolerance);
    }, nb::rv_policy::take_ownership, nb::arg("x").noconvert(), nb::arg("heights").noconvert(), nb::arg("tolerance"));

    m.def("bump_climb", [](Mat<const double> x, Vec<const double> heights, Mat<double> centres, Vec<double> values,
                           int64_t max_steps, double progress) {
        const size_t n = x.shape(0), d = x.shape(1), starts = centres.shape(0);
        need(n > 0 && d > 0 && heights.shape(0) == n, "heights must have n > 0 entries");
        product({n, d + 2});
        need(centres.shape(1) == d && values.shape(0) == starts, "centres must be (starts, d), values (starts,)");
        nb::gil_scoped_release release;
        return chosen()->bumps.climb(n, d, x.data(), heights.data(), starts, centres.data(), values.data(), max_steps,
                                    progress);
    }, nb::arg("x").noconvert(), nb::arg("heights").noconvert(), nb::arg("centres").noconvert(),
       nb::arg("values").noconvert(), nb::arg("max_steps"), nb::arg("progress"));

    m.def("line_search", [](Mat<const double> z, Vec<const double> y, Vec<const double> heights, Mat<const int32_t> labels,
                            Mat<const double> caps, double tolerance) {
        const size_t n = z.shape(0), p = z.shape(1), partitions = labels.shape(0);
        need(n > 0 && p > 0 && n < (size_t(1) << 31), "z must be (n, p) with 0 < n < 2^31 and p > 0");
        product({n, p + 2 + partitions});
        product({p, p});
        need(y.shape(0) == n && heights.shape(0) == n && tolerance >= 0,
             "y and heights must have n entries, tolerance must not be negative");
        need(labels.shape(1) == n && caps.shape(0) == partitions && caps.shape(1) == n,
             "labels and caps must be (n_partitions, n)");
        for (size_t i = 0; i < product({partitions, n}); i++)
            need(labels.data()[i] >= 0 && size_t(labels.data()[i]) < n, "labels must be from 0 to n - 1");
        nb::gil_scoped_release release;
        return chosen()->line_bumps.search(n, p, z.data(), y.data(), heights.data(), partitions, labels.data(), caps.data(),
                                          tolerance);
    }, nb::rv_policy::take_ownership, nb::arg("z").noconvert(), nb::arg("y").noconvert(), nb::arg("heights").noconvert(),
       nb::arg("labels").noconvert(), nb::arg("caps").noconvert(), nb::arg("tolerance"));

    m.def("line_climb", [](Mat<const double> z, Vec<const double> y, Vec<const double> heights, Mat<double> lines,
                           Vec<double> values, int64_t max_steps, double progress) {
        const size_t n = z.shape(0), p = z.shape(1), starts = lines.shape(0);
        need(n > 0 && p > 0 && y.shape(0) == n && heights.shape(0) == n, "y and heights must have n > 0 entries");
        product({n, p + 2});
        product({p, p});
        need(lines.shape(1) == p && values.shape(0) == starts, "lines must be (starts, p), values (starts,)");
        nb::gil_scoped_release release;
        return chosen()->line_bumps.climb(n, p, z.data(), y.data(), heights.data(), starts, lines.data(), values.data(),
                                         max_steps, progress);
    }, nb::arg("z").noconvert(), nb::arg("y").noconvert(), nb::arg("heights").noconvert(), nb::arg("lines").noconvert(),
       nb::arg("values").noconvert(), nb::arg("max_steps"), nb::arg("progress"));
}

}  // namespace

void bind_box_searches(nb::module_& m) {
    bind_search(m);
    bind_cover(m);
    bind_bumps(m);
}
