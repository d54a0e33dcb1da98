"""The report of each kind of model: a new kind is one more entry of the table.

Every model is of one kind. Sections of its own are named on its card: `majorant.registry.ModelCard.sections`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from majorant.registry import named

KINDS = {
    "classification": (
        "classification:Classification",
        "latent_classes classes:confusion classes classes:probabilities representation:topics representation:views "
        "representation:class_profiles representation:embedding representation:neighbours representation:optimality",
    ),
    "clustering": (
        "clustering:measure",
        "clusters profiles discriminants:map pair pair:strip clusters:silhouettes criteria",
    ),
    "mixture": (
        "mixture:Mixture",
        "regularity components profiles discriminants:map pair pair:strip uncertainty estimates:mixture_estimates "
        "criteria",
    ),
    "latent class analysis": (
        "latent_class_analysis:LatentClasses",
        "regularity class_profile:class_sizes class_profile:populations later_steps:invariance class_profile "
        "later_steps:correlations class_profile:effects later_steps:outcomes uncertainty class_fit "
        "class_fit:bivariate class_fit:assignment class_fit:classification estimates:mixture_estimates criteria",
    ),
    "representation": (
        "representation:Representation",
        "representation:topics representation:views representation:embedding representation:neighbours "
        "representation:optimality",
    ),
    "regression": (
        "regression:Regression",
        "regularity:left_out estimates lines:fit residuals:effects_of_features residuals residuals:quantiles "
        "residuals:separation criteria lines:optima",
    ),
}
"""What measures a fit of each kind, and the sections of its page in order.

A section is its file, and what its builder is called if not like the file. They come before those of the model and
`LAST`. Files are imported for the pages that have them.
"""
LAST = "search certificate convergence columns reproduce"
"""Sections at the end of every page: how the answer was found."""


def measure_of(kind: str) -> Any:
    """Return what measures a run and its card."""
    return named(f"majorant.report.measures.{KINDS[kind][0]}")


def header_of(kind: str) -> Any:
    """Return what writes the top of a page."""
    return named(f"majorant.report.opening:{kind.replace(' ', '_')}_header")


def builders(names: str) -> Iterator[Any]:
    """Yield the builders of sections."""
    for file, _, builder in (name.partition(":") for name in names.split()):
        yield named(f"majorant.report.sections.{file}:{builder or file}_section")
