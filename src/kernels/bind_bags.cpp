// The Python face of the kernels for bags: shapes and indices are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

template <class T> const BagKernels<T>& bag_kernels();
template <> const BagKernels<float>& bag_kernels<float>() { return chosen()->bags_f32; }
template <> const BagKernels<double>& bag_kernels<double>() { return chosen()->bags_f64; }

using Edges = std::optional<Vec<const int64_t>>;
using Indices = std::optional<Vec<const int32_t>>;

// Bags with a class each, checked once.
template <class T>
struct StackedBags {
    Mat<const T> x;  // dense rows; or the entries of CSR rows, (1, entries)
    Edges edges;
    Indices indices;
    int64_t d;
    double bias;
    Vec<const int64_t> starts, counts;
    Vec<const int32_t> codes;
    int64_t classes, first;

    StackedBags(Mat<const T> x, Edges edges, Indices indices, int64_t d, double bias, Vec<const int64_t> starts,
                Vec<const int64_t> counts, Vec<const int32_t> codes, int64_t classes, int64_t first)
        : x(x), edges(edges), indices(indices), d(d), bias(bias), starts(starts), counts(counts), codes(codes),
          classes(classes), first(first) {
        need(d >= 0 && classes > 0 && first >= 0 && first < classes, "first must be a class");
        product({size_t(classes), size_t(d) + 1});
        need(edges.has_value() == indices.has_value(), "CSR rows have edges and indices");
        int64_t rows = int64_t(x.shape(0));
        if (edges) {
            need(rows == 1 && edges->shape(0) > 0 && indices->shape(0) == x.shape(1), "entries must be (1, nnz), indices (nnz,)");
            rows = int64_t(edges->shape(0)) - 1;
            need((*edges)(0) == 0 && size_t((*edges)(rows)) == x.shape(1), "edges must run from 0 to the number of entries");
            for (int64_t r = 0; r < rows; r++) need((*edges)(r + 1) >= (*edges)(r), "edges must not descend");
            for (int64_t r = 0; r < rows; r++)
                for (int64_t e = (*edges)(r); e < (*edges)(r + 1); e++)
                    need((*indices)(e) >= 0 && (*indices)(e) < d && (e == (*edges)(r) || (*indices)(e) > (*indices)(e - 1)),
                         "indices must name columns and ascend within a row");
        } else {
            need(int64_t(x.shape(1)) == d, "x must be (rows, d)");
        }
        need(counts.shape(0) == starts.shape(0) && codes.shape(0) == starts.shape(0), "starts, counts, codes: one entry a bag");
        for (int64_t i = 0; i < n(); i++) {
            need(counts(i) > 0 && counts(i) < (int64_t(1) << 31) && starts(i) >= 0 && starts(i) <= rows - counts(i),
                 "bags must have rows, all of them in the stack");
            need(codes(i) >= 0 && codes(i) < classes, "codes must name classes");
            product({size_t(counts(i)), size_t(classes)});
        }
    }
    int64_t n() const { return int64_t(starts.shape(0)); }
    Stack<T> stack() const {
        return {d, T(bias), x.data(), edges ? edges->data() : nullptr, indices ? indices->data() : nullptr};
    }
    Bags part(int64_t begin, int64_t end) const {
        need(begin >= 0 && begin <= end && end <= n(), "begin and end must name a range of bags");
        return {end - begin, starts.data() + begin, counts.data() + begin, codes.data() + begin};
    }
    template <class W>
    void check(const Mat<W>& w) const {
        need(int64_t(w.shape(0)) == classes && int64_t(w.shape(1)) == d + 1, "weights must be (classes, d + 1)");
    }
    void check(const Bags& bags, const Vec<const double>& shares, const Mat<const double>& cost) const {
        need(int64_t(shares.shape(0)) == bags.n, "shares must have one entry a bag");
        need(int64_t(cost.shape(0)) == classes && int64_t(cost.shape(1)) == classes, "cost must be (classes, classes)");
    }
    BagPlanes planes(const Bags& bags, const Mat<int32_t>& label, const Mat<int32_t>& row, const Mat<double>& share,
                     const Vec<int32_t>& used) const {
        const size_t most = label.shape(1);
        for (const size_t rows : {label.shape(0), row.shape(0), share.shape(0), used.shape(0)})
            need(int64_t(rows) == bags.n, "label, row and share must be (n, most), used (n,)");
        need(most > 0 && row.shape(1) == most && share.shape(1) == most, "label, row and share must be (n, most)");
        for (int64_t i = 0; i < bags.n; i++) {
            need(used(i) >= 0 && size_t(used(i)) <= most, "used must be at most the number of places");
            bool any = used(i) == 0;
            for (int32_t j = 0; j < used(i); j++) {
                need(label(i, j) >= 0 && label(i, j) < classes && row(i, j) >= 0 && row(i, j) < bags.counts[i],
                     "planes must name classes and rows of their bags");
                any = any || share(i, j) > 0;
            }
            need(any, "of the planes of a bag, one must be in use");
        }
        return {int64_t(most), label.data(), row.data(), share.data(), used.data()};
    }
};

