// The Python face of the kernels for grids of regions: shapes and indices are checked, the interpreter lock is released.
#include "binding.hpp"

using namespace majorant;

namespace {

template <class T> const GridKernels<T>& grid_kernels();
template <> const GridKernels<float>& grid_kernels<float>() { return chosen()->grids_f32; }
template <> const GridKernels<double>& grid_kernels<double>() { return chosen()->grids_f64; }

using Labels = std::optional<Vec<const int32_t>>;
using Maps = std::optional<Mat<const int32_t>>;

// Images with a class each and the size of a model of parts, checked once.
template <class T>
struct StackedGrids {
    Mat<const T> x;
    Vec<const int64_t> starts;
    int64_t regions;
    Vec<const int32_t> codes;
    int64_t classes, parts;
    double scale;

    StackedGrids(Mat<const T> x, Vec<const int64_t> starts, int64_t regions, Vec<const int32_t> codes, int64_t classes,
                 int64_t parts, double scale)
        : x(x), starts(starts), regions(regions), codes(codes), classes(classes), parts(parts), scale(scale) {
        constexpr int64_t most = int64_t(1) << 31;
        need(regions > 0 && regions < most && classes > 0 && classes < most && parts > 0 && parts < most,
             "there must be regions, classes and parts");
        product({size_t(parts), x.shape(1) + size_t(classes * regions)});
        need(codes.shape(0) == starts.shape(0), "starts and codes: one entry an image");
        for (int64_t i = 0; i < n(); i++) {
            need(starts(i) >= 0 && starts(i) <= int64_t(x.shape(0)) - regions, "the regions of an image must lie in the stack");
            need(codes(i) >= 0 && codes(i) < classes, "codes must name classes");
        }
    }
    int64_t n() const { return int64_t(starts.shape(0)); }
    PartModel model() const { return {classes, parts, scale}; }
    Grids<T> part(int64_t begin, int64_t end) const {
        need(begin >= 0 && begin <= end && end <= n(), "begin and end must name a range of images");
        return {end - begin, regions, int64_t(x.shape(1)), x.data(), starts.data() + begin, codes.data() + begin};
    }
    template <class W>
    void check(const Vec<W>& w) const {
        need(int64_t(w.shape(0)) == parts * (int64_t(x.shape(1)) + classes * regions), "weights: filters, then the table");
    }
    void check(const Mat<const double>& cost) const {
        need(int64_t(cost.shape(0)) == classes && int64_t(cost.shape(1)) == classes, "cost must be (classes, classes)");
    }
    void check_shares(const Vec<const double>& shares, int64_t images) const {
        need(int64_t(shares.shape(0)) == images, "shares must have one entry an image");
    }
    void check_label(int32_t label) const { need(label >= 0 && label < classes, "labels must name classes"); }
    void check_part(int32_t part) const { need(part >= 0 && part < parts, "maps must name parts"); }

