import numpy as np
import pytest

from majorant.engine.trace import Trace
from majorant.report import Run
from majorant.report.measures.clustering import Clustering
from majorant.report.opening import clustering_header
from majorant.report.sections import clusters, convergence, pair, profiles, reproduce
from majorant.report.sections.convergence import History
from majorant.results.silhouettes import Silhouettes

from .stand_in import CARD, falling_trace, make_run, starts_at


def of_sizes(sizes: list[int], spreads: list[float]) -> Clustering:
    """Clusters far apart on a line, of these sizes and spreads."""
    rows, labels = [], []
    for j, (size, spread) in enumerate(zip(sizes, spreads, strict=True)):
        offsets = np.linspace(-1, 1, size) if size > 1 else np.zeros(1)
        scale = spread / offsets.std() if size > 1 else 0.0
        rows.append(np.column_stack([100.0 * j + scale * offsets, np.zeros(size)]))
        labels += [j] * size
    return Clustering(make_run(np.concatenate(rows), np.array(labels), len(sizes)), CARD)


@pytest.mark.parametrize(
    ("sizes", "spreads", "headline"),
    [
        ([9], [1.0], "One cluster holds all 9 rows."),
        ([40, 35, 30], [2.0, 1.0, 1.0], "The clusters are of similar size; cluster 1 is the least compact."),
        ([40, 35, 30], [1.0, 1.05, 1.0], "The clusters are of similar size; all are about equally compact."),
        ([80, 10, 10], [1.0, 1.0, 2.0], "Cluster 1 holds 80\u202f% of the rows; cluster 3 is the least compact."),
        ([40, 30, 20, 10], [1.0, 1.5, 1.5, 1.5], "The largest cluster has 4.0 times the rows of the smallest."),
        ([10, 10, 1], [1.0, 1.0, 1.0], "Cluster 3 is a single row."),
        ([10, 1, 1], [1.0, 1.0, 1.0], "Two clusters are a single row each."),
        ([1, 1, 1], [1.0, 1.0, 1.0], "Every row is a cluster of its own."),
    ],
)
def test_sizes(sizes: list[int], spreads: list[float], headline: str) -> None:
    assert clusters.headline(of_sizes(sizes, spreads)) == headline


def test_empty_clusters_are_told_first() -> None:
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    measured = Clustering(make_run(X, np.repeat([0, 1], 5), 4), CARD)
    assert clusters.headline(measured) == "Two of four clusters have no rows."


def silhouettes(values: list[list[float]], sampled: bool = False) -> Silhouettes:
    flat, labels = np.concatenate(values), np.repeat(np.arange(len(values)), [len(v) for v in values])
    return Silhouettes(flat, labels, sampled, np.array([np.mean(v) for v in values]), float(flat.mean()))


@pytest.mark.parametrize(
    ("values", "headline"),
    [
        ([[0.5, 0.5], [0.2, 0.3]], "None of 4 rows would suit another cluster better; cluster 2 is the loosest."),
        (
            [[0.5, 0.5], [0.5, 0.51]],
            "None of 4 rows would suit another cluster better; the clusters hold together about equally well.",
        ),
        ([[0.5, -0.1], [0.5, 0.5]], "One of 4 rows would suit another cluster better; it is in cluster 1."),
        ([[0.5, 0.5], [-0.5, -0.5]], "Two of 4 rows would suit another cluster better; both are in cluster 2."),
        (
            [[0.5, -0.5], [-0.5, -0.5]],
            "Three of 4 rows would suit another cluster better; 2 of them are in cluster 2.",
        ),
        (
            [[0.5, -0.1], [-0.1, -0.2], [-0.1, -0.1]],
            "Five of 6 rows would suit another cluster better, in three clusters; cluster 2 is the loosest.",
        ),
    ],
)
def test_silhouettes(values: list[list[float]], headline: str) -> None:
    assert clusters.silhouettes_headline(silhouettes(values)) == headline


def test_a_sample_is_called_one() -> None:
    headline = clusters.silhouettes_headline(silhouettes([[0.5], [0.1]], sampled=True))
    assert headline.startswith("None of 2 sampled rows would")


def grid(centres: list[list[float]], noise: float = 0.1, n: int = 20) -> Run:
    rng = np.random.default_rng(0)
    X = np.repeat(np.array(centres), n, axis=0) + noise * rng.normal(size=(n * len(centres), len(centres[0])))
    return make_run(
        X, np.repeat(np.arange(len(centres)), n), len(centres), names=["a<b", "tail", "third"][: X.shape[1]]
    )


@pytest.mark.parametrize(
    ("centres", "noise", "headline"),
    [
        ([[0, 0], [5, 0.1]], 0.1, "The clusters differ most in <i>a&lt;b</i>: high in cluster 2, low in cluster 1."),
        (
            [[0, 0], [5, 0], [5.1, 9]],
            0.1,
            "Cluster 3 is set apart by high <i>tail</i>, cluster 1 by low <i>a&lt;b</i>.",
        ),
        (
            [[0, 0], [1, 1], [2, 2], [9, 3]],
            0.1,
            "Cluster 4 stands apart most clearly, by high <i>a&lt;b</i>.",
        ),
    ],
)
def test_profiles(centres: list[list[float]], noise: float, headline: str) -> None:
    measured = Clustering(grid(centres, noise), CARD)
    said = profiles.headline(measured, measured.ranked_features)
    if len(centres) == 3:
        assert said.startswith(headline[:-1])
    else:
        assert said == headline


