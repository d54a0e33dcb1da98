// The Python face of the kernels: shapes are checked, the interpreter lock is released, the instruction set is chosen.
#include <cstdlib>
#include <string>
#include <vector>

#include "binding.hpp"

using namespace majorant;

namespace {

std::vector<const Kernels*> available() {  // slowest first
    std::vector<const Kernels*> list{&baseline::kernels};
#if defined(__x86_64__)
    __builtin_cpu_init();
#ifdef MAJORANT_HAS_v3
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        list.push_back(&v3::kernels);
#endif
#ifdef MAJORANT_HAS_v4  // which takes some of its kernels from v3
    if (list.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        list.push_back(&v4::kernels);
#endif
#endif
    return list;
}

const Kernels* choose() {
    const auto list = available();
    const char* wanted = std::getenv("MAJORANT_ISA");
    if (!wanted || !*wanted) return list.back();
    std::string names;
    for (const Kernels* one : list) {
        if (std::string(one->isa) == wanted) return one;
        names += std::string(names.empty() ? "" : ", ") + one->isa;
    }
    throw nb::import_error(("MAJORANT_ISA=" + std::string(wanted) + " is not among the instruction sets of this build on this machine: " + names).c_str());
}

const Kernels* kernels = nullptr;

// Parameters of a mixture of regressions, and the sizes that they agree on.
template <class V>
void check_regressions(const Vec<V>& weights, const Mat<V>& coef, const Vec<V>& variances) {
    const size_t k = coef.shape(0);
    need(k > 0 && coef.shape(1) > 0, "coef must be (k, p) with k > 0 and p > 0");
    need(weights.shape(0) == k && variances.shape(0) == k, "weights and variances must have k entries");
}

size_t regression_row(size_t p) { return 2 + p + product({p, p + 1}) / 2; }

// Refuses components, columns and rows at once whose tables no memory holds.
void check_regression_sizes(size_t n, size_t k, size_t p) {
    product({n, p});
    product({k, regression_row(p)});
}

template <class T>
void bind_regression(nb::module_& m) {
    m.def("regression_pass", [](Mat<const T> x, Vec<const T> y, Weights w, Vec<const double> weights, Mat<const double> coef,
                                Vec<const double> variances, double beta, std::optional<Mat<double>> statistics,
                                std::optional<Mat<T>> energies, std::optional<Mat<T>> responsibilities) {
        const size_t n = x.shape(0), k = coef.shape(0), p = coef.shape(1);
        check_regressions(weights, coef, variances);
        check_regression_sizes(n, k, p);
        need(x.shape(1) == p && y.shape(0) == n, "x must be (n, p), y (n,)");
        need(beta > 0, "beta must be positive");
        need(!statistics || (statistics->shape(0) == k && statistics->shape(1) == regression_row(p)),
             "statistics must be (k, 2 + p + p (p + 1) / 2)");
        for (const auto& table : {energies, responsibilities})
            need(!table || (table->shape(0) == n && table->shape(1) == k), "energies and responsibilities must be (n, k)");
        const double* w_data = data(w, n);
        const Regressions mixture{int64_t(k), int64_t(p), weights.data(), coef.data(), variances.data()};
        nb::gil_scoped_release release;
        return table<T>().regression_pass(mixture, n, x.data(), y.data(), w_data, beta,
                                          statistics ? statistics->data() : nullptr, energies ? energies->data() : nullptr,
                                          responsibilities ? responsibilities->data() : nullptr);
    }, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("w").none(), nb::arg("weights").noconvert(),
       nb::arg("coef").noconvert(), nb::arg("variances").noconvert(), nb::arg("beta"),
       nb::arg("statistics").noconvert().none() = nb::none(), nb::arg("energies").noconvert().none() = nb::none(),
       nb::arg("responsibilities").noconvert().none() = nb::none());

    m.def("regression_em", [](Mat<const T> x, Vec<const T> y, Weights w, double ratio, double floor, bool common,
                              int64_t max_steps, double tolerance, Vec<double> weights, Mat<double> coef,
                              Vec<double> variances, std::optional<Mat<double>> path) {
        const size_t n = x.shape(0), k = coef.shape(0), p = coef.shape(1);
        check_regressions(weights, coef, variances);
        check_regression_sizes(n, k, p);
        need(n > 0 && x.shape(1) == p && y.shape(0) == n, "x must be (n, p) with n > 0, y (n,)");
        need(ratio >= 1 && floor > 0 && max_steps >= 0, "ratio must be at least 1, floor positive, max_steps not negative");
        need(!path || (path->shape(0) == size_t(max_steps) && path->shape(1) == 2), "path must be (max_steps, 2)");
        const double* w_data = data(w, n);
        int64_t steps = 0;
        bool converged = false;
        double free;
        {
            nb::gil_scoped_release release;
            free = table<T>().regression_em({ratio, floor, common}, n, p, k, x.data(), y.data(), w_data, max_steps, tolerance,
                                            weights.data(), coef.data(), variances.data(), path ? path->data() : nullptr,
                                            &steps, &converged);
        }
        return nb::make_tuple(free, steps, converged);
    }, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("w").none(), nb::arg("ratio"), nb::arg("floor"),
       nb::arg("common"), nb::arg("max_steps"), nb::arg("tolerance"), nb::arg("weights").noconvert(),
       nb::arg("coef").noconvert(), nb::arg("variances").noconvert(), nb::arg("path").noconvert().none() = nb::none());
}

template <class T>
void bind_regression_starts(nb::module_& m) {
    m.def("regression_concentrate", [](Mat<const T> x, Vec<const T> y, Weights w, Weights odds, Vec<const int64_t> drawn,
                                       double mass, int64_t steps, Vec<double> coef) {
        const size_t n = x.shape(0), p = x.shape(1);
        need(n > 0 && p > 0 && y.shape(0) == n && coef.shape(0) == p, "x must be (n, p) with n > 0, y (n,), coef (p,)");
        check_regression_sizes(n, 1, p);
        for (size_t s = 0; s < drawn.shape(0); s++) need(drawn(s) >= 0 && size_t(drawn(s)) < n, "drawn names no row");
        const double *w_data = data(w, n), *o_data = data(odds, n);
        nb::gil_scoped_release release;
        return table<T>().regression_concentrate(n, p, x.data(), y.data(), w_data, o_data, drawn.shape(0), drawn.data(), mass,
                                                 steps, coef.data());
    }, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("w").none(), nb::arg("odds").none(),
       nb::arg("drawn").noconvert(), nb::arg("mass"), nb::arg("steps"), nb::arg("coef").noconvert());

    m.def("regression_greedy", [](Mat<const T> x, Vec<const T> y, Weights w, int64_t steps, Mat<const double> mass,
                                  Mat<const double> uniforms, Mat<double> coef) {
        const size_t n = x.shape(0), p = x.shape(1), k = coef.shape(0), candidates = mass.shape(1);
        need(n > 0 && p > 0 && y.shape(0) == n && coef.shape(1) == p, "x must be (n, p) with n > 0, y (n,), coef (k, p)");
        check_regression_sizes(n, k, p);
        need(mass.shape(0) == k && uniforms.shape(0) == k && uniforms.shape(1) == product({candidates, p + 1}),
             "mass must be (k, candidates), uniforms (k, candidates * (p + 1))");
        const double* w_data = data(w, n);
        nb::gil_scoped_release release;
        table<T>().regression_greedy(n, p, k, x.data(), y.data(), w_data, candidates, steps, mass.data(), uniforms.data(),
                                     coef.data());
    }, nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("w").none(), nb::arg("steps"), nb::arg("mass").noconvert(),
       nb::arg("uniforms").noconvert(), nb::arg("coef").noconvert());
}

void bind_regression_step(nb::module_& m) {
    m.def("regression_step", [](Mat<const double> statistics, double ratio, double floor, bool common, Vec<double> weights,
                                Mat<double> coef, Vec<double> variances) {
        const size_t k = coef.shape(0), p = coef.shape(1);
        check_regressions(weights, coef, variances);
        need(statistics.shape(0) == k && statistics.shape(1) == regression_row(p), "statistics must be (k, 2 + p + p (p + 1) / 2)");
        need(ratio >= 1 && floor > 0, "ratio must be at least 1, floor positive");
        nb::gil_scoped_release release;
        return kernels->regression_step({ratio, floor, common}, k, p, statistics.data(), weights.data(), coef.data(),
                                        variances.data());
    }, nb::arg("statistics").noconvert(), nb::arg("ratio"), nb::arg("floor"), nb::arg("common"),
       nb::arg("weights").noconvert(), nb::arg("coef").noconvert(), nb::arg("variances").noconvert());
}

template <class T>
void bind(nb::module_& m) {
    m.def("assign", [](Mat<const T> x, Weights w, Mat<const T> centres, std::optional<Mat<double>> moments,
                       Vec<int32_t> labels, std::optional<Vec<T>> nearest) {
        const size_t n = x.shape(0), d = x.shape(1), k = centres.shape(0);
        need(k > 0 && centres.shape(1) == d, "centres must be (k, d) with k > 0 and d that of x");
        product({k, d});
        need(!moments || (moments->shape(0) == k && moments->shape(1) == d + 2), "moments must be (k, d + 2)");
        need(labels.shape(0) == n && (!nearest || nearest->shape(0) == n), "labels and nearest must have n entries");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        return table<T>().assign(n, d, k, x.data(), weights, centres.data(), moments ? moments->data() : nullptr,
                                 labels.data(), nearest ? nearest->data() : nullptr);
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("centres").noconvert(), nb::arg("moments").noconvert().none(),
       nb::arg("labels").noconvert(), nb::arg("nearest").noconvert().none() = nb::none());

    m.def("moments", [](Mat<const T> x, Weights w, Mat<const T> centres, Vec<const int32_t> labels, Mat<double> out) {
        const size_t n = x.shape(0), d = x.shape(1), k = centres.shape(0);
        need(centres.shape(1) == d, "centres must have the columns of x");
        product({k, d + 2});
        need(labels.shape(0) == n && out.shape(0) == k && out.shape(1) == d + 2, "labels must be (n,), out (k, d + 2)");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        table<T>().moments(n, d, k, x.data(), weights, centres.data(), labels.data(), out.data());
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("centres").noconvert(), nb::arg("labels").noconvert(),
       nb::arg("out").noconvert());

    m.def("distances", [](Mat<const T> x, Mat<const T> centres, Mat<T> out) {
        const size_t n = x.shape(0), d = x.shape(1), k = centres.shape(0);
        need(centres.shape(1) == d && out.shape(0) == n && out.shape(1) == k, "out must be (n, k)");
        product({n, k});
        product({k, d});
        nb::gil_scoped_release release;
        table<T>().distances(n, d, k, x.data(), centres.data(), out.data());
    }, nb::arg("x").noconvert(), nb::arg("centres").noconvert(), nb::arg("out").noconvert());

    m.def("row_minimum", [](Mat<const T> energies, Vec<T> least, Vec<int32_t> argument) {
        const size_t n = energies.shape(0), states = energies.shape(1);
        need(states > 0 && least.shape(0) == n && argument.shape(0) == n, "least and argument must have n entries");
        nb::gil_scoped_release release;
        table<T>().row_minimum(n, states, energies.data(), least.data(), argument.data());
    }, nb::arg("energies").noconvert(), nb::arg("least").noconvert(), nb::arg("argument").noconvert());

    m.def("draw", [](Mat<const T> energies, Weights w, Vec<const T> least, Vec<const int32_t> argument, double price,
                     Vec<const double> uniforms, Vec<int32_t> z) {
        const size_t n = energies.shape(0), states = energies.shape(1);
        need(states > 0 && least.shape(0) == n && argument.shape(0) == n && uniforms.shape(0) == n && z.shape(0) == n,
             "least, argument, uniforms and z must have n entries");
        product({n, states});
        for (size_t i = 0; i < n; i++)
            need(argument(i) >= 0 && size_t(argument(i)) < states, "argument must lie in [0, states)");
        const double* weights = data(w, n);
        int64_t moved = 0;
        double excess;
        {
            nb::gil_scoped_release release;
            excess = table<T>().draw(n, states, energies.data(), weights, least.data(), argument.data(), price,
                                     uniforms.data(), z.data(), &moved);
        }
        return nb::make_tuple(excess, moved);
    }, nb::arg("energies").noconvert(), nb::arg("w").none(), nb::arg("least").noconvert(), nb::arg("argument").noconvert(),
       nb::arg("price"), nb::arg("uniforms").noconvert(), nb::arg("z").noconvert());

    m.def("walk", [](Mat<const T> energies, Weights w, Vec<const T> least, double room, Vec<const int64_t> sites,
                     Vec<const double> picks, Vec<int32_t> z) {
        const size_t n = energies.shape(0), states = energies.shape(1);
        need(states > 0 && least.shape(0) == n && z.shape(0) == n, "least and z must have n entries");
        product({n, states});
        need(sites.shape(0) == picks.shape(0), "sites and picks must have one entry a step");
        for (size_t s = 0; s < sites.shape(0); s++) need(sites(s) >= 0 && size_t(sites(s)) < n, "a site is no row");
        for (size_t i = 0; i < n; i++) need(z(i) >= 0 && size_t(z(i)) < states, "z must lie in [0, states)");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        table<T>().walk(n, states, energies.data(), weights, least.data(), room, sites.shape(0), sites.data(),
                        picks.data(), z.data());
    }, nb::arg("energies").noconvert(), nb::arg("w").none(), nb::arg("least").noconvert(), nb::arg("room"),
       nb::arg("sites").noconvert(), nb::arg("picks").noconvert(), nb::arg("z").noconvert());

    m.def("collect", [](Mat<const T> features, Weights w, Vec<const int32_t> labels, Mat<double> out) {
        const size_t n = features.shape(0), p = features.shape(1), k = out.shape(0);
        need(labels.shape(0) == n && out.shape(1) == p, "labels must be (n,), out (k, p)");
        product({k, p});
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        table<T>().collect(n, p, k, features.data(), weights, labels.data(), out.data());
    }, nb::arg("features").noconvert(), nb::arg("w").none(), nb::arg("labels").noconvert(), nb::arg("out").noconvert());

    m.def("sort_rows", [](Mat<const T> x, Vec<int64_t> order, Vec<uint8_t> is_new) {
        const size_t n = x.shape(0), d = x.shape(1);
        need(order.shape(0) == n && is_new.shape(0) == n, "order and is_new must have n entries");
        nb::gil_scoped_release release;
        table<T>().sort_rows(n, d, x.data(), order.data(), is_new.data());
    }, nb::arg("x").noconvert(), nb::arg("order").noconvert(), nb::arg("is_new").noconvert());

    m.def("standard_rows", [](Mat<const T> x, Vec<const int64_t> order, double scale, Vec<const double> shift,
                              Mat<T> out) {
        const size_t n = order.shape(0), d = x.shape(1);
        need(shift.shape(0) == d, "shift must have one entry a column");
        need(out.shape(0) == n && out.shape(1) == d, "out must have a row for each entry of order");
        for (size_t i = 0; i < n; i++) need(order(i) >= 0 && size_t(order(i)) < x.shape(0), "order names no row");
        nb::gil_scoped_release release;
        table<T>().standard_rows(n, d, x.data(), order.data(), scale, shift.data(), out.data());
    }, nb::arg("x").noconvert(), nb::arg("order").noconvert(), nb::arg("scale"), nb::arg("shift").noconvert(),
       nb::arg("out").noconvert());

    m.def("plus_plus", [](Mat<const T> x, Weights w, Mat<const double> uniforms, Vec<int64_t> chosen) {
        const size_t n = x.shape(0), d = x.shape(1), k = chosen.shape(0), trials = uniforms.shape(1);
        need(n > 0 && trials > 0 && uniforms.shape(0) == k, "uniforms must be (k, trials), of at least one row");
        product({n, d, trials});
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        table<T>().plus_plus(n, d, k, trials, x.data(), weights, uniforms.data(), chosen.data());
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("uniforms").noconvert(), nb::arg("chosen").noconvert());
    bind_regression<T>(m);
    bind_regression_starts<T>(m);
}

Covariance covariance_type(int code) {
    need(code >= 0 && code <= 3, "the covariance type must be 0, 1, 2 or 3");
    return Covariance(code);
}

// Refuses sizes whose second moments, or covariances, no memory holds: what `second_moments` and `covariance_size` multiply.
void check_gaussian_sizes(size_t k, size_t d, Covariance type) {
    need(k > 0 && d > 0, "there must be components and columns");
    product({k, d + 1, type == Covariance::full || type == Covariance::tied ? d : 1});
}

Gaussians gaussians(const Mat<const double>& means, const Vec<const double>& factors, const Vec<const double>& offsets, int code) {
    const Covariance type = covariance_type(code);
    const int64_t k = means.shape(0), d = means.shape(1);
    check_gaussian_sizes(k, d, type);
    need(int64_t(offsets.shape(0)) == k, "means must be (k, d), offsets (k,)");
    need(int64_t(factors.shape(0)) == covariance_size(k, d, type), "factors do not fit the covariance type");
    return {k, d, type, means.data(), factors.data(), offsets.data()};
}

template <class T>
void bind_gauss_rows(nb::module_& m) {
    m.def("gauss_energies", [](Mat<const T> x, Mat<const double> means, Vec<const double> factors, Vec<const double> offsets,
                               int code, Mat<T> out) {
        const Gaussians g = gaussians(means, factors, offsets, code);
        const size_t n = x.shape(0);
        need(x.shape(1) == means.shape(1) && out.shape(0) == n && out.shape(1) == means.shape(0), "out must be (n, k)");
        nb::gil_scoped_release release;
        table<T>().gauss_energies(n, x.data(), g, out.data());
    }, nb::arg("x").noconvert(), nb::arg("means").noconvert(), nb::arg("factors").noconvert(),
       nb::arg("offsets").noconvert(), nb::arg("covariance_type"), nb::arg("out").noconvert());

    m.def("gauss_pass", [](Mat<const T> x, Weights w, Mat<const double> means, Vec<const double> factors,
                           Vec<const double> offsets, int code, double beta, std::optional<Mat<double>> moments,
                           std::optional<Vec<double>> free, std::optional<Mat<T>> q) {
        const Gaussians g = gaussians(means, factors, offsets, code);
        const size_t n = x.shape(0);
        need(x.shape(1) == means.shape(1), "x must have the columns of means");
        need(beta > 0, "beta must be positive");
        need(!moments || (int64_t(moments->shape(0)) == g.k &&
                          int64_t(moments->shape(1)) == 1 + g.d + second_moments(g.d, g.type)), "moments do not fit the covariance type");
        need((!free || free->shape(0) == n) && (!q || (q->shape(0) == n && int64_t(q->shape(1)) == g.k)),
             "free must be (n,), q (n, k)");
        const double* weights = data(w, n);
        GaussTotals totals;
        {
            nb::gil_scoped_release release;
            totals = table<T>().gauss_pass(n, x.data(), weights, g, beta, moments ? moments->data() : nullptr,
                                           free ? free->data() : nullptr, q ? q->data() : nullptr);
        }
        return nb::make_tuple(totals.free, totals.entropy);
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("means").noconvert(), nb::arg("factors").noconvert(),
       nb::arg("offsets").noconvert(), nb::arg("covariance_type"), nb::arg("beta"), nb::arg("moments").noconvert().none(),
       nb::arg("free").noconvert().none() = nb::none(), nb::arg("q").noconvert().none() = nb::none());

    m.def("gauss_moments", [](Mat<const T> x, Weights w, Mat<const double> means, Mat<const double> q, int code,
                              Mat<double> out) {
        const Covariance type = covariance_type(code);
        const size_t n = x.shape(0), d = x.shape(1), k = means.shape(0);
        check_gaussian_sizes(k, d, type);
        need(means.shape(1) == d && q.shape(0) == n && q.shape(1) == k, "means must be (k, d), q (n, k)");
        need(out.shape(0) == k && int64_t(out.shape(1)) == 1 + int64_t(d) + second_moments(d, type), "out does not fit the covariance type");
        const double* weights = data(w, n);
        nb::gil_scoped_release release;
        table<T>().gauss_moments(n, k, d, type, x.data(), weights, means.data(), q.data(), out.data());
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("means").noconvert(), nb::arg("q").noconvert(),
       nb::arg("covariance_type"), nb::arg("out").noconvert());

    m.def("gauss_em", [](Mat<const T> x, Weights w, int code, double floor, int64_t steps, double tolerance, bool squared,
                         Mat<double> weights, Cube<double> means, Mat<double> covariances,
                         std::optional<Cube<const double>> responsibilities, Mat<double> history, Vec<int64_t> passes,
                         Mat<uint8_t> floored, Vec<uint8_t> status) {
        const Covariance type = covariance_type(code);
        const size_t n = x.shape(0), d = x.shape(1), runs = weights.shape(0), k = weights.shape(1);
        need(n > 0 && steps >= 0, "x must be (n, d), weights (runs, k), steps not negative");
        check_gaussian_sizes(k, d, type);
        product({runs, size_t(steps) + 1});
        need(means.shape(0) == runs && means.shape(1) == k && means.shape(2) == d, "means must be (runs, k, d)");
        need(covariances.shape(0) == runs && int64_t(covariances.shape(1)) == covariance_size(k, d, type), "covariances do not fit their type");
        need(!responsibilities || (responsibilities->shape(0) == runs && responsibilities->shape(1) == n &&
                                   responsibilities->shape(2) == k), "responsibilities must be (runs, n, k)");
        need(history.shape(0) == runs && int64_t(history.shape(1)) == steps + 1 && passes.shape(0) == runs &&
             floored.shape(0) == runs && floored.shape(1) == k && status.shape(0) == runs, "outputs must have a row a run");
        const double* weight = data(w, n);
        const GaussSearch search{int64_t(k), int64_t(d), type, floor, steps, tolerance, squared};
        const GaussRuns all{int64_t(runs), weights.data(), means.data(), covariances.data(),
                            responsibilities ? responsibilities->data() : nullptr, history.data(), passes.data(),
                            floored.data(), status.data()};
        nb::gil_scoped_release release;
        table<T>().gauss_em(n, x.data(), weight, search, all);
    }, nb::arg("x").noconvert(), nb::arg("w").none(), nb::arg("covariance_type"), nb::arg("floor"), nb::arg("steps"),
       nb::arg("tolerance"), nb::arg("squared"), nb::arg("weights").noconvert(), nb::arg("means").noconvert(),
       nb::arg("covariances").noconvert(), nb::arg("responsibilities").noconvert().none(), nb::arg("history").noconvert(),
       nb::arg("passes").noconvert(), nb::arg("floored").noconvert(), nb::arg("status").noconvert());
}

void bind_gauss(nb::module_& m) {
    bind_gauss_rows<float>(m);
    bind_gauss_rows<double>(m);
    m.def("gauss_step", [](Mat<const double> moments, Mat<const double> reference, int code, double floor, bool single,
                           Vec<double> weights, Mat<double> means, Vec<double> covariances, Vec<double> factors,
                           Vec<double> offsets, Vec<uint8_t> floored) {
        const Covariance type = covariance_type(code);
        const int64_t k = reference.shape(0), d = reference.shape(1);
        check_gaussian_sizes(k, d, type);
        const int64_t size = covariance_size(k, d, type);
        need(int64_t(moments.shape(0)) == k &&
             int64_t(moments.shape(1)) == 1 + d + second_moments(d, type), "moments do not fit the covariance type");
        need(int64_t(weights.shape(0)) == k && int64_t(means.shape(0)) == k && int64_t(means.shape(1)) == d &&
             int64_t(covariances.shape(0)) == size && int64_t(factors.shape(0)) == size &&
             int64_t(offsets.shape(0)) == k && int64_t(floored.shape(0)) == k, "outputs do not fit the covariance type");
        GaussStep step;
        {
            nb::gil_scoped_release release;
            step = kernels->gauss_step(k, d, type, floor, moments.data(), reference.data(), single,
                                       {weights.data(), means.data(), covariances.data(), factors.data(), offsets.data(),
                                        floored.data()});
        }
        return nb::make_tuple(step.value, step.travel, step.singular);
    }, nb::arg("moments").noconvert(), nb::arg("reference").noconvert(), nb::arg("covariance_type"), nb::arg("floor"),
       nb::arg("single"), nb::arg("weights").noconvert(), nb::arg("means").noconvert(), nb::arg("covariances").noconvert(),
       nb::arg("factors").noconvert(), nb::arg("offsets").noconvert(), nb::arg("floored").noconvert());

    m.def("gauss_factor", [](Vec<const double> covariances, int64_t d, int code, Vec<double> factors, Vec<double> constants) {
        const Covariance type = covariance_type(code);
        const int64_t k = constants.shape(0);
        need(d > 0, "there must be columns");
        check_gaussian_sizes(k, d, type);
        const int64_t size = covariance_size(k, d, type);
        need(int64_t(covariances.shape(0)) == size && int64_t(factors.shape(0)) == size,
             "covariances and factors do not fit the covariance type");
        nb::gil_scoped_release release;
        return kernels->gauss_factor(k, d, type, covariances.data(), factors.data(), constants.data());
    }, nb::arg("covariances").noconvert(), nb::arg("d"), nb::arg("covariance_type"), nb::arg("factors").noconvert(),
       nb::arg("constants").noconvert());
}

}  // namespace

const Kernels* chosen() { return kernels; }

NB_MODULE(_kernels, m) {
    kernels = choose();
    m.doc() = "Compiled inner loops; see src/kernels/kernels.hpp for what each computes.";
    bind<float>(m);
    bind<double>(m);
    bind_gauss(m);
    bind_box_searches(m);
    bind_swap(m);
    bind_gaps(m);
    bind_categories(m);
    bind_chains(m);
    bind_softmax(m);
    bind_bags(m);
    bind_flows(m);
    bind_grids(m);
    bind_intervals(m);
    bind_medoids(m);
    bind_regression_step(m);
    bind_responses(m);
    m.def("isa", [] { return kernels->isa; }, "The instruction set in use.");
    m.def("isas", [] {
        nb::list names;
        for (const Kernels* one : available()) names.append(one->isa);
        return names;
    }, "The instruction sets of this build that this machine has, slowest first.");
}