template <class T>
void bind_for(nb::module_& m, const char* name) {
    using Self = StackedBags<T>;
    nb::class_<Self>(m, name)
        .def("scores", [](const Self& self, int64_t begin, int64_t end, Mat<const double> w, Mat<double> best, Mat<int32_t> where,
                          std::optional<Mat<double>> own) {
            self.check(w);
            const Bags bags = self.part(begin, end);
            for (const size_t n : {best.shape(0), where.shape(0)}) need(int64_t(n) == bags.n, "best and where: one row a bag");
            for (const size_t k : {best.shape(1), where.shape(1)}) need(int64_t(k) == self.classes, "best and where: a column a class");
            need(!own || int64_t(own->shape(0)) == bags.n, "own must have one row a bag");
            for (int64_t i = 0; own && i < bags.n; i++)
                need(bags.counts[i] <= int64_t(own->shape(1)), "own must have a column for every row of a bag");
            nb::gil_scoped_release release;
            bag_kernels<T>().scores(self.stack(), bags, {self.classes, self.first, w.data()}, best.data(), where.data(),
                                    own ? own->shape(1) : 0, own ? own->data() : nullptr);
        }, nb::arg("begin"), nb::arg("end"), nb::arg("w").noconvert(), nb::arg("best").noconvert(), nb::arg("where").noconvert(),
           nb::arg("own").noconvert().none() = nb::none())
        .def("pooled", [](const Self& self, int64_t begin, int64_t end, Mat<const double> w, Vec<const double> shares,
                          Mat<const double> cost, double beta, double tau, Mat<double> gradient) {
            self.check(w);
            self.check(gradient);
            const Bags bags = self.part(begin, end);
            self.check(bags, shares, cost);
            need(beta >= 0 && beta < 1e30 && tau > 0 && tau < 1e30, "beta must not be negative, tau must be positive");
            nb::gil_scoped_release release;
            return bag_kernels<T>().pooled(self.stack(), bags, {self.classes, self.first, w.data()}, shares.data(),
                                           cost.data(), beta, tau, gradient.data());
        }, nb::arg("begin"), nb::arg("end"), nb::arg("w").noconvert(), nb::arg("shares").noconvert(), nb::arg("cost").noconvert(),
           nb::arg("beta"), nb::arg("tau"), nb::arg("gradient").noconvert())
        .def("sweep", [](const Self& self, Vec<const double> shares, Mat<const double> cost, double alpha, Indices new_label,
                         Indices new_row, bool online, int64_t most_steps, Vec<const int64_t> order, Mat<int32_t> label,
                         Mat<int32_t> row, Mat<double> share, Vec<int32_t> used, Mat<double> w) {
            self.check(w);
            const Bags bags = self.part(0, self.n());
            self.check(bags, shares, cost);
            const BagPlanes planes = self.planes(bags, label, row, share, used);
            need(alpha > 0 && most_steps > 0, "alpha and most_steps must be positive");
            for (size_t t = 0; t < order.shape(0); t++) need(order(t) >= 0 && order(t) < self.n(), "order must name bags");
            need(new_label.has_value() == new_row.has_value(), "given planes have a label and a row");
            for (int64_t i = 0; new_label && i < self.n(); i++) {
                need(int64_t(new_label->shape(0)) == self.n() && int64_t(new_row->shape(0)) == self.n(), "one given plane a bag");
                need((*new_label)(i) >= 0 && (*new_label)(i) < self.classes && (*new_row)(i) >= 0 && (*new_row)(i) < self.counts(i),
                     "given planes must name classes and rows of their bags");
            }
            int64_t lost = 0;
            double left;
            {
                nb::gil_scoped_release release;
                left = bag_kernels<T>().sweep(self.stack(), bags, self.classes, self.first,
                                              {shares.data(), cost.data(), alpha, new_label ? new_label->data() : nullptr,
                                               new_row ? new_row->data() : nullptr, online, most_steps},
                                              order.shape(0), order.data(), planes, w.data(), &lost);
            }
            return nb::make_tuple(left, lost);
        }, nb::arg("shares").noconvert(), nb::arg("cost").noconvert(), nb::arg("alpha"), nb::arg("new_label").noconvert().none(),
           nb::arg("new_row").noconvert().none(), nb::arg("online"), nb::arg("most_steps"), nb::arg("order").noconvert(),
           nb::arg("label").noconvert(), nb::arg("row").noconvert(), nb::arg("share").noconvert(), nb::arg("used").noconvert(),
           nb::arg("w").noconvert())
        .def("mixture", [](const Self& self, int64_t begin, int64_t end, Vec<const double> shares, Mat<const double> cost,
                           Mat<int32_t> label, Mat<int32_t> row, Mat<double> share, Vec<int32_t> used, Mat<double> features) {
            self.check(features);
            const Bags bags = self.part(begin, end);
            self.check(bags, shares, cost);
            const BagPlanes planes = self.planes(bags, label, row, share, used);
            nb::gil_scoped_release release;
            return bag_kernels<T>().mixture(self.stack(), bags, self.classes, self.first, shares.data(),
                                            cost.data(), planes, features.data());
        }, nb::arg("begin"), nb::arg("end"), nb::arg("shares").noconvert(), nb::arg("cost").noconvert(),
           nb::arg("label").noconvert(), nb::arg("row").noconvert(), nb::arg("share").noconvert(), nb::arg("used").noconvert(), nb::arg("features").noconvert());

    m.def("bags", [](Mat<const T> x, Edges edges, Indices indices, int64_t d, double bias, Vec<const int64_t> starts,
                     Vec<const int64_t> counts, Vec<const int32_t> codes, int64_t classes, int64_t first) {
        return Self(x, edges, indices, d, bias, starts, counts, codes, classes, first);
    }, nb::arg("x").noconvert(), nb::arg("edges").noconvert().none(), nb::arg("indices").noconvert().none(), nb::arg("d"),
       nb::arg("bias"), nb::arg("starts").noconvert(), nb::arg("counts").noconvert(), nb::arg("codes").noconvert(),
       nb::arg("classes"), nb::arg("first"));
}

}  // namespace

void bind_bags(nb::module_& m) {
    bind_for<float>(m, "BagsOfSingles");
    bind_for<double>(m, "BagsOfDoubles");
}
