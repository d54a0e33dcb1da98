"""The report of a harmonium: a sound page with or without classes, views and components."""

from __future__ import annotations

import html
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import r2_score

import majorant as mj
from majorant.metrics import mean_pairwise_kl
from majorant.models.harmonium import certificate
from majorant.models.harmonium.summary import penalty_at_an_end
from majorant.report import Run, html_report, numbers

from .markup import check_page
from .test_page import ODD_NAMES
from .test_page import run_of as clustering_of


def run_of(case: str = "usual") -> Run:
    g = np.random.default_rng(0)
    h = g.normal(size=(60, 2))
    scale = 1e9 if case == "huge" else 1.0
    numbers = scale * (h @ g.normal(size=(2, 4)) + 0.3 * g.normal(size=(60, 4)))
    bits = h @ g.normal(size=(2, 3)) + 0.5 * g.normal(size=(60, 3)) > 0
    names = [f"{name} {i}" for i, name in enumerate((ODD_NAMES * 3)[:7])]
    y = np.array(["<b>low", "a & b", "high", "top"])[np.digitize(h[:, 0], [-0.5, 0.2, 0.8])]
    X = np.column_stack([numbers, bits])
    l2 = {"no component": 1e4, "a path": "auto"}.get(case, 0.3)
    given: dict[str, Any] = {"l2": l2, "random_state": 0}
    if case == "not ended":
        given["max_iter"] = 3
    if case == "no views":
        model = mj.Harmonium(3, **given).fit(X)
        return Run(model, X, tuple(names), "t.csv", "")
    views = {"<i>sizes": mj.Gaussian(names[:4]), "a tag": mj.Bernoulli(names[4:])}
    frame = pl.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    run = {"X": X, "feature_names": tuple(names), "table_name": "t.csv", "command": "", "frame": frame}
    if case in ("four classes", "two classes"):
        y = np.where(h[:, 0] > 0, "yes", "no") if case == "two classes" else y
        loss = "log" if case == "two classes" else "hinge"
        return Run(
            mj.HarmoniumClassifier(5, views=views, loss=loss, loss_weight=10.0, **given).fit(frame, y), y=y, **run
        )
    if case == "a rating":
        return Run(mj.HarmoniumRegressor(5, views=views, **given).fit(frame, h[:, 0]), y=h[:, 0], **run)
    if case == "one of many":
        return Run(mj.Harmonium(1, views=views, **given).fit(frame), **run)
    if case == "divergence":
        return Run(mj.Harmonium(4, views=views, method="cd", n_init=3, **given).fit(frame), **run)
    return Run(mj.Harmonium(4, views=views, **given).fit(frame), **run)


