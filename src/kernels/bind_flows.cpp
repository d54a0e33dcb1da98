// The cheapest assignment of rows to clusters of limited weight: a flow from rows through clusters to a store.
#include <algorithm>
#include <cmath>
#include <vector>

#include "binding.hpp"

namespace {

constexpr double nowhere = INFINITY;
constexpr int scans = 16;  // looks at a cluster by scans of its rows, after which heaps of them pay

// Successive shortest paths over the clusters and the store, which is node k. An edge from one cluster to another is the
// row that is cheapest to move, edges to and from the store are free while a cluster may take more, or must keep less.
// Prices keep what an edge costs beyond their difference at zero or above, so that paths are found by Dijkstra's rule.
class Flow {
public:
    Flow(int64_t n, int64_t k, const double* costs, const double* w, double low, double high, double* prices, double* mass)
        : n_(n), k_(k), costs_(costs), low_(low), high_(high), price_(prices, prices + k), mass_(mass), taken_(k),
          excess_(k + 1, 0.0), length_((k + 1) * (k + 1), nowhere), mover_(k * k, -1), rows_(k), heap_(k * k), looks_(k, 0),
          distance_(k + 1), before_(k + 1), done_(k + 1) {
        price_.push_back(0.0);
        double total = 0.0;
        for (int64_t i = 0; i < n; i++) {
            const double* own = costs + i * k;
            int64_t a = 0;
            for (int64_t b = 1; b < k; b++)
                if (own[b] + price_[b] < own[a] + price_[a]) a = b;
            rows_[a].push_back(int32_t(i));
            mass_[a * n + i] = w[i];
            excess_[a] += w[i];
            total += w[i];
        }
        least_ = 1e-12 * total;
        for (int64_t a = 0; a < k; a++) {
            taken_[a] = price_[a] > 0 ? high : price_[a] < 0 ? low : std::clamp(excess_[a], low, high);
            excess_[a] -= taken_[a];
            excess_[k] -= excess_[a];
            look_at(a);
        }
    }

    // Send what clusters have too much of along the cheapest paths to those, or the store, that have too little.
    void balance() {
        while (*std::max_element(excess_.begin(), excess_.end()) > least_) {
            const int64_t to = search();
            if (to < 0) break;
            send(to);
        }
    }

    void prices(double* out) const {
        for (int64_t a = 0; a < k_; a++) {  // that of the store is zero
            out[a] = price_[a] - price_[k_];
            if (taken_[a] - low_ > least_) out[a] = std::max(out[a], 0.0);
            if (high_ - taken_[a] > least_) out[a] = std::min(out[a], 0.0);
        }
    }

private:
    const int64_t n_, k_;
    const double* costs_;
    const double low_, high_;
    std::vector<double> price_;  // of the clusters and the store
    double* mass_;               // (k, n)
    std::vector<double> taken_, excess_;  // what the store takes of each cluster, and what is left or lacks at each node
    std::vector<double> length_;          // (k + 1, k + 1) what an edge costs
    std::vector<int32_t> mover_;          // (k, k) the row that is cheapest to move
    std::vector<std::vector<int32_t>> rows_;  // (k) rows of a cluster, and some that have left
    std::vector<std::vector<int32_t>> heap_;  // (k, k) the same by what it costs to move them
    std::vector<int> looks_;                  // how often each cluster was looked at
    std::vector<double> distance_;
    std::vector<int64_t> before_;
    std::vector<char> done_;
    double least_;

    double& edge(int64_t a, int64_t b) { return length_[a * (k_ + 1) + b]; }
    double more(int64_t i, int64_t a, int64_t b) const { return costs_[i * k_ + b] - costs_[i * k_ + a]; }

    auto later(int64_t a, int64_t b) const {
        return [this, a, b](int32_t i, int32_t j) { return more(i, a, b) > more(j, a, b); };
    }

    // Dijkstra from all nodes with too much to the nearest with too little; prices move by the distances. -1: there is none.
    int64_t search() {
        for (int64_t a = 0; a <= k_; a++) distance_[a] = excess_[a] > least_ ? 0.0 : nowhere, before_[a] = -1, done_[a] = 0;
        int64_t to = -1;
        for (;;) {
            int64_t a = -1;
            for (int64_t b = 0; b <= k_; b++)
                if (!done_[b] && distance_[b] < nowhere && (a < 0 || distance_[b] < distance_[a])) a = b;
            if (a < 0) return -1;
            done_[a] = 1;
            if (excess_[a] < -least_) {
                to = a;
                break;
            }
            for (int64_t b = 0; b <= k_; b++) {
                if (done_[b] || edge(a, b) == nowhere) continue;
                const double through = distance_[a] + std::max(edge(a, b) + price_[b] - price_[a], 0.0);
                if (through < distance_[b]) distance_[b] = through, before_[b] = a;
            }
        }
        for (int64_t a = 0; a <= k_; a++) price_[a] -= done_[a] ? distance_[a] : distance_[to];
        return to;
    }

