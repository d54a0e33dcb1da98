"""k-means within sizes beside k-means-constrained: SSE and CPU time of whole fits, single thread, in one run.

    pip install k-means-constrained
    python benchmarks/kmeans_sizes.py [--tables 10]

Tables are drawn: n rows around k centres with groups of unequal size; every cluster must have at least .8 n / k rows
and at most 1.25 n / k. Both fit by default, the peer with its ten starts.
"""

from __future__ import annotations

import argparse

from contenders import cpu  # sets thread counts first

import numpy as np  # isort: skip
from k_means_constrained import KMeansConstrained

import majorant as mj


def table(seed: int) -> tuple[np.ndarray, int]:
    """Return rows around k centres, groups of unequal size, and k."""
    random = np.random.default_rng(seed)
    k, d = int(random.integers(3, 13)), int(random.integers(2, 9))
    shares = random.dirichlet(np.full(k, 1.5))
    group = random.choice(k, int(random.integers(200, 1500)), p=shares)
    return random.normal(0, 3, (k, d))[group] + random.normal(size=(len(group), d)), k


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10, help="number of tables (default 10)")
    ratios = []
    for seed in range(parser.parse_args().tables):
        X, k = table(seed)
        low, high = int(0.8 * len(X) / k), int(np.ceil(1.25 * len(X) / k))
        ours, seconds = cpu(lambda: mj.KMeans(k, size_min=low, size_max=high, random_state=seed).fit(X).inertia_)  # noqa: B023
        theirs, of_peer = cpu(
            lambda: KMeansConstrained(k, size_min=low, size_max=high, random_state=seed, n_jobs=1).fit(X).inertia_  # noqa: B023
        )
        ratios.append(seconds / of_peer)
        print(
            f"{len(X)} x {X.shape[1]}, k = {k}: SSE {ours:.2f} beside {theirs:.2f} ({ours / theirs - 1:+.2e}), "
            f"CPU {seconds:.2f} s beside {of_peer:.2f} s",
            flush=True,
        )
    print(f"median of the CPU ratios {np.median(ratios):.2f}")


if __name__ == "__main__":
    main()
