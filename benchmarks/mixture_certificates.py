"""Certificates of mixtures: how far the log-likelihood of a fit can be from the best of any size.

    python benchmarks/mixture_certificates.py FOLDER [--effort default] [--rows 0]
    python benchmarks/mixture_certificates.py --regressions FOLDER [--effort default] [--rows 0]

FOLDER holds base_faithful.csv, MASS_galaxies.csv, mclust_acidity.csv, MASS_crabs.csv and mclust_banknote.csv as R
exports them; iris comes with scikit-learn. For every set, number of components and floor under the covariances: the
log-likelihood of the fit, the proved bound, the gap (a difference), a log-likelihood that some mixture with such
covariances attains, and CPU seconds. `--rows N` adds simulated rows in two columns. The fits are scikit-learn's best of
10 starts.
With `--regressions`, FOLDER holds flexmix_NPreg.csv, the tone table comes with majorant, and the fits are its own.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture as Peer

from majorant import RegressionMixture
from majorant.datasets.tone import STRETCH_RATIO, TUNED
from majorant.models.gaussian_mixture.certify import certificate, common_part
from majorant.results.certificate import Certificate
from majorant.solvers.covariance_types import CovarianceType
from majorant.solvers.gaussian import Mixture
from majorant.solvers.mixture_bounds import Effort

Rows = NDArray[np.float64]

CASES: list[tuple[str, int, CovarianceType]] = [
    ("galaxies", 3, "full"),
    ("galaxies", 6, "full"),
    ("acidity", 2, "full"),
    ("eruptions", 2, "full"),
    ("faithful", 2, "full"),
    ("faithful", 3, "tied"),
    ("petals", 3, "full"),
    ("iris", 3, "tied"),
    ("iris", 2, "full"),
    ("iris", 3, "full"),
    ("crabs", 4, "tied"),
    ("banknote", 2, "full"),
    ("simulated", 3, "full"),
]
FLOORS = (0.5, 1.0)


def sets(folder: Path, n_simulated: int) -> dict[str, Rows]:
    """Rows by name."""

    def columns(name: str, start: int, stop: int | None = None) -> Rows:
        with (folder / name).open(newline="") as lines:
            return np.array([[float(cell) for cell in row[start:stop]] for row in list(csv.reader(lines))[1:]])

    faithful, iris = columns("base_faithful.csv", -2), load_iris().data
    found = {
        "galaxies": columns("MASS_galaxies.csv", -1),
        "acidity": columns("mclust_acidity.csv", -1),
        "eruptions": faithful[:, :1],
        "faithful": faithful,
        "petals": iris[:, 2:],
        "iris": iris,
        "crabs": columns("MASS_crabs.csv", -5),
        "banknote": columns("mclust_banknote.csv", -6),
    }
    if n_simulated:
        random = np.random.default_rng(0)
        middles = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 4.0]])
        found["simulated"] = middles[random.integers(3, size=n_simulated)] + random.normal(size=(n_simulated, 2))
    return found


def regressions(folder: Path, n_simulated: int) -> list[tuple[str, int, Rows, Rows]]:
    """Name, number of lines, X and y."""
    table = np.genfromtxt(folder / "flexmix_NPreg.csv", delimiter=",", names=True)
    square = np.column_stack([table["x"], table["x"] ** 2])
    stretch, tuned = np.array(STRETCH_RATIO)[:, None], np.array(TUNED)
    random = np.random.default_rng(0)
    n = n_simulated or 1000
    x, which = random.uniform(-1, 1, size=(n, 1)), random.integers(2, size=n)
    factor = np.column_stack([x, random.integers(2, size=n)])
    y = np.where(which, 2 * x[:, 0], 1 - x[:, 0]) + 0.3 * random.normal(size=n)
    return [
        ("tone", 2, stretch, tuned),
        ("tone", 3, stretch, tuned),
        ("NPreg", 2, square, table["yn"]),
        ("simulated", 2, x, y),
        ("+ factor", 2, factor, y + factor[:, 1]),
    ]


def certify_regressions(folder: Path, n_simulated: int, effort: Effort) -> None:
    for name, k, x, y in regressions(folder, n_simulated):
        model = RegressionMixture(k, random_state=0).fit(x, y)
        for share in FLOORS:
            begin = time.process_time()
            made = model.certify(x, y, scale_at_least=float(np.sqrt(share) * model.scale_.min()), effort=effort)
            row(name, x.shape, k, "lines", share, made, time.process_time() - begin)


def row(name: str, shape: tuple[int, ...], k: int, kind: str, share: float, made: Certificate, spent: float) -> None:
    n, d = shape
    print(
        f"{name:<10} {n:>6} {d:>2} {k:>2} {kind:<5} {share:>5} {made.objective:>12.3f} {made.bound:>12.3f} "
        f"{made.difference:>8.2f} {made.attained:>12.3f} {spent:>6.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--effort", choices=["fast", "default", "tight"], default="default")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--regressions", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"floor: share of what all fitted (co)variances are at least; effort {arguments.effort!r}")
    print(
        f"{'set':<10} {'n':>6} {'d':>2} {'K':>2} {'type':<5} {'floor':>5} {'fit':>12} {'bound':>12} {'gap':>8} "
        f"{'attained':>12} {'CPU s':>6}"
    )
    if arguments.regressions:
        certify_regressions(arguments.folder, arguments.rows, arguments.effort)
        return
    rows = sets(arguments.folder, arguments.rows)
    for name, k, kind in CASES:
        if name not in rows:
            continue
        x = rows[name]
        fit = Peer(k, covariance_type=kind, n_init=10, tol=1e-8, max_iter=2000, random_state=0).fit(x)
        mixture = Mixture(fit.weights_, fit.means_, fit.covariances_, kind)
        for share in FLOORS:
            floor = share * common_part(mixture.covariance.matrices(mixture.covariances, *mixture.means.shape))
            begin = time.process_time()
            made = certificate(x, None, mixture, floor, arguments.effort)
            row(name, x.shape, k, kind, share, made, time.process_time() - begin)


if __name__ == "__main__":
    main()
