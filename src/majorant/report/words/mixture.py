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


def components_notes(mixture: Mixture, n_shown: int, n_features_shown: int) -> list[str]:
    """Explain the columns of the table, and what is left out."""
    texts = [
        f"<b>Rows</b> counts every row by its probability. Under each feature stands the {mixture.part}\u2019s mean "
        "and, smaller, its standard deviation."
    ]
    left_out = mixture.n_features - n_features_shown
    if left_out > 0:
        texts.append(
            f"The features that the {mixture.parts} explain best are shown; {counted(left_out, 'other')} "
            f"{verb(left_out, 'is', 'are')} in <code>summary.json</code>."
        )
    if n_shown < mixture.k:
        texts.append(f"The {n_shown} heaviest of {mixture.k} {mixture.parts} are shown.")
    if mixture.n_missing:
        cells = numbers.integer(mixture.n_rows * mixture.n_features)
        missing = f"{numbers.integer(mixture.n_missing)} of {cells} cells {verb(mixture.n_missing, 'is', 'are')} empty"
        texts.append(f"<b>Missing values:</b> {missing}. The fit uses the values that are there and fills in none.")
    if mixture.run.weights is not None:
        texts.append("The fit counted rows by their weights; this table counts each once.")
    return texts


def estimates_headline(n_estimates: int, n_unknown: int) -> str:
    """Return one sentence on how many of the estimates shown the rows determine."""
    if not n_unknown:
        return "The rows determine every estimate that is shown."
    return f"{opening(n_unknown)} of {in_prose(n_estimates)} estimates {verb(n_unknown, 'has', 'have')} no interval."


def estimates_notes(mixture: Mixture, n_left_out: int) -> list[str]:
    """Say where the intervals come from, and what is left out."""
    texts = [
        "<b>An interval</b> is the estimate give or take 1.96 standard errors, from the observed information: on the "
        "logit scale for probabilities, on the log scale for positive numbers. An estimate at the edge of its range "
        f"has none. The intervals take the model and the number of {mixture.parts} as given."
    ]
    if mixture.run.standardised:
        texts.append("Estimates are those of standardised columns: mean 0, standard deviation 1.")
    if n_left_out:
        texts.append(
            f"At most eight of each kind are shown, of features those that the {mixture.parts} explain best; "
            f"{counted(n_left_out, 'other')} {verb(n_left_out, 'is', 'are')} in the copies below the table."
        )
    return texts


def degenerate_headline() -> str:
    """State that a degenerate fit must not be interpreted, in one sentence."""
    return "This fit is degenerate: nothing follows from its likelihood."


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
