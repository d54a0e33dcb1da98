"""The introduction of a mixture's report, its components, and warnings about degenerate ones."""

from __future__ import annotations

from majorant.report import numbers
from majorant.report.html import escaped
from majorant.report.measures.memberships import CLEAR
from majorant.report.measures.mixture import Mixture
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose, listed, opening, verb
from majorant.report.words.partition import parts, plain_title, title

MOST_WEIGHTS_IN_LEDE = 6
SMALL = 0.05
NOT_DETERMINED = "no solution was found whose components all have a shape that the rows determine"


def lede(mixture: Mixture) -> str:
    """State the weights, how clearly rows belong to components, and how reliable the fit is."""
    if not mixture.regular:
        return (
            f"<strong>This fit is degenerate</strong>: {_what_sets_it(mixture)} "
            "Its likelihood and criteria say nothing about the data."
        )
    return f"{_shares(mixture)} {search_words.agreement(mixture.search)}"


def header(mixture: Mixture) -> Header:
    """Return title, lede and five facts of a mixture."""
    return Header(plain_title(mixture), title(mixture), lede(mixture), facts.likelihood(mixture))


def _shares(mixture: Mixture) -> str:
    if mixture.k == 1:
        kind = "normal " if mixture.is_normal else ""
        return f"One {kind}{mixture.part} describes all rows on {counted(mixture.n_features, 'feature')}."
    if mixture.k <= MOST_WEIGHTS_IN_LEDE:
        shown = [numbers.percent(float(w), 0).removesuffix(f"{numbers.NARROW_SPACE}%") for w in mixture.weights]
        weights = f"of {listed(shown)}{numbers.NARROW_SPACE}% of the weight"
    else:
        weights = "share the rows"
    clear = f"{numbers.integer(mixture.n_clear)} of {numbers.integer(mixture.n_rows)} rows"
    belong = verb(mixture.n_clear, "belongs", "belong")
    return f"{capital(parts(mixture))} {weights}: {clear} {belong} to one with a probability above {CLEAR:.1f}."


def components_headline(mixture: Mixture) -> str:
    """State the weights of the components, in one sentence."""
    weights = mixture.weights
    if mixture.k == 1:
        return f"One {mixture.part} holds all rows."
    absent = int((weights == 0).sum())
    if absent:
        return f"{opening(absent)} of {in_prose(mixture.k)} {mixture.parts} {verb(absent, 'has', 'have')} no weight."
    largest, smallest = float(weights.max()), float(weights.min())
    least, most = int(weights.argmin()), int(weights.argmax())
    if smallest < SMALL:
        rows = f"about {numbers.integer(round(float(mixture.effective_sizes[least])))} rows"
        return f"{capital(mixture.part)} {least + 1} is small: {numbers.percent(smallest)} of the weight, {rows}."
    if largest <= 1.5 * smallest:
        return f"The {mixture.parts} are of similar weight."
    return (
        f"{capital(mixture.part)} {most + 1} holds {numbers.percent(largest, 0)} of the weight, "
        f"{mixture.part} {least + 1} only {numbers.percent(smallest, 0)}."
    )


def degenerate_notes(mixture: Mixture) -> list[str]:
    """Explain why a fit is degenerate, and what to do."""
    texts = [
        f"<b>What happened:</b> {_what_sets_it(mixture)} The likelihood of a mixture grows without limit when a "
        f"{mixture.part} collapses on few rows or on a plane.",
        f"<b>What to do:</b> try fewer {mixture.parts}, a simpler covariance_type (tied or diag), or more rows. Rows "
        "that repeat and columns that are functions of others are the usual cause.",
    ]
    if mixture.search.note:
        texts.append(f"{capital(mixture.search.note.rstrip('.'))}.")
    return texts


def _what_sets_it(mixture: Mixture) -> str:
    """State the model's own warning, or the general reason."""
    said = str(getattr(mixture.run.estimator, "degeneracy_", "")) or NOT_DETERMINED
    return f"{escaped(said)}."
