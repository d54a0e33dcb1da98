"""Sentences about a latent class analysis: its classes, how well they fit, and what they depend on."""

from __future__ import annotations

from typing import Any

import numpy as np

from majorant.report import numbers
from majorant.report.html import column_name, escaped
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import mixture as mixture_words
from majorant.report.words.grammar import capital, counted, listed, verb
from majorant.report.words.partition import plain_title, title

LARGE_RESIDUAL = 4.0
MOST_PAIRS, MOST_PAIRS_IN_COPIES = 10, 200
NORMAL = 1.959963984540054
METHODS = {
    "ml": "three steps, maximum likelihood",
    "bch": "three steps, BCH",
    "two-step": "two steps",
    "naive": "three steps that take assignments for true, which is biased",
}
CLEARLY_APART = 0.8
HARDLY_APART = 0.5


def lede(classes: LatentClasses) -> str:
    """State the shares of the classes, how clearly rows belong to them, how reliable the fit is, and rows left out."""
    is_one = classes.k == 1 and classes.regular
    alone = "One class answers for all rows: the items are taken to be independent."
    texts = [alone if is_one else mixture_words.lede(classes)]
    texts += [f"<b>Note:</b> {escaped(said)}" for said in getattr(classes.run.estimator, "left_out_", ())]
    if classes.lacks_covariate.any():
        texts.append("Rows that lack a covariate are assigned to classes by their items and the shares of all rows.")
    return " ".join(texts)


def header(classes: LatentClasses) -> Header:
    """Return title, lede and five facts of a latent class analysis."""
    return Header(plain_title(classes), title(classes), lede(classes), facts.likelihood(classes))


def sizes_headline(classes: LatentClasses) -> str:
    """State the largest and the smallest class, in one sentence."""
    if classes.k == 1:
        return "One class holds all rows."
    shares = classes.weights
    largest, smallest = (numbers.percent(float(share), 0) for share in (shares.max(), shares.min()))
    return f"The largest class has {largest} of the rows, the smallest {smallest}."


def sizes_notes(classes: LatentClasses) -> list[str]:
    """Explain the columns."""
    texts = [
        "<b>Share</b> is the estimated share of the population. <b>Rows</b> counts those whose most probable class it "
        "is, and <b>certainty</b> is their mean probability of it."
    ]
    if classes.known_rows is not None:
        texts.append("<b>Known</b> counts the rows whose class was known before, which belong to it for certain.")
    if classes.n_missing:
        cells = numbers.integer(classes.n_rows * classes.n_features)
        missing = f"{numbers.integer(classes.n_missing)} of {cells} cells {verb(classes.n_missing, 'is', 'are')} empty"
        texts.append(f"<b>Missing cells:</b> {missing}. They are left out of their row only; none is filled in.")
    return texts


def populations_headline(populations: Any, shares: Any) -> str:
    """Name the class whose share differs most between populations, in one sentence."""
    k = int(np.ptp(shares, axis=1).argmax())
    most, least = int(shares[k].argmax()), int(shares[k].argmin())
    told = [f"{numbers.percent(float(shares[k, g]), 0)} of {escaped(populations.levels[g])}" for g in (most, least)]
    return f"Class {k + 1} differs most between populations: {told[0]}, {told[1]}."


def populations_notes(populations: Any) -> list[str]:
    """Say which items are measured alike in all populations."""
    names, free = populations.items.names, populations.free
    if not free:
        which = "all items: their answers have the same probabilities in all populations, class by class"
    elif populations.all_free:
        which = "none: each population has probabilities of its own"
    else:
        which = f"all items but {listed([column_name(names[j]) for j in free])}"
    return [
        f"<b>Populations</b> are those of {column_name(populations.name)}. <b>Measured alike:</b> {which}. "
        "<code>--invariance-tests</code>, or the method <code>invariance_tests</code>, compares these restrictions."
    ]


