// The Python face of the chains: shapes and indices are checked, the interpreter lock is released.
#include <algorithm>

#include "binding.hpp"

using namespace majorant;

namespace {

using StepTable = std::optional<Vec<const int32_t>>;

ChainScores chain_scores(const Mat<const double>& unary, const Cube<const double>& transitions,
                         const Vec<const int64_t>& offsets, const StepTable& table) {
    const size_t positions = unary.shape(0), states = unary.shape(1), tables = transitions.shape(0);
    need(states > 0 && transitions.shape(1) == states && transitions.shape(2) == states && tables > 0,
         "unary must be (positions, states), transitions (tables, states, states)");
    need(offsets.shape(0) > 0 && offsets(0) == 0 && size_t(offsets(offsets.shape(0) - 1)) == positions,
         "offsets must run from 0 to the number of positions");
    size_t longest = 0;
    for (size_t i = 1; i < offsets.shape(0); i++) {
        need(offsets(i) >= offsets(i - 1), "offsets must not descend");
        longest = std::max(longest, size_t(offsets(i) - offsets(i - 1)));
    }
    product({longest, states, states});
    if (table) {
        need(table->shape(0) == positions, "table must have one entry a position");
        for (size_t t = 0; t < positions; t++) need((*table)(t) >= 0 && size_t((*table)(t)) < tables, "table names no table");
    }
    return {int64_t(offsets.shape(0)) - 1, int64_t(states), offsets.data(), unary.data(), transitions.data(),
            table ? table->data() : nullptr};
}

}  // namespace

