import datetime
import html
import re
from dataclasses import replace

import numpy as np
import pytest

from majorant.engine.trace import Trace
from majorant.models.kmeans import KMeans
from majorant.report import Run, html_report
from majorant.search.record import PERTURBATION

from .markup import check_page, without_own_script
from .stand_in import CARD, clustered_run, falling_trace, make_run, starts_at

ODD_NAMES = ('<script>alert("1")</script>', "a & b", "quote \" and '", "Größe 数 \u202e", "x" * 60, "width <mm>")
KINDS = ("k-means++", "random <rows>", "random partition")


def spread_objectives(n: int, best: float) -> list[float]:
    """The best, one time in four, and optima from a millionth to twice of it above it."""
    rng = np.random.default_rng(1)
    return [best * (1.0 if i % 4 == 0 else 1.0 + 10.0 ** rng.uniform(-5.5, 0.3)) for i in range(n)]


def run_of(case: str) -> Run:
    rng = np.random.default_rng(0)
    if case == "usual":
        run = clustered_run(150, 6, 3, names=ODD_NAMES, standardised=True, n_left_out=3)
        best = run.estimator.inertia_
        run.estimator.search_ = starts_at(spread_objectives(30, best), KINDS, proved_bound=0.97 * best)
        return run
    if case == "hundreds of starts":
        run = clustered_run(60, 3, 2)
        run.estimator.search_ = starts_at(
            spread_objectives(900, run.estimator.inertia_), [f"kind {i}" for i in range(14)]
        )
        return run
    if case == "a search with perturbations":
        run = clustered_run(60, 3, 2)
        best = run.estimator.inertia_
        run.estimator.search_ = starts_at([best] * 9 + [1.1 * best] * 4, ["k-means++", *[PERTURBATION] * 12])
        return run
    if case == "one start":
        return clustered_run(40, 3, 2, search=starts_at([12.5]), random_state=None)
    if case == "two rows":
        return make_run(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0, 1]), 2)
    if case == "one row":
        return make_run(np.array([[3.0, 1.0]]), np.array([0]), 1)
    if case == "all rows equal":
        return make_run(np.ones((6, 2)), np.zeros(6, dtype=np.int64), 2, search=starts_at([0.0] * 3), trace=Trace())
    if case == "empty clusters":
        return make_run(np.repeat([[0.0, 1.0], [2.0, 3.0], [2.5, 9.0]], 5, axis=0), np.repeat([0, 1, 4], 5), 6)
    if case == "constant columns":
        X = np.column_stack([rng.normal(size=40), np.full(40, 7.0), np.zeros(40)])
        return make_run(X, (X[:, 0] > 0).astype(np.int64), 2)
    if case == "tiny numbers":
        run = clustered_run(80, 3, 3)
        return make_run(run.X * 1e-9 - 1e-7, run.estimator.labels_, 3)
    if case == "huge numbers":
        run = clustered_run(80, 3, 3)
        return make_run(run.X * 1e12 - 1e14, run.estimator.labels_, 3)
    if case == "many features":
        return clustered_run(120, 500, 4, names=[f"feature number {j} <of 500>" for j in range(500)])
    if case == "many rows":
        return clustered_run(100_000, 5, 3)
    if case == "many rows and clusters":
        return clustered_run(20_000, 3, 40)
    if case == "long history":
        return clustered_run(60, 2, 3, trace=falling_trace(5.0, n=900, exploring=700))
    clusters, features = (int(part) for part in case.split(" in ")[1].split(" by "))
    return clustered_run(400, features, clusters)