def profile_headline(classes: LatentClasses, item: str, level: str, high: int, low: int, values: Any) -> str:
    """Name what sets two classes most apart, in one sentence."""
    if classes.k == 1:
        return "What all rows answer."
    answer = f"\u201c{escaped(level)}\u201d to {column_name(item)}"
    return (
        f"{answer}: {numbers.percent(float(values[high]), 0)} in class {high + 1}, "
        f"{numbers.percent(float(values[low]), 0)} in class {low + 1}."
    )


def means_headline(classes: LatentClasses, item: str, high: int, low: int) -> str:
    """Name the number that sets two classes most apart, in one sentence."""
    if classes.k == 1:
        return "Means of all rows."
    return (
        f"The classes differ most in {column_name(item)}: class {high + 1} has the largest mean, class {low + 1} the "
        "smallest."
    )


def profile_notes(n_shown: int, n_rows: int, has_numbers: bool) -> list[str]:
    """Explain marks and intervals, and say what is left out."""
    texts = [
        "<b>Each mark</b> is the probability of an answer in a class, its line a 95\u202f% interval. A probability of "
        "0 or 1 has no interval. Of an item with two answers one is drawn."
    ]
    if has_numbers:
        texts.append("<b>Numbers</b> are drawn as means, in standard deviations from the mean of all rows.")
    if n_shown < n_rows:
        texts.append(
            f"The {n_shown} rows that differ most between classes are drawn; all {n_rows} are in the copies of the "
            "table."
        )
    return texts


def fit_headline(statistics: Any) -> str:
    """State how far the classes lie apart, in one sentence."""
    r2 = statistics.entropy_r2
    if r2 is None:
        return "Criteria of one class."
    apart = "clearly" if r2 >= CLEARLY_APART else "fairly well" if r2 >= HARDLY_APART else "hardly"
    return f"The classes lie {apart} apart: entropy R\u00b2 {numbers.fixed(r2, 2)}."


def fit_notes(statistics: Any) -> list[str]:
    """Explain criteria and tests, and what is not identified."""
    texts = [
        "<b>Criteria</b> compare numbers of classes: lower is better. G\u00b2 and X\u00b2 compare with the table of "
        "all items itself: small p-values say that more is going on than these classes explain. Where most cells of "
        "the table are nearly empty they are unreliable; <code>majorant.likelihood_ratio_test</code> is not."
    ]
    if statistics.unidentified:
        texts.append(f"<b>Not identified:</b> {escaped(statistics.unidentified)}")
    if statistics.entropy_r2 is not None and statistics.entropy_r2 < HARDLY_APART:
        texts.append(
            "<b>Classes that hardly lie apart</b> bias whatever is related to them in later steps: fit covariates "
            "together with the classes, in one step."
        )
    return texts


def residuals_headline(classes: LatentClasses) -> str:
    """Name the pair that the classes explain worst, in one sentence."""
    first, second, _, _, residual, _ = classes.residuals[0]
    if residual < LARGE_RESIDUAL:
        return "The classes explain how every pair of items hangs together."
    n = sum(row[4] >= LARGE_RESIDUAL for row in classes.residuals)
    pair = f"{column_name(first)} and {column_name(second)}"
    if n == 1:
        return f"One pair of items hangs together within classes: {pair}."
    return f"{capital(counted(n, 'pair'))} of items hang together within classes, {pair} most."


def residuals_notes(n_shown: int, n: int) -> list[str]:
    """Explain residuals, and say what is left out."""
    texts = [
        "<b>A bivariate residual</b> is the chi-squared of a pair of items against what the classes expect, divided by "
        f"its degrees of freedom. Well above {LARGE_RESIDUAL:.0f} the pair is not independent within classes: one "
        "class more, or one item less, may help."
    ]
    if n_shown < n:
        held = "all" if n <= MOST_PAIRS_IN_COPIES else f"the {MOST_PAIRS_IN_COPIES} largest"
        texts.append(f"The {n_shown} largest of {n} are shown; {held} are in the copies of the table.")
    return texts


def assignment_headline(assignment: Any) -> str:
    """State how many rows are assigned wrongly, in one sentence."""
    return f"About {numbers.percent(float(assignment.error))} of the rows are assigned to a class that is not theirs."


