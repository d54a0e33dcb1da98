import itertools
import re

import numpy as np
import pytest

from majorant.report.charts.labels import Shelf, shorten, spread, text_width, wrapped
from majorant.report.charts.scales import Linear, Log, around_decades, log_tick_label, round_numbers, tick_labels
from majorant.report.charts.svg import Canvas, Size, coordinate
from majorant.report.sections.search import (
    Stacking,
    choose_stacking,
    distance_range,
    draw_starts,
    stack,
    starts_by_kind,
)

from .stand_in import starts_at


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 7.9), (1e-9, 2e-9), (123456, 123999), (-1e8, 1e8), (2, 2)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = round_numbers(low, high, 5)
    assert 1 <= len(ticks) <= 7
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= t <= high + slack for t in ticks)
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(ticks)


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_a_scale_has_two_ticks_wherever_it_lies(count: int) -> None:
    for low in np.linspace(-60.0, 60.0, 241):
        for span in (1e-7, 0.3, 1.0, 24.0, 71.9, 99.0):
            ticks = round_numbers(float(low), float(low + span), count)
            assert 2 <= len(ticks) <= count + 3
            assert low - 1e-6 <= ticks[0] < ticks[-1] <= low + span + 1e-6


def test_tick_labels_share_their_decimals() -> None:
    assert tick_labels([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert tick_labels([-1.0, 0.0, 1.0]) == ["\u22121", "0", "1"]
    assert tick_labels([0.0, 2e-5]) == ["0", "2\u00d710\u207b\u2075"]


@pytest.mark.parametrize(("low", "high"), [(0.8, 4.5), (3.0, 3.1), (1e-12, 1e6), (1e-300, 1e-299)])
def test_a_log_scale_has_a_tick_and_holds_its_data(low: float, high: float) -> None:
    bottom, top = around_decades(low, high)
    scale = Log(bottom, top, 0, 100)
    assert 1 <= len(scale.ticks(5)) <= 7
    assert 0 <= scale(low) <= scale(high) <= 100


def test_log_tick_labels() -> None:
    assert [log_tick_label(v) for v in (1e-6, 0.01, 0.5, 10.0, 10_000.0, 2e5)] == [
        "10\u207b\u2076",
        "0.01",
        "0.5",
        "10",
        "10\u202f000",
        "2\u00d710\u2075",
    ]


def test_an_empty_range_is_drawn_in_the_middle() -> None:
    assert Linear(1, 1, 0, 10)(1) == 5
    assert [Linear(5, 1, 0, 100)(v) for v in (5, 3, 1)] == [0, 50, 100]


def test_spread_moves_labels_apart_and_no_farther_than_needed() -> None:
    centres = spread([10, 11, 50], [8, 8, 8])
    assert np.allclose(centres, [6.5, 14.5, 50])
    assert np.allclose(spread([50, 0], [10, 10], 0, 100), [50, 5])
    assert np.all(np.diff(spread([5, 5, 5, 5], [4] * 4, 0, 100)) >= 4 - 1e-9)


def test_shortened_text_fits() -> None:
    text = "a column with a name of sixty characters, which is too long"
    assert text_width(shorten(text, 100)) <= 100
    assert shorten(text, 100).startswith("a co") and shorten(text, 100).endswith("ong")
    assert shorten("short", 100) == "short"


def test_text_is_wrapped_between_words_where_it_does_not_fit() -> None:
    assert wrapped("ball relaxation without labels", 156) == ["ball relaxation without", "labels"]
    assert wrapped("k-means++", 156) == ["k-means++"]
    for text in ("x" * 80, "x" * 80 + " y", "random partition " * 9):
        lines = wrapped(text, 156)
        assert len(lines) <= 2 and all(text_width(line) <= 156 for line in lines)


def test_a_shelf_takes_no_two_labels_that_touch() -> None:
    shelf = Shelf(gap=5)
    assert shelf.take(0, 10)
    assert not shelf.take(12, 20)
    assert shelf.take(15, 20)


@pytest.mark.parametrize("count", [1, 7, 60, 500, 12_000])
def test_dots_stay_in_their_room_and_a_single_start_never_vanishes(count: int) -> None:
    groups = [(20.0, count), (60.0, 1)]
    stacking = choose_stacking([(groups, 0.0, 80.0)])
    points = stack(groups, 100.0, 0.0, 80.0, stacking)
    assert len(points) == -(-count // stacking.unit) + 1
    assert all(0 <= x <= 80 and 100 - 8 * 6.4 - 5 <= y < 100 for x, y in points)
    assert len({(round(x, 3), round(y, 3)) for x, y in points}) == len(points)


@pytest.mark.parametrize(("value", "text"), [(1.04, "1"), (-0.01, "0"), (2.55, "2.5"), (-3.0, "-3")])
def test_coordinates_are_short(value: float, text: str) -> None:
    assert coordinate(value) == text


def test_text_is_escaped_and_its_long_form_kept() -> None:
    canvas = Canvas(Size("x", 340), 10)
    canvas.text(0, 0, "a<b\u2026", full='a<b & "c"')
    assert "a&lt;b\u2026</text>" in canvas.render("x")
    assert "<title>a&lt;b &amp; &quot;c&quot;</title>" in canvas.render("x")


def test_numbers_of_a_crowded_axis_of_distances_stand_apart() -> None:
    objectives = [0.9123, *(0.9123 - away for away in (0.0017, 0.004, 0.012, 0.03, 0.12, 0.3))]
    search = starts_at(objectives, sense="max")
    canvas = draw_starts(Size("e", 340), search, starts_by_kind(search), distance_range(search), Stacking(1, 1))
    found = re.findall(r'<text class="quiet mid-anchored" x="([\d.]+)" y="([\d.]+)">([^<]+)</text>', canvas.render("e"))
    lowest = max(float(y) for _, y, _ in found)
    ticks = sorted((float(x), label) for x, y, label in found if float(y) == lowest)
    assert len(ticks) >= 3
    for (x, label), (next_x, next_label) in itertools.pairwise(ticks):
        assert next_x - x >= (text_width(label) + text_width(next_label)) / 2
