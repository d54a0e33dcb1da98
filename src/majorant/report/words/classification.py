"""Sentences about a classification."""

from __future__ import annotations

import numpy as np

from majorant.report import numbers
from majorant.report.html import escaped, shortened
from majorant.report.measures.classification import Classification
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import search as search_words
from majorant.report.words.grammar import capital, counted, in_prose, opening, verb
from majorant.report.words.table import rows_of

LONGEST_CLASS = 28
ALIKE = 0.02
"""Largest difference of recalls that is not mentioned."""


def class_name(classification: Classification, number: int) -> str:
    """Return a class's name in prose, as markup."""
    return f"<i>{escaped(shortened(classification.names[number], LONGEST_CLASS))}</i>"


def classes(classification: Classification) -> str:
    """Return the number of classes in words: "three classes"."""
    n = classification.n_classes
    return f"{in_prose(n)} {verb(n, 'class', 'classes')}"


def title(classification: Classification) -> str:
    """Return the title of the page, as markup."""
    units = rows_of(classification.n_units, classification.run.table_name, classification.unit)
    return f"{units} in {classes(classification)}"


def plain_title(classification: Classification) -> str:
    """Return the title of the window."""
    rows = counted(classification.n_units, classification.unit, words=False)
    name = classification.run.table_name
    return f"{rows} of {name} in {classes(classification)}: {classification.card.title}"


def lede(classification: Classification) -> str:
    """State how many rows are predicted correctly, and how reliable the fit is."""
    agreement = search_words.agreement(classification.search)
    if classification.n_classes == 1:
        return f"There is one class, so every {classification.unit} is put into it. {agreement}"
    right = numbers.percent(classification.accuracy)
    return f"Of the {classification.unit}s of the fit {right} are put into their own class. {agreement}"


def header(classification: Classification) -> Header:
    """Return title, lede and five facts of a classification."""
    base = f"base rate {numbers.percent(classification.base_rate)}"
    told = (
        facts.shape(classification),
        ("Classes", numbers.integer(classification.n_classes), ""),
        ("Correct on the fit", numbers.percent(classification.accuracy), base),
        facts.objective(classification),
        facts.hits(classification),
    )
    return Header(plain_title(classification), title(classification), lede(classification), told)


def confusion_headline(classification: Classification) -> str:
    """State the most frequent confusion."""
    wrong = int(classification.sizes.sum()) - classification.right
    if wrong == 0:
        return f"Every {classification.unit} is put into its own class."
    worst = classification.confusions[0]
    truth, other = (class_name(classification, c) for c in (worst.truth, worst.taken_for))
    unit = classification.unit
    rows = f"{opening(wrong)} {verb(wrong, f'{unit} is', f'{unit}s are')} put into another class"
    if len(classification.confusions) == 1:
        return f"{rows}: {truth} into {other}."
    return f"{rows}, most often {truth} into {other}."


def confusion_notes(classification: Classification, n_listed: int | None) -> list[str]:
    """Explain the table: a list of `n_listed` confusions or, if None, a square of all classes."""
    unit = classification.unit
    if n_listed is None:
        texts = [f"<b>One line per class</b>, one column for what its {unit}s are taken for; those in bold are right."]
    else:
        texts = [
            f"<b>One line per confusion</b>, most {unit}s first; {classes(classification)} are too many for a square."
        ]
        if n_listed < len(classification.confusions):
            texts.append(f"{shown_of(n_listed, len(classification.confusions))}.")
    texts.append(f"These are the {unit}s of the fit. {unit.capitalize()}s that it has not seen will do worse.")
    if classification.run.weights is not None:
        texts.append(f"Every {unit} counts once, whatever its weight.")
    unknown = int((~classification.known).sum())
    if unknown:
        rows = capital(counted(unknown, unit))
        texts.append(f"{rows} of classes without weight {verb(unknown, 'is', 'are')} left out.")
    return texts


def shown_of(n_shown: int, n: int) -> str:
    """State how many of a list are shown, without a full stop."""
    return f"The {in_prose(n_shown)} largest of {in_prose(n)} are shown"


def classes_headline(classification: Classification) -> str:
    """State which class has the lowest recall."""
    recalls = classification.recalls
    if classification.n_classes == 1:
        return f"One class holds all {classification.unit}s."
    if float(np.nanmax(recalls) - np.nanmin(recalls)) < ALIKE:
        return "All classes are predicted about equally well."
    worst = int(np.nanargmin(recalls))
    share = numbers.percent(float(recalls[worst]), 0)
    return f"The hardest class is {class_name(classification, worst)}: {share} of it is predicted right."
