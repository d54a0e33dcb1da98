#include "gauss_step.hpp"

#include "matrix.hpp"

namespace majorant::MAJORANT_ISA {
namespace {

constexpr double log_2pi = 1.8378770664093454836;

struct Factored {
    bool regular;
    double log_determinant;
    double least;  // no eigenvalue lies below it
};

Factored factor(int64_t d, const double* covariance, double* upper, std::vector<double>& lower) {
    if (!cholesky(d, covariance, 0.0, lower.data())) return {false, 0.0, 0.0};
    double logs = 0.0;
    for (int64_t l = 0; l < d; l++) logs += std::log(lower[l * d + l]);
    return {true, 2.0 * logs, 1.0 / transposed_inverse(d, lower.data(), upper)};
}

// Eigenvalues below the floor become the floor; false if there are none. *spread gets tr(new^-1 old).
bool clip(int64_t d, double floor, double* covariance, double* spread) {
    std::vector<double> vectors(covariance, covariance + d * d), values(d);
    for (const double entry : vectors)
        if (!std::isfinite(entry)) return false;
    eigen(d, vectors.data(), values.data());
    if (!(*std::min_element(values.begin(), values.end()) < floor)) return false;
    *spread = 0.0;
    std::fill_n(covariance, d * d, 0.0);
    for (int64_t e = 0; e < d; e++) {
        const double clipped = std::max(values[e], floor), *vector = vectors.data() + e * d;
        *spread += values[e] / clipped;
        for (int64_t i = 0; i < d; i++)
            for (int64_t l = 0; l < d; l++) covariance[i * d + l] += clipped * vector[i] * vector[l];
    }
    return true;
}

struct Fit {
    bool regular, floored;
    double log_determinant, spread;
};

// The covariance nearest to a scatter matrix in likelihood, in place, and its factor.
Fit fit_matrix(int64_t d, double floor, double* covariance, double* upper, std::vector<double>& lower) {
    Fit fit{true, false, 0.0, double(d)};
    Factored found = factor(d, covariance, upper, lower);
    if (!found.regular || (found.least < floor && !cholesky(d, covariance, floor, lower.data()))) {
        fit.floored = clip(d, floor, covariance, &fit.spread);
        if (fit.floored) found = factor(d, covariance, upper, lower);
    }
    fit.regular = found.regular;
    fit.log_determinant = found.log_determinant;
    return fit;
}

// The same for `columns` variances that are each shared by `repeat` columns of the data.
Fit fit_variances(int64_t columns, double repeat, double floor, double* variances, double* factors) {
    Fit fit{true, false, 0.0, 0.0};
    for (int64_t l = 0; l < columns; l++) {
        const double variance = variances[l];
        fit.floored |= variance < floor;
        variances[l] = std::max(variance, floor);
        fit.regular &= variances[l] > 0 && std::isfinite(variances[l]);
        fit.spread += repeat * variance / variances[l];
        fit.log_determinant += repeat * std::log(variances[l]);
        factors[l] = 1.0 / std::sqrt(variances[l]);
    }
    return fit;
}

double offset(double share, double log_determinant, int64_t d) {
    return share > 0 ? 0.5 * (log_determinant + double(d) * log_2pi) - std::log(share) : infinity<double>;
}

// Adds to a triangle of second moments what a move of the reference by `moved` takes off, per unit of mass.
void recentre(int64_t d, const double* first, const double* moved, double* triangle) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t l = 0; l <= i; l++)
            *triangle++ += moved[i] * moved[l] - first[i] * moved[l] - moved[i] * first[l];
}

}  // namespace