CASES = {
    "usual": ["topics", "views", "embedding", "optimality"],
    "a path": ["topics", "views", "optimality"],
    "huge": ["topics", "views", "embedding", "optimality"],
    "no views": ["topics", "embedding", "optimality"],
    "no component": ["optimality"],
    "a rating": ["topics", "views", "optimality"],
    "two classes": ["confusion", "classes", "topics", "views", "class-profiles", "embedding", "optimality"],
    "four classes": ["confusion", "classes", "topics", "views", "class-profiles", "embedding", "optimality"],
    "one of many": ["topics", "views", "optimality"],
    "divergence": ["topics", "views", "embedding", "optimality"],
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_a_sound_page(case: str) -> None:
    source = html_report(run_of(case))
    page = check_page(source)
    sections = [i for i in page.ids if f'<section id="{i}"' in source]
    assert sections[-1] == "reproduce" and "search" in sections[-4:]
    assert [s for s in sections if s in CASES[case]] == CASES[case]
    if case == "no component":
        assert "topics" not in sections and "best taken to be independent" in source
    if case == "one of many":
        assert "The one component that may be is used, and one more would be." in source
        assert "embedding" not in sections
    if case == "divergence":
        assert "without a certificate: contrastive divergence has none." in source
        assert "lowest contrastive divergence seen" in source and "log-loss" not in source


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_had_not_ended_is_told_of() -> None:
    page = html_report(run_of("not ended"))
    assert "the fit had not ended when it stopped" in page and "a larger max_iter and a smaller tol" in page
    assert "The fit is certified" not in page and "A global optimum:" not in page and "can end better" not in page


def test_the_page_says_what_the_model_says() -> None:
    run = run_of("two classes")
    page = html_report(run)
    model = run.estimator
    distance = mean_pairwise_kl(model.transform(run.frame)[:, : model.rank_], run.y)
    assert f"The mean divergence between classes is {numbers.distance(distance)}." in page
    assert model.certificate_.sentence.split(":")[0] in page
    assert model.certificate_.is_global and "no other start can end better, as the certificate" in page
    path = html_report(run_of("a path"))
    assert len(re.findall(r"<tr>", path.split('id="optimality"')[1].split("</section>")[0])) == 12


def test_classes_along_one_component_are_told_by_their_means() -> None:
    g = np.random.default_rng(0)
    X, y = g.normal(size=(80, 3)), np.arange(80) % 2
    X += 2.0 * y[:, None]
    model = mj.HarmoniumClassifier(1, l2=0.3, random_state=0).fit(X, y)
    assert model.rank_ == 1
    page = html_report(Run(model, X, ("a", "b", "c"), "t.csv", "", y=y))
    assert "Along the one component the means of the classes run from" in page
    assert "mean divergence between" not in page and "made a distribution" not in page


@pytest.mark.parametrize(("response", "told"), [(0.5, ""), (5.0, "<small>of views, 5.00 of the response</small>")])
def test_the_penalties_of_both_blocks_are_told(response: float, told: str) -> None:
    g = np.random.default_rng(5)
    X = g.normal(size=(60, 4)) + g.normal(size=(60, 1))
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = mj.HarmoniumClassifier(2, loss="log", l2={"views": 0.5, "response": response}).fit(X, y)
    page = html_report(Run(model, X, ("a", "b", "c", "d"), "t.csv", "", y=y))
    assert f"<dt>Penalty</dt><dd>0.500{told}</dd>" in page


def test_a_target_of_numbers_is_told_with_its_r2_on_the_rows_of_the_fit() -> None:
    run = run_of("a rating")
    page = html_report(run)
    assert run.y is not None
    r2 = numbers.fixed(r2_score(run.y, run.estimator.predict(run.frame)), 3)
    assert f"The R\u00b2 of <i>y</i> is {r2} on the rows of the fit; on new rows it is usually lower." in page
    assert f"<dt>R\u00b2</dt><dd>{r2}<small>on the rows of the fit</small></dd>" in page
    assert "R\u00b2" not in html_report(run_of("usual"))


@pytest.mark.parametrize(
    ("kept", "losses", "told"),
    [
        (0.25, [3.0, 2.0, 1.0], "the penalty is the smallest that was tried, and the held-out loss was falling"),
        (1.0, [1.0, 2.0, 3.0], "no component helps to predict rows that were held out: their loss is 1 without any"),
        (1.0, [3.0, 2.0, 1.0], "held out, as far as so few rows can tell: their loss is 3 without any, and 1 at the"),
        (0.5, [3.0, 2.0, 1.0], "least at the smallest penalty that was tried, but by no more than one standard error"),
        (0.5, [2.0, 1.0, 3.0], ""),
        (1.0, [2.0], ""),
    ],
)
def test_a_penalty_at_an_end_of_those_tried_is_told_of(kept: float, losses: list[float], told: str) -> None:
    run = run_of("usual")
    run.estimator.l2_, run.estimator.l2_path_ = kept, np.column_stack([0.5 ** np.arange(len(losses)), losses])
    page = html_report(run)
    assert told in page and any(part in page for part in ("that was tried", "held out, as", "held out:")) == bool(told)
    assert ("Set l2 to 0.125 or less to see." in page) == (kept == 0.25)
    look_out = run.estimator.summary().look_out
    assert [sentence in html.unescape(page) for sentence in (s[0].lower() + s[1:] for s in look_out)] == [True] * (
        kept == 0.25 or (kept == 1.0 and len(losses) > 1)
    )
    model = SimpleNamespace(l2_=kept, l2_path_=run.estimator.l2_path_, select_by="words")
    assert "Set l2" not in penalty_at_an_end(model)  # which takes no penalty of one's own


def test_every_sentence_of_a_certificate_by_lanczos_says_what_it_is_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    clause = "unless Lanczos' method, from a random start, missed the smallest eigenvalue"
    exact = html_report(run_of("usual"))
    assert "Lanczos" not in exact and "no harmonium with this penalty is better." in exact
    assert 'id="certificate"' not in exact  # which would say the same as the section on the optimum
    monkeypatch.setattr(certificate, "MOST_DENSE", 5)
    run = run_of("usual")
    assert run.estimator.certificate_.is_global and run.estimator.certificate_.by_lanczos
    page = html.unescape(html_report(run))
    assert "no harmonium with this penalty is better." not in page
    said = [
        sentence
        for sentence in re.findall(r"[^<>]+\.(?= |<)", re.sub("</?(?:b|i|strong)>", "", page))
        if re.search("[Nn]o harmonium|no other start can end|of the best possible", sentence)
    ]
    assert len(said) >= 4 and all(clause in sentence for sentence in said), said
    assert "less the norm of its residual" in page


def test_both_axes_of_objectives_say_which_way_is_better() -> None:
    page = html_report(clustering_of("usual"))
    assert page.count("\u2190 worse: SSE above the best") == 2  # the wide figure's and the narrow one's
    assert page.count("\u2190 better") == 2


def test_rows_are_mapped_beside_those_most_like_them_where_there_are_three_components() -> None:
    run = run_of("four classes")
    assert run.estimator.rank_ == 4
    whole = html_report(run)
    page = whole.split('id="neighbours"')[1].split("</section>")[0]
    assert "Rows beside those that are most like them in all four components." in page
    assert "about 20 neighbours each" in page and "Distances between groups that lie far apart mean little" in page
    assert "classes of the target" in page and "rows are drawn" not in page
    assert page.count("<use ") == 8 and '<text class="quiet' not in page  # four panels, twice, without axes
    assert html_report(run) == whole
    two = run_of("no views")
    assert two.estimator.rank_ == 2 and 'id="neighbours"' not in html_report(two)


def test_of_many_rows_the_map_says_how_many_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("majorant.summary.neighbourhoods.MOST_ROWS", 45)
    page = html_report(run_of("a rating"))
    assert "45 of 60 rows are drawn, equally spaced in the order of the first component." in page
    assert "Colours are terciles of <i>y</i>, from low to high." in page
    assert all(f">{name}</text>" in page.split('id="neighbours"')[1] for name in ("low", "middle", "high"))
