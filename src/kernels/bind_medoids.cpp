// The Python face of swaps of medoids: shapes and indices are checked, the interpreter lock is released.
#include <nanobind/stl/tuple.h>

#include "binding.hpp"

using namespace majorant;

namespace {

// Arrays that belong to the caller, and stay as long as this does.
template <class T>
struct Medoids {
    Mat<const T> distances;
    Vec<const double> w;
    Vec<int64_t> medoids;
    Vec<int32_t> nearest, second;
    Vec<T> first, next;
    Mat<T> held;

    MedoidPlaces<T> places() const {
        return {int64_t(w.shape(0)), int64_t(medoids.shape(0)), distances.data(), w.data(), medoids.data(), nearest.data(),
                second.data(), first.data(), next.data(), held.data()};
    }
};

template <class T>
void bind_places(nb::module_& m, const char* name) {
    nb::class_<Medoids<T>>(m, name)
        .def("__init__", [](Medoids<T>* self, Mat<const T> distances, Vec<const double> w, Vec<int64_t> medoids,
                            Vec<int32_t> nearest, Vec<int32_t> second, Vec<T> first, Vec<T> next, Mat<T> table) {
            const size_t n = w.shape(0), k = medoids.shape(0);
            need(n < (size_t(1) << 31) && distances.shape(0) == n && distances.shape(1) == n, "distances must be (n, n)");
            need(k > 1 && k <= n, "there must be two medoids at least, and no more than rows");
            need(nearest.shape(0) == n && second.shape(0) == n && first.shape(0) == n && next.shape(0) == n &&
                     table.shape(0) == n && table.shape(1) == k,
                 "places must be (n), the table (n, k)");
            for (size_t j = 0; j < k; j++) need(medoids(j) >= 0 && medoids(j) < int64_t(n), "there is no such medoid");
            new (self) Medoids<T>{distances, w, medoids, nearest, second, first, next, table};
            nb::gil_scoped_release release;
            majorant::MedoidPlaces<T> places = self->places();
            ::table<T>().medoid_places(places);
        }, nb::arg("distances").noconvert(), nb::arg("w").noconvert(), nb::arg("medoids").noconvert(),
           nb::arg("nearest").noconvert(), nb::arg("second").noconvert(), nb::arg("first").noconvert(),
           nb::arg("next").noconvert(), nb::arg("table").noconvert())
        .def("replace", [](Medoids<T>& self, int64_t position, int64_t row) {
            const MedoidPlaces<T> places = self.places();
            need(position >= 0 && position < places.k && row >= 0 && row < places.n, "there is no such medoid or row");
            nb::gil_scoped_release release;
            ::table<T>().medoid_replace(places, position, row);
        }, nb::arg("position"), nb::arg("row"))
        .def("swaps", [](Medoids<T>& self, Vec<const int64_t> candidates, int64_t at, int64_t quiet, int64_t tests, double least) {
            const MedoidPlaces<T> places = self.places();
            const int64_t m = candidates.shape(0);
            need(at >= 0 && at < m && quiet >= 0, "there is no such candidate");
            for (int64_t q = 0; q < m; q++) need(candidates(q) >= 0 && candidates(q) < places.n, "there is no such candidate");
            MedoidSwaps end{at, quiet, 0};
            {
                nb::gil_scoped_release release;
                end = ::table<T>().medoid_swaps(places, m, candidates.data(), end, tests, least);
            }
            return std::make_tuple(end.at, end.quiet, end.swaps);
        }, nb::arg("candidates").noconvert(), nb::arg("at"), nb::arg("quiet"), nb::arg("tests"), nb::arg("least"));
}

}  // namespace

void bind_medoids(nb::module_& m) {
    bind_places<float>(m, "MedoidsF32");
    bind_places<double>(m, "MedoidsF64");
}