    GridPlanes planes(int64_t images, Mat<int32_t> label, Cube<int32_t> map, Mat<double> share, Vec<int32_t> used) const {
        const size_t most = label.shape(1), count = size_t(images);
        need(label.shape(0) == count && map.shape(0) == count && share.shape(0) == count && used.shape(0) == count,
             "planes must have one row an image");
        need(most > 0 && map.shape(1) == most && share.shape(1) == most, "label, map and share must have as many places");
        need(int64_t(map.shape(2)) == regions, "map must have a part for every region");
        for (int64_t i = 0; i < images; i++) {
            need(used(i) >= 0 && size_t(used(i)) <= most, "used must be at most the number of places");
            bool any = used(i) == 0;
            for (int32_t j = 0; j < used(i); j++) {
                check_label(label(i, j));
                for (int64_t r = 0; r < regions; r++) check_part(map(i, j, r));
                any = any || share(i, j) > 0;
            }
            need(any, "of the planes of an image, one must be in use");
        }
        return {int64_t(most), label.data(), map.data(), share.data(), used.data()};
    }
};

template <class T>
void bind_for(nb::module_& m, const char* name) {
    using Self = StackedGrids<T>;
    nb::class_<Self>(m, name)
        .def("infer", [](const Self& self, int64_t begin, int64_t end, Vec<const double> w, Mat<const double> cost,
                         bool is_given, Mat<double> best, Vec<int32_t> label, Mat<int32_t> map, std::optional<Mat<double>> own) {
            self.check(w);
            self.check(cost);
            const Grids<T> grids = self.part(begin, end);
            need(int64_t(best.shape(0)) == grids.n && int64_t(label.shape(0)) == grids.n && int64_t(map.shape(0)) == grids.n,
                 "best, label and map: one row an image");
            need(int64_t(best.shape(1)) == self.classes, "best must have a column a class");
            need(int64_t(map.shape(1)) == self.regions, "map must have a part for every region");
            need(!own || (own->shape(0) == product({size_t(grids.n), size_t(self.regions)}) && int64_t(own->shape(1)) == self.parts),
                 "own must have a row for every region and a column a part");
            for (int64_t i = 0; is_given && i < grids.n; i++) self.check_label(label(i));
            nb::gil_scoped_release release;
            grid_kernels<T>().infer(grids, self.model(), w.data(), cost.data(), is_given, best.data(), label.data(), map.data(),
                                    own ? own->data() : nullptr);
        }, nb::arg("begin"), nb::arg("end"), nb::arg("w").noconvert(), nb::arg("cost").noconvert(), nb::arg("is_given"),
           nb::arg("best").noconvert(), nb::arg("label").noconvert(), nb::arg("map").noconvert(),
           nb::arg("own").noconvert().none() = nb::none())
        .def("pooled", [](const Self& self, int64_t begin, int64_t end, Vec<const double> w, Vec<const double> shares,
                          Mat<const double> cost, double beta, double tau, Vec<double> gradient) {
            self.check(w);
            self.check(gradient);
            self.check(cost);
            const Grids<T> grids = self.part(begin, end);
            self.check_shares(shares, grids.n);
            need(beta >= 0 && beta < 1e30 && tau > 0 && tau < 1e30, "beta must not be negative, tau must be positive");
            nb::gil_scoped_release release;
            return grid_kernels<T>().pooled(grids, self.model(), w.data(), shares.data(), cost.data(), beta, tau, gradient.data());
        }, nb::arg("begin"), nb::arg("end"), nb::arg("w").noconvert(), nb::arg("shares").noconvert(), nb::arg("cost").noconvert(),
           nb::arg("beta"), nb::arg("tau"), nb::arg("gradient").noconvert())
        .def("sweep", [](const Self& self, Vec<const double> shares, Mat<const double> cost, double alpha, Labels new_label,
                         Maps new_map, bool online, int64_t most_steps, Vec<const int64_t> order, Mat<int32_t> label,
                         Cube<int32_t> map, Mat<double> share, Vec<int32_t> used, Vec<double> w) {
            self.check(w);
            self.check(cost);
            self.check_shares(shares, self.n());
            const GridPlanes planes = self.planes(self.n(), label, map, share, used);
            need(alpha > 0 && most_steps > 0, "alpha and most_steps must be positive");
            for (size_t t = 0; t < order.shape(0); t++) need(order(t) >= 0 && order(t) < self.n(), "order must name images");
            need(new_label.has_value() == new_map.has_value(), "given planes have a label and parts");
            if (new_label) {
                need(int64_t(new_label->shape(0)) == self.n() && int64_t(new_map->shape(0)) == self.n() &&
                         int64_t(new_map->shape(1)) == self.regions, "one given plane an image");
                for (int64_t i = 0; i < self.n(); i++) {
                    self.check_label((*new_label)(i));
                    for (int64_t r = 0; r < self.regions; r++) self.check_part((*new_map)(i, r));
                }
            }
            int64_t lost = 0;
            double left;
            {
                nb::gil_scoped_release release;
                left = grid_kernels<T>().sweep(self.part(0, self.n()), self.model(),
                                               {shares.data(), cost.data(), alpha, new_label ? new_label->data() : nullptr,
                                                new_map ? new_map->data() : nullptr, online, most_steps},
                                               order.shape(0), order.data(), planes, w.data(), &lost);
            }
            return nb::make_tuple(left, lost);
        }, nb::arg("shares").noconvert(), nb::arg("cost").noconvert(), nb::arg("alpha"), nb::arg("new_label").noconvert().none(),
           nb::arg("new_map").noconvert().none(), nb::arg("online"), nb::arg("most_steps"), nb::arg("order").noconvert(),
           nb::arg("label").noconvert(), nb::arg("map").noconvert(), nb::arg("share").noconvert(), nb::arg("used").noconvert(),
           nb::arg("w").noconvert())
        .def("mixture", [](const Self& self, int64_t begin, int64_t end, Vec<const double> shares, Mat<const double> cost, Mat<int32_t> label,
                           Cube<int32_t> map, Mat<double> share, Vec<int32_t> used, Vec<double> features) {
            self.check(features);
            self.check(cost);
            const Grids<T> grids = self.part(begin, end);
            self.check_shares(shares, grids.n);
            const GridPlanes planes = self.planes(grids.n, label, map, share, used);
            nb::gil_scoped_release release;
            return grid_kernels<T>().mixture(grids, self.model(), shares.data(), cost.data(), planes, features.data());
        }, nb::arg("begin"), nb::arg("end"), nb::arg("shares").noconvert(), nb::arg("cost").noconvert(), nb::arg("label").noconvert(), nb::arg("map").noconvert(),
           nb::arg("share").noconvert(), nb::arg("used").noconvert(), nb::arg("features").noconvert());
    m.def("grids", [](Mat<const T> x, Vec<const int64_t> starts, int64_t regions, Vec<const int32_t> codes, int64_t classes,
                      int64_t parts, double scale) { return Self(x, starts, regions, codes, classes, parts, scale); },
          nb::arg("x").noconvert(), nb::arg("starts").noconvert(), nb::arg("regions"), nb::arg("codes").noconvert(),
          nb::arg("classes"), nb::arg("parts"), nb::arg("scale"));
}

}  // namespace

void bind_grids(nb::module_& m) {
    bind_for<float>(m, "GridsOfSingles");
    bind_for<double>(m, "GridsOfDoubles");
}