void bind_chains(nb::module_& m) {
    m.def("chain_sums", [](Mat<const double> unary, Cube<const double> transitions, Vec<const int64_t> offsets, StepTable table,
                           Weights w, Vec<double> log_partition, std::optional<Vec<double>> entropy,
                           std::optional<Mat<double>> marginals, std::optional<Cube<double>> steps,
                           std::optional<Cube<double>> pairs) {
        const ChainScores scores = chain_scores(unary, transitions, offsets, table);
        const double* weights = data(w, scores.n);
        need(int64_t(log_partition.shape(0)) == scores.n && (!entropy || int64_t(entropy->shape(0)) == scores.n),
             "log_partition and entropy must have one entry a chain");
        need(!marginals || (marginals->shape(0) == unary.shape(0) && marginals->shape(1) == unary.shape(1)),
             "marginals must be (positions, states)");
        need(!steps || (steps->shape(0) == transitions.shape(0) && steps->shape(1) == unary.shape(1) &&
                        steps->shape(2) == unary.shape(1)),
             "steps must be (tables, states, states)");
        need(!pairs || (pairs->shape(0) == unary.shape(0) && pairs->shape(1) == unary.shape(1) &&
                        pairs->shape(2) == unary.shape(1)),
             "pairs must be (positions, states, states)");
        nb::gil_scoped_release release;
        chosen()->chains.sums(scores, weights,
                              {log_partition.data(), entropy ? entropy->data() : nullptr,
                               marginals ? marginals->data() : nullptr, steps ? steps->data() : nullptr,
                               pairs ? pairs->data() : nullptr});
    }, nb::arg("unary").noconvert(), nb::arg("transitions").noconvert(), nb::arg("offsets").noconvert(),
       nb::arg("table").noconvert().none(), nb::arg("w").none(), nb::arg("log_partition").noconvert(),
       nb::arg("entropy").noconvert().none() = nb::none(), nb::arg("marginals").noconvert().none() = nb::none(),
       nb::arg("steps").noconvert().none() = nb::none(), nb::arg("pairs").noconvert().none() = nb::none());

    m.def("chain_best", [](Mat<const double> unary, Cube<const double> transitions, Vec<const int64_t> offsets, StepTable table,
                           Vec<int32_t> path, Vec<double> score) {
        const ChainScores scores = chain_scores(unary, transitions, offsets, table);
        need(path.shape(0) == unary.shape(0) && int64_t(score.shape(0)) == scores.n,
             "path must have one entry a position, score one a chain");
        nb::gil_scoped_release release;
        chosen()->chains.best(scores, path.data(), score.data());
    }, nb::arg("unary").noconvert(), nb::arg("transitions").noconvert(), nb::arg("offsets").noconvert(),
       nb::arg("table").noconvert().none(), nb::arg("path").noconvert(), nb::arg("score").noconvert());

    m.def("chain_draw", [](Mat<const double> unary, Cube<const double> transitions, Vec<const int64_t> offsets, StepTable table,
                           Mat<const double> uniforms, Mat<int32_t> path) {
        const ChainScores scores = chain_scores(unary, transitions, offsets, table);
        need(uniforms.shape(1) == unary.shape(0) && path.shape(1) == unary.shape(0) && path.shape(0) == uniforms.shape(0),
             "uniforms and path must be (draws, positions)");
        nb::gil_scoped_release release;
        chosen()->chains.draw(scores, uniforms.shape(0), uniforms.data(), path.data());
    }, nb::arg("unary").noconvert(), nb::arg("transitions").noconvert(), nb::arg("offsets").noconvert(),
       nb::arg("table").noconvert().none(), nb::arg("uniforms").noconvert(), nb::arg("path").noconvert());

    m.def("chain_pass", [](Mat<const double> start, Cube<const double> steps, Vec<const int64_t> offsets,
                           Cube<const double> log_density, std::optional<Mat<const double>> w, Cube<double> q,
                           Mat<double> log_partition, std::optional<Mat<double>> first, std::optional<Cube<double>> counts) {
        const size_t runs = log_density.shape(0), rows = log_density.shape(1), states = log_density.shape(2);
        need(states > 0 && start.shape(0) == runs && start.shape(1) == states, "start must be (runs, states)");
        product({runs, states, std::max(states, rows)});
        need(steps.shape(0) == runs && steps.shape(1) == states && steps.shape(2) == states,
             "steps must be (runs, states, states)");
        need(offsets.shape(0) > 1 && offsets(0) == 0 && size_t(offsets(offsets.shape(0) - 1)) == rows,
             "offsets must run from 0 to the number of rows");
        for (size_t i = 1; i < offsets.shape(0); i++) need(offsets(i) > offsets(i - 1), "offsets must ascend");
        const size_t n = offsets.shape(0) - 1;
        need(!w || ((w->shape(0) == 1 || w->shape(0) == runs) && w->shape(1) == n), "w must be (1 or runs, chains)");
        need(q.shape(0) == runs && q.shape(1) == rows && q.shape(2) == states, "q must be (runs, rows, states)");
        need(log_partition.shape(0) == runs && log_partition.shape(1) == n, "log_partition must be (runs, chains)");
        need(bool(first) == bool(counts), "first and counts go together");
        need(!first || (first->shape(0) == runs && first->shape(1) == states), "first must be (runs, states)");
        need(!counts || (counts->shape(0) == runs && counts->shape(1) == states && counts->shape(2) == states),
             "counts must be (runs, states, states)");
        nb::gil_scoped_release release;
        chosen()->chains.pass({int64_t(runs), int64_t(n), int64_t(states), int64_t(rows), offsets.data(), start.data(),
                               steps.data(), log_density.data(), w ? w->data() : nullptr,
                               w && w->shape(0) > 1 ? int64_t(n) : 0, q.data(), log_partition.data(),
                               first ? first->data() : nullptr, counts ? counts->data() : nullptr});
    }, nb::arg("start").noconvert(), nb::arg("steps").noconvert(), nb::arg("offsets").noconvert(),
       nb::arg("log_density").noconvert(), nb::arg("w").noconvert().none(), nb::arg("q").noconvert(),
       nb::arg("log_partition").noconvert(), nb::arg("first").noconvert().none(), nb::arg("counts").noconvert().none());
}
