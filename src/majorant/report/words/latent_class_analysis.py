"""The introduction of the report of a latent class analysis."""

from __future__ import annotations

from majorant.report.html import escaped
from majorant.report.measures.latent_class_analysis import LatentClasses
from majorant.report.section import Header
from majorant.report.words import facts
from majorant.report.words import mixture as mixture_words
from majorant.report.words.partition import plain_title, title


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
