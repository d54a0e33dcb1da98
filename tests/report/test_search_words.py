import math
from dataclasses import replace
from typing import Literal

import pytest

from majorant._numbers import article
from majorant.report.words import search as words
from majorant.report.words.grammar import chance, in_words, listed, one_in
from majorant.results.certificate import Certificate, certificate_of
from majorant.search.record import SearchReport, StartRecord

from .stand_in import starts_at

LOOSE = "The proved bound is loose: this fit is only known to be within {} % of the best possible."


@pytest.mark.parametrize(
    ("objectives", "headline"),
    [
        ([10.0], "Only one start was run to convergence; whether another would end better is unknown."),
        ([10.0] * 2, "Both starts reached the same optimum."),
        ([10.0] * 30, "All 30 starts reached the same optimum."),
        (
            [10.0] * 25 + [20.0] * 5,
            "Twenty-five of 30 starts reached the best optimum; the others stopped short of it.",
        ),
        ([10.0, 20.0], "Only one of two starts reached the best optimum; the other stopped short of it."),
        (
            [10.0] * 4 + [20.0] * 16,
            "Four of 20 starts reached the best optimum; a single start would probably have missed it.",
        ),
        (
            [10.0] + [20.0] * 29,
            "Only one of 30 starts reached the best optimum; a single start would probably have missed it.",
        ),
        ([10.0] * 12 + [10.05] * 18, "Twelve of 30 starts reached the best optimum; nearly all the others came close."),
        (
            [0.0] * 2 + [1.0] * 4,
            "Two of six starts reached the best optimum; a single start would probably have missed it.",
        ),
    ],
)
def test_headline(objectives: list[float], headline: str) -> None:
    search = starts_at(objectives)
    assert words.headline(search) == headline
    assert len(headline.split()) <= 20


def test_a_bound_says_something_of_one_start() -> None:
    search = replace(starts_at([10.0]), proved_bound=9.5)
    assert words.headline(search) == (
        "Only one start was run to convergence; no other can end beyond the proved bound."
    )
    for text in (words.luck(search), words.agreement(search)):
        assert "proved bound" in text and "luck" not in text


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        ([10.0], "More starts would show"),
        ([10.0] * 3, "three starts are few to judge by"),
        ([10.0] * 30, "An optimum that no start came near is not ruled out"),
        ([10.0] + [20.0] * 9, "the best was found only once"),
        (
            [10.0] * 4 + [20.0] * 6,
            "one start finds the best about two times in five; ten starts would all miss it one time in 170",
        ),
        ([10.0] * 9 + [20.0], "hardly ever all miss it"),
    ],
)
def test_conclusion(objectives: list[float], said: str) -> None:
    assert said in " ".join(words.notes(starts_at(objectives), 10.0, 1))


@pytest.mark.parametrize(
    ("objectives", "headline", "said", "untrue"),
    [
        (
            [10.0, 10.0, 10.0, 10.0],
            "One start and three perturbations all ended at this optimum.",
            "three perturbations after the best solution was found gave nothing better. "
            "An optimum that no perturbation came near",
            "four",
        ),
        (
            [20.0, 15.0, 10.0, 17.0, 16.0],
            "Only one of five runs (one start, four perturbations) reached this optimum; "
            "it may not be the best there is.",
            "two perturbations after the best solution was found gave nothing better. "
            "It was found only once, so it may not be the best; <code>effort='best'</code> searches longest",
            "four perturbations after",
        ),
        (
            [20.0, 10.0],
            "Only one of two runs (one start, one perturbation) reached this optimum; it may not be the best there is.",
            "no perturbation of the best solution was run to convergence",
            "gave nothing better",
        ),
        (
            [20.0, 10.0, 10.0],
            "Two of three runs (one start, two perturbations) reached this optimum; none found a better one.",
            "one perturbation after the best solution was found gave nothing better. An optimum that",
            "may not be",
        ),
    ],
)
def test_perturbations_are_no_independent_starts_and_only_those_after_the_best_speak_for_it(
    objectives: list[float], headline: str, said: str, untrue: str
) -> None:
    search = replace(starts_at(objectives, ("k-means++", *["perturbation"] * 5)), effort="default")
    assert words.headline(search) == headline
    assert len(headline.split()) <= 20
    notes = " ".join(words.notes(search, 10.0, 1))
    assert said in notes
    assert untrue not in notes
    assert "descent" not in words.agreement(search) + words.headline(search) + words.figure_label(search)


def test_the_note_of_the_search_is_escaped_and_a_gain_after_the_starts_is_told() -> None:
    notes = " ".join(words.notes(starts_at([10.0] * 5, note="starts on <20> rows"), 10.0, 1))
    assert "Starts on &lt;20&gt; rows." in notes
    assert "gained another 2.00" in " ".join(words.notes(starts_at([10.0] * 5), 8.0, 1))


def test_starts_that_did_not_come_to_rest_are_told() -> None:
    assert "Five of five starts stopped at the limit" in words.notes(starts_at([1.0] * 5, converged=False), 1.0, 1)[0]


