"""Representations: certificate and penalty, features and views of each component, profiles of classes, a picture."""

from __future__ import annotations

import numpy as np

from majorant.models.harmonium.summary import held_out_loss_in_words
from majorant.report import numbers
from majorant.report.columns import bar_column
from majorant.report.fit import Fit
from majorant.report.html import column_name, escaped, facts, shortened
from majorant.report.measures.representation import Representation, representation_of
from majorant.report.section import Section
from majorant.report.table import Column, Table
from majorant.report.words import representation as words

MOST_COMPONENTS = 20
MOST_COLUMNS = 10
MOST_FEATURES = 5
MOST_CLASSES = 60


def optimality_section(fit: Fit) -> Section | None:
    """Build the section: the rank, penalty and certificate; None for a model that is no representation."""
    representation = representation_of(fit)
    if representation is None:
        return None
    model, certificate = representation.model, representation.model.certificate_
    eigenvalue = numbers.DASH if certificate.eigenvalue is None else numbers.distance(certificate.eigenvalue)
    largest = numbers.DASH if certificate.method == "cd" else numbers.distance(model.largest_l2_)
    figures = [
        ("Components", numbers.integer(certificate.rank), words.of_how_many(representation)),
        ("Smallest eigenvalue", eigenvalue, ""),
        ("Penalty", numbers.distance(model.l2_), ""),
        ("No component from", largest, ""),
    ]
    return Section(
        "optimality",
        "Global optimum",
        words.optimality_headline(representation),
        words.optimality_notes(representation),
        facts(figures, "four-figures"),
        table=_path(representation),
    )


def topics_section(fit: Fit) -> Section | None:
    """Build the section: the features of each component; None without components."""
    representation = representation_of(fit)
    if representation is None or not representation.rank:
        return None
    n = min(representation.rank, MOST_COMPONENTS)
    return Section(
        "topics",
        "Components",
        words.topics_headline(representation),
        words.topics_notes(representation, n),
        table=_topics(representation, n),
    )


def views_section(fit: Fit) -> Section | None:
    """Build the section: the share of each view in each component; None with one view or no component."""
    representation = representation_of(fit)
    if representation is None or not representation.rank or len(representation.views) < 2:
        return None
    n = min(representation.rank, MOST_COMPONENTS)
    columns = [
        Column(
            view,
            shares,
            [numbers.percent_in_column(share, 0) for share in shares],
            (),
            escaped(shortened(view, words.LONGEST_VIEW)),
            "number",
        )
        for view, shares in zip(representation.views, representation.shares[:, :n].tolist(), strict=True)
    ]
    return Section(
        "views",
        "Views",
        words.views_headline(representation),
        words.views_notes(),
        table=Table("views", [Column("Component", list(range(1, n + 1))), *columns]),
    )


def class_profiles_section(fit: Fit) -> Section | None:
    """Build the section: the mean representation of each class; None without classes or components."""
    representation = representation_of(fit)
    if representation is None or representation.classes is None or not representation.rank:
        return None
    names = representation.classes[0]
    if len(names) < 2:
        return None
    n = min(representation.rank, MOST_COLUMNS)
    names, profiles = names[:MOST_CLASSES], representation.profiles[:MOST_CLASSES, :n]
    columns = [Column("Class", names, markup=[escaped(shortened(name, words.LONGEST_VIEW)) for name in names])]
    for k, means in enumerate(profiles.T.tolist()):
        texts = [numbers.fixed(mean, 2) for mean in means]
        columns.append(Column(f"Component {k + 1}", means, texts, head_markup=str(k + 1), css="number"))
    return Section(
        "class-profiles",
        "Classes in components",
        words.profiles_headline(representation),
        words.profiles_notes(representation),
        table=Table("class-profiles", columns),
    )


def _topics(representation: Representation, n: int) -> Table:
    sizes = representation.sizes[:n].tolist()
    features = representation.features(MOST_FEATURES)[:n]
    columns = [
        Column("Nr", list(range(1, n + 1)), css="number"),
        Column("Weight", sizes, [numbers.percent_in_column(size, 0) for size in sizes], css="number"),
        bar_column([size / max(sizes) for size in sizes]),
        Column("Features", [None] * n, markup=[_topic(representation, f) for f in features], where="page"),
    ]
    for i, view in enumerate(representation.views):
        texts = [", ".join(of_one[i][1]) for of_one in features]
        columns.append(Column(view, texts, css="prose", where="copies"))
    return Table("topics", columns, css="stacks")


def _topic(representation: Representation, of_views: list[tuple[str, list[str]]]) -> str:
    lines = ""
    for view, features in of_views:
        signed = [f"{'+' if f[0] == '+' else numbers.MINUS}{column_name(f[1:])}" for f in features]
        if signed:
            name = f"<b>{escaped(shortened(view, words.LONGEST_VIEW))}</b> " if len(representation.views) > 1 else ""
            lines += f"<div>{name}{', '.join(signed)}</div>"
    return lines


def _path(representation: Representation) -> Table | None:
    """Return the penalties that were compared."""
    path = representation.model.l2_path_
    if not len(path):
        return None
    kept = np.flatnonzero(path[:, 0] == representation.model.l2_).tolist()
    penalties, losses = path.T.tolist()
    return Table(
        "penalties",
        [
            Column("Penalty", penalties, list(map(numbers.distance, penalties)), css="number", bold=kept),
            Column(
                held_out_loss_in_words(representation.model),
                losses,
                [numbers.fixed(v, 4) for v in losses],
                css="number",
                bold=kept,
            ),
        ],
    )