GaussStep gauss_step(int64_t k, int64_t d, Covariance type, double floor, const double* moments, const double* reference,
                     bool single, const GaussParameters& out) {
    const int64_t second = second_moments(d, type), width = 1 + d + second;
    const bool matrix = type == Covariance::full || type == Covariance::tied;
    GaussStep result{0.0, 0.0, -1};
    double mass_of_all = 0.0;
    for (int64_t j = 0; j < k; j++) mass_of_all += moments[j * width];
    std::vector<double> lower(matrix ? d * d : 0), first(d), moves(k * d, 0.0), pooled(type == Covariance::tied ? second : 0);
    std::vector<double> scatter(second);

    auto spread_out = [d](const double* triangle, double* square) {
        for (int64_t i = 0; i < d; i++)
            for (int64_t l = 0; l <= i; l++) square[i * d + l] = square[l * d + i] = *triangle++;
    };
    auto account = [&](int64_t j, const Fit& fit) {
        const double mass = moments[j * width];
        out.floored[j] = fit.floored;
        out.offsets[j] = offset(out.weights[j], fit.log_determinant, d);
        if (mass > 0) result.value += mass * (out.offsets[j] + 0.5 * fit.spread);
        if (!fit.regular && result.singular < 0) result.singular = j;
    };

    for (int64_t j = 0; j < k; j++) {
        const double *sums = moments + j * width, mass = sums[0];
        double* moved = moves.data() + j * d;
        out.weights[j] = mass / mass_of_all;
        if (!(mass > 0)) {
            std::copy_n(reference + j * d, d, out.means + j * d);
            if (type == Covariance::full) {
                const Factored kept = factor(d, out.covariances + j * d * d, out.factors + j * d * d, lower);
                account(j, {kept.regular, false, kept.log_determinant, double(d)});
            } else if (!matrix) {
                const int64_t size = type == Covariance::diag ? d : 1;
                account(j, fit_variances(size, 1.0, 0.0, out.covariances + j * size, out.factors + j * size));
            }
            continue;
        }
        for (int64_t l = 0; l < d; l++) {
            first[l] = sums[1 + l] / mass;
            const double mean = reference[j * d + l] + first[l];
            out.means[j * d + l] = single ? double(float(mean)) : mean;
            moved[l] = single ? out.means[j * d + l] - reference[j * d + l] : first[l];
        }
        for (int64_t s = 0; s < second; s++) scatter[s] = sums[1 + d + s] / mass;
        if (matrix) {
            recentre(d, first.data(), moved, scatter.data());
        } else {
            for (int64_t l = 0; l < d; l++)
                scatter[type == Covariance::diag ? l : 0] += moved[l] * (moved[l] - 2.0 * first[l]);
        }
        if (type == Covariance::tied) {
            for (int64_t s = 0; s < second; s++) pooled[s] += mass / mass_of_all * scatter[s];
        } else if (type == Covariance::full) {
            double* covariance = out.covariances + j * d * d;
            spread_out(scatter.data(), covariance);
            account(j, fit_matrix(d, floor, covariance, out.factors + j * d * d, lower));
        } else if (type == Covariance::diag) {
            std::copy_n(scatter.data(), d, out.covariances + j * d);
            account(j, fit_variances(d, 1.0, floor, out.covariances + j * d, out.factors + j * d));
        } else {
            out.covariances[j] = scatter[0] / double(d);
            account(j, fit_variances(1, double(d), floor, out.covariances + j, out.factors + j));
        }
    }
    if (type == Covariance::tied) {
        spread_out(pooled.data(), out.covariances);
        const Fit fit = fit_matrix(d, floor, out.covariances, out.factors, lower);
        for (int64_t j = 0; j < k; j++) account(j, fit);
    }
    for (int64_t j = 0; j < k; j++) {  // |U' moved|^2
        const double *moved = moves.data() + j * d, *factors = out.factors;
        if (type == Covariance::full) factors += j * d * d;
        double square = 0.0;
        for (int64_t l = 0; l < d; l++) {
            double scaled = 0.0;
            if (matrix)
                for (int64_t m = 0; m <= l; m++) scaled += moved[m] * factors[m * d + l];
            else
                scaled = moved[l] * factors[type == Covariance::diag ? j * d + l : j];
            square += scaled * scaled;
        }
        result.travel += moments[j * width] * square;
    }
    return result;
}

int64_t gauss_factor(int64_t k, int64_t d, Covariance type, const double* covariances, double* factors, double* constants) {
    const bool matrix = type == Covariance::full || type == Covariance::tied;
    std::vector<double> lower(matrix ? d * d : 0);
    double log_determinant = 0.0;
    for (int64_t j = 0; j < k; j++) {
        if (type == Covariance::full || (type == Covariance::tied && j == 0)) {
            const Factored found = factor(d, covariances + j * d * d, factors + j * d * d, lower);
            if (!found.regular) return j;
            log_determinant = found.log_determinant;
        } else if (!matrix) {
            const int64_t size = type == Covariance::diag ? d : 1;
            log_determinant = 0.0;
            for (int64_t l = j * size; l < (j + 1) * size; l++) {
                if (!(covariances[l] > 0 && std::isfinite(covariances[l]))) return j;
                log_determinant += double(d / size) * std::log(covariances[l]);
                factors[l] = 1.0 / std::sqrt(covariances[l]);
            }
        }
        constants[j] = offset(1.0, log_determinant, d);
    }
    return -1;
}

bool gauss_complete(int64_t k, int64_t d, Covariance type, double floor, const GaussParameters& out) {
    if (gauss_factor(k, d, type, out.covariances, out.factors, out.offsets) >= 0) return false;
    const bool matrix = type == Covariance::full || type == Covariance::tied;
    const int64_t size = covariance_size(k, d, type), each = matrix ? d * d : 1;
    std::vector<double> lower(matrix ? d * d : 0);
    for (int64_t at = 0; at < size; at += each)
        if (matrix ? !cholesky(d, out.covariances + at, floor, lower.data()) : out.covariances[at] < floor) return false;
    for (int64_t j = 0; j < k; j++) out.offsets[j] -= out.weights[j] > 0 ? std::log(out.weights[j]) : -infinity<double>;
    return true;
}

}  // namespace majorant::MAJORANT_ISA