def test_perturbations_that_were_cut_short_have_no_optima() -> None:
    starts = starts_at([10.0, 9.0, 8.0], ("k-means++", "perturbation", "perturbation"), converged=False).starts
    notes = " ".join(words.notes(SearchReport((*starts[:2], replace(starts[2], converged=True)), "SSE"), 8.0, 1))
    assert "Only the best was run to convergence, two were stopped early" in notes
    assert "three distinct ends" in notes


def test_a_certain_optimum_takes_the_place_of_a_guess() -> None:
    notes = " ".join(words.notes(starts_at([1.0]), 1.0, 1, "One cluster is the mean."))
    assert "one cluster is the mean." in notes
    assert "nothing yet" not in notes


@pytest.mark.parametrize(
    ("bound", "objective", "sense", "headline"),
    [
        (
            1266.8812,
            1277.93,
            "min",
            "This fit is within 0.88 % of the best possible, and that is proved, not estimated.",
        ),
        (10.0, 10.0, "min", "No better fit exists, and that is proved, not estimated."),
        (10.1, 10.0, "min", "No better fit exists, and that is proved, not estimated."),
        (5.0, 10.0, "min", LOOSE.format(100)),
        (0.0, 10.0, "min", "The proved bound is too loose to say how good this fit is."),
        (-50.0, -100.0, "max", LOOSE.format(50)),
    ],
)
def test_certificate(bound: float, objective: float, sense: str, headline: str) -> None:
    search = starts_at([objective], proved_bound=bound, sense=sense)
    made = certificate_of(search)
    assert made is not None
    gap = made.gap if math.isfinite(made.gap) else None
    assert words.certificate_headline(search, gap, made.gap_text) == headline
    notes = " ".join(words.certificate_notes(search, made, "three clusters"))
    assert ("below" if sense == "min" else "above") in notes
    assert ("may be what is loose" in notes) == (gap != 0.0)


@pytest.mark.parametrize("objectives", [[10.0], [10.0, 10.0], [10.0, 12.0]])
def test_a_proof_leaves_no_question_to_the_search(objectives: list[float]) -> None:
    search = starts_at(objectives)
    proved, open_ = replace(search, proved_bound=10 - 1e-9), replace(search, proved_bound=9.0)
    said = " ".join(words.notes(proved, 10.0, 1))
    assert "no search can find a better solution, which is proved" in said and "judging by" not in said
    assert "which is proved" not in " ".join(words.notes(open_, 10.0, 1))
    of_others = replace(proved, bound_on="assignment")
    assert "which is proved" not in " ".join(words.notes(of_others, 10.0, 1))
    headline = words.certificate_headline(proved, 1e-10, "0.000001 %")
    assert headline == "This fit is proved optimal: no other is better by more than 0.000001 %."
    assert "loose" not in " ".join(words.certificate_notes(proved, Certificate(10 - 1e-9, 10.0, ""), "two clusters"))
    assert "loose" in " ".join(words.certificate_notes(open_, Certificate(9.0, 10.0, ""), "two clusters"))


@pytest.mark.parametrize(
    ("n", "text"), [(0, "zero"), (12, "twelve"), (39, "thirty-nine"), (80, "eighty"), (100, "100")]
)
def test_numbers_in_words(n: int, text: str) -> None:
    assert in_words(n) == text


def test_small_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert article("SSE") == "an"
    assert article("log-likelihood") == "a"
    assert chance(0.43) == "two times in five"
    assert chance(0.05) == "one time in 20"
    assert one_in(1 / 287) == "one time in 290"
    assert one_in(1e-9) == "less than one time in 10\u202f000"


def test_every_start_is_counted_once_however_many_there_are() -> None:
    search: SearchReport = starts_at([1.0 + 0.01 * (i % 7) for i in range(500)])
    assert words.hit_rate(search) == pytest.approx(72 / 500)


@pytest.mark.parametrize(
    ("sense", "name", "gap", "much"),
    [
        ("min", "SSE", 0.12, True),
        ("min", "SSE", 0.3, False),
        ("max", "information share", 0.12, False),  # .89 of at most 1: nothing could be better by more
        ("max", "information share", 0.01, True),
        ("max", "log-likelihood", 0.12, True),
    ],
)
def test_a_bound_that_excludes_little_is_told_so(
    sense: Literal["min", "max"], name: str, gap: float, much: bool
) -> None:
    search = SearchReport((StartRecord("random", 0.89, 10, True),), name, sense)
    assert words.excludes_much(search, gap) == much
    assert ("loose" in words.certificate_headline(search, gap, "12 %")) != much


def test_a_race_with_one_leader_says_what_raced() -> None:
    search = replace(starts_at([10.0]), raced=(24, 144), effort="default")
    assert words.headline(search) == (
        "Only the best of 24 starts and 144 perturbations was run to convergence; "
        "effort='best' tells whether it is found again."
    )
    for said in (words.luck(search), words.agreement(search), words.headline(search)):
        assert "nothing can be said" not in said and "one start was" not in said
    for effort in ("best", ""):  # which is the longest search, or the model has but one
        assert "effort" not in words.headline(replace(search, effort=effort))


def test_where_no_search_is_needed_luck_is_no_question() -> None:
    search = replace(starts_at([10.0]), certain="The mean is the best centre.")
    assert words.headline(search) == "Only one start was run to convergence; no other can end better."