CASES = [
    "usual",
    "hundreds of starts",
    "a search with perturbations",
    "one start",
    "two rows",
    "one row",
    "all rows equal",
    "empty clusters",
    "constant columns",
    "tiny numbers",
    "huge numbers",
    "many features",
    "many rows",
    "many rows and clusters",
    "long history",
    *(
        f"400 rows in {k} by {d}"
        for k, d in ((1, 1), (1, 5), (2, 1), (2, 2), (3, 1), (4, 2), (7, 1), (12, 30), (55, 40), (70, 1))
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_sound_page_with_the_answer_first(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[0] == "clusters"
    assert sections[-1] == "reproduce"
    assert "nan" not in re.sub("constant|discriminant", "", "".join(page.text))
    for headline in source.split("<h2 ")[1:]:
        assert len(headline.split("</h2>")[0].split(">", 1)[1].split()) <= 24


def test_the_sections_come_in_the_order_of_the_style_guide() -> None:
    source = html_report(run_of("usual"))
    order = ["clusters", "profiles", "pair", "silhouettes", "search", "certificate", "convergence", "reproduce"]
    places = [source.index(f'<section id="{name}"') for name in order]
    assert places == sorted(places)
    assert source.count("<section ") == len(order)


def test_the_same_run_gives_the_same_page() -> None:
    assert html_report(run_of("usual")) == html_report(run_of("usual"))


def test_nothing_of_the_table_is_markup() -> None:
    run = replace(run_of("usual"), table_name='<b>"x"&.csv', command='majorant fit "<b>" && x')
    source = html_report(run)
    check_page(source)
    assert "<script" not in without_own_script(source)
    assert "<b>&quot;" not in source
    assert "&lt;b&gt;&quot;x&quot;&amp;" in source
    assert "random &lt;rows&gt;" in source


def test_a_long_name_is_shortened_and_kept_in_full_behind_it() -> None:
    source = html_report(run_of("usual"))
    assert f"<title>{'x' * 60}</title>" in source


def test_one_cluster_says_why_sections_are_missing() -> None:
    source = html_report(run_of("400 rows in 1 by 5"))
    assert "there are no profiles, silhouettes or pairs" in source
    assert 'id="silhouettes"' not in source
    assert "no better one exists" in source


def test_without_a_bound_there_is_no_certificate() -> None:
    assert 'id="certificate"' not in html_report(run_of("one start"))


def test_samples_are_told() -> None:
    text = html_report(run_of("many rows"))
    assert "sampled rows" in text
    assert "equally spaced within each cluster" in text


def test_features_left_out_are_told() -> None:
    text = html_report(run_of("many features"))
    assert "470 others are left out" in text
    assert "Only pairs among the 30 features" in text


def test_more_than_three_clusters_get_no_further_colour() -> None:
    source = html_report(run_of("400 rows in 7 by 1")) + html_report(run_of("400 rows in 12 by 30"))
    body = source.replace(source[source.index("<style>") : source.index("</style>")], "")
    drawn = body.split("</style>")[-1]
    assert "fill-2" not in drawn
    assert "fill-mid" in drawn


def test_date_and_command_are_printed_when_given() -> None:
    run = replace(
        run_of("usual"), created=datetime.date(2026, 11, 27), command="majorant fit kmeans t.csv \\\n    --k 3"
    )
    source = html_report(run)
    assert "on 27 November 2026." in source
    assert "majorant fit kmeans t.csv \\\n    --k 3" in source
    assert "Fitted(n_clusters=3, random_state=0).fit(X)" in html_report(run_of("usual"))


def test_the_call_that_repeats_a_fit_can_be_typed() -> None:
    X = clustered_run(60, 2, 2).X
    model = KMeans(2, init="random", n_init=3, tol=1e-5, max_iter=50, random_state=0, algorithm="elkan").fit(X)
    source = html_report(Run(model, X, ("a", "b"), "t", ""))
    call = html.unescape(source.split("<pre>")[1].split("</pre>")[0])
    assert call.startswith("KMeans(\n    n_clusters=2,\n    init='random',\n")
    assert eval(call.removesuffix(".fit(X)"), {"KMeans": KMeans}).get_params() == model.get_params()


def test_nothing_better_than_zero_is_looked_for() -> None:
    assert "so nothing better exists" in html_report(run_of("two rows"))


def test_signs_that_turn_a_line_round_do_not_reach_the_page() -> None:
    assert "\u202e" not in html_report(run_of("usual"))


def test_an_unknown_kind_or_estimator_is_refused() -> None:
    run = run_of("two rows")
    with pytest.raises(TypeError, match="not one of majorant's models"):
        html_report(replace(run, card=None))
    with pytest.raises(ValueError, match="no report for a forest yet"):
        html_report(replace(run, card=replace(CARD, kind="forest")))


def test_a_run_checks_its_shapes() -> None:
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="2 columns, but there are 1"):
        Run(None, X, ("a",), "t", "")
    with pytest.raises(ValueError, match="raw must have the shape"):
        Run(None, X, ("a", "b"), "t", "", raw=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="two dimensions"):
        Run(None, np.zeros(3), ("a",), "t", "")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fitted_kmeans_has_a_report(dtype: type) -> None:
    X = clustered_run(120, 3, 3).X.astype(dtype)
    model = KMeans(3, n_init=6, random_state=0).fit(X)
    source = html_report(Run(model, X, ("a", "b", "c"), "table.csv", ""))
    check_page(source)
    assert "KMeans(n_clusters=3, n_init=6, random_state=0).fit(X)" in source
