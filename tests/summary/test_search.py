"""The search report in words and in a table."""

from __future__ import annotations

from dataclasses import replace

from majorant.search import SearchReport, StartRecord
from majorant.summary import Summary, best_sentences, bound_sentence, luck_sentence, optima_table, search_block


def search(counts: dict[float, int], name: str = "SSE", sense: str = "min", bound: float | None = None) -> SearchReport:
    starts = tuple(StartRecord("random rows", o, 5, True) for o, n in counts.items() for _ in range(n))
    return SearchReport(starts, name, "max" if sense == "max" else "min", bound)


def text(found: SearchReport) -> str:
    return Summary("t", "s", [search_block(found)]).to_text(ascii_only=False).split("\n\n", 1)[1]


def test_mixture_as_in_the_design() -> None:
    found = search({145.417: 5, 141.1981: 71, 72.7241: 3, 13.306: 1}, "log-likelihood", "max")
    assert (
        text(found)
        == """\
SEARCH     80 starts, 4 distinct optima, best found 5 times, second 4.219 lower

  log-likelihood       lower   starts
         145.417                    5  ██▏
         141.198       4.219       71  ██████████████████████████████
          72.724      72.693        3  █▎
          13.306     132.111        1  ▍

  A single start would probably have missed the best optimum.
  Provable bound: not computed."""
    )
    assert best_sentences(found) == [
        "Best log-likelihood 145.417, reached by 5 of 80 starts.",
        "The second optimum is 4.219 lower; 71 starts stopped there.",
    ]


def test_at_most_six_optima_are_listed() -> None:
    found = search({100.0 + k: k + 1 for k in range(9)})
    assert optima_table(found).n_rows == 6
    assert "  3 more, up to 8.00 higher, from 24 starts." in text(found)


def test_one_start_proves_nothing() -> None:
    found = search({10.0: 1})
    assert "SEARCH     1 start" in text(found)
    assert luck_sentence(found) == "Only one start was run to convergence: whether another would end better is unknown."
    assert best_sentences(found) == ["Best SSE 10.00, from one start."]


def test_agreement() -> None:
    found = search({10.0: 12})
    assert luck_sentence(found) == "Every start reached the best optimum."
    assert best_sentences(found) == ["Best SSE 10.00, reached by all 12 starts."]
    assert "second" not in text(found)


def test_a_lucky_majority() -> None:
    assert "25 % of the time" in luck_sentence(search({10.0: 3, 11.0: 1}))


def searched(*values: float) -> SearchReport:
    """The first from a start, the others after perturbations."""
    starts = tuple(StartRecord("perturbation" if i else "k-means++", v, 3, True) for i, v in enumerate(values))
    return SearchReport(starts, "log-likelihood", "max", effort="default")


def test_a_search_and_its_perturbations_are_not_four_starts() -> None:
    found = searched(-9.0, -9.0, -9.0, -9.0)
    assert "SEARCH     1 start and 3 perturbations, 1 distinct optimum, found by all\n" in text(found)
    assert "3 perturbations of the best optimum returned to it." in text(found)
    assert best_sentences(found) == [
        "Best log-likelihood -9.000, reached by 1 start and 3 perturbations: by all that were run to convergence."
    ]


def test_only_perturbations_after_the_best_led_no_further() -> None:
    found = searched(-2073.05, -2056.18, -2040.99, -2064.38, -2055.78)
    assert luck_sentence(found) == (
        "2 perturbations after the best optimum was found gave nothing better. "
        "It was found only once and may not be the best; effort='best' searches longest."
    )
    assert luck_sentence(replace(found, effort="best")).endswith("It was found only once and may not be the best.")
    assert "best found by 1 perturbation, second 14.790 lower" in " ".join(text(found).split())
    assert best_sentences(found) == [
        "Best log-likelihood -2040.990, reached by 1 of 5 runs (1 start and 4 perturbations of the best so far).",
        "The second optimum is 14.790 lower; 1 perturbation stopped there.",
    ]
    last = luck_sentence(searched(-9.0, -8.0))
    assert last.startswith("No perturbation of the best optimum was run to convergence. It was found only once")
    assert (
        luck_sentence(searched(-9.0, -8.0, -8.0))
        == "1 perturbation after the best optimum was found gave nothing better."
    )


def test_descents_that_were_cut_short_have_no_optima() -> None:
    starts = tuple(StartRecord("perturbation" if i else "k-means++", 9.0 - i, 3, i == 2) for i in range(3))
    said = text(SearchReport(starts, "SSE"))
    assert "3 distinct ends" in said and "optima" not in said
    assert "2 of 3 runs were stopped early" in " ".join(said.split())
    said = text(SearchReport(starts[1:], "SSE"))
    assert "1 of 2 runs was stopped early" in " ".join(said.split())


def test_no_starts_are_said() -> None:
    assert "Nothing was recorded" in text(SearchReport((), "SSE"))


def test_small_gaps_stay_visible() -> None:
    assert "second 0.0013 higher" in text(search({12.0: 1, 12.0013: 1}))
    assert "e-14" in text(search({3.2e-14: 2, 3.4e-14: 1}))


def test_starts_at_the_limit_are_told() -> None:
    starts = (StartRecord("a", 1.0, 5, True), StartRecord("a", 2.0, 300, False))
    assert "1 of 2 starts stopped at the iteration limit" in text(SearchReport(starts, "SSE", note="On a sample."))
    assert "On a sample." in text(SearchReport(starts, "SSE", note="On a sample."))


def test_bounds_are_rounded_to_the_safe_side() -> None:
    low = bound_sentence(search({1277.93: 1}, bound=1266.8871))
    said = "no solution on these data has an SSE below 1266.88; this fit is within 0.88 % of the best possible."
    assert low == f"Provable bound: {said}"
    high = bound_sentence(search({-5.0: 1}, "log-likelihood", "max", bound=-4.89949))
    said = "no solution on these data has a log-likelihood above -4.899; this fit is within 0.11 log units"
    assert high == f"Provable bound: {said} of the best possible."
    said = bound_sentence(search({10.0: 1}, bound=10.0 - 1e-9))
    assert said.endswith("has an SSE lower by more than 1.1e-8 %; this fit is proved optimal.")
    assert "proved optimal" in bound_sentence(search({0.0: 1}, bound=0.0))


def test_a_race_with_one_leader_says_what_raced() -> None:
    found = replace(search({10.0: 1}), raced=(24, 144))
    said = " ".join([text(found), *best_sentences(found), luck_sentence(found)])
    assert said.count("24 starts and 144 perturbations") == 4
    assert "one start" not in said and "nothing tells" not in said and "1 start\n" not in said


def test_where_no_search_is_needed_luck_is_no_question() -> None:
    found = replace(search({10.0: 1}), certain="The mean is the best centre, so no better one exists.")
    assert luck_sentence(found) == "The mean is the best centre, so no better one exists."


def test_a_bound_that_was_not_worth_it_is_told() -> None:
    assert bound_sentence(replace(search({10.0: 3}), why_no_bound="none was found.")) == (
        "Provable bound: none was found."
    )


def test_a_report_comes_back_from_its_state() -> None:
    found = replace(search({10.0: 2}), raced=(3, 4), why_no_bound="none.", certain="So it is.", note="n", bound_on="b")
    assert SearchReport.from_state(found.to_state()) == found
