"""Representations: features and views of components, classes in them, pictures of the rows, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from majorant.models.harmonium.summary import (
    SIGNS,
    held_out_loss_in_words,
    objective_in_words,
    other_choices_at_an_end,
    penalty_at_an_end,
    view_penalty_in_words,
)
from majorant.report import numbers
from majorant.report.charts.marks import N_COLOURS
from majorant.report.charts.svg import Canvas, Size, figure
from majorant.report.columns import bar_column, name_column, number_column, shares_column
from majorant.report.fit import Fit, largest
from majorant.report.html import LONGEST_NAME_IN_PROSE, column_name, escaped, facts, shortened
from majorant.report.measures.representation import Representation, representation_of
from majorant.report.section import Section
from majorant.report.sections.pair import MOST_PANELS, MOST_POINTS, Scatter, draw_scatter, draw_scatter_panels
from majorant.report.table import Column, Table
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb
from majorant.results.silhouettes import thinned_rows

MOST_COMPONENTS, MOST_COLUMNS, MOST_FEATURES, MOST_CLASSES = 20, 10, 5, 60
CARRIES = 0.8
"""Smallest share of a component at which a single view is said to dominate it."""


def topics_section(fit: Fit) -> Section | None:
    """Build the section: the features of each component; None without components."""
    representation = representation_of(fit, least_rank=1)
    if representation is None:
        return None
    rank, n = representation.rank, min(representation.rank, MOST_COMPONENTS)
    share = numbers.percent(float(representation.sizes[0]), 0)
    headline = f"{opening(rank)} components are used; the first has {share} of all weight."
    notes = [
        "<b>One line per component</b>, by decreasing variance of its expected value, with the features of largest "
        "positive (+) and negative (\u2212) weight in each view. <b>Weight</b> is its share of all squared weights.",
        SIGNS,
    ]
    if n < rank:
        notes.append(f"The first {in_prose(n)} of {in_prose(rank)} are shown.")
    sizes, features = representation.sizes[:n], representation.features(MOST_FEATURES)[:n]
    columns = [
        Column("Nr", range(1, n + 1), css="number"),
        shares_column("Weight", sizes.tolist(), 0),
        bar_column((sizes / sizes.max()).tolist()),
        Column("Features", [None] * n, markup=[_topic(f) for f in features], where="page"),
    ]
    for i, view in enumerate(representation.views):
        texts = [", ".join(of_one[i][1]) for of_one in features]
        columns.append(Column(view, texts, css="prose", where="copies"))
    return Section(
        "topics",
        "Components",
        "One component is used." if rank == 1 else headline,
        notes,
        table=Table("topics", columns, css="stacks"),
    )


def _topic(of_views: list[tuple[str, list[str]]]) -> str:
    """Return the features of one component, a line for each view."""
    lines = ""
    for view, features in of_views:
        signed = [f"{'+' if f[0] == '+' else numbers.MINUS}{column_name(f[1:])}" for f in features]
        name = f"<b>{escaped(shortened(view, LONGEST_NAME_IN_PROSE))}</b> " if len(of_views) > 1 else ""
        lines += f"<div>{name}{', '.join(signed)}</div>" if signed else ""
    return lines


def views_section(fit: Fit) -> Section | None:
    """Build the section: the share of each view in each component; None with one view or no component."""
    representation = representation_of(fit, least_rank=1)
    if representation is None or len(representation.views) < 2:
        return None
    n, views = min(representation.rank, MOST_COMPONENTS), representation.views
    heads = [escaped(shortened(view, LONGEST_NAME_IN_PROSE)) for view in views]
    columns = [Column("Component", range(1, n + 1))]
    for view, head, shares in zip(views, heads, representation.shares[:, :n].tolist(), strict=True):
        columns.append(shares_column(view, shares, 0, head_markup=head))
    alone = np.flatnonzero(representation.shares.max(axis=0) >= CARRIES)
    headline = f"{opening(len(alone))} of {in_prose(representation.rank)} components belong nearly to one view alone."
    if not len(alone):
        headline = "No component belongs to one view alone."
    elif len(alone) == 1:
        view = column_name(views[int(representation.shares[:, alone[0]].argmax())])
        headline = f"Component {alone[0] + 1} is nearly that of one view, {view}."
    note = (
        "<b>Shares of the views in each component</b>, by their squared weights in units of the variables\u2019 "
        "variances. A component of several views is what they have in common; one of a single view is its own."
    )
    return Section("views", "Views", headline, [note], table=Table("views", columns))


def class_profiles_section(fit: Fit) -> Section | None:
    """Build the section: the mean representation of each class; None without classes or components."""
    representation = representation_of(fit, least_rank=1)
    if representation is None or representation.classes is None or len(representation.classes[0]) < 2:
        return None
    n, profiles = min(representation.rank, MOST_COLUMNS), representation.profiles[:MOST_CLASSES]
    columns = [name_column("Class", representation.classes[0][:MOST_CLASSES])]
    for j, means in enumerate(profiles.T[:n].tolist()):
        columns.append(number_column(f"Component {j + 1}", means, 2, head_markup=str(j + 1)))
    how = (
        "For the divergence each row\u2019s components are made a distribution (less the smallest one, divided by "
        "the sum) and averaged within each class; it is the mean of (KL(p, q) + KL(q, p)) / 2 over all pairs of "
        "classes. "
    )
    if representation.rank == 1:  # a distribution over one component is always the same
        low, high = (_brief(float(end)) for end in (representation.profiles.min(), representation.profiles.max()))
        headline, how = f"Along the one component the means of the classes run from {low} to {high}.", ""
    else:
        headline = f"The mean divergence between classes is {numbers.distance(representation.divergence)}."
    note = f"<b>Mean of each component in each class.</b> {how}These are rows of the fit."
    table = Table("class-profiles", columns)
    return Section("class-profiles", "Classes in components", headline, [note], table=table)


def _brief(value: float) -> str:
    return numbers.fixed(value, 2) if 0.005 <= abs(value) < 1e4 or value == 0 else numbers.scientific(value, 2)


@dataclass(frozen=True)
class Embedding(Scatter):
    """Positions of rows in the plane, with the names of their groups."""

    names: tuple[str, ...] = ()

    def name(self, part: int) -> str:
        return self.names[part] if self.names else ""


def embedding_section(fit: Fit) -> Section | None:
    """Build the section: a picture of the first two components; None where there are fewer."""
    representation = representation_of(fit, least_rank=2)
    if representation is None:
        return None
    names, labels = _groups(representation)
    rows = thinned_rows(labels, np.bincount(labels, minlength=len(names)), MOST_POINTS)
    notes = [f"<b>Each mark is a row</b> at its expected values of the first two components.{_colours(representation)}"]
    if len(rows) < representation.n_rows:
        notes.append(f"{numbers.integer(len(rows))} rows are drawn, equally spaced.")
    places, title = representation.latents[rows, :2], "First two components"
    drawn = _picture("embedding", "by their first two components", places, labels[rows], names, "component")
    return Section("embedding", title, "Rows by their first two components.", notes, drawn)


def neighbours_section(fit: Fit) -> Section | None:
    """Build the section: a map by all components; None where there are two or fewer, or few rows."""
    representation = representation_of(fit, least_rank=2)
    if representation is None or representation.neighbourhoods is None:
        return None
    found = representation.neighbourhoods
    names, labels = _groups(representation)
    notes = [
        "<b>Each mark is a row.</b> t-SNE has put it beside the rows that are most like it in all components (about "
        f"{numbers.fixed(found.perplexity)} neighbours each).{_colours(representation)}",
        "<b>Interpret only neighbourhoods.</b> The axes have no meaning, nor has the size of a group. Distances "
        "between groups that lie far apart mean little: two that touch need not be more alike than two that do not.",
    ]
    if len(found.rows) < representation.n_rows:
        drawn = f"{numbers.integer(len(found.rows))} of {numbers.integer(representation.n_rows)} rows are drawn"
        notes.append(f"{drawn}, equally spaced in the order of the first component.")
    headline = f"Rows beside those that are most like them in all {in_prose(representation.rank)} components."
    picture = _picture("neighbours", "beside those most like them", found.places, labels[found.rows], names, "")
    return Section("neighbours", "All components", headline, notes, picture)


def _groups(representation: Representation) -> tuple[list[str], NDArray[np.int64]]:
    return representation.groups or ([""], np.zeros(representation.n_rows, dtype=np.int64))


def _picture(
    name: str, how: str, places: NDArray[np.float64], labels: NDArray[np.int64], names: list[str], axis: str
) -> str:
    """Return the figure of rows by group; without the name of an axis only neighbourhoods are meaningful."""
    axes = (f"{axis} 1", f"{axis} 2") if axis else ("", "")
    data = Embedding(places[:, 0], places[:, 1], labels, *axes, "class", {}, 0, not axis, tuple(names))
    sizes = np.bincount(labels, minlength=len(names))
    parts = np.flatnonzero(sizes).tolist()
    shown = largest(sizes, min(MOST_PANELS, len(parts)))

    def draw(size: Size) -> Canvas:
        if len(names) <= N_COLOURS:
            return draw_scatter(size, data, parts, len(names))
        return draw_scatter_panels(size, data, shown)

    return figure(name, f"Scatter plot of the rows {how}", draw)


def _colours(representation: Representation) -> str:
    """Say what colours are, and what else is to know of marks."""
    apart = representation.not_linked
    return _classes(representation) + (f"{apart} Rows of different ones cannot be compared." if apart else "")


def _classes(representation: Representation) -> str:
    if representation.classes is not None:
        return " Colours or panels are the classes of the target."
    if representation.groups is not None:
        target = column_name(representation.run.target_name)
        return f" Colours are terciles of {target}, from low to high."
    return ""


def optimality_section(fit: Fit) -> Section | None:
    """Build the section: the rank, penalty and certificate; None for a model that is no representation."""
    representation = representation_of(fit)
    if representation is None:
        return None
    model, certificate = representation.model, representation.model.certificate_
    eigenvalue = numbers.DASH if certificate.eigenvalue is None else numbers.distance(certificate.eigenvalue)
    most = numbers.DASH if certificate.method == "cd" else numbers.distance(model.largest_l2_)
    ratio = model.supervision_.penalty
    response = "" if ratio == 1 else f"of views, {numbers.distance(ratio * model.l2_)} of the response"
    figures = [
        ("Components", numbers.integer(certificate.rank), representation.of_how_many),
        ("Smallest eigenvalue", eigenvalue, ""),
        ("Penalty", numbers.distance(model.l2_), response),
        ("No component from", most, ""),
    ]
    return Section(
        "optimality",
        "Global optimum",
        optimality_headline(representation),
        optimality_notes(representation),
        facts(figures, "four-figures"),
        table=_path(representation),
    )


def _path(representation: Representation) -> Table | None:
    """Return the penalties that were compared."""
    path = representation.model.l2_path_
    if not len(path):
        return None
    kept = np.flatnonzero(path[:, 0] == representation.model.l2_).tolist()
    penalties, losses = path.T.tolist()
    loss = held_out_loss_in_words(representation.model)
    columns = [number_column("Penalty", penalties, numbers.distance, bold=kept)]
    return Table("penalties", [*columns, number_column(loss, losses, 4, bold=kept)])


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
    return "" if told is None else f" of {column_name(told)} given the other views"


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
