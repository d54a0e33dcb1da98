"""Sentences about a representation."""

from __future__ import annotations

import numpy as np

from majorant.models.harmonium.certificate import groups_in_words
from majorant.models.harmonium.summary import (
    SIGNS,
    has_grown,
    objective_in_words,
    other_choices_at_an_end,
    penalty_at_an_end,
    view_penalty_in_words,
)
from majorant.report import numbers
from majorant.report.html import escaped, shortened
from majorant.report.measures.representation import Representation
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb
from majorant.report.words.table import rows_of

LONGEST_VIEW = 28
CARRIES = 0.8
"""Smallest share of a component at which a single view is said to dominate it."""


def view_name(representation: Representation, number: int) -> str:
    """Return a view's name in prose, as markup."""
    return f"<i>{escaped(shortened(representation.views[number], LONGEST_VIEW))}</i>"


def of_how_many(representation: Representation) -> str:
    """Return the addition to the number of components."""
    model = representation.model
    if has_grown(model):
        return f"grown from {numbers.integer(model.n_components)}"
    return f"of {numbers.integer(model.n_allowed_)} at most"


def title(representation: Representation) -> str:
    """Return the title of the page, as markup."""
    rows = rows_of(representation.n_rows, representation.run.table_name)
    return f"{rows} in {counted(representation.rank, 'component')}"


def plain_title(representation: Representation) -> str:
    """Return the title of the window."""
    rows = counted(representation.n_rows, "row", words=False)
    parts = counted(representation.rank, "component")
    return f"{rows} of {representation.run.table_name} in {parts}: {representation.card.title}"


def lede(representation: Representation) -> str:
    """State what the representation joins, and how reliable the fit is."""
    n = len(representation.views)
    views = "one view" if n == 1 else f"{in_prose(n)} views"
    used = f"{opening(representation.rank)} {verb(representation.rank, 'component describes', 'components describe')}"
    shared = n > 1 and not representation.model.certificate_.unlinked
    what = f"what {views} have in common" if shared else "what the columns have in common"
    agreement = search_words.agreement(representation.search)
    if representation.model.certificate_.is_global:
        agreement = f"The fit is certified: with this penalty no harmonium is better{representation.proviso}."
    agreement += _not_linked(representation) + _explained(representation)
    if representation.rank == 0:
        return f"With this penalty the columns of {views} are best taken to be independent. {agreement}"
    return f"{used} {what}. {agreement}"


def _not_linked(representation: Representation) -> str:
    """Name the views of which rows do not say what they have in common."""
    unlinked = representation.model.certificate_.unlinked
    return f" No row has views of two of these groups: {escaped(groups_in_words(unlinked))}." if unlinked else ""


def header(representation: Representation) -> Header:
    """Return title, lede and five facts of a representation."""
    views = ("Views", numbers.integer(len(representation.views)), "")
    explained = representation.r2
    unit = "mean per row" if representation.model.method_ == "cd" else "penalised, mean per row"
    told = (
        facts.shape(representation),
        views if explained is None else ("R\u00b2", numbers.fixed(explained, 3), "on the rows of the fit"),
        ("Components", numbers.integer(representation.rank), of_how_many(representation)),
        facts.objective(representation, unit),
        facts.hits(representation),
    )
    return Header(plain_title(representation), title(representation), lede(representation), told)


def _explained(representation: Representation) -> str:
    """State how much of a numeric target's variance the components explain, on the rows of the fit."""
    if representation.r2 is None:
        return ""
    target = escaped(shortened(representation.run.target_name, LONGEST_VIEW))
    r2 = numbers.fixed(representation.r2, 3)
    return f" The R\u00b2 of <i>{target}</i> is {r2} on the rows of the fit; on new rows it is usually lower."


def optimality_headline(representation: Representation) -> str:
    """State the certificate in one sentence."""
    certificate = representation.model.certificate_
    used = capital(counted(certificate.rank, "component"))
    if certificate.is_global:
        enough = f"{used} {verb(certificate.rank, 'is', 'are')} enough"
        return f"{enough}: no harmonium with this penalty is better{representation.proviso}."
    if certificate.binds:
        n = certificate.n_components
        all_of = "The one component that may be is used" if n == 1 else f"All {counted(n, 'component')} are used"
        return f"{all_of}, and one more would be."
    used += f" {verb(certificate.rank, 'is', 'are')} used"
    if certificate.eigenvalue is None:
        none = "none holds where rows lack a Gaussian view"
        why = "contrastive divergence has none" if certificate.method == "cd" else none
        return f"{used}, without a certificate: {why}."
    if not certificate.has_ended:
        return f"{used}; the fit had not ended when it stopped."
    return f"{used}; a better harmonium is not ruled out."


def optimality_notes(representation: Representation) -> list[str]:
    """Explain the certificate, and how the penalty was chosen."""
    certificate = representation.model.certificate_
    texts = [escaped(certificate.sentence), escaped(objective_in_words(representation.model))]
    texts += [escaped(view_penalty_in_words(representation.model))]
    if certificate.by_lanczos:
        texts.append(
            "Of more than 2000 variables the smallest eigenvalue is one that Lanczos\u2019 method finds, less the norm "
            "of its residual: that an eigenvalue is so near is proved, that it is the smallest is not."
        )
    if certificate.eigenvalue is not None and not certificate.has_ended:
        texts.append("<b>What to do:</b> let the fit go on: a larger max_iter and a smaller tol.")
    if certificate.binds:
        texts.append("<b>What to do:</b> allow more components, if the number is not wanted for itself.")
    if len(representation.model.l2_path_):
        of_view = _of_the_view_told(representation)
        loss = f"the smallest loss{of_view} on rows that were held out"
        if representation.card.needs_target:
            loss = f"a loss of the target within one standard error of {loss}, and is the largest that has"
        texts.append(f"<b>The penalty</b> that is kept, in bold type, has {loss}; larger ones leave fewer components.")
        texts += _edge_of_the_path(representation)
    texts += map(escaped, other_choices_at_an_end(representation.model))
    return [text for text in texts if text]