def test_features_that_tell_nothing_are_called_so() -> None:
    measured = Clustering(grid([[0, 0], [0.01, 0]], 1.0, 200), CARD)
    assert profiles.headline(measured, measured.ranked_features).startswith("No feature tells the clusters apart")


@pytest.mark.parametrize(
    ("noise", "beginning"),
    [(0.01, "Two features,"), (0.45, "Two features,"), (9.0, "No two features tell the three clusters apart;")],
)
def test_pair(noise: float, beginning: str) -> None:
    measured = Clustering(grid([[0, 0], [2, 0], [0, 2]], noise), CARD)
    said = pair.headline(measured)
    assert said.startswith(beginning)
    assert ("are enough" in said) == (measured.pair is not None and measured.pair.n_agreeing == 60)


@pytest.mark.parametrize(
    ("proved_bound", "n", "said"),
    [
        (None, 30, "<strong>All 30 starts reached the same optimum</strong>."),
        (None, 1, "<strong>Only one start was run to convergence</strong>"),
        ("close", 30, "<strong>No other three clusters can be more than"),
        ("equal", 30, "<strong>No other three clusters can be better</strong>, and 30 of 30 starts agree on them."),
        ("loose", 30, "<strong>All 30 starts reached the same optimum</strong>."),
    ],
)
def test_lede_claims_what_is_proved(proved_bound: str | None, n: int, said: str) -> None:
    run = grid([[0, 0], [2, 0], [0, 2]], 0.2)
    best = run.estimator.inertia_
    bound = {None: None, "close": 0.95 * best, "equal": best, "loose": 0.1 * best}[proved_bound]
    run.estimator.search_ = starts_at([best] * n, proved_bound=bound)
    lede = clustering_header(Clustering(run, CARD)).lede
    assert said in lede
    assert lede.startswith("Three clusters of 20 rows each explain ")


@pytest.mark.parametrize(
    ("objective", "bound", "exploring", "converged", "headline"),
    [
        ([9, 5, 4], [10, 6, 4], 0, True, "The fit converged after three iterations; the objective never rose."),
        ([9, 5, 4], [10, 6, 4], 0, False, "The fit was stopped after three iterations, before it converged."),
        (
            [5, 6, 4],
            [10, 9, 8],
            1,
            True,
            "The fit converged after three iterations; the objective rose once, the bound above it never.",
        ),
        (
            [5, 6, 4],
            [8, 9, 4],
            1,
            True,
            "The fit converged after three iterations; the objective rose once on the way.",
        ),
        ([4], [4], 0, True, "The fit converged after one iteration."),
    ],
)
def test_convergence(
    objective: list[float], bound: list[float], exploring: int, converged: bool, headline: str
) -> None:
    trace = Trace()
    for f, b in zip(objective, bound, strict=True):
        trace.add(objective=f, bound=b, exploring=exploring)
    assert convergence.headline(History.of(trace), len(objective), converged) == headline


def test_exploring_is_explained_and_a_limit_is_warned_of() -> None:
    history = History.of(falling_trace(1.0, exploring=2))
    notes = " ".join(convergence.notes(history, False, drawn=True))
    assert "In two iterations the fit explored" in notes
    assert "<b>Note:</b>" in notes
    still = Trace()
    for said in ("too few iterations", "hardly changed"):
        still.add(objective=2.0, bound=2.0, exploring=0)
        assert said in " ".join(convergence.notes(History.of(still), True, drawn=False))
    fallen = Trace()  # from one value to another: not enough for a picture, though it is no small change
    for objective in (3.0, 2.0):
        fallen.add(objective=objective, bound=objective, exploring=0)
    assert "too few iterations" in " ".join(convergence.notes(History.of(fallen), True, drawn=False))


@pytest.mark.parametrize(
    ("params", "headline"),
    [
        ({"random_state": 0}, "The same table, settings and seed give this page again."),
        ({"random_state": np.int64(3)}, "The same table, settings and seed give this page again."),
        ({"random_state": None}, "No seed was set, so another run may take other starts."),
        (
            {"random_state": np.random.RandomState(0)},
            "A generator of random numbers was passed, so another run may take other starts.",
        ),
        ({}, "The settings of this run."),
    ],
)
def test_reproduce(params: dict[str, object], headline: str) -> None:
    assert reproduce.headline(params) == headline


def test_the_tree_of_parts_merges_what_loses_least_first() -> None:
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [1.0, 0.0], [10.0, 3.0]])
    merges = profiles.merge_tree(centres, np.array([5, 5, 5, 1]))
    assert [set(merge[:2]) for merge in merges] == [{0, 2}, {1, 3}, {4, 5}]
    np.testing.assert_allclose(merges[0][2] ** 2 * 16, 5 * 5 / 10)
    assert [height for *_, height in merges] == sorted(height for *_, height in merges)
    assert profiles.leaves_of(merges, 6, 4) == [0, 2, 1, 3]
    assert [profiles.shade(value) for value in (0.1, 0.9, -9.0)] == ["level", "high-2", "low-5"]
