// Polynomials in d variables on the box [-1, 1]^d: halved along an axis, and enclosed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "isa.hpp"

namespace majorant::MAJORANT_ISA {

// The monomials of total degree at most `degree`, the constant first. Every other one is an earlier one, its parent,
// times a power of one variable.
class Monomials {
public:
    struct Step {
        int32_t parent, axis, power, total;  // total: degree of the product
    };
    const int64_t d, degree;
    std::vector<Step> steps;  // of the monomials after the constant

    // degree is 2 at least and max_degree at most
    Monomials(int64_t d, int64_t degree) : d(d), degree(degree) {
        std::vector<std::vector<int>> powers{std::vector<int>(d, 0)};
        std::vector<int64_t> total{0};
        for (int64_t l = 0; l < d; l++) {
            const size_t before = powers.size();
            for (size_t i = 0; i < before; i++)
                for (int64_t p = 1; total[i] + p <= degree; p++) {
                    powers.push_back(powers[i]);
                    powers.back()[l] = int(p);
                    total.push_back(total[i] + p);
                    steps.push_back({int32_t(i), int32_t(l), int32_t(p), int32_t(total.back())});
                }
        }
        count = int64_t(powers.size());
        std::map<std::vector<int>, int32_t> place;
        for (int64_t i = 0; i < count; i++) place[powers[i]] = int32_t(i);
        lines.resize(d);
        line_ends.resize(d);
        exponents.resize(size_t(count) * d);
        even.assign(count, 1.0);
        for (int64_t i = 0; i < count; i++)
            for (int64_t l = 0; l < d; l++) {
                exponents[l * count + i] = powers[i][l];
                if (powers[i][l] % 2) even[i] = 0.0;
                if (powers[i][l] || total[i] == degree) continue;
                auto along = powers[i];
                for (; total[i] + along[l] <= degree; along[l]++) lines[l].push_back(place.at(along));
                line_ends[l].push_back(int64_t(lines[l].size()));
            }
    }

    int64_t size() const { return count; }

    static int64_t number(int64_t d, int64_t degree) {
        double n = 1;
        for (int64_t i = 1; i <= degree; i++) n = n * double(d + i) / double(i);
        return n < 1e9 ? int64_t(n + 0.5) : int64_t(1e9);
    }

    // From coefficients on the box to those on its lower (side -1) or upper (side 1) half along an axis.
    void halve(double* c, int64_t axis, double side) const {
        const int32_t* line = lines[axis].data();
        double t[max_degree + 1];
        int64_t first = 0;
        for (const int64_t end : line_ends[axis]) {
            const int64_t m = end - first;
            double scale = 1;
            for (int64_t j = 0; j < m; j++, scale /= 2) t[j] = c[line[first + j]] * scale;
            for (int64_t i = 0; i + 1 < m; i++)
                for (int64_t j = m - 2; j >= i; j--) t[j] += side * t[j + 1];
            for (int64_t j = 0; j < m; j++) c[line[first + j]] = t[j];
            first = end;
        }
    }

    struct Enclosure {
        double upper = 0;      // nothing on the box is above it
        double size = 0;       // sum of the sizes of the coefficients
        int64_t split = 0;     // the axis along which the box is best halved
        bool may_turn = true;  // false: some derivative, give or take what the caller allows, vanishes nowhere
    };

    // slack[l]: what may be missing from the derivative along axis l.
    Enclosure enclose(const double* c, const double* slack, double* excess, double* size) const {
        Enclosure out;
        excess[0] = size[0] = 0;
        double above = 0, sizes = 0;
        for (int64_t i = 1; i < count; i++) {
            const double s = std::abs(c[i]);
            size[i] = s;
            excess[i] = even[i] * std::max(c[i], 0.0) + (1 - even[i]) * s;
            above += excess[i];
            sizes += s;
        }
        out.size = sizes + std::abs(c[0]);
        double best_score = -1;
        for (int64_t l = 0; l < d; l++) {
            const double* power = exponents.data() + l * count;
            double score = 0, pull = 0;
            for (int64_t i = 0; i < count; i++) {
                score += power[i] * excess[i];
                pull += power[i] * size[i];
            }
            const double b = size[lines[l][1]], a = c[lines[l][2]];
            if (a < 0) {  // b t + a t^2 reaches less than b
                const double less = b < -2 * a ? b + b * b / (4 * a) : -a;
                score -= less;
                above -= less;
            }
            if (b > pull - b + slack[l]) out.may_turn = false;
            if (score > best_score) {
                best_score = score;
                out.split = l;
            }
        }
        out.upper = c[0] + above + double(count + 16) * 2.3e-16 * out.size;
        return out;
    }

    static constexpr int64_t max_degree = 16;

private:
    int64_t count = 0;
    std::vector<double> exponents, even;               // exponents by axis; even: whether all exponents are
    std::vector<std::vector<int32_t>> lines;           // by axis: monomials that differ in its power alone, by power
    std::vector<std::vector<int64_t>> line_ends;       // by axis
};

}  // namespace majorant::MAJORANT_ISA