def effects_headline(effects: Any) -> str:
    """Name the covariates whose interval of the odds ratio leaves out 1, in one sentence."""
    known = np.isfinite(effects.standard_errors[1:]) & (effects.standard_errors[1:] > 0)
    z = np.divide(effects.coef[1:], effects.standard_errors[1:], out=np.zeros_like(effects.coef[1:]), where=known)
    telling = [column_name(n) for j, n in enumerate(effects.names) if j and (np.abs(z[:, j]) > 1.96).any()]
    if not telling:
        return "No covariate changes the odds of a class beyond chance."
    return f"{listed(telling)} {verb(len(telling), 'changes', 'change')} the odds of the classes."


def effects_notes(effects: Any) -> list[str]:
    """Explain odds ratios, and how the covariates are taken in."""
    how = "Effects and classes are estimated together, in one step."
    if effects.method != "one-step":
        how = (
            f"The classes were found first, and the effects after them ({METHODS[effects.method]}); errors account for "
            "the classes having been estimated."
        )
    texts = [
        "<b>An odds ratio</b> tells by how much the odds of a class against class 1 are multiplied for one unit more "
        "of a covariate, or for a level of text against the level in brackets; 1 is no change. " + how
    ]
    is_told = effects.left_out and effects.method != "one-step"
    return [*texts, f"<b>Note:</b> {escaped(effects.left_out)}: left out here."] if is_told else texts


def outcomes_headline(found: Any) -> str:
    """Name the outcomes that differ between the classes beyond chance, in one sentence."""
    if any(len(outcome.estimates) == 1 for outcome in found.values()):
        return "What follows in all rows."
    telling = [column_name(name) for name, outcome in found.items() if outcome.test().p_value < 0.05]
    if not telling:
        return "No outcome differs between the classes beyond chance."
    return f"{listed(telling)} {verb(len(telling), 'differs', 'differ')} between the classes."


def outcomes_notes(classes: LatentClasses, found: Any) -> list[str]:
    """Explain estimates and tests, and say what is left out."""
    method = METHODS[next(iter(found.values())).method]
    texts = [
        "<b>Means</b> of numbers and <b>shares</b> of answers in each class, found after the classes "
        f"({method}), with errors that account for the classes having been estimated."
    ]
    if classes.k > 1:
        texts.append(
            "<b>Chi-squared</b> tests that an outcome is the same in all classes; the copies below have the test of "
            "each pair of classes."
        )
    told = [f"{escaped(outcome.left_out)} ({column_name(n)})" for n, outcome in found.items() if outcome.left_out]
    return [*texts, f"<b>Note:</b> {'; '.join(told)}: left out here."] if told else texts


def invariance_headline(found: Any) -> str:
    """State what the test of all items at once says."""
    return f"{escaped(found.sentence.split(';')[0].rstrip('.'))}."


def invariance_notes(found: Any) -> list[str]:
    """Explain the models and their tests."""
    texts = [
        "<b>Each row</b> is a fit: all items measured alike in all populations, with shares of the classes of their "
        "own or the same; one item with parameters of its own in each population; and all items so. "
        "<b>Chi-squared</b> tests it against \u201call equal\u201d: a small p-value says that the restriction of the "
        "smaller of both does not hold. With many items, some small p-values are due to chance."
    ]
    if degenerate := [escaped(name) for name, is_fine in zip(found.models, found.regular, strict=True) if not is_fine]:
        texts.append(f"<b>Degenerate</b>, so that their tests mean nothing: {listed(degenerate)}.")
    return texts


def correlations_headline(first: str, second: str, correlations: Any) -> str:
    """State the strongest correlation within a class, in one sentence."""
    k = int(np.abs(correlations).argmax())
    value = numbers.fixed(float(correlations[k]), 2)
    return f"{column_name(first)} and {column_name(second)} have a correlation of {value} in class {k + 1}."


def correlations_notes(variances: str) -> list[str]:
    """Explain variances, covariances and correlations."""
    same = " They are the same in all classes." if variances == "shared" else ""
    return [
        "<b>Variances and covariances within a class</b>, with 95\u202f% intervals, and what these are as correlations."
        + same
    ]
