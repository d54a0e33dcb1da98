// The Python face of k-means by swaps: shapes and indices are checked, the interpreter lock is released.
#include <algorithm>
#include <vector>

#include "binding.hpp"

using namespace majorant;

namespace {

// A copy of numbers of the search as an array of its own.
template <class V>
nb::object copied(const std::vector<V>& values, size_t rows, size_t columns, size_t stride) {
    V* out = new V[rows * columns];
    nb::capsule owner(out, [](void* p) noexcept { delete[] static_cast<V*>(p); });
    for (size_t j = 0; j < rows; j++) std::copy_n(values.begin() + j * stride, columns, out + j * columns);
    return nb::ndarray<nb::numpy, V>(out, {rows, columns}, owner).cast();
}

nb::dict bookkeeping(const SwapSearch& search) {
    const SwapState& s = search.state();
    const size_t n = search.n(), d = search.d(), k = search.k(), stride = s.centres.size() / k;
    nb::dict out;
    out["centres"] = copied(s.centres, k, d, stride);
    out["sums"] = copied(s.sums, k, d, stride);
    if (!s.between.empty()) out["between"] = copied(s.between, k, k, k);
    out["mass"] = copied(s.mass, 1, k, k);
    out["members"] = copied(s.members, 1, k, k);
    out["reach"] = copied(s.reach, 1, k, k);
    out["nearest"] = copied(s.nearest, 1, n, n);
    out["second"] = copied(s.second, 1, n, n);
    out["first_square"] = copied(s.first_square, 1, n, n);
    out["second_square"] = copied(s.second_square, 1, n, n);
    out["third_bound"] = copied(s.third_bound, 1, n, n);
    return out;
}

template <class T>
void bind_swap_factory(nb::module_& m) {
    m.def("swap_search", [](Mat<const T> x, Vec<const double> w, int64_t k, uint64_t seed, bool on_sphere) {
        const size_t n = x.shape(0), d = x.shape(1);
        need(n > 0 && d > 0 && n < (size_t(1) << 31), "x must be (n, d) with 0 < n < 2^31 and d > 0");
        need(k > 0 && size_t(k) <= n, "k must lie in [1, n]");
        product({n, d});
        product({size_t(k), size_t(k)});
        need(w.shape(0) == n, "weights must have one entry a row");
        for (size_t i = 0; i < n; i++) need(w(i) > 0, "weights must be positive");
        nb::gil_scoped_release release;
        return table<T>().swap_search(n, d, k, x.data(), w.data(), seed, on_sphere);
    }, nb::arg("x").noconvert(), nb::arg("w").noconvert(), nb::arg("k"), nb::arg("seed"),
       nb::arg("on_sphere") = false, nb::keep_alive<0, 1>(), nb::rv_policy::take_ownership);
}

}  // namespace

void bind_swap(nb::module_& m) {
    using Free = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<SwapSearch>(m, "SwapSearch")
        .def("configure", [](SwapSearch& self, int64_t candidates, int64_t local_steps, double still, double accepted, double progress) {
            need(candidates > 0 && local_steps >= 0, "candidates must be positive, local_steps not negative");
            product({size_t(candidates), size_t(self.k()), size_t(self.d())});
            self.effort = {candidates, local_steps, still, accepted, progress};
        }, nb::kw_only(), nb::arg("candidates"), nb::arg("local_steps"), nb::arg("still"), nb::arg("accepted"), nb::arg("progress"))
        .def("seed", &SwapSearch::seed, Free())
        .def("descend", &SwapSearch::descend, nb::arg("limit"), nb::arg("tolerance"), Free())
        .def("rounds", &SwapSearch::rounds, nb::arg("patience"), nb::arg("limit"), Free())
        .def("single_moves", &SwapSearch::single_moves, nb::arg("sweeps"), Free())
        .def("kick", &SwapSearch::kick, nb::arg("strength"), nb::arg("anywhere") = false, Free())
        .def("polish", &SwapSearch::polish, nb::arg("limit"), Free())
        .def("keep", &SwapSearch::keep, Free())
        .def("restore", &SwapSearch::restore, Free())
        .def("recombine", &SwapSearch::recombine, Free())
        .def("attempt", [](SwapSearch& self, int64_t centre, int64_t point) {
            need(centre >= 0 && centre < self.k() && point >= 0 && point < self.n(), "there is no such centre or point");
            return self.attempt(centre, point);
        }, nb::arg("centre"), nb::arg("point"))
        .def("evaluate", [](SwapSearch& self, int64_t point, Vec<double> losses) {
            need(point >= 0 && point < self.n() && int64_t(losses.shape(0)) == self.k(), "losses must have k entries");
            return self.evaluate(point, losses.data());
        }, nb::arg("point"), nb::arg("losses").noconvert())
        .def("write_centres", [](const SwapSearch& self, Mat<double> out) {
            need(int64_t(out.shape(0)) == self.k() && int64_t(out.shape(1)) == self.d(), "out must be (k, d)");
            self.centres(out.data());
        }, nb::arg("out").noconvert())
        .def("write_labels", [](const SwapSearch& self, Vec<int32_t> out) {
            need(int64_t(out.shape(0)) == self.n(), "out must have n entries");
            std::copy_n(self.state().nearest.begin(), self.n(), out.data());
        }, nb::arg("out").noconvert())
        .def("bookkeeping", &bookkeeping, "Copies of all that the search keeps up to date, by name: for tests.")
        .def("take_accepted", [](SwapSearch& self) {
            nb::list out;
            for (const double objective : self.accepted()) out.append(objective);
            self.forget_accepted();
            return out;
        }, "The objective after every accepted round since the last call.")
        .def_prop_ro("objective", [](const SwapSearch& self) { return self.state().objective; })
        .def_prop_ro("n_rounds", &SwapSearch::n_rounds);
    bind_swap_factory<float>(m);
    bind_swap_factory<double>(m);
}