    // Send as much along the path found as its ends and its edges allow.
    void send(int64_t to) {
        double amount = -excess_[to];
        int64_t from = to;
        for (; before_[from] >= 0; from = before_[from]) amount = std::min(amount, room(before_[from], from));
        amount = std::min(amount, excess_[from]);
        excess_[from] -= amount;
        excess_[to] += amount;
        for (int64_t b = to, a; (a = before_[b]) >= 0; b = a) {
            if (a == k_) {
                taken_[b] -= amount;
            } else if (b == k_) {
                taken_[a] += amount;
            } else {
                move(mover_[a * k_ + b], a, b, amount);
            }
        }
        for (int64_t a = to; a >= 0; a = before_[a])
            if (a < k_) look_at(a);
    }

    double room(int64_t a, int64_t b) const {
        if (a == k_) return taken_[b] - low_;
        if (b == k_) return high_ - taken_[a];
        return mass_[a * n_ + mover_[a * k_ + b]];
    }

    void move(int32_t i, int64_t a, int64_t b, double amount) {
        double& left = mass_[a * n_ + i];
        left = left - amount > least_ ? left - amount : 0.0;
        double& there = mass_[b * n_ + i];
        if (there == 0.0) {
            rows_[b].push_back(i);
            if (looks_[b] > scans)
                for (int64_t c = 0; c < k_; c++) {
                    auto& rows = heap_[b * k_ + c];
                    rows.push_back(i);
                    std::push_heap(rows.begin(), rows.end(), later(b, c));
                }
        }
        there += amount;
    }

    // Find the rows of a cluster that are cheapest to move to each other one, and its edges to the store.
    void look_at(int64_t a) {
        edge(a, k_) = high_ - taken_[a] > least_ ? 0.0 : nowhere;
        edge(k_, a) = taken_[a] - low_ > least_ ? 0.0 : nowhere;
        const auto has_left = [&](int32_t i) { return !(mass_[a * n_ + i] > 0); };
        double* costs = &edge(a, 0);
        int32_t* movers = &mover_[a * k_];
        if (++looks_[a] <= scans) {
            auto& rows = rows_[a];
            rows.erase(std::remove_if(rows.begin(), rows.end(), has_left), rows.end());
            std::fill_n(costs, k_, nowhere);
            for (const int32_t i : rows)
                for (int64_t b = 0; b < k_; b++)
                    if (more(i, a, b) < costs[b]) costs[b] = more(i, a, b), movers[b] = i;
        } else {
            for (int64_t b = 0; b < k_; b++) {
                auto& rows = heap_[a * k_ + b];
                if (looks_[a] == scans + 1) {
                    rows = rows_[a];
                    std::make_heap(rows.begin(), rows.end(), later(a, b));
                }
                for (; !rows.empty() && has_left(rows.front()); rows.pop_back()) std::pop_heap(rows.begin(), rows.end(), later(a, b));
                costs[b] = rows.empty() ? nowhere : more(rows.front(), a, b);
                movers[b] = rows.empty() ? -1 : rows.front();
            }
        }
        costs[a] = nowhere;
    }
};

}  // namespace

void bind_flows(nb::module_& m) {
    m.def("assign_within", [](Mat<const double> costs, Vec<const double> w, double low, double high, Vec<double> prices,
                              Mat<double> mass) {
        const size_t n = costs.shape(0), k = costs.shape(1);
        need(k > 0 && n < (size_t(1) << 31), "there must be a cluster, and fewer than 2^31 rows");
        product({n, k});
        product({k + 1, k + 1});
        need(w.shape(0) == n && prices.shape(0) == k && mass.shape(0) == k && mass.shape(1) == n,
             "weights must be (n), prices (k), the mass (k, n)");
        need(low >= 0 && low <= high, "sizes must be zero or more, the largest not below the smallest");
        nb::gil_scoped_release release;
        std::fill_n(mass.data(), k * n, 0.0);
        Flow flow(n, k, costs.data(), w.data(), low, high, prices.data(), mass.data());
        flow.balance();
        flow.prices(prices.data());
    }, nb::arg("costs").noconvert(), nb::arg("w").noconvert(), nb::arg("low"), nb::arg("high"),
       nb::arg("prices").noconvert(), nb::arg("mass").noconvert(),
       "Write the weight of each row in each cluster, and the prices of the clusters, which are where the search begins.");
}