def _of_the_view_told(representation: Representation) -> str:
    """State which view's held-out loss penalties are compared by; "" for that of all variables."""
    told = getattr(representation.model, "select_by", None)
    return "" if told is None else f" of <i>{escaped(shortened(told, LONGEST_VIEW))}</i> given the other views"


def _edge_of_the_path(representation: Representation) -> list[str]:
    """State whether the chosen penalty is the largest or the smallest tried."""
    losses = representation.model.l2_path_[:, 1]
    last = len(losses) - 1
    if last < 1:
        return []
    if edge := penalty_at_an_end(representation.model):
        return [f"<b>Note:</b> {escaped(edge[0].lower() + edge[1:])}"]
    if losses.argmin() == last:
        return ["The loss is least at the smallest penalty that was tried, but by no more than one standard error."]
    return []


def topics_headline(representation: Representation) -> str:
    """State the weight of the largest component."""
    share = numbers.percent(float(representation.sizes[0]), 0)
    if representation.rank == 1:
        return "One component is used."
    return f"{opening(representation.rank)} components are used; the first has {share} of all weight."


def topics_notes(representation: Representation, n_shown: int) -> list[str]:
    """State how to read the table."""
    texts = [
        "<b>One line per component</b>, by decreasing variance of its expected value, with the features of largest "
        "positive (+) and negative (\u2212) weight in each view. <b>Weight</b> is its share of all squared weights.",
        SIGNS,
    ]
    if n_shown < representation.rank:
        texts.append(f"The first {in_prose(n_shown)} of {in_prose(representation.rank)} are shown.")
    return texts


def views_headline(representation: Representation) -> str:
    """State whether components are shared by views."""
    alone = np.flatnonzero(representation.shares.max(axis=0) >= CARRIES)
    if not len(alone):
        return "No component belongs to one view alone."
    first = int(alone[0])
    view = view_name(representation, int(representation.shares[:, first].argmax()))
    if len(alone) == 1:
        return f"Component {first + 1} is nearly that of one view, {view}."
    return f"{opening(len(alone))} of {in_prose(representation.rank)} components belong nearly to one view alone."


def views_notes() -> list[str]:
    """State how to read the table."""
    return [
        "<b>Shares of the views in each component</b>, by their squared weights in units of the variables\u2019 "
        "variances. A component of several views is what they have in common; one of a single view is its own."
    ]


def profiles_headline(representation: Representation) -> str:
    """State how different the classes are."""
    if representation.rank == 1:  # a distribution over one component is always the same
        low, high = float(representation.profiles.min()), float(representation.profiles.max())
        return f"Along the one component the means of the classes run from {_brief(low)} to {_brief(high)}."
    return f"The mean divergence between classes is {numbers.distance(representation.divergence)}."


def _brief(value: float) -> str:
    return numbers.fixed(value, 2) if 0.005 <= abs(value) < 1e4 or value == 0 else numbers.scientific(value, 2)


def profiles_notes(representation: Representation) -> list[str]:
    """Explain what is averaged."""
    text = "<b>Mean of each component in each class.</b> "
    if representation.rank > 1:
        text += (
            "For the divergence each row\u2019s components are made a distribution (less the smallest one, divided by "
            "the sum) and averaged within each class; it is the mean of (KL(p, q) + KL(q, p)) / 2 over all pairs of "
            "classes. "
        )
    return [f"{text}These are rows of the fit."]


def embedding_headline(representation: Representation) -> str:
    """State what is drawn."""
    return "Rows by their first two components."


def embedding_notes(representation: Representation, n_drawn: int) -> list[str]:
    """Explain the picture."""
    texts = [f"<b>Each mark is a row</b> at its expected values of the first two components.{_colours(representation)}"]
    if n_drawn < representation.n_rows:
        texts.append(f"{numbers.integer(n_drawn)} rows are drawn, equally spaced.")
    return texts


def neighbours_headline(representation: Representation) -> str:
    """State what is drawn."""
    return f"Rows beside those that are most like them in all {in_prose(representation.rank)} components."


def neighbours_notes(representation: Representation, n_drawn: int, perplexity: float) -> list[str]:
    """Explain what the map shows, and what it does not."""
    texts = [
        "<b>Each mark is a row.</b> t-SNE has put it beside the rows that are most like it in all components (about "
        f"{numbers.fixed(perplexity)} neighbours each).{_colours(representation)}",
        "<b>Interpret only neighbourhoods.</b> The axes have no meaning, nor has the size of a group. Distances "
        "between groups that lie far apart mean little: two that touch need not be more alike than two that do not.",
    ]
    if n_drawn < representation.n_rows:
        drawn = f"{numbers.integer(n_drawn)} of {numbers.integer(representation.n_rows)} rows are drawn"
        texts.append(f"{drawn}, equally spaced in the order of the first component.")
    return texts


def _colours(representation: Representation) -> str:
    """Say what colours are, and what else is to know of marks."""
    apart = _not_linked(representation)
    return _classes(representation) + (f"{apart} Rows of different ones cannot be compared." if apart else "")


def _classes(representation: Representation) -> str:
    if representation.classes is not None:
        return " Colours or panels are the classes of the target."
    if representation.groups is not None:
        target = escaped(shortened(representation.run.target_name, LONGEST_VIEW))
        return f" Colours are terciles of <i>{target}</i>, from low to high."
    return ""
